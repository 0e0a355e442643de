"""Does a write wait for the durability that was requested, and does every result store it?

The checks are independent: a library between uflip and the kernel records system calls, and the
kernel counts the flushes of a block device. Simulated times are tested in
`crates/sim/tests/durability.rs`.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import injection
import pytest
from command_line import uflip

import uflip as library
from uflip.benchmark import next_state_id
from uflip.device.opener import open_device
from uflip.durability import describe_durability, durability_or_default
from uflip.errors import UsageError
from uflip.results import Results, differences, summary

MIB = 1 << 20
WRITES = 12
# Writes of 4 KiB, enough for each form of durability to differ from the others.
PATTERN = ("--pattern", "SW", "--io-size", "4k", "--io-count", str(WRITES), "--json")
FLUSHES = {"cached": 0, "flush:5": 2, "flush:1": WRITES}
SMALL_SIM = "sim:demo?blocks_per_die=64&write_cache_bytes=262144"


# Requested durability


@pytest.mark.parametrize("text", ["", "FUA", "flush", "flush:0", "flush:-1", "flush:x", "o_sync"])
def test_unknown_durability_is_refused_with_the_known_ones(text: str) -> None:
    for verb in ("run", "plan", "pattern"):
        outcome = uflip(verb, "null", "--durability", text)
        assert outcome.code == 2
        assert "--durability" in outcome.err
        for form in ("cached", "fua", "flush:N"):
            assert form in outcome.err


def test_default_durability_is_never_memory_alone() -> None:
    assert (durability_or_default(None), durability_or_default(None, buffered=True)) == (
        "cached",
        "fua",
    )


def test_flush_count_may_have_a_suffix() -> None:
    assert durability_or_default("flush:1k") == "flush:1000"
    outcome = uflip("pattern", "null", "--pattern", "SW", "--durability", "flush:2k", "--json")
    assert json.loads(outcome.out)["durability"] == "flush:2000"
    assert durability_or_default("cached", buffered=True) == "cached"
    assert "page cache" in describe_durability("cached", buffered=True)
    with pytest.raises(UsageError):
        open_device("null", durability="flush")


# System calls and flushes


@pytest.fixture(scope="module")
def injector() -> injection.Injector:
    return injection.build("scratch.bin")


def calls_of(injector: injection.Injector, workdir: Path, *options: str) -> list[str]:
    """Return the writes and flushes of a pattern on an existing file, in order."""
    calls = injector.calls("pattern", "file:scratch.bin", *PATTERN, *options, log=workdir / "log")
    names = ("pwrite", "fdatasync", "fsync")
    return [call.name.removesuffix("64") for call in calls if call.name.startswith(names)]


def test_system_calls_match_the_durability(
    make_file: Callable[..., Path], workdir: Path, injector: injection.Injector
) -> None:
    make_file(MIB)
    durable = ["pwritev2:dsync"] * WRITES
    assert calls_of(injector, workdir) == ["pwrite"] * WRITES
    assert calls_of(injector, workdir, "--durability", "fua") == durable
    assert calls_of(injector, workdir, "--buffered") == durable
    flushed = (["pwrite"] * 5 + ["fdatasync"]) * 2 + ["pwrite"] * 2
    assert calls_of(injector, workdir, "--durability", "flush:5") == flushed
    reads = injector.calls("pattern", "file:scratch.bin", "--pattern", "SR", "--io-count", "9",
                           "--durability", "flush:1", log=workdir / "log")  # fmt: skip
    assert not [call for call in reads if call.name == "fdatasync"]


def test_parallel_processes_share_the_flush_count(
    make_file: Callable[..., Path], workdir: Path, injector: injection.Injector
) -> None:
    make_file(MIB)
    calls = calls_of(injector, workdir, "--parallel-degree", "4", "--durability", "flush:3")
    assert (calls.count("pwrite"), calls.count("fdatasync")) == (4 * WRITES, 4 * WRITES // 3)


def test_created_file_and_state_are_flushed(
    make_file: Callable[..., Path], workdir: Path, injector: injection.Injector
) -> None:
    make_file(MIB).unlink()
    calls = injector.calls("prepare", "file:scratch.bin", "--size", "1MiB", "--record", "record",
                          log=workdir / "log")  # fmt: skip
    names = [call.name.removesuffix("64") for call in calls]
    last_write = max(position for position, name in enumerate(names) if name == "pwrite")
    assert "fdatasync" in names[last_write:]
    assert names.count("fdatasync") == 2, "one after the file, one after the state"


@pytest.mark.parametrize("call", ["fdatasync", "pwritev2:dsync"])
def test_failed_flush_is_an_error(
    make_file: Callable[..., Path], workdir: Path, injector: injection.Injector, call: str
) -> None:
    make_file(MIB)
    durability = "flush:5" if call == "fdatasync" else "fua"
    command = ("pattern", "file:scratch.bin", *PATTERN, "--durability", durability)
    number = next(
        each.number for each in injector.calls(*command, log=workdir / "log") if each.name == call
    )
    outcome = injector.run(*command, at=number, errno=injection.errno_of("EIO"))
    assert outcome.returncode == 4, outcome.stderr
    assert "Input/output error" in outcome.stdout + outcome.stderr


def flushes_of(device: str) -> int:
    """Return the kernel's count of flushes (Documentation/block/stat.rst, since Linux 5.5)."""
    fields = Path("/sys/block", Path(device).name, "stat").read_text().split()
    if len(fields) < 17:
        pytest.skip("this kernel does not count flushes")
    return int(fields[15])


def test_kernel_counts_flushes_of_a_block_device(loop_device: str) -> None:
    cache = Path("/sys/block", Path(loop_device).name, "queue/write_cache")
    if cache.read_text().strip() != "write back":
        pytest.skip("this loop device has no volatile cache to flush")
    token = next(each["token"] for each in library.known_devices() if each["url"] == loop_device)
    spec = library.baseline("SW", io_size=4096, io_count=WRITES)
    for durability in (*FLUSHES, "fua"):
        with open_device(loop_device, durability=durability, destroy=token) as device:
            before = flushes_of(loop_device)
            device.run(spec)
            flushes = flushes_of(loop_device) - before
        if durability == "fua":
            # On a device with a cache and without FUA, one flush follows each write, or two:
            # one in place of FUA, and one that the kernel requests for any device.
            assert flushes in (WRITES, 2 * WRITES)
        else:
            assert flushes == FLUSHES[durability], durability
        token = next(
            each["token"] for each in library.known_devices() if each["url"] == loop_device
        )


# Stored durability


def test_durability_option_reaches_the_simulated_cache(workdir: Path) -> None:
    assert workdir.is_dir()

    def mean_ms(durability: str) -> float:
        outcome = uflip("pattern", SMALL_SIM, *PATTERN, "--durability", durability)
        document = json.loads(outcome.out)
        assert document["durability"] == durability
        return float(document["statistics"]["mean_ns"]) / 1e6

    cached, fua, each, every_fourth = map(mean_ms, ("cached", "fua", "flush:1", "flush:4"))
    assert cached < every_fourth < each
    # Bypassing an empty cache and flushing one page are the same work for the flash.
    assert fua == pytest.approx(each, rel=0.02)


def test_clone_and_cached_device_keep_the_durability() -> None:
    spec = library.baseline("SW", io_size=4096, io_count=WRITES)
    with open_device(SMALL_SIM, durability="fua") as device:
        copy = device.clone()
        device.enforce({"state": "sequential"})
        assert (device.durability, copy.durability) == ("fua", "fua")
        slow = device.run(spec).elapsed_ns()
    with open_device(SMALL_SIM) as device:
        device.enforce({"state": "sequential"})
        assert device.run(spec).elapsed_ns() < slow / 2


def test_resumed_benchmark_keeps_its_durability(workdir: Path) -> None:
    arguments = ("run", SMALL_SIM, "--scale", "quick", "--only", "granularity", "-q")
    durable = ("--durability", "flush:8")
    assert uflip(*arguments, *durable, "--out", "whole").code == 0
    shutil.copytree("whole", "cut")
    for run in Results.load("cut").runs[-2:]:
        run.path.unlink()
    for other in ("cached", "flush:8"):
        refused = uflip("run", "--resume", "cut", "--durability", other)
        assert refused.code == 2
        assert "--durability" in refused.err
    assert uflip("run", "--resume", "cut", "-q").code == 0
    whole, cut = Results.load("whole"), Results.load("cut")
    assert whole.manifest.durability == cut.manifest.durability == "flush:8"
    for one, other_run in zip(whole.runs, cut.runs, strict=True):
        assert one.response_time_ns().tolist() == other_run.response_time_ns().tolist()
    shown = uflip("show", "cut")
    assert "durability flush:8" in shown.out
    assert uflip("report", "cut", "--out", "report.html").code == 0
    assert "its time is part of the last one" in (workdir / "report.html").read_text()


def test_plan_stores_the_durability(workdir: Path) -> None:
    planned = uflip("plan", SMALL_SIM, "--only", "order", "--scale", "quick", "--durability", "fua",
                 "--out", "plan.toml")  # fmt: skip
    assert planned.code == 0, planned.err
    assert "survive a loss of power" in planned.out
    text = (workdir / "plan.toml").read_text()
    assert '\ndurability = "fua"\n' in text
    document = json.loads(uflip("plan", SMALL_SIM, "--plan", "plan.toml", "--json").out)
    assert document["durability"] == "fua"
    refused = uflip("plan", SMALL_SIM, "--plan", "plan.toml", "--durability", "cached")
    assert refused.code == 2
    for wrong, words in (("", "durability"), ('durability = "o_sync"\n', "flush:N")):
        (workdir / "wrong.toml").write_text(text.replace('durability = "fua"\n', wrong))
        outcome = uflip("plan", SMALL_SIM, "--plan", "wrong.toml")
        assert outcome.code == 2
        assert words in outcome.err


def test_myers_sinclair_preset_uses_fua(workdir: Path) -> None:
    assert workdir.is_dir()
    command = ("pattern", SMALL_SIM, "--preset", "myers-sinclair", "--batches", "1", "--io-count",
               "100", "--json")  # fmt: skip
    assert json.loads(uflip(*command).out)["durability"] == "fua"
    assert json.loads(uflip(*command, "--durability", "cached").out)["durability"] == "cached"


# Effects of durability


def test_comparing_different_durabilities_gives_a_warning(workdir: Path) -> None:
    assert workdir.is_dir()
    for name, options in {"a": (), "b": ("--durability", "fua"), "c": ("--seed", "7")}.items():
        outcome = uflip("run", "null", "--only", "granularity", "--scale", "quick", "--pause",
                        "1ms", "--out", name, "-q", *options)  # fmt: skip
        assert outcome.code == 0, outcome.err
    a, b, c = (summary(Results.load(name)) for name in "abc")
    assert differences(a, a) == []
    (warning,) = differences(a, b)
    assert warning.code == "different_durability"
    assert warning.numbers == {"first": "cached", "second": "fua"}
    assert "loss of power" in warning.message
    assert [each.code for each in differences(b, c)] == ["different_durability", "different_seed"]


def test_state_id_depends_on_the_durability() -> None:
    spec = library.baseline("SW", io_count=8)
    names = {next_state_id("s", spec, 8, form) for form in ("cached", "fua", "flush:2", "flush:3")}
    assert len(names) == 4
    assert next_state_id("s", spec, 8) in names
