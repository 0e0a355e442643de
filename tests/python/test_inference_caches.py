"""Does an inference find what is behind and beside the flash: caches, kinds of pages, suspension?

Expected values are the parameters of devices, or closed forms of response times.
"""

from collections import OrderedDict
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from uflip.device.cache import switched_off
from uflip.device.opener import open_device
from uflip.inference import probes
from uflip.inference.infer import Inference, infer
from uflip.inference.map_cache import map_cache_of
from uflip.inference.observations import Observation, Observations, RunKey
from uflip.inference.page_types import corrected, page_types_of
from uflip.inference.suspension import suspends
from uflip.inference.write_cache import EAGER, _sizes, bounds, cliff_of
from uflip.microbench.inside.read_range import IOS
from uflip.spec import Spec, baseline, basic

MIB = 1 << 20
SECTOR = 512
CACHE_BYTES, SUSPEND_NS = 1 * MIB, 20_000
# 88 MiB with pages of four units: a few seconds.
DEVICE = (
    "sim:demo?channels=2&dies_per_channel=2&blocks_per_die=110&pages_per_block=64&idle_free_blocks=0"
    "&spare_factor=0.2&gc=greedy&page_bytes=4096&program_ns=450000&program_high_ns=450000&seed=99"
    f"&write_cache_bytes={CACHE_BYTES}&flush=when_needed&die_queue=reads_first&suspensions_max=8"
    f"&program_suspend_ns={SUSPEND_NS}&erase_suspend_ns={SUSPEND_NS}&command_write_ns=5000"
)


@pytest.fixture(scope="module")
def inferred() -> Inference:
    with switched_off(), open_device(DEVICE, writable=True) as device:
        return infer(probes.measure(device))


@pytest.mark.parametrize(
    ("key", "true"),
    [
        ("page_bytes", 4096),
        ("dies", 4),
        ("write_cache_bytes", CACHE_BYTES),
        ("flush", "when_needed"),
        ("suspends_programs", "yes"),
        ("page_kinds", 1),
        ("ftl", "page_map"),
    ],
)
def test_properties_behind_a_write_cache_are_exact(
    inferred: Inference, key: str, true: float | str
) -> None:
    assert inferred.estimate(key).value == true


@pytest.mark.parametrize(
    ("key", "true"), [("program_ns", 450_000), ("program_suspend_ns", SUSPEND_NS)]
)
def test_times_behind_a_write_cache(inferred: Inference, key: str, true: float) -> None:
    assert inferred.estimate(key).number() == pytest.approx(true, rel=0.05)


def test_twin_has_the_caches(inferred: Inference) -> None:
    assert inferred.twin is not None
    assert inferred.twin.value("write_cache_bytes") == CACHE_BYTES
    assert "[suspend]" in inferred.twin.text()


def burst(cliff: int, fast_ns: float, slow_ns: float) -> NDArray[np.float64]:
    times = np.full(400, fast_ns)
    times[cliff:] = slow_ns
    return times


@pytest.mark.parametrize("cliff", [9, 64, 200])
def test_cliff_is_the_first_write_that_waits(cliff: int) -> None:
    assert cliff_of(burst(cliff, 10_000, 100_000)) == cliff
    assert cliff_of(burst(cliff, 10_000, 11_000)) is None


def test_policy_of_a_cache_fits_as_well_as_its_best_size() -> None:
    """The usual size, a power of two, is not the one whose bursts are the most similar."""
    times = np.full(512, 10_000.0)
    times[268:] = 1_000_000
    spec = baseline("RW", io_size=4096, io_count=512)
    run = Observation(spec, np.zeros(512, np.int64), times, np.ones(512, np.bool_))
    search = SimpleNamespace(
        unit=4096, page=16384, buffered=4, measured=[run], cliffs=[[268]],
        late=lambda *_: lambda units: units - 268,
        error=lambda units, _: abs(units - 286) / 100,
    )  # fmt: skip
    (found,) = _sizes(search, EAGER)
    # 5 % more than the cliff and the four units of a page.
    assert (found.size, found.high, found.error) == (1 << 20, 286 * 4096, 0)


def test_bounds_contain_caches_that_drain_and_that_do_not() -> None:
    spec = baseline("SW", io_size=4096, io_count=400)
    run = Observation(spec, np.arange(400), burst(100, 10_000, 40_000), np.ones(400, dtype=bool))
    low_high = bounds(run, 0)
    assert low_high is not None
    low, high = low_high
    # 100 writes fit if nothing drains; if a page drains every 40 µs, a quarter of them has left.
    assert low <= 75 * 4096 <= 100 * 4096 <= high


def reads_of(kinds: list[int], shares: int) -> Observations:
    times = np.tile(np.array(kinds, dtype=np.float64), shares)
    count = len(times)
    spec = basic(
        "read", "ordered", incr=8, io_size=SECTOR, io_count=count, target_size=4096 * count
    )
    offsets = np.arange(count) * 4096
    run = Observation(spec, offsets, times, np.zeros(count, dtype=bool))
    single = baseline("RR", io_size=SECTOR, io_count=count)
    order = np.random.default_rng(1).permutation(count)
    random = Observation(single, offsets[order], times[order], np.zeros(count, dtype=bool))
    runs = {RunKey("read_each", "RR", 8): run, RunKey("read_size", "RR", SECTOR): random}
    return Observations(64 * MIB, SECTOR, runs)


@pytest.mark.parametrize(
    ("kinds", "bits"),
    [
        ([60_000], 1),
        ([60_000, 90_000], 2),
        ([60_000, 80_000, 110_000], 3),
        ([50_000, 105_000, 105_000, 228_000], 4),
        ([50_000, 50_000, 50_000, 90_000], None),
    ],
)
def test_bits_of_a_cell_follow_from_groups_of_reads(kinds: list[int], bits: int | None) -> None:
    observations = reads_of(kinds, 256)
    types = page_types_of(observations)
    assert types is not None
    assert types.bits == bits
    assert [kind.value for kind in types.kinds] == sorted(set(kinds))
    equal = corrected(observations, types).by_value("read_size", "RR")[SECTOR]
    assert set(equal.response_ns) == {kinds[0]}


def test_groups_without_gaps_are_no_kinds_of_pages() -> None:
    observations = reads_of(list(range(50_000, 100_000, 500)), 8)
    types = page_types_of(observations)
    assert types is None or len(types.kinds) == 1


@pytest.mark.parametrize(("longest_ns", "found"), [(500_000, False), (30_000, True)])
def test_suspension_follows_from_the_longest_waits(longest_ns: int, found: bool) -> None:
    waits = np.random.default_rng(2).uniform(0, longest_ns, 1000)
    assert suspends(waits, 500_000) is found
    assert suspends(waits[:10], 500_000) is None


def ranges_of(cached_bytes: int) -> Observations:
    """Return random reads that take one more read where a simple LRU list lacks their page."""
    chance = np.random.default_rng(3)
    runs = {}
    for size in (MIB, 4 * MIB, 16 * MIB, 64 * MIB):
        cached: OrderedDict[int, None] = OrderedDict()
        times = np.full(IOS, 80_000.0)
        for n, page in enumerate(chance.integers(0, size // 4096, IOS)):
            times[n] += 0 if int(page) in cached else 60_000
            cached[int(page)] = None
            cached.move_to_end(int(page))
            if len(cached) > cached_bytes // 4096:
                cached.popitem(last=False)
        spec: Spec = baseline("RR", io_size=4096, io_count=IOS, target_size=size)
        zeros = np.zeros(IOS, dtype=np.int64)
        runs[RunKey("read_range", "RR", size)] = Observation(spec, zeros, times, zeros > 0)
    return Observations(64 * MIB, SECTOR, runs)


@pytest.mark.parametrize("cached_mib", [2, 4, 8])
def test_map_cache_follows_from_the_share_of_slow_reads(cached_mib: int) -> None:
    found = map_cache_of(ranges_of(cached_mib * MIB))
    assert found is not None
    assert found.low <= cached_mib * MIB <= found.high
    assert found.miss_ns == pytest.approx(60_000, rel=0.1)


def test_map_in_memory_is_no_map_cache() -> None:
    observations = ranges_of(2 * MIB)
    runs = {
        key: replace(run, response_ns=np.full(len(run.response_ns), 80_000.0))
        for key, run in observations.runs.items()
    }
    assert map_cache_of(replace(observations, runs=runs)) is None
