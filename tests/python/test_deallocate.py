"""Is deallocated data gone, on every kind of device, and no other data?

Simulated devices are compared with theory: deallocated pages are spare space, so random writes to
the other pages cost as on a device with a larger spare factor.
"""

import json
import os
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from command_line import uflip
from msgspec import structs
from nbd import Client, serving

from uflip.data.device import DeviceDetails
from uflip.data.spec import read_spec
from uflip.device.catalogue import inspect_device, report_block
from uflip.device.handle import Device
from uflip.device.opener import open_device
from uflip.errors import DeviceError, UflipError, UsageError
from uflip.microbench.experiment import Context
from uflip.microbench.today import deallocate
from uflip.models import write_amplification as theory
from uflip.results import Results
from uflip.spec import Basic, basic, mix, parallel

MIB = 1 << 20
BLOCKS, PAGES, RESERVED = 1024, 64, 1
SPARE = 0.1
SIMULATED = (
    f"sim:ofc?spare_factor={SPARE}&blocks_per_die={BLOCKS}&pages_per_block={PAGES}&channels=1"
    f"&dies_per_channel=1&metadata_pages=0&reserved_blocks={RESERVED}&gc=greedy&state=sequential"
)


@pytest.mark.parametrize("percent", [0, 10, 25, 50])
def test_deallocated_space_is_spare(percent: int) -> None:
    with open_device(SIMULATED) as device:
        page = device.info.page_bytes
        assert page is not None
        pages = device.info.capacity_bytes // page
        valid_pages = pages * (100 - percent) // 100
        device.trim(valid_pages * page, (pages - valid_pages) * page)
        # Every block is collected several times before the counted run.
        for seed, multiple in ((1, 6), (2, 6)):
            counters = device.apply(
                basic(
                    "write", "random", io_size=page, io_count=multiple * valid_pages, seed=seed,
                    target_size=valid_pages * page,
                )
            )  # fmt: skip
    spare = theory.pool_spare_factor(
        physical_blocks=BLOCKS,
        pages_per_block=PAGES,
        logical_pages=valid_pages,
        held_blocks=RESERVED + 1,
    )
    expected = theory.greedy(spare_factor=spare, pages_per_block=PAGES)
    simulated = counters["pages_programmed"] / counters["host_pages_written"]
    assert simulated == pytest.approx(expected, rel=0.015)


def test_trim_punches_a_hole_in_a_file(workdir: Path) -> None:
    with open_device("file:f", size=8 * MIB, buffered=True) as device:
        before = Path("f").read_bytes()
        device.trim(2 * MIB, 3 * MIB)
    after = Path("f").read_bytes()
    assert after[2 * MIB : 5 * MIB] == bytes(3 * MIB) != before[2 * MIB : 5 * MIB]
    assert (after[: 2 * MIB], after[5 * MIB :]) == (before[: 2 * MIB], before[5 * MIB :])
    assert Path("f").stat().st_blocks * 512 <= 5 * MIB + 65536


def test_read_only_file_is_not_deallocated(workdir: Path) -> None:
    with open_device("file:f", size=MIB, buffered=True):
        pass
    before = Path("f").read_bytes()
    with (
        open_device("file:f", writable=False, buffered=True) as device,
        pytest.raises(DeviceError, match="could not be deallocated"),
    ):
        device.trim(0, MIB)
    assert Path("f").read_bytes() == before


@pytest.mark.parametrize("url", ["sim:demo?blocks_per_die=64", "null"])
def test_invalid_range_is_refused(url: str) -> None:
    with open_device(url) as device:
        capacity = device.info.capacity_bytes
        for offset, size in ((capacity, 4096), (0, capacity + 512), (2**64 - 512, 512), (7, 512)):
            with pytest.raises(UsageError, match="not a sector range"):
                device.trim(offset, size)


def test_nbd_server_receives_trims(workdir: Path) -> None:
    with serving("sim:demo?blocks_per_die=64", "--speed", "0", "--data", "disk"):
        with Client("s") as client:
            client.go()
            assert client.write(0, b"x" * MIB) == 0
        with open_device("nbd:unix:s", destroy="nbd:unix:s") as device:
            device.trim(4096, 65536)
        expected = b"x" * 4096 + bytes(65536) + b"x" * (MIB - 4096 - 65536)
        assert Path("disk").read_bytes()[:MIB] == expected
        with (
            open_device("nbd:unix:s", writable=False) as device,
            pytest.raises(UflipError, match="for reading only"),
        ):
            device.trim(0, 4096)
        assert Path("disk").read_bytes()[:MIB] == expected


@pytest.fixture
def loop(workdir: Path) -> Iterator[tuple[str, Path]]:
    """A block device, and the file below it."""
    if os.geteuid() != 0 or not shutil.which("losetup") or not Path("/dev/loop-control").exists():
        pytest.skip("loop devices need root, losetup and /dev/loop-control")
    disk = workdir / "disk"
    disk.write_bytes(b"x" * 8 * MIB)
    command = ["losetup", "-f", "--show", str(disk)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        pytest.skip(f"no loop device: {process.stderr.strip()}")
    yield process.stdout.strip(), disk
    subprocess.run(["losetup", "-d", process.stdout.strip()], check=True)


def test_block_device_discards(loop: tuple[str, Path]) -> None:
    name, disk = loop
    with (
        open_device(name, writable=False, buffered=True) as device,
        pytest.raises(DeviceError, match="could not be deallocated"),
    ):
        device.trim(0, 4096)
    assert disk.read_bytes() == b"x" * 8 * MIB
    token = str(report_block(name)["token"])
    with open_device(name, destroy=token, buffered=True) as device:
        device.trim(MIB, 2 * MIB)
    content = disk.read_bytes()
    assert content[MIB : 3 * MIB] == bytes(2 * MIB)
    # Other ranges are unchanged but for the marks that opening leaves.
    assert content[3 * MIB : 7 * MIB] == b"x" * 4 * MIB


def response_times_of(device: Device, spec: Basic) -> list[int]:
    times: list[int] = np.asarray(device.run(spec).column("response_time_ns")).tolist()
    return times


def test_trim_and_reads_of_trimmed_pages_need_no_flash() -> None:
    """Closed form: a trim takes one command; a read takes a command and the link."""
    with open_device(SIMULATED) as device:
        timing = device.info.profile_table["timing"]
        page, capacity = device.info.page_bytes, device.info.capacity_bytes
        assert page is not None
        trims = basic("trim", "sequential", io_size=64 * page, target_size=capacity, io_count=20)
        took = response_times_of(device, trims)
        assert took == [timing["command_write_ns"]] * 20
        read = basic("read", "random", io_size=page, target_size=20 * 64 * page, io_count=50)
        took = response_times_of(device, read)
        link = page * 1_000_000_000 / timing["link_bytes_per_s"]
        assert took == pytest.approx([timing["command_read_ns"] + link] * 50, abs=1)
        took = response_times_of(device, read.but(target_offset=20 * 64 * page))
        assert min(took) >= timing["command_read_ns"] + timing["read_ns"]


def test_random_writes_after_a_full_trim_cost_as_on_a_new_device() -> None:
    """A new device has fewer erases; without their time it is the same to a nanosecond."""
    took = {}
    for state in ("empty", "random"):
        url = SIMULATED.replace("state=sequential", f"state={state}") + "&erase_ns=0&collect_ns=0"
        with open_device(url) as device:
            page, capacity = device.info.page_bytes, device.info.capacity_bytes
            assert page is not None
            if state == "random":
                whole = 1 << 20
                count = capacity // whole
                spec = basic("trim", "sequential", io_size=whole, io_count=count)
                assert device.run(spec).bytes_trimmed == count * whole
                device.trim(count * whole, capacity - count * whole)
            half = capacity // page // 2
            writes = basic("write", "random", io_size=page, io_count=half, seed=3)
            trace = device.run(writes)
            counters = json.loads(trace.counters_json() or "{}")
            assert counters["pages_relocated"] == 0
            assert counters["pages_programmed"] == counters["host_pages_written"] == half
            took[state] = np.asarray(trace.column("response_time_ns")).tolist()
    assert took["random"] == took["empty"]


@pytest.mark.parametrize("trimmed_percent", [20, 40])
def test_trims_among_random_writes_act_as_spare_space(
    trimmed_percent: int,
) -> None:
    """Frankie et al.: of pages that random writes and trims hit by chance p, 1 − p hold data.

    Every valid page is equally likely to be invalidated next, so that greedy collection amplifies
    as on a device with as many logical pages as hold data.
    """
    writes, trims = basic("write", "random"), basic("trim", "random")
    with open_device(SIMULATED) as device:
        page = device.info.page_bytes
        assert page is not None
        pages = device.info.capacity_bytes // page
        for seed in (1, 2):
            spec = mix(
                writes.but(io_size=page),
                trims.but(io_size=page),
                first_percent=100 - trimmed_percent,
                io_count=12 * pages,
                seed=seed,
            )
            counters = device.apply(spec)
    spare = theory.pool_spare_factor(
        physical_blocks=BLOCKS,
        pages_per_block=PAGES,
        logical_pages=pages * (100 - trimmed_percent) // 100,
        held_blocks=RESERVED + 1,
    )
    expected = theory.greedy(spare_factor=spare, pages_per_block=PAGES)
    simulated = counters["pages_programmed"] / counters["host_pages_written"]
    assert simulated == pytest.approx(expected, rel=0.015)


def test_pattern_trims_a_file_and_a_loop_device(workdir: Path, loop: tuple[str, Path]) -> None:
    name, disk = loop
    trims = ("--mode", "trim", "--location", "ordered", "--incr", "2", "--io-size", "64KiB",
            "--target-offset", "1MiB", "--target-size", "1MiB", "--io-count", "8")  # fmt: skip
    refused = uflip("pattern", name, *trims)
    assert refused.code == 3, "the destruction was not confirmed"
    token = str(report_block(name)["token"])
    outcome = uflip(
        "pattern", name, *trims, "--buffered", "--destroy", token, "--trace", "t.csv", "-q"
    )
    assert outcome.code == 0, outcome.err
    content = disk.read_bytes()
    for number in range(16):
        begin = MIB + number * 65536
        unchanged = content[begin : begin + 65536] == b"x" * 65536
        assert unchanged == bool(number % 2), number
    assert {line.split(",")[6] for line in Path("t.csv").read_text().splitlines()[1:]} == {"trim"}
    outcome = uflip("pattern", "file:f", "--size", "4MiB", *trims, "--buffered", "-q")
    assert outcome.code == 0, outcome.err
    content = Path("f").read_bytes()
    holes = [not any(content[MIB + n * 65536 : MIB + (n + 1) * 65536]) for n in range(16)]
    assert holes == [n % 2 == 0 for n in range(16)]


def test_trims_with_a_queue_are_refused_on_a_real_device(workdir: Path) -> None:
    trims = ("--mode", "trim", "--location", "random", "--io-count", "4")
    queued = uflip(
        "pattern", "file:f", "--size", "4MiB", "--buffered", *trims, "--queue-depth", "4"
    )
    assert queued.code == 2
    assert "a parallel pattern" in queued.err
    assert uflip("pattern", "sim:demo", *trims, "--queue-depth", "4", "-q").code == 0


def test_trims_run_in_parallel_with_queued_reads(workdir: Path) -> None:
    """Trims run in a process of their own, in parallel with queued reads."""
    reads = basic("read", "random", io_size=4096, io_count=200, target_size=MIB)
    trims = basic("trim", "random", io_size=4096, io_count=50, target_offset=MIB, target_size=MIB)
    with open_device("file:f", size=4 * MIB, buffered=True) as device:
        trace = device.run(parallel(reads.but(queue_depth=8), trims))
    modes = np.asarray(trace.column("mode"))
    assert [int((modes == mode).sum()) for mode in (0, 1, 2)] == [200, 0, 50]
    assert trace.bytes_trimmed == 50 * 4096


def test_run_of_trims_is_stored_and_replayed(workdir: Path) -> None:
    out = Path("out")
    outcome = uflip("pattern", "sim:demo", "--mode", "trim", "--location", "sequential",
                    "--io-size", "1MiB", "--io-count", "16", "--inside", out, "-q")  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert uflip("verify", out).code == 0
    (run,) = Results.load(out).runs
    assert np.asarray(run.trace().column("mode")).tolist() == [2] * 16
    (path,) = (out / "runs").glob("*.parquet")
    # A replay repeats the trims.
    outcome = uflip("replay", path, "sim:demo", "--out", "again", "-q")
    assert outcome.code == 0, outcome.err
    (run,) = Results.load(Path("again")).runs
    assert np.asarray(run.trace().column("mode")).tolist() == [2] * 16
    assert uflip("verify", "again").code == 0


def test_deallocate_verb_guards_other_ranges(workdir: Path, loop: tuple[str, Path]) -> None:
    name, disk = loop
    arguments = ("deallocate", name, "--target-offset", "1MiB", "--target-size", "2MiB")
    assert uflip(*arguments).code == 3
    assert uflip(*arguments, "--dry-run").code == 0
    assert disk.read_bytes() == b"x" * 8 * MIB
    token = str(report_block(name)["token"])
    outcome = uflip(*arguments, "--destroy", token, "--buffered", "--json")
    assert outcome.code == 0, outcome.err
    printed = json.loads(outcome.out)
    assert (printed["offset_bytes"], printed["size_bytes"], printed["trims"]) == (MIB, 2 * MIB, 1)
    content = disk.read_bytes()
    assert content[MIB : 3 * MIB] == bytes(2 * MIB)
    assert content[3 * MIB : 7 * MIB] == b"x" * 4 * MIB
    for invalid in (("--target-offset", "9MiB"), ("--target-size", "9MiB"),
                   ("--target-offset", "100")):  # fmt: skip
        refused = uflip("deallocate", name, *invalid, "--destroy", token)
        assert (refused.code, "not a sector range" in refused.err) == (2, True), refused.err


def test_deallocated_simulated_device_is_saved(workdir: Path) -> None:
    outcome = uflip("deallocate", "sim:demo", "--save", "new.snapshot", "-q")
    assert outcome.code == 0, outcome.err
    with open_device("sim:new.snapshot") as device:
        timing = device.info.profile_table["timing"]
        trace = device.run(basic("read", "random", io_size=4096, io_count=20))
        assert (
            max(np.asarray(trace.column("response_time_ns")))
            < timing["read_ns"] + timing["command_read_ns"]
        )
    outcome = uflip("deallocate", "file:f", "--size", "300MiB", "--buffered", "--json")
    assert json.loads(outcome.out)["trims"] == 3, "two of 128 MiB, and one of 44 MiB"
    assert Path("f").stat().st_blocks * 512 <= MIB


def test_deallocate_micro_benchmark_is_planned_last_and_in_order(workdir: Path) -> None:
    outcome = uflip("plan", "sim:demo", "--suite", "today", "--scale", "quick", "--only",
                    "deallocate,cache_cliff", "--out", "p.toml")  # fmt: skip
    assert outcome.code == 0, outcome.err
    runs = tomllib.loads(Path("p.toml").read_text())["runs"]
    last = [run for run in runs if run["micro_benchmark"] == "deallocate"]
    assert runs[-len(last) :] == last
    assert [(run["pattern"], run["value"]) for run in last] == [
        ("RR", 0), ("RW", 0), ("ST", 50), ("RR", 50), ("RW", 50), ("ST", 100), ("RR", 100),
        ("RW", 100),
    ]  # fmt: skip
    assert [run.get("reset_before", False) for run in last] == [True] + [False] * 7


URL = (
    f"sim:ofc?gc=greedy&channels=1&dies_per_channel=1&blocks_per_die={BLOCKS}&metadata_pages=0"
    f"&pages_per_block={PAGES}&spare_factor={SPARE}&reserved_blocks=1&state=random&erase_ns=0"
    "&collect_ns=0"
)


def test_deallocate_micro_benchmark_matches_theory(workdir: Path) -> None:
    """Writes to the remaining pages cost as on a device with a larger spare factor."""
    outcome = uflip("run", URL, "--suite", "today", "--scale", "quick", "--only", "deallocate",
                    "--io-size", "4KiB", "--pause", "1us", "--out", "out", "-q")  # fmt: skip
    assert outcome.code == 0, outcome.err
    results = Results.load(Path("out"))
    runs = {(run.pattern, run.value): run.trace() for run in results.runs}
    timing = results.manifest.device.profile_table["timing"]

    def mean_ns(pattern: str, value: int) -> float:
        return float(np.asarray(runs[pattern, value].column("response_time_ns")).mean())

    def min_trim_ns(value: int) -> int:
        return int(np.asarray(runs["ST", value].column("response_time_ns")).min())

    # Some trims wait for a processor that plans a collection.
    assert min_trim_ns(50) == min_trim_ns(100) == timing["command_write_ns"]
    assert (
        mean_ns("RR", 100) == mean_ns("RR", 50) == pytest.approx(timing["command_read_ns"], abs=1)
    )
    assert mean_ns("RR", 0) > timing["read_ns"]
    relocated = {
        value: json.loads(runs["RW", value].metadata_json)["counters"]["pages_relocated"]
        for value in (0, 50, 100)
    }
    assert relocated[0] > 0 == relocated[100]
    assert uflip("report", "out", "-o", "r.html").code == 0
    page = Path("r.html").read_text()
    assert "A trim of" in page
    assert "; reads of the deallocated part take 37" in page
    # A new device costs the same.
    with open_device(URL.replace("state=random", "state=empty")) as device:
        spec = read_spec(runs["RW", 100].spec_json)
        assert isinstance(spec, Basic)
        fresh = np.asarray(device.run(spec).column("response_time_ns"))
    assert mean_ns("RW", 100) == pytest.approx(float(fresh.mean()), rel=1e-6)


def test_deallocate_removes_the_state_record(workdir: Path) -> None:
    """A block device's counters restart with the machine: the record itself must be removed."""
    opening = ("file:target", "--size", "2MiB", "--buffered", "-q")
    assert uflip("prepare", *opening).code == 0
    (record,) = Path("results/states").glob("*.json")
    outcome = uflip("deallocate", *opening, "--target-size", "1MiB", "--dry-run")
    assert outcome.code == 0, outcome.err
    assert record.exists()
    outcome = uflip("deallocate", *opening, "--target-size", "1MiB")
    assert outcome.code == 0, outcome.err
    assert not record.exists()


def test_device_without_trim_is_skipped_with_a_reason(workdir: Path) -> None:
    info = structs.replace(
        inspect_device("sim:demo"),
        kind="block",
        simulated=False,
        details=DeviceDetails(deallocates=False),
    )
    context = Context(info, "quick", 1)
    for experiment in deallocate.experiments(context):
        assert not experiment.runs
        assert all("no command to deallocate" in skip.reason for skip in experiment.skipped)


@pytest.mark.skipif(shutil.which("fio") is None, reason="needs fio")
def test_fio_job_trims_the_same_range(workdir: Path, loop: tuple[str, Path]) -> None:
    name, disk = loop
    trims = ("--mode", "trim", "--location", "sequential", "--io-size", "64KiB", "--io-count", "8")
    outcome = uflip("pattern", "sim:demo", *trims, "--target-size", "1MiB", "--inside", "o", "-q")
    assert outcome.code == 0, outcome.err
    assert uflip("export", "o", "--format", "fio-job", "-o", "jobs").code == 0
    (job,) = Path("jobs").glob("*.fio")
    assert "; fio trims block devices, and no files" in job.read_text()
    fio = subprocess.run(
        ["fio", job], env=os.environ | {"UFLIP_TARGET": name}, capture_output=True, check=False
    )
    assert fio.returncode == 0, fio.stderr
    assert disk.read_bytes() == bytes(8 * 65536) + b"x" * (8 * MIB - 8 * 65536)


def test_zoned_device_is_reset_and_not_deallocated() -> None:
    outcome = uflip("deallocate", "sim:zns")
    assert (outcome.code, "uflip zones DEVICE --reset" in outcome.err) == (2, True), outcome.err
    assert "or a simulated one" not in outcome.err
