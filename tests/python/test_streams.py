"""Write streams that a device separates, against closed forms of hot and cold data."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import stored

import uflip
import uflip as package
from uflip.benchmark.plan import Choices, make_plan
from uflip.data.device import DeviceInfo, NvmeNamespace
from uflip.device.catalogue import inspect_device
from uflip.errors import UsageError
from uflip.microbench import MICRO_BENCHMARKS, suite_of, varied_micro_benchmarks
from uflip.microbench.experiment import Context, Experiment
from uflip.microbench.labels import by_pattern
from uflip.models import hot_cold
from uflip.models import write_amplification as theory
from uflip.reproduce.simulated_device import SimulatedDevice, device_url
from uflip.results import Results, summary
from uflip.spec import Spec, basic, mix

BLOCKS, PAGES_PER_BLOCK = 2048, 64
# A reserve of one block, and the free half of the open ones: of a single stream one is open, of
# each of two one that the host fills and one for relocated pages.
HELD_BLOCKS = {1: 1.5, 2: 3}
SKEWS = ((90, 10), (80, 20))
DETECTOR = {
    "bloom_filters": 4, "bloom_filter_bits": 1 << 17, "bloom_hashes": 2, "bloom_window": 16_384,
    "hot_weight": 7,
}  # fmt: skip


def measure_steady_state(
    policy: str,
    skew: tuple[int, int],
    *,
    hints: bool = False,
    writers: Callable[[SimulatedDevice, int, int], Spec] | None = None,
    **keys: object,
) -> tuple[float, float]:
    """Return the write amplification in the steady state, and the spare factor of full blocks.

    Without hints and without a detector all writes share one open block with relocated pages.
    """
    streams = 2 if hints or "bloom_filters" in keys else 1
    device = SimulatedDevice(
        device_url(
            "ofc", gc=policy, spare_factor=0.2, pages_per_block=PAGES_PER_BLOCK,
            blocks_per_die=BLOCKS, channels=1, dies_per_channel=1, metadata_pages=0,
            reserved_blocks=1, state="sequential", write_streams=streams, **keys,
        )
    )  # fmt: skip
    for seed, sizes in ((1, 8), (2, 3)):
        ios = sizes * device.logical_pages
        spec = (
            writers(device, ios, seed) if writers else skewed_writes(device, skew, hints, ios, seed)
        )
        counters = device.apply(spec)
    spare_factor = theory.pool_spare_factor(
        physical_blocks=BLOCKS,
        pages_per_block=PAGES_PER_BLOCK,
        logical_pages=device.logical_pages,
        held_blocks=HELD_BLOCKS[streams],
    )
    return counters["pages_programmed"] / counters["host_pages_written"], spare_factor


def skewed_writes(
    device: SimulatedDevice, skew: tuple[int, int], hints: bool, ios: int, seed: int
) -> Spec:
    """Describe `ios` writes with a hot area, which has its own stream if `hints`."""
    writes, pages = skew
    return basic(
        "write", "hotcold", io_size=device.page_bytes, hot_io_percent=writes,
        hot_space_percent=pages, hot_write_stream=int(hints), io_count=ios, seed=seed,
    )  # fmt: skip


def best_amplification(spare_factor: float, skew: tuple[int, int]) -> float:
    """Return what the best division of the spare space amplifies."""
    return hot_cold.best_separation(
        spare_factor=spare_factor, hot_writes=skew[0] / 100, hot_pages=skew[1] / 100,
        pool=partial(theory.greedy, pages_per_block=PAGES_PER_BLOCK),
    ).write_amplification  # fmt: skip


def agrees(name: str, value: float, expected: float, tolerance: float) -> None:
    deviation = value / expected - 1
    print(f"{name}: {value:.3f}, expected {expected:.3f}, {deviation:+.2%} (±{tolerance:.1%})")
    assert abs(deviation) < tolerance, name


@pytest.mark.parametrize("skew", SKEWS)
@pytest.mark.parametrize("hints", [False, True])
def test_fifo_gains_nothing_from_hints(skew: tuple[int, int], hints: bool) -> None:
    amplification, spare_factor = measure_steady_state("cyclic", skew, hints=hints)
    shares = {"hot_writes": skew[0] / 100, "hot_pages": skew[1] / 100}
    expected = hot_cold.mixed_fifo(spare_factor=spare_factor, **shares)
    agrees(f"cyclic {skew}, hints {hints}", amplification, expected, 0.02)


@pytest.mark.parametrize("skew", SKEWS)
def test_greedy_with_hints_amplifies_like_uniform_writes(skew: tuple[int, int]) -> None:
    amplification, spare_factor = measure_steady_state("greedy", skew, hints=True)
    uniform = theory.greedy(spare_factor=spare_factor, pages_per_block=PAGES_PER_BLOCK)
    agrees(f"greedy {skew} with hints", amplification, uniform, 0.02)
    mixed, _ = measure_steady_state("greedy", skew)
    print(f"greedy {skew} without: {mixed:.3f}")
    assert mixed > 1.1 * uniform, "mixed, hot pages make cold ones move"


@pytest.mark.parametrize("skew", SKEWS)
def test_spare_shares_are_as_good_as_the_best_division(skew: tuple[int, int]) -> None:
    amplification, spare_factor = measure_steady_state("spare_shares", skew, hints=True)
    agrees(f"spare_shares {skew}", amplification, best_amplification(spare_factor, skew), 0.03)


def test_detector_separates_nearly_as_well_as_hints() -> None:
    mixed, _ = measure_steady_state("spare_shares", SKEWS[0])
    hinted, _ = measure_steady_state("spare_shares", SKEWS[0], hints=True)
    detected, _ = measure_steady_state("spare_shares", SKEWS[0], **DETECTOR)
    print(f"mixed {mixed:.3f}, told {hinted:.3f}, found out {detected:.3f}")
    assert hinted < detected < hinted + 0.35 * (mixed - hinted)


def test_shared_relocation_blocks_gain_less() -> None:
    persistently, _ = measure_steady_state("spare_shares", SKEWS[0], hints=True)
    initially, _ = measure_steady_state("spare_shares", SKEWS[0], hints=True, separate_streams=True)
    mixed, _ = measure_steady_state("spare_shares", SKEWS[0])
    print(f"persistently {persistently:.3f}, initially isolated {initially:.3f}, mixed {mixed:.3f}")
    assert initially < mixed


def test_two_writers_use_streams_of_their_own() -> None:
    """One writes nine times as often to a tenth of the pages as the other to the rest."""

    def writers(device: SimulatedDevice, ios: int, seed: int) -> Spec:
        tenth = device.logical_pages // 10 * device.page_bytes
        often = basic(
            "write", "random", io_size=device.page_bytes, target_size=tenth, write_stream=1
        )
        seldom = basic("write", "random", io_size=device.page_bytes, target_offset=tenth)
        return mix(often, seldom, 9, io_count=ios // 10, seed=seed)

    amplification, spare_factor = measure_steady_state(
        "spare_shares", SKEWS[0], hints=True, writers=writers
    )
    best = best_amplification(spare_factor, SKEWS[0])
    agrees("two writers", amplification, best, 0.03)


@pytest.mark.parametrize(
    ("url", "stream", "allowed"),
    [
        ("sim:demo?blocks_per_die=32", 1, "0: it does not separate writes"),
        ("sim:demo?blocks_per_die=128&write_streams=4", 4, "0 to 3"),
        ("null", 2, "0: it does not separate writes"),
    ],
)
def test_unknown_stream_is_refused(url: str, stream: int, allowed: str) -> None:
    with pytest.raises(UsageError) as raised:
        uflip.pattern(url, basic("write", "random", io_count=8, write_stream=stream))
    assert allowed in str(raised.value)
    assert "no such write stream" in str(raised.value)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("write_streams=0", "1 to 16"),
        ("write_streams=17", "1 to 16"),
        ("write_streams=2&ftl=dftl", "does not use"),
        (
            "write_streams=3&bloom_filters=4&bloom_filter_bits=64&bloom_hashes=2&bloom_window=8"
            "&hot_weight=1",
            "2 with [hot_cold]",
        ),
        (
            "write_streams=2&bloom_filters=4&bloom_filter_bits=64&bloom_hashes=2&bloom_window=8"
            "&hot_weight=11",
            "1 to 10",
        ),
    ],
)
def test_invalid_stream_settings_are_refused(keys: str, message: str) -> None:
    if "dftl" in keys:
        keys += "&mapping_cache_bytes=64KiB&mapping_cache_policy=lru&mapping_batch_update=true"
    with pytest.raises(UsageError) as raised:
        uflip.inspect_device(f"sim:demo?{keys}")
    assert message in str(raised.value)


# Does the suite of streams write through the streams that a device has, and skip all others?


SMALL = "sim:demo?blocks_per_die=128&spare_factor=0.2&write_streams=2&gc=greedy"
NAMES = ["each_stream", "hot_stream"]


def namespace(handles: int) -> DeviceInfo:
    found = NvmeNamespace(nsid=1, command_bytes_max=512 << 10, placement_handles=handles)
    return stored.device_info("nvme", capacity_bytes=1 << 40, details={"namespace": found})


def lay_out(name: str, info: DeviceInfo) -> Experiment:
    (experiment,) = MICRO_BENCHMARKS[name].experiments(Context(info, "standard", seed=1))
    return experiment


def test_suite_is_its_own() -> None:
    assert list(varied_micro_benchmarks("streams")) == NAMES
    assert all(suite_of([name]) == "streams" for name in NAMES)


@pytest.mark.parametrize(("handles", "values"), [(8, list(range(8))), (3, [0, 1, 2]), (0, [])])
def test_each_placement_handle_of_a_drive_has_a_run(handles: int, values: list[int]) -> None:
    experiment = lay_out("each_stream", namespace(handles))
    assert [run.value for run in experiment.runs] == values
    streams = [part.write_stream or 0 for run in experiment.runs for part in run.spec.parts]
    assert streams == values
    assert len(experiment.skipped) == 8 - len(values)
    assert all("write stream" in each.reason for each in experiment.skipped)


def test_hot_stream_differs_in_the_stream_only() -> None:
    first, second = (run.spec for run in lay_out("hot_stream", namespace(2)).runs)
    (one,), (own,) = first.parts, second.parts
    assert (one.hot_write_stream or 0, own.hot_write_stream) == (0, 1)
    assert (one.location, one.hot_io_percent, one.target_size) == (
        own.location, own.hot_io_percent, own.target_size,
    )  # fmt: skip


def test_device_without_streams_skips_the_suite() -> None:
    plan = make_plan(inspect_device("sim:demo"), "quick", 1, Choices(suite="streams"))
    assert plan.skipped
    assert all("one write stream" in each.reason for each in plan.skipped)


def test_own_stream_lowers_write_amplification(tmp_path: Path) -> None:
    """Hot and cold data in blocks of their own: victims have fewer valid pages."""
    results = package.run(SMALL, tmp_path / "out", suite="streams", only=["hot_stream"])
    measured = summary(Results.load(results.path))["micro_benchmarks"]["hot_stream"]
    runs = by_pattern(measured)["RW"]
    shared, own = (run["steadiness"]["write_amplification"] for run in runs)
    assert own < 0.85 * shared
