"""Does the suite iq measure the write amplification that theory predicts, and find the knee?

The expected values are closed forms of a cyclic buffer and of greedy victims, for any popularity of
pages; and the service time of a device with one die.
"""

import math
from pathlib import Path
from typing import Any

import pytest
import stored
from command_line import uflip

import uflip as package
from uflip.benchmark import Choices, estimate, make_plan
from uflip.data.spec import MODES
from uflip.device.handle import Device, counter_samples
from uflip.device.opener import open_device
from uflip.microbench import MICRO_BENCHMARKS, check_names, suite_of, varied_micro_benchmarks
from uflip.microbench.experiment import Context, Experiment
from uflip.microbench.iq import offered_load, zone_size
from uflip.microbench.iq.long_writes import IO_SIZE
from uflip.models import hot_cold
from uflip.models import write_amplification as theory
from uflip.report.findings import finding
from uflip.result_views import summary
from uflip.results import Results
from uflip.results.columns import as_array
from uflip.results.steady_state import rounds_of
from uflip.spec import Mix, Spec

GIB = 1 << 30
NAMES = list(varied_micro_benchmarks("iq"))
DRAWN_NAMES = ("skew", "hot_zone", "read_only", "fill_level")
ZONED_NAMES = ("zone_size", "open_zones")
READ_NS, PROGRAM_NS = 50_000, 300_000
BLOCKS, PAGES = 256, 64
# One die, and nothing takes time but its cells.
ONE_DIE = (
    f"sim:demo?channels=1&dies_per_channel=1&blocks_per_die={BLOCKS}&pages_per_block={PAGES}"
    f"&read_ns={READ_NS}&program_ns={PROGRAM_NS}&program_high_ns={PROGRAM_NS}&command_read_ns=0"
    "&command_write_ns=0&link_bytes_per_s=1000000000000&channel_bytes_per_s=1000000000000"
    "&erase_ns=1000&idle_free_blocks=0&spare_factor=0.25"
)
# So large that no data is ever moved; reads of addresses without data take no time.
UNWRITTEN_DIE = (
    f"{ONE_DIE.replace(f'blocks_per_die={BLOCKS}', 'blocks_per_die=8192')}&write_cache_bytes=0"
)
# Blocks that are no victims: one kept free, one open.
HELD = 2
# Pages that are overwritten so often are never moved: e to this power is no number.
MAX_EXPONENT = 700


def lay_out(name: str, capacity: int, scale: str = "standard", **options: Any) -> Experiment:
    info = stored.device_info("null", capacity_bytes=capacity, sector_bytes=512)
    context = Context(info, scale, seed=1, **options)
    return MICRO_BENCHMARKS[name].experiments(context)[-1]


def amplification(url: str, name: str, value: int) -> float:
    """Return the write amplification of a run after another one of the same pattern."""
    device = open_device(url, writable=True)
    (run,) = [run for run in lay_out(name, device.info.capacity_bytes).runs if run.value == value]
    return amplification_of(device, run.spec)


def amplification_of(device: Device, spec: Spec) -> float:
    """Return the write amplification of a pattern after another run of it."""
    device.run(spec)
    before = device.counters()
    device.run(spec.but(seed=2))
    after = device.counters()
    assert before is not None
    assert after is not None
    programmed, written = (
        after[key] - before[key] for key in ("pages_programmed", "host_pages_written")
    )
    return programmed / written


def logical_pages(url: str) -> int:
    return package.inspect_device(url).capacity_bytes // IO_SIZE


def spare(pages: float, blocks: int = BLOCKS) -> float:
    return theory.pool_spare_factor(
        physical_blocks=blocks, pages_per_block=PAGES, logical_pages=pages, held_blocks=HELD
    )


def cyclic(popularity: list[float], spare_factor: float) -> float:
    """Return the write amplification of a cyclic buffer, for the popularity of each page.

    A copy of a page with popularity p is valid after h host writes with a probability of e^(-p h),
    and then it is written again: p e^(-p h) / (1 - e^(-p h)) copies of it a host write. The buffer
    is written once in h host writes: h A pages.
    """
    physical = len(popularity) / (1 - spare_factor)
    low, high = 1.0, physical
    for _ in range(60):
        writes = (low + high) / 2
        moved = sum(p / math.expm1(p * writes) for p in popularity if p * writes < MAX_EXPONENT)
        low, high = (low, writes) if writes * (1 + moved) > physical else (writes, high)
    return physical / low


def zipf(pages: int, exponent: float) -> list[float]:
    weights = [rank**-exponent for rank in range(1, pages + 1)]
    return [weight / sum(weights) for weight in weights]


def test_suite_is_its_own() -> None:
    assert NAMES == [
        "skew", "hot_zone", "read_only", "fill_level", "zone_size", "open_zones", "content",
        "initial_state", "offered_load",
    ]  # fmt: skip
    assert check_names(None, "sectors", "iq") == ["baseline", *NAMES]
    assert all(suite_of(["baseline", name]) == "iq" for name in NAMES)
    for name in NAMES:
        assert len(lay_out(name, GIB, "quick").runs) < len(lay_out(name, GIB).runs)


def test_lengths_are_one_device_from_a_random_state_and_two_from_another() -> None:
    """Uniform writes to a random device move nothing: a quarter of it suffices."""
    for name in (*DRAWN_NAMES, *ZONED_NAMES):
        for overwritten in (True, False):
            for run in lay_out(name, 1024 * GIB, overwritten=overwritten).runs:
                stop, spec = run.spec.stop, run.spec
                assert stop is not None
                row = spec.second.io_bytes if isinstance(spec, Mix) else IO_SIZE
                uniform = name == "skew" and not run.value
                devices = (0.25 if uniform else 1) if overwritten else 2
                assert stop.fewest * row == stop.most * row == devices * 1024 * GIB


def test_plan_makes_long_runs_once_and_without_resets() -> None:
    """A plan of the suite for a drive of 1 TB: half of its runs were made three times before."""
    info = stored.device_info("block:/dev/x", capacity_bytes=10**12 // 4096 * 4096)
    plan = make_plan(info, "standard", 1, Choices(suite="iq"))
    long_runs = [run for run in plan.runs if run.micro_benchmark in (*DRAWN_NAMES, *ZONED_NAMES)]
    assert {run.repetition for run in long_runs} == {1}
    device = package.inspect_device("sim:demo")
    for each in (plan, make_plan(device, "standard", 1, Choices(suite="iq", state="random"))):
        assert not any(run.reset_before for run in each.runs)
    names = [run.micro_benchmark for run in long_runs]
    assert names == sorted(names, key=NAMES.index)
    assert all(plan.refresh_bytes(run, 10**12) == 0 for run in long_runs)
    # 6 + 5 + 6 runs over all of it, 5 of fill levels, 5 zone sizes and 5 numbers of open zones.
    assert sum(run.pattern != "ST" for run in long_runs) == 32


@pytest.mark.parametrize("name", DRAWN_NAMES)
def test_run_on_a_drive_has_the_value_it_is_named_after(name: str) -> None:
    for run in lay_out(name, 1000 * GIB).runs:
        spec: Any = run.spec
        assert spec.io_size == IO_SIZE
        shares = {
            "skew": spec.skew_percent or 0,
            "hot_zone": spec.hot_io_percent,
            "read_only": 100 - 100 * spec.target_size / (1000 * GIB),
            "fill_level": 100 - 100 * spec.target_size / (1000 * GIB),
        }
        # Discards are of 128 MiB.
        tolerance = 0.02 if name == "fill_level" else 1e-6
        assert shares[name] == pytest.approx(run.value, abs=tolerance)


def test_offered_load_has_the_rates_it_is_named_after() -> None:
    for run in lay_out("offered_load", 1000 * GIB).runs:
        assert isinstance(run.spec, Mix)
        assert run.spec.interval is not None
        assert 1e9 / run.spec.interval == pytest.approx(run.value, rel=0.01)


@pytest.mark.parametrize("capacity", [1000 * GIB, GIB])
def test_zones_are_discarded_whole_before_they_are_written_again(capacity: int) -> None:
    for name in ZONED_NAMES:
        for run in lay_out(name, capacity).runs:
            assert isinstance(run.spec, Mix)
            write, trim = run.spec.first, run.spec.second
            assert (write.mode, trim.mode) == ("write", "trim")
            zone = (write.zone_ios or 0) * write.io_bytes
            assert zone == (trim.zone_ios or 0) * trim.io_bytes
            assert run.spec.turns * write.io_bytes == trim.io_bytes
            assert trim.io_bytes <= 128 << 20
            assert write.target_bytes == trim.target_bytes == capacity // zone * zone
            if name == "zone_size":
                assert zone == run.value
            else:
                assert write.open_zones == trim.open_zones == run.value
    sizes = [run.value for run in lay_out("zone_size", 1000 * GIB).runs]
    assert (sizes[0], sizes[-1]) == (64 << 20, 16 * GIB)


def test_zones_are_smaller_on_a_small_device_and_skipped_where_too_many_are_open() -> None:
    assert [run.value for run in lay_out("zone_size", GIB).runs] == [
        512 << 10, 2 << 20, 8 << 20, 32 << 20, 128 << 20,
    ]  # fmt: skip
    info = stored.device_info("null", capacity_bytes=1000 * GIB, sector_bytes=512)
    context = Context(info, "standard", seed=1)
    assert zone_size.why_not(context, zone_size.zone_writes(context, 16 * GIB, 8)) is None
    reason = zone_size.why_not(context, zone_size.zone_writes(context, 16 * GIB, 16))
    assert reason is not None
    assert "16 open zones of 16 GiB" in reason


def test_cyclic_closed_form_agrees_with_that_of_equal_pages() -> None:
    assert cyclic([1 / 5000] * 5000, 0.2) == pytest.approx(theory.fifo(spare_factor=0.2), rel=1e-3)


@pytest.mark.parametrize("percent", [0, 40, 100])
def test_skew_matches_cyclic_buffer(percent: int) -> None:
    url = f"{ONE_DIE}&gc=cyclic&state=random"
    pages = logical_pages(url)
    expected = cyclic(zipf(pages, percent / 100), spare(pages))
    assert amplification(url, "skew", percent) == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("percent", [60, 80, 95])
def test_hot_zone_matches_cyclic_buffer_of_two_classes(percent: int) -> None:
    url = f"{ONE_DIE}&gc=cyclic&state=random"
    hot = percent / 100
    expected = hot_cold.mixed_fifo(
        spare_factor=spare(logical_pages(url)), hot_writes=hot, hot_pages=1 - hot
    )
    assert amplification(url, "hot_zone", percent) == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("percent", [0, 40, 80])
def test_read_only_data_in_blocks_of_its_own_leaves_its_spare_to_the_rest(percent: int) -> None:
    """Data that was written in order fills blocks that a greedy collection never chooses."""
    url = f"{ONE_DIE}&gc=greedy&state=sequential"
    pages = logical_pages(url)
    written = pages * (100 - percent) // 100
    factor = spare(written, BLOCKS - (pages - written) // PAGES)
    expected = theory.greedy(spare_factor=factor, pages_per_block=PAGES)
    assert amplification(url, "read_only", percent) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("percent", [0, 10, 40, 60])
def test_fill_level_leaves_the_spare_space_that_greedy_theory_expects(percent: int) -> None:
    url = f"{ONE_DIE}&gc=greedy&state=random"
    device = open_device(url, writable=True)
    trims, writes = MICRO_BENCHMARKS["fill_level"].experiments(Context(device.info, "standard", 1))
    for run in trims.runs:
        if run.value <= percent:
            device.run(run.spec)
    (run,) = [run for run in writes.runs if run.value == percent]
    pages = logical_pages(url) * (100 - percent) / 100
    expected = theory.greedy(spare_factor=spare(pages), pages_per_block=PAGES)
    assert amplification_of(device, run.spec) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("blocks_of_a_zone", [2, 4, 16])
def test_zones_of_whole_blocks_cost_nothing(blocks_of_a_zone: int) -> None:
    device = open_device(f"{ONE_DIE}&gc=greedy&state=empty", writable=True)
    context = Context(device.info, "standard", seed=1)
    zone = blocks_of_a_zone * PAGES * IO_SIZE
    assert amplification_of(device, zone_size.zone_writes(context, zone, 1)) == 1


@pytest.mark.parametrize(("zones_of_a_block", "open_zones"), [(8, 1), (8, 4)])
def test_zones_that_share_blocks_cost_as_much_as_random_pages(
    zones_of_a_block: int, open_zones: int
) -> None:
    """In a cyclic buffer only the time that data lives matters, not how much is written at once."""
    blocks, pages = 128, 1024
    url = ONE_DIE.replace(f"={BLOCKS}", f"={blocks}").replace(f"={PAGES}", f"={pages}")
    device = open_device(f"{url}&gc=cyclic&state=random", writable=True)
    zone = pages * IO_SIZE // zones_of_a_block
    zones = device.info.capacity_bytes // zone
    spec = zone_size.zone_writes(Context(device.info, "standard", seed=1), zone, open_zones)
    # Half of the open zones, and half of those that follow, have no data on average.
    factor = theory.pool_spare_factor(
        physical_blocks=blocks,
        pages_per_block=pages,
        logical_pages=logical_pages(url) * (zones - open_zones) / zones,
        held_blocks=HELD,
    )
    expected = theory.fifo(spare_factor=factor)
    assert amplification_of(device, spec) == pytest.approx(expected, rel=0.05)


def test_writes_from_each_state_end_at_the_rate_that_greedy_theory_expects() -> None:
    """A device with free blocks programs each page once; unwritten addresses are spare space."""
    device = open_device(f"{ONE_DIE}&gc=greedy&state=random", writable=True)
    plan = make_plan(device.info, "standard", 1, Choices(suite="iq", only=("initial_state",)))
    runs = [run for run in plan.runs if run.micro_benchmark == "initial_state"]
    assert [(run.value, run.pattern) for run in runs] == [
        (0, "ST"), (0, "RW/RR"), (0, "RW"), (1, "ST"), (1, "SW"), (1, "RW/RR"), (1, "RW"),
        (2, "RW/RR"), (2, "RW"),
    ]  # fmt: skip
    pages = logical_pages(device.info.url)
    full, partly = (
        theory.greedy(spare_factor=spare(pages * share), pages_per_block=PAGES)
        # The judged rounds begin after 1.4 writes of each address, and end after 1.9.
        for share in (1, 1 - math.exp(-1.65))
    )
    for run in runs:
        trace = device.run(run.spec, samples=run.pattern == "RW")
        if run.pattern != "RW":
            continue
        rounds = rounds_of(trace, counter_samples(trace), IO_SIZE)
        amplifications = [each["write_amplification"] or 0.0 for each in rounds]
        # The write cache is filled in the first round, and emptied in the last.
        begin, end = amplifications[1], sum(amplifications[-6:-1]) / 5
        assert end == pytest.approx(full if run.value else partly, rel=0.06), run.id
        if run.value < 2:
            assert begin == pytest.approx(1, rel=0.01)


def test_rounds_count_writes_among_discards() -> None:
    device = open_device(f"{ONE_DIE}&gc=greedy&state=empty", writable=True)
    context = Context(device.info, "standard", seed=1)
    trace = device.run(zone_size.zone_writes(context, 1 << 20, 1), samples=True)
    rounds = rounds_of(trace, counter_samples(trace), IO_SIZE)
    assert rounds[-1]["written_bytes"] == trace.bytes_written
    assert trace.bytes_trimmed > 0
    amplifications = [each["write_amplification"] for each in rounds]
    assert amplifications == pytest.approx([1.0] * len(rounds), rel=0.02)


def test_offered_load_is_served_up_to_the_rate_of_the_die() -> None:
    """The die is busy for a program a write; reads of addresses without data take no time."""
    url = f"{ONE_DIE.replace(f'blocks_per_die={BLOCKS}', 'blocks_per_die=4096')}&state=empty"
    capacity = package.inspect_device(url).capacity_bytes
    limit = 1e9 / (0.9 * PROGRAM_NS)
    for run in lay_out("offered_load", capacity, "quick").runs:
        trace = open_device(url, writable=True).run(run.spec)
        served = len(trace) / trace.elapsed_ns() * 1e9
        assert served == pytest.approx(min(run.value, limit), rel=0.05), run.value


def test_knee_is_the_service_rate_of_the_die_within_ten_percent(tmp_path: Path) -> None:
    url = f"{UNWRITTEN_DIE}&state=empty"
    info = package.inspect_device(url)
    choices = Choices(suite="iq", only=("offered_load",), pause_ns=0)
    planned_ios = estimate(make_plan(info, "quick", 1, choices)).ios
    package.run(url, tmp_path / "r", suite="iq", only=["offered_load"], scale="quick", pause=0)
    document = summary(Results.load(tmp_path / "r"))
    runs: list[Any] = [*document["micro_benchmarks"]["offered_load"]]
    rates = sorted((run["value"], offered_load.keeps_up(run)) for run in runs)
    sustained = max(rate for rate, keeps_up in rates if keeps_up)
    beyond = min(rate for rate, keeps_up in rates if not keeps_up)
    limit = 1e9 / (0.9 * PROGRAM_NS)
    assert 1 < beyond / sustained < 1.1
    assert sustained == pytest.approx(limit, rel=0.1)
    assert beyond == pytest.approx(limit, rel=0.1)
    # The largest step of the quick rates is one of eight: 1.1 to the power of 32 is more.
    assert len(rates) == len(offered_load.QUICK) + 5
    assert sum(run["io_count"] for run in runs) <= planned_ios


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_writes_below_the_knee_wait_as_in_a_queue_with_constant_service(load: float) -> None:
    """The mean response time of M/D/1, for the writes of a die; reads take no time."""
    device = open_device(f"{UNWRITTEN_DIE}&state=empty", writable=True)
    context = Context(device.info, "standard", seed=1)
    spec = offered_load.load_mix(context, round(load * 1e9 / (0.9 * PROGRAM_NS)))
    trace = device.run(spec.but(io_count=100_000, io_ignore=0))
    modes, times = (as_array(trace, name) for name in ("mode", "response_time_ns"))
    writes = times[modes == MODES.index("write")]
    expected = PROGRAM_NS * (1 + load / (2 * (1 - load)))
    assert writes.mean() == pytest.approx(expected, rel=0.1 if load > 0.7 else 0.04)


def test_plan_and_report_show_the_suite(tmp_path: Path) -> None:
    out, page = tmp_path / "r", tmp_path / "report.html"
    outcome = uflip("run", "sim:demo?blocks_per_die=256", "--suite", "iq", "--scale", "quick",
                    "--out", out)  # fmt: skip
    assert outcome.code == 0, outcome.err
    for title in ("Skew", "Hot zone", "Read-only share", "Fill level", "Zone size", "Open zones",
                  "Offered load"):  # fmt: skip
        assert title in outcome.out
    assert uflip("report", out, "-o", page).code == 0
    html = page.read_text()
    assert all(f'id="{name}"' in html for name in NAMES)
    document = summary(Results.load(out))
    (uniform, skewed, _) = document["micro_benchmarks"]["skew"]
    # The device was prepared by uniform writes; a quick run of others writes too little.
    assert "too_little_written" not in uniform["steadiness"]["reasons"]
    assert "too_little_written" in skewed["steadiness"]["reasons"]
    assert not skewed["together"]["converged"]
    assert "not steady" in finding("skew", document)
