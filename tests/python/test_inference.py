"""Does `uflip infer` find the properties that a device was given, and abstain from all others?

Expected values are the parameters of the device, or closed forms of response times; never those of
an inference.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stored
from command_line import uflip
from numpy.typing import NDArray

from uflip.device.cache import switched_off
from uflip.device.handle import Device
from uflip.device.opener import open_device
from uflip.errors import InterruptedRun
from uflip.inference import collection, probes
from uflip.inference.channels import Division, complete_channels
from uflip.inference.collection import period_of
from uflip.inference.estimate import Interval, median_of, quickest_of
from uflip.inference.infer import Inference, infer
from uflip.inference.observations import Observation, Observations, RunKey
from uflip.inference.structure import DIE_FIRST, ROUND_ROBIN, Structure, structure_of
from uflip.inference.times import Times, dies_of_writes, times_of, with_whole_pages
from uflip.inference.twin import ASSUMED, Twin
from uflip.microbench import MICRO_BENCHMARKS, varied_micro_benchmarks
from uflip.microbench.experiment import Context
from uflip.profiles import profile_sources
from uflip.spec import Basic, baseline

MIB = 1 << 20
SECTOR = 512
READ_NS, TRANSFER_NS, COMMAND_NS = 60_000, 30_000, 5_000
# 96 MiB: seconds, with as many blocks on a die as a collection needs to be regular.
DEVICE = (
    "sim:demo?channels=2&dies_per_channel=2&blocks_per_die=110&pages_per_block=64&idle_free_blocks=0"
    "&spare_factor=0.13&gc=greedy&erase_ns=2500000&program_ns=450000&program_high_ns=450000&seed=99"
)


@pytest.fixture(scope="module")
def inferred() -> Inference:
    with switched_off(), open_device(DEVICE, writable=True) as device:
        return infer(probes.measure(device))


def run_of(spec: Basic, offsets: NDArray[np.int64], times: NDArray[np.float64]) -> Observation:
    return Observation(spec, offsets, times, np.full(len(times), spec.mode == "write"))


def pairs_of_reads(page: int, channels: int, dies: int, order: str, noise: float) -> Observations:
    """Return pairs of reads, as late as the closed form of two reads says."""
    chance = np.random.default_rng(5)
    offsets = chance.integers(0, 16 * MIB // SECTOR, (2048, 2)) * SECTOR
    places = offsets // page % dies
    lanes = places % channels if order == ROUND_ROBIN else places // (dies // channels)
    flash = READ_NS + TRANSFER_NS
    later = np.where(lanes[:, 0] == lanes[:, 1], max(TRANSFER_NS, COMMAND_NS), COMMAND_NS)
    later = np.where(places[:, 0] == places[:, 1], flash, later)
    first = np.full(len(later), COMMAND_NS + flash)
    times = np.stack([first, first + later], axis=1) + chance.exponential(noise, (2048, 2))
    spec = baseline("RR", io_size=SECTOR, target_size=16 * MIB, io_count=4096)
    run = run_of(spec, offsets.ravel(), np.round(times.ravel()))
    return Observations(64 * MIB, SECTOR, {RunKey("read_bursts", "RR", 2): run})


@pytest.mark.parametrize("noise_ns", [0.0, 2000.0])
@pytest.mark.parametrize("order", [ROUND_ROBIN, DIE_FIRST])
@pytest.mark.parametrize(("page", "channels", "dies"), [(4096, 2, 8), (16384, 3, 6), (8192, 5, 20)])
def test_structure_explains_pairs_of_reads(
    page: int, channels: int, dies: int, order: str, noise_ns: float
) -> None:
    found = structure_of(pairs_of_reads(page, channels, dies, order, noise_ns))
    assert (found.page, found.dies, found.channels) == (page, dies, channels)
    assert found.allocator == order


def test_structure_abstains_from_pairs_without_conflicts() -> None:
    observations = pairs_of_reads(4096, 2, 8, ROUND_ROBIN, 0.0)
    (key, run), *_ = observations.runs.items()
    chance = np.random.default_rng(1)
    cached = run_of(run.spec, run.offset_bytes, chance.normal(9000, 900, 4096))
    found = structure_of(Observations(64 * MIB, SECTOR, {key: cached}))
    assert (found.page, found.dies, found.channels) == (None, None, None)


def large_writes(dies: int, page: int, program_ns: float, link_byte_ns: float) -> Observations:
    """Return large writes that take a program for every `dies` pages, and a command before."""
    runs = {}
    for size in (4 * page, 8 * page, 16 * page):
        programs = -(-size // page // dies)
        time = COMMAND_NS + link_byte_ns * page + programs * program_ns
        spec = baseline("RW", io_size=size, io_count=64)
        run = run_of(spec, np.zeros(64, dtype=np.int64), np.full(64, time))
        runs[RunKey("write_size", "RW", size)] = run
    return Observations(64 * MIB, SECTOR, runs)


@pytest.mark.parametrize(("dies", "found"), [(1, 1), (2, 2), (8, 8), (3, None), (32, None)])
def test_dies_follow_from_large_writes(dies: int, found: int | None) -> None:
    page, program_ns, link = 4096, 500_000.0, 2.0
    times = Times(
        command_write=Interval(COMMAND_NS, 1.0),
        link_byte=Interval(link, 0.01),
        write_page=Interval(program_ns, 1.0),
    )
    observations = large_writes(dies, page, program_ns, link)
    assert dies_of_writes(observations, Structure(page), times) == found
    on_link = Times(times.command_write, times.command_write, Interval(400.0, 0.01))
    assert dies_of_writes(observations, Structure(page), on_link) is None


def test_interval_of_a_median_contains_it_nine_times_in_ten() -> None:
    chance = np.random.default_rng(3)
    intervals = [median_of(chance.normal(1000, 50, 101)) for _ in range(1000)]
    inside = [abs(each.value - 1000) <= each.half for each in intervals]
    # Three standard deviations of a binomial of 1,000 and 0.9.
    assert abs(np.mean(inside) - 0.9) < 3 * np.sqrt(0.09 / 1000)


def test_quickest_writes_exclude_the_time_of_a_host() -> None:
    chance = np.random.default_rng(4)
    found = [quickest_of(20_000 + chance.exponential(2000, 64)) for _ in range(300)]
    assert np.mean([abs(each.value - 20_000) <= each.half for each in found]) > 0.8


def test_period_of_slow_writes() -> None:
    times = np.full(600, 400_000.0)
    times[7::48] += 2_000_000
    spec = baseline("SW", io_size=128 << 10, io_count=600)
    found = period_of(run_of(spec, np.arange(600), times), dies=4, page=4096)
    assert found is not None
    assert (found.gap, found.excess.value, found.exact) == (48.0, 2_000_000.0, True)
    times[:] = 400_000.0
    assert period_of(run_of(spec, np.arange(600), times), dies=4, page=4096) is None


def test_period_is_that_of_a_die_although_groups_of_dies_are_as_far_apart() -> None:
    """Each of four dies opens a block every 16 writes: two of them meet at half of that."""
    times = np.full(640, 400_000.0)
    for first in (5, 8, 13, 14):
        times[first::16] += 1_600_000
    spec = baseline("SW", io_size=128 << 10, io_count=640)
    found = period_of(run_of(spec, np.arange(640), times), dies=4, page=8192)
    assert found is not None
    assert (found.gap, found.exact) == (16.0, True)


def test_period_is_no_multiple_although_the_end_is_disturbed() -> None:
    times = np.full(2512, 2_300_000.0)
    times[41:1066:64] += 3_200_000
    for first, count in [(1066, 6), (1124, 14), (1176, 8), (1233, 7)]:
        times[first : first + count] += 3_200_000
    for first in range(1292, 2500, 53):
        times[first : first + 10] += 3_200_000
    spec = baseline("SW", io_size=128 << 10, io_count=2512)
    found = period_of(run_of(spec, np.arange(2512), times), dies=4, page=16384)
    assert found is not None
    assert (found.gap, found.exact) == (64.0, True)


def test_relocations_in_groups_are_no_period() -> None:
    """Victims delay some writes one after the other: a block of 256 pages takes 16 writes."""
    times = np.full(1600, 18_000_000.0)
    chance = np.random.default_rng(6)
    for first in range(0, 1600, 100):
        times[first + chance.integers(80) :][:20] += 9_000_000
    spec = baseline("SW", io_size=128 << 10, io_count=1600)
    found = period_of(run_of(spec, np.arange(1600), times), dies=1, page=8192)
    assert found is None or not found.exact


def test_search_beyond_its_budget_abstains(
    inferred: Inference, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collection, "MOST_PROGRAMMED", 1)
    found = infer(inferred.observations)
    for key in ("spare_factor", "gc"):
        assert not found.estimate(key).is_identified
        assert "budget" in found.estimate(key).reason
    assert found.estimate("dies") == inferred.estimate("dies")
    assert found.estimate("pages_per_block") == inferred.estimate("pages_per_block")


@pytest.mark.parametrize(
    ("key", "true"),
    [
        ("page_bytes", 4096),
        ("mapping_unit_bytes", 4096),
        ("dies", 4),
        ("channels", 2),
        ("pages_per_block", 64),
        ("write_cache_bytes", 0),
        ("allocator", "round_robin"),
    ],
)
def test_structure_of_a_simulated_device_is_exact(
    inferred: Inference, key: str, true: float | str
) -> None:
    assert inferred.estimate(key).value == true


def read_probes(name: str) -> Observations:
    """Return what the probes of channels observe on a device."""
    short = ("clear", "read_size", "read_bursts", "read_arrivals", "read_deallocated", "write_size")
    with switched_off(), open_device(name, writable=True) as device:
        context = Context(device.info, "standard", 1)
        runs = {
            RunKey(probe, run.pattern, run.value): probes.repeat(device, probe, run.spec)
            for probe in short
            for experiment in MICRO_BENCHMARKS[probe].experiments(context)
            for run in experiment.runs
        }
    return Observations(device.info.capacity_bytes, SECTOR, runs)


def channels_of(observations: Observations) -> int | None:
    structure = structure_of(observations)
    return complete_channels(observations, structure, times_of(observations, structure))[0].channels


def test_reads_at_random_times_show_channels_of_one_die_each() -> None:
    measured = read_probes(
        "sim:demo?channels=2&dies_per_channel=1&blocks_per_die=200&command_read_ns=8000"
    )
    assert channels_of(measured) == 2
    assert channels_of(without(measured, "read_arrivals")) is None


@pytest.mark.parametrize("unit", ["", "&mapping_unit_bytes=4096"])
def test_transfers_of_parts_of_a_page_show_those_of_a_page(unit: str) -> None:
    measured = read_probes(
        "sim:demo?channels=2&dies_per_channel=2&page_bytes=16384&pages_per_block=64&spare_bytes=0"
        f"&blocks_per_die=60&channel_bytes_per_s=1000000000&partial_transfer=true{unit}"
    )
    structure = structure_of(measured)
    times = with_whole_pages(times_of(measured, structure), structure)
    structure, times, _ = complete_channels(measured, structure, times)
    assert structure.channels in (2, None)  # sectors may be hidden behind commands
    assert times.transfer is not None
    assert times.flash is not None
    assert times.transfer.value == pytest.approx(16_384, abs=10)
    assert times.flash.value == pytest.approx(50_000 + 16_384, abs=10)


def test_relocated_pages_do_not_hide_channels() -> None:
    # Random victims move a fifth of the reads to other dies.
    name = "sim:demo?channels=2&dies_per_channel=2&blocks_per_die=100&idle_free_blocks=0"
    assert channels_of(read_probes(f"{name}&gc=random&state=random&seed=3")) == 2


@pytest.mark.parametrize(
    ("error", "more", "is_worse"),
    [(0.0086, 0.0002, False), (0.0086, 0.0008, True), (0.0, 0.0002, True)],
)
def test_number_of_channels_is_excluded_if_it_is_worse_than_the_noise(
    error: float, more: float, *, is_worse: bool
) -> None:
    best = Division(1, ROUND_ROBIN, 18_000, np.full(2000, error))
    assert Division(2, ROUND_ROBIN, 5_000, best.errors + more).is_worse_than(best) is is_worse


@pytest.mark.parametrize(("missed", "is_worse"), [(2, False), (3, True)])
def test_three_missed_reads_exclude_a_number_of_channels_if_another_is_exact(
    missed: int, *, is_worse: bool
) -> None:
    best = Division(1, ROUND_ROBIN, 18_000, np.zeros(4000))
    other = Division(2, ROUND_ROBIN, 5_000, np.where(np.arange(4000) < missed, 0.004, 0.0))
    assert other.is_worse_than(best) is is_worse


def without(observations: Observations, probe: str) -> Observations:
    """Return the observations without a probe."""
    runs = {key: run for key, run in observations.runs.items() if key.probe != probe}
    return Observations(observations.capacity_bytes, observations.sector_bytes, runs)


@pytest.mark.parametrize(
    ("key", "true"),
    [
        ("read_ns", 50_000),
        ("program_ns", 450_000),
        ("command_read_ns", 20_000),
        ("command_write_ns", 20_000),
        ("link_bytes_per_s", 280_000_000),
        ("channel_bytes_per_s", 166_000_000),
        ("erase_ns", 2_500_000),
        ("spare_factor", 0.13),
    ],
)
def test_intervals_contain_the_parameters_of_a_device(
    inferred: Inference, key: str, true: float
) -> None:
    estimate = inferred.estimate(key)
    assert estimate.low is not None
    assert estimate.high is not None
    assert estimate.low <= true <= estimate.high
    assert estimate.number() == pytest.approx(true, rel=0.05)


def test_victim_policy_is_found_or_among_the_named(inferred: Inference) -> None:
    estimate = inferred.estimate("gc")
    assert estimate.value == "greedy" or "greedy" in estimate.reason


def test_search_at_a_fraction_of_the_capacity_finds_spare_space(
    inferred: Inference, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collection, "FRACTION_BLOCKS", 50)
    monkeypatch.setattr(collection, "FRACTION_PAGES", 1 << 12)
    device = inferred.observations
    found = infer(device)
    test_intervals_contain_the_parameters_of_a_device(found, "spare_factor", 0.13)
    test_victim_policy_is_found_or_among_the_named(found)
    assert found.twin is not None
    assert found.twin.number("blocks_per_die") == pytest.approx(110, abs=1)


def test_writes_to_a_fraction_are_that_part_of_all(inferred: Inference) -> None:
    whole = inferred.observations
    half = whole.at_fraction(2, collection.COMPARED)
    assert half.capacity_bytes == whole.capacity_bytes // 2 // MIB * MIB
    for probe, pattern in collection.COMPARED:
        run, part = whole.last(probe, pattern), half.last(probe, pattern)
        assert run is not None
        assert part is not None
        ratio = half.capacity_bytes / whole.capacity_bytes
        assert part.spec.ios == pytest.approx(run.spec.ios * ratio, abs=1)
        whole_target, target = run.spec.parts[0].target_bytes, part.spec.parts[0].target_bytes
        assert target == pytest.approx(whole_target * ratio, abs=run.io_size)


@pytest.mark.parametrize("simulations", [0, 3, 30])
def test_interrupted_search_draws_no_conclusion(
    simulations: int, inferred: Inference, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Twin.open
    calls = iter(range(simulations))

    def interrupted(twin: Twin, **values: Any) -> Device:
        if next(calls, None) is None:
            raise InterruptedRun("Interrupted", action="start the command again")
        return opened(twin, **values)

    monkeypatch.setattr(Twin, "open", interrupted)
    with pytest.raises(InterruptedRun):
        infer(inferred.observations)


def test_probes_write_at_most_four_capacities(inferred: Inference) -> None:
    observations = inferred.observations
    assert observations.bytes_written <= 4 * observations.capacity_bytes


def test_every_key_of_a_twin_has_a_source(inferred: Inference, tmp_path: Path) -> None:
    assert inferred.twin is not None
    path = tmp_path / "twin.toml"
    path.write_text(inferred.twin.text())
    sources = profile_sources(str(path))
    assert sources.keys() >= {key for keys in ASSUMED.values() for key in keys}
    kinds = {key: source.kind for key, source in sources.items()}
    assert {kinds["page_bytes"], kinds["read_ns"], kinds["gc"]} <= {"inferred", "guess"}
    assert kinds["page_bytes"] == kinds["erase_ns"] == kinds["spare_factor"] == "inferred"
    assert kinds["metadata_pages"] == kinds["state"] == "guess"


@pytest.mark.parametrize("capacity", [64 * MIB, 97 * MIB])
def test_twin_has_the_capacity_of_its_device(capacity: int) -> None:
    twin = Twin().but(pages_per_block=64, channels=2, dies_per_channel=3)
    assert twin.with_capacity(capacity, 80).open(state="empty").info.capacity_bytes == capacity


def test_probes_keep_their_order_in_a_plan() -> None:
    names = list(varied_micro_benchmarks("inside"))
    lines = uflip("plan", DEVICE, "--suite", "inside", "--state", "as-is", "--runs").out
    positions = [lines.index(f"-{name}-") for name in names]
    assert positions == sorted(positions)
    assert lines.index("-clear-ST") < lines.index("-clear-SW")


def test_window_is_written_and_the_end_deallocated() -> None:
    info = stored.device_info("null", capacity_bytes=200 * MIB + SECTOR, sector_bytes=SECTOR)
    trims, writes = MICRO_BENCHMARKS["clear"].experiments(Context(info, "standard", seed=1))
    (trim,), (write,) = trims.runs, writes.runs
    assert trim.spec.parts[0].end == info.capacity_bytes
    assert trim.spec.parts[0].begin <= write.spec.parts[0].end


def test_infer_writes_a_twin_and_infers_from_results(tmp_path: Path) -> None:
    results, path = tmp_path / "inside", tmp_path / "twin.toml"
    first = uflip("infer", DEVICE, "--out", results, "-o", path, "--json", "--quiet")
    document = json.loads(first.out)
    assert document["written_to"] == str(path)
    assert uflip("profile", "check", path).code == 0
    again = json.loads(uflip("infer", results, "--json").out)
    assert again["properties"] == document["properties"]

    checked = json.loads(uflip("infer", "--check", DEVICE, path, "--json").out)
    errors = [abs(each["mean_error"]) for each in checked["patterns"]]
    assert np.median(errors) < 0.1

    other = uflip("infer", "--check", "sim:demo?blocks_per_die=64", path)
    assert other.code != 0
    assert "twin is that of another device" in other.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sim:demo?blocks_per_die=8&dies_per_channel=1&spare_factor=0.5"], "too small"),
        (["sim:zns"], "zones"),
        (["sim:demo", "--check"], "needs a device and its twin"),
        (["sim:demo", "twin.toml"], "needs a device and its twin"),
        (["sim:demo", "-o", "twin.json"], "no ending that selects a format"),
    ],
)
def test_wrong_requests_have_a_clear_error(arguments: list[str], message: str) -> None:
    outcome = uflip("infer", *arguments)
    assert outcome.code != 0
    assert message in outcome.err


def test_result_without_probes_is_refused(tmp_path: Path) -> None:
    uflip("run", "sim:demo?blocks_per_die=64", "--scale", "quick", "--only", "order",
          "--out", tmp_path / "order")  # fmt: skip
    outcome = uflip("infer", tmp_path / "order")
    assert outcome.code != 0
    assert "lacks runs that an inference needs" in outcome.err
