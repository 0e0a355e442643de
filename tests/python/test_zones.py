"""Zones: the report of a device, the verb, the suite, and closed forms."""

import csv
import itertools
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import uflip
from msgspec.structs import replace
from numpy import asarray

import uflip as package
from guest import ROOT, in_guest, places_data, pytest_command
from uflip.benchmark.estimate import estimate
from uflip.benchmark.fio_job_file import read_job_file
from uflip.data.device import DeviceInfo
from uflip.device.catalogue import inspect_device
from uflip.device.opener import open_device
from uflip.errors import DeviceError, UflipError, UsageError
from uflip.microbench import MICRO_BENCHMARKS, check_names, suite_of, varied_micro_benchmarks
from uflip.microbench.experiment import Context
from uflip.microbench.labels import by_pattern
from uflip.report.findings import finding
from uflip.result_views import summary
from uflip.results import Results
from uflip.spec import basic, parallel

KIB, MIB = 1 << 10, 1 << 20
NAMES = list(varied_micro_benchmarks("zones"))
# Two channels of two dies, a zone of 64 pages of 4 KiB on one die; nothing but flash takes time.
SMALL = (
    "sim:zns?channels=2&dies_per_channel=2&blocks_per_die=4&pages_per_block=64&page_bytes=4096"
    "&zone_bytes=512KiB&partial_transfer=false&cache_program=false&command_read_ns=0"
    "&command_write_ns=0&command_read_latency_ns=0&link_bytes_per_s=1000000000000000"
    "&channel_bytes_per_s=40960000&program_ns=300us&program_middle_ns=300us&program_high_ns=300us"
    "&erase_ns=2ms&max_open_zones=8&max_active_zones=8"
)
TRANSFER, PROGRAM, ERASE = 100_000, 300_000, 2_000_000


# The API


def test_device_reports_zones_and_their_changes() -> None:
    with open_device(SMALL) as device:
        limits = device.info.details.zones
        assert limits is not None
        assert device.info.zoned
        assert (limits.zone_count, limits.zone_capacity_bytes) == (16, 256 * KIB)
        assert device.info.capacity_bytes == 16 * 512 * KIB
        assert device.append(3, 8192) == (3 * 512 * KIB, 2 * (TRANSFER + PROGRAM))
        assert device.append(3, 4096)[0] == 3 * 512 * KIB + 8192
        assert device.manage_zone("open", 5) == 0
        assert device.manage_zone("finish", 6) == 64 * (TRANSFER + PROGRAM)
        report = device.zones()
        assert report.states == {
            "empty": 13, "implicitly_open": 1, "explicitly_open": 1, "full": 1,
        }  # fmt: skip
        assert report.zones[3].written_bytes == 12 * KIB
        assert device.manage_zone("reset", 3) == ERASE
        assert (device.zone(3).state, device.zone(3).resets, device.zones().resets) == (
            "empty", 1, 1,
        )  # fmt: skip
        counters = device.counters()
        assert counters is not None
        assert (counters["pages_padded"], counters["blocks_erased"]) == (64, 1)


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (lambda device: device.manage_zone("close", 0), "Invalid Zone State Transition (0xbf)"),
        (lambda device: device.manage_zone("erase", 0), "reset, finish, open, close"),
        (lambda device: device.manage_zone("reset", 16), "0 to 15"),
        (lambda device: device.append(0, 100), "multiples of 4 KiB"),
        (lambda device: device.append(0, 260 * KIB), "Zoned Boundary Error (0xb8)"),
        (lambda device: device.trim(0, 4096), "reset a zone"),
        (lambda device: device.enforce({"state": "sequential"}), "begins with its own zones"),
        (lambda device: device.run(basic("write", "random")), "Zone Invalid Write (0xbc)"),
    ],
)
def test_invalid_zone_command_is_refused(refused: Callable[[Any], Any], message: str) -> None:
    with open_device(SMALL) as device, pytest.raises(UflipError) as caught:
        refused(device)
    assert message in str(caught.value)


def test_device_without_zones_is_reported() -> None:
    with open_device("sim:demo") as device:
        for command in (device.zones, lambda: device.run(basic("append", "sequential"))):
            with pytest.raises(UsageError, match="no zones"):
                command()


def test_prepare_zones_fills_and_resets_as_needed() -> None:
    reads = basic("read", "random", io_size=4096, target_size=256 * KIB, io_count=50)
    writes = basic("write", "sequential", io_size=4096, target_offset=512 * KIB,
                   target_size=256 * KIB, io_count=50)  # fmt: skip
    with open_device(SMALL) as device:
        device.append(1, 4096)
        device.append(2, 4096)
        pattern = parallel(reads, writes)
        device.prepare_zones(pattern)
        assert [device.zone(number).state for number in range(3)] == ["full", "empty", "empty"]
        trace = device.run(pattern)
        assert len(trace) == 100
        assert device.zone(1).written_bytes == 50 * 4096
        with pytest.raises(DeviceError, match="Zone Invalid Write"):
            device.run(writes)
        device.prepare_zones(writes)
        assert len(device.run(writes)) == 50


def test_zones_survive_a_snapshot_and_a_clone(tmp_path: Path) -> None:
    with open_device(SMALL) as device:
        device.append(1, 12288)
        device.manage_zone("finish", 2)
        device.manage_zone("reset", 2)
        device.save(tmp_path / "it.snapshot")
        copy = device.clone()
        with open_device(f"sim:{tmp_path / 'it.snapshot'}") as restored:
            for other in (restored, copy):
                assert other.zones() == device.zones()
                assert other.append(1, 4096) == (512 * KIB + 12288, TRANSFER + PROGRAM)


def test_write_amplification_is_one() -> None:
    with open_device(SMALL) as device:
        for _ in range(3):
            writes = basic("append", "sequential", io_size=4096, parallel_degree=8,
                           target_size=8 * 512 * KIB, io_count=64)  # fmt: skip
            device.prepare_zones(writes)
            device.run(writes)
        counters = device.counters()
    assert counters is not None
    assert counters["pages_programmed"] == counters["host_pages_written"] == 3 * 8 * 64
    assert counters["pages_relocated"] == 0


# The suite


def laid_out(name: str, info: DeviceInfo, scale: str = "standard") -> list[Any]:
    return MICRO_BENCHMARKS[name].experiments(Context(info, scale, seed=1))


def test_suite_contains_zone_benchmarks_only() -> None:
    assert NAMES == [
        "zone_parallelism", "zone_append", "zone_distance", "zone_reset", "zone_finish",
        "zone_wear",
    ]  # fmt: skip
    assert check_names(None, "sectors", "zones") == NAMES
    assert suite_of(NAMES) == "zones"


@pytest.mark.parametrize("name", NAMES)
def test_device_without_zones_skips_all_with_reason(name: str) -> None:
    for experiment in laid_out(name, inspect_device("sim:demo")):
        assert not experiment.runs
        assert {skip.reason for skip in experiment.skipped} == {"the device has no zones"}


@pytest.mark.parametrize(
    ("options", "message"),
    [({}, "--suite zones"), ({"suite": "today"}, "--suite zones"),
     ({"suite": "zones", "state": "random"}, "as-is")],
)  # fmt: skip
def test_zoned_device_has_only_zone_suite_and_no_state(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        package.plan("sim:zns", **options)
    assert message in str(caught.value)


def test_plan_estimates_time_of_each_run() -> None:
    plan = package.plan("sim:zns", suite="zones", scale="quick")
    assert plan.state is None
    assert not plan.resets
    total = estimate(plan)
    assert all(run.time_ns > 0 for run in total.each)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the results of the suite on the small device."""
    out = tmp_path_factory.mktemp("zones") / "r"
    result = package.run(SMALL, out, suite="zones", scale="standard", io_size="4KiB", pause="0s")
    return dict(summary(Results.load(result.path)))


def means(results: dict[str, Any], name: str, pattern: str) -> dict[int, float]:
    """Value of the parameter -> mean response time [ns]."""
    runs = by_pattern(results["micro_benchmarks"][name])[pattern]
    return {run["value"]: run["statistics"]["mean_ns"] for run in runs}


def test_zones_on_separate_dies_scale(results: dict[str, Any]) -> None:
    # Four dies on two channels: two zones are on each at most, and a channel is busy a quarter.
    single = TRANSFER + PROGRAM
    measured = means(results, "zone_parallelism", "SW")
    assert measured == pytest.approx({1: single, 2: single, 4: single, 8: 2 * single}, rel=0.01)
    text = finding("zone_parallelism", results)
    assert "as much up to 4 zones" in text
    assert "(×4.0)" in text


def test_appends_to_one_die_only_wait(results: dict[str, Any]) -> None:
    single = TRANSFER + PROGRAM
    assert means(results, "zone_append", "SW") == pytest.approx({1: single})
    appends = means(results, "zone_append", "SA")
    # A zone has room for 64: eight for each of eight under way.
    assert appends == pytest.approx({depth: depth * single for depth in (1, 2, 4, 8)})
    assert "the knee is at 1.0" in finding("zone_append", results)


def test_reads_after_finished_writes_do_not_wait(results: dict[str, Any]) -> None:
    # A write completes when it is on flash: an alternating read never waits for it.
    assert "at no distance" in finding("zone_distance", results)


def test_zones_sharing_a_die_are_found_by_distance(tmp_path: Path) -> None:
    # Here it has ended when its data is with the die, which then programs: 4 and 8 are on die 0.
    result = package.run(
        SMALL.replace("cache_program=false", "cache_program=true"), tmp_path / "r", suite="zones",
        only=["zone_distance"], scale="standard", io_size="4KiB", pause="0s",
    )  # fmt: skip
    text = finding("zone_distance", summary(Results.load(result.path)))
    assert "at a distance of 4, 8 from" in text


def test_resets_and_finishes_cost_their_remaining_work(results: dict[str, Any]) -> None:
    resets = means(results, "zone_reset", "ZR")
    assert resets == pytest.approx(dict.fromkeys((1, 10, 25, 50, 75, 90, 100), ERASE))
    finishes = means(results, "zone_finish", "ZF")
    written = {percent: max(64 * percent // 100, 1) for percent in finishes}
    remaining = {percent: (64 - pages) * (TRANSFER + PROGRAM) for percent, pages in written.items()}
    assert finishes == pytest.approx(remaining)


# The verb


def test_zones_are_listed_and_changed(tmp_path: Path) -> None:
    saved = tmp_path / "it.snapshot"
    outcome = uflip("zones", SMALL, "--finish", "1,4-5", "--open", "0", "--save", str(saved))
    assert outcome.code == 0, outcome.err
    assert "finish: 3 zones in 76.8 ms, the longest 25.6 ms" in outcome.out
    assert "16 of 512 KiB: 12 empty, 3 full, 1 explicitly open" in outcome.out.replace(
        "1 explicitly open, 3 full, 12 empty", "12 empty, 3 full, 1 explicitly open"
    )
    document = json.loads(uflip("zones", f"sim:{saved}", "--json").out)
    assert [zone["state"] for zone in document["zones"][:6]] == [
        "explicitly_open", "full", "empty", "empty", "full", "full",
    ]  # fmt: skip
    assert document["commands"] == []
    assert document["zone_bytes"] == 512 * KIB
    dry = uflip("zones", f"sim:{saved}", "--reset", "all", "--dry-run")
    assert dry.out.startswith("reset: 16 zones, not carried out")
    reset = json.loads(uflip("zones", f"sim:{saved}", "--reset", "all", "--json").out)
    assert {zone["state"] for zone in reset["zones"]} == {"empty"}
    assert sum(command["response_time_ns"] == ERASE for command in reset["commands"]) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("sim:demo",), "no zones"),
        ((SMALL, "--reset", "16"), "numbers from 0 to 15"),
        ((SMALL, "--reset", "3-1"), "numbers from 0 to 15"),
        ((SMALL, "--close", "0"), "Invalid Zone State Transition"),
    ],
)
def test_invalid_zone_arguments_are_refused(arguments: tuple[str, ...], message: str) -> None:
    outcome = uflip("zones", *arguments)
    assert outcome.code != 0
    assert message in outcome.err


def test_traces_of_zone_commands_are_exported(tmp_path: Path) -> None:
    with open_device(SMALL) as device:
        trace = device.run(
            basic("finish", "sequential", io_size=512 * KIB, target_size=4 * MIB, io_count=8)
        )
    assert set(asarray(trace.column("mode"))) == {5}
    out = tmp_path / "it.csv"
    outcome = uflip("pattern", SMALL, "--mode", "append", "--location", "sequential",
                    "--io-size", "4KiB", "--queue-depth", "4", "--io-count", "60",
                    "--trace", str(out))  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert out.read_text().count(",append,") == 60


# Wear

LAWS = """
[reliability]
wear_law = "power"
rated_cycles = 1000
rber_fresh = 1.0e-12
rber_rated = 5.0e-2
wear_exponent = 4.0
page_spread = 0.0
high_page_factor = 1.0
retention_doubling_s = 1.0e9
retention_exponent = 1.0
ecc_codeword_bytes = 1024
ecc_correctable_bits = 40
erase_step_cycles = 50
erase_step_ns = 1_000_000
erase_steps_max = 25

[recovery]
cycles_before = 0
data_age_s = 0.0
read_retries = 5
retry_gain = 1.0e-3
fail_uncorrectable = false
factory_bad_share = 0.0
program_failures = 0.0
erase_failures = 0.0
retire = "nothing"
retire_rber = 0.4
partial_blocks_max = 0
usable_pages_min = 1

[sources]
"""
READ = 40_950
STEP, STEP_CYCLES, STEPS = 1_000_000, 50, 25


@pytest.fixture
def wearing(tmp_path: Path) -> str:
    """Return the small device with flash that wears out; its times follow from its erases."""
    text = (Path(package.__file__).parent / "profiles" / "zns.toml").read_text(encoding="utf-8")
    keys = re.findall(r"^(\w+) =", LAWS, flags=re.MULTILINE)
    sources = "".join(f'{key} = {{ kind = "guess", detail = "for a test" }}\n' for key in keys)
    path = tmp_path / "wearing.toml"
    path.write_text(text.replace("[sources]\n", LAWS + sources), encoding="utf-8")
    return SMALL.replace("sim:zns", f"sim:{path}")


def test_resets_and_reads_slow_down_with_wear(wearing: str, tmp_path: Path) -> None:
    """An erase takes a step more every 50; after 1,000 every page has to be read twice."""
    result = package.run(
        wearing, tmp_path / "r", suite="zones", only=["zone_wear"], scale="standard",
        io_size="4KiB", pause="0s",
    )  # fmt: skip
    made = 0
    for run in Results.load(result.path).runs:
        times = asarray(run.trace().column("response_time_ns"))
        if run.pattern == "RR":
            # A zone that was read is reset before it is written again.
            twice = 2 if made == 1000 else 1
            assert set(times) == {twice * (READ + TRANSFER)}, run.id
            made += 1
            continue
        resets = [
            ERASE + STEP * ((made + number) // STEP_CYCLES) for number in range(len(times) // 2)
        ]
        assert list(times[1::2]) == resets, run.id
        assert set(times[::2]) == {TRANSFER + PROGRAM}
        made += len(resets)
        assert made == run.value
    text = finding("zone_wear", summary(Results.load(result.path)))
    assert "(×2.0)" in text
    with open_device(wearing) as device:
        assert device.info.details.zones is not None


def test_zone_with_failed_erase_goes_offline(wearing: str) -> None:
    with open_device(wearing.replace("?", "?cycles_before=1295&")) as device:
        assert device.append(0, 4096)[1] == TRANSFER + PROGRAM
        # It endures 1,300 erases, 50 without a step and 50 at each of 25; the next one fails.
        for erases in range(6):
            device.append(0, 4096)
            assert device.zone(0).state == "implicitly_open"
            assert device.manage_zone("reset", 0) == ERASE + STEP * min(
                (1295 + erases) // STEP_CYCLES, STEPS
            )
        assert device.zone(0).state == "offline"
        for use in (lambda: device.append(0, 4096), lambda: device.manage_zone("reset", 0)):
            with pytest.raises(DeviceError):
                use()
        with pytest.raises(DeviceError, match="Zone Is Offline"):
            device.run(basic("read", "random", io_size=4096, io_count=1, target_size=64 * KIB))
        assert device.zone(1).state == "empty"


def test_real_device_is_not_worn_out() -> None:
    info = inspect_device(SMALL)
    real = replace(info, kind="block", simulated=False, details=replace(info.details, profile=None))
    cycles, reads = laid_out("zone_wear", real)
    assert [run.value for run in cycles.runs] == [20, 100]
    assert [skip.reason for skip in cycles.skipped] == [
        "it would wear a zone: a real device is given 100 resets at most"
    ]
    assert [run.value for run in reads.runs] == [20, 100]


@pytest.mark.parametrize(("pages", "blocks"), [(1, 1), (64, 1), (65, 2), (128, 2)])
def test_reset_erases_only_blocks_in_use(pages: int, blocks: int) -> None:
    with open_device(f"{SMALL}&zone_blocks_per_die=2") as device:
        for _ in range(pages):
            device.append(0, 4096)
        assert device.manage_zone("reset", 0) == blocks * ERASE


def test_buffered_data_of_a_zone_counts_as_programmed() -> None:
    """A unit of 4 KiB counts before its flash page of 64 KiB is full, as the reference states."""
    with open_device("sim:zns") as device:
        device.append(0, 4096)
        counters = device.counters()
    assert counters is not None
    assert counters["pages_programmed"] == counters["host_pages_written"] == 1


# Random writes at the write pointers


def written_zones(*options: object) -> tuple[list[int], int]:
    """Run writes at `zones`; check each address against write pointers of our own.

    Return the zone of each write, and the number of resets.
    """
    pattern = ("--mode", "write", "--location", "zones", "--io-size", "4k", "--io-count", "2000")
    outcome = uflip("pattern", SMALL, *pattern, *options, "--trace", "ios.csv")
    assert outcome.code == 0, outcome.err
    pointers: dict[int, int] = {}
    zones, resets = [], 0
    for io in csv.DictReader(Path("ios.csv").read_text().splitlines()):
        zone, inside = divmod(int(io["offset_bytes"]), 512 * KIB)
        if io["mode"] == "reset":
            pointers[zone] = 0
            resets += 1
            continue
        assert inside == pointers.get(zone, 0)
        pointers[zone] = inside + 4096
        assert pointers[zone] <= 256 * KIB
        zones.append(zone)
    assert len(zones) == 2000
    return zones, resets


def test_zones_are_written_in_turn_and_reset_before(workdir: Path) -> None:
    zones, resets = written_zones("--open-zones", "4")
    assert all(len(set(zones[at : at + 4])) == 4 for at in range(0, 1024, 4))
    assert resets == 2000 // 64


def test_api_writes_zones_as_the_command_does(workdir: Path) -> None:
    zones, resets = written_zones("--open-zones", "4")
    trace = package.pattern(
        SMALL, mode="write", location="zones", io_size="4k", io_count=2000, open_zones=4
    )
    modes, offsets = asarray(trace.column("mode")), asarray(trace.column("offset_bytes"))
    written = offsets[modes == modes[0]] // (512 * KIB)
    assert (written.tolist(), len(offsets) - len(written)) == (zones, resets)


@pytest.mark.parametrize("depth", [1, 8])
def test_random_turns_write_at_the_write_pointers(depth: int, workdir: Path) -> None:
    zones, _ = written_zones("--open-zones", "4", "--random-turns", "1", "--queue-depth", depth)
    assert {len(set(zones[at : at + 256])) for at in range(0, 1792, 256)} == {4}
    # Of independent draws among four, a quarter repeats the zone before.
    repeats = sum(a == b for a, b in itertools.pairwise(zones[:200]))
    assert 25 <= repeats <= 75


def test_zonemode_of_fio_writes_at_write_pointers(workdir: Path) -> None:
    job = "[job]\nrw=randwrite\nbs=4k\nsize=8m\nzonemode=zbd\nmax_open_zones=4\n"
    Path("job.fio").write_text(job + "io_size=2m\n")
    outcome = uflip("pattern", SMALL, "--fio-job", "job.fio", "--json")
    assert outcome.code == 0, outcome.err
    document = json.loads(outcome.out)
    assert document["by_mode"]["write"]["bytes"] == 2 * MIB
    writes = document["spec"]["first"]
    assert (writes["zone_ios"], writes["zone_capacity_ios"], writes["random_turns"]) == (128, 64, 1)
    Path("job.fio").write_text(job + "zonesize=512k\nzonecapacity=256k\n")
    (spec,) = read_job_file(Path("job.fio"), lambda: 1 << 30)
    assert (spec.zone_ios, spec.zone_capacity_ios, spec.open_zones) == (128, 64, 4)
    Path("job.fio").write_text(job.replace("randwrite", "randread"))
    assert "zonemode=zbd" in uflip("pattern", SMALL, "--fio-job", "job.fio").err


# Do zones and counters work on drives behind a kernel? Tested under QEMU.


GUEST = ROOT / "tests" / "guest"
FILES = ("zoned_disk.py", "counters_of_drives.py", "nvme_commands.py", "placement_handles.py")


@pytest.mark.skipif("UFLIP_SOAK" not in os.environ, reason="part of `make soak` (UFLIP_SOAK=1)")
@pytest.mark.parametrize("name", FILES)
def test_drives_behind_a_kernel(name: str, tmp_path: Path) -> None:
    """Every test of a file of `tests/guest` passes there, and none is skipped."""
    if name == "placement_handles.py" and not places_data():
        pytest.skip("needs QEMU 8.0 or later: this one has no Flexible Data Placement")
    tests = GUEST / name
    code, printed = in_guest(pytest_command(tests), tmp_path)
    count = len(re.findall(r"^def test_", tests.read_text(encoding="utf-8"), flags=re.MULTILINE))
    # A test with parameters counts more than once; skipped tests would be listed as well.
    passed = re.search(r"^(\d+) passed in", printed, flags=re.MULTILINE)
    assert code == 0, printed[-20_000:]
    assert passed is not None, printed[-20_000:]
    assert int(passed[1]) >= count
