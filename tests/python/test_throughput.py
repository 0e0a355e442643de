"""Is a throughput within its bounds, and not below what the device achieves?

The simulated devices have constants given here, so that bounds are sums: dies that read a page in a
given time, a link with a given rate.
"""

from pathlib import Path

import numpy as np
import pytest
from test_suite_today import EIGHT_DIES, ONE_DIE, PAGE, READ_NS, measure_experiments

import uflip as package
from uflip._native import Trace
from uflip.device.opener import open_device
from uflip.microbench.labels import by_pattern
from uflip.microbench.layout import ROUNDS
from uflip.microbench.today.queue_depth import rate, smallest_best_depth
from uflip.results.run_statistics import measured_amount, rates
from uflip.spec import Spec, baseline, basic, mix

DEPTHS = [2**k for k in range(9)]
ONE_PER_S = 1e9 / READ_NS
LINK = 280_000_000


def run(url: str, spec: Spec) -> Trace:
    with open_device(url) as device:
        return device.run(spec)


def ios_per_s(url: str, spec: Spec) -> float:
    per_second, _ = rates([measured_amount(run(url, spec))])
    assert per_second is not None
    return per_second


def reads(pattern: str, depth: int, *, ignored: int = 0, io_size: int = PAGE) -> Spec:
    ios = max(ROUNDS * depth, 1024)
    return baseline(
        pattern, io_size=io_size, queue_depth=depth, io_count=ios, io_ignore=ignored, seed=5
    )


@pytest.mark.parametrize("ignored", [0, 100, 300])
@pytest.mark.parametrize("depth", DEPTHS)
def test_never_idle_dies_read_one_page_per_page_time(depth: int, ignored: int) -> None:
    for url, dies in ((ONE_DIE, 1), (EIGHT_DIES, 8)):
        per_second = ios_per_s(url, reads("SR", depth, ignored=ignored))
        assert per_second == pytest.approx(min(dies, depth) * ONE_PER_S, rel=0.002), url


@pytest.mark.parametrize("depth", DEPTHS)
def test_random_reads_stay_below_queueing_bound(depth: int) -> None:
    """A closed network of 8 equal servers does 8 n / (n + 7) of what one does, or more (Buzen)."""
    per_second = ios_per_s(EIGHT_DIES, reads("RR", depth, ignored=depth)) / ONE_PER_S
    assert 0.97 * 8 * depth / (depth + 7) < per_second < 8 * 1.0001


@pytest.mark.parametrize("pattern", ["SR", "RR"])
@pytest.mark.parametrize("depth", DEPTHS)
def test_link_rate_is_independent_of_depth(pattern: str, depth: int) -> None:
    """I/Os of eight pages in round robin: some are half done when counting begins."""
    io_size = 32 << 10
    bound = LINK / io_size
    per_second = ios_per_s("sim:demo", reads(pattern, depth, io_size=io_size))
    assert per_second < 1.01 * bound
    if depth >= 4:
        assert per_second > 0.997 * bound


def test_filling_and_emptying_of_queue_are_excluded() -> None:
    """Counted one by one: completions behind the first 64, to the last submission, by hand."""
    depth = 64
    trace = run(ONE_DIE, reads("SR", depth, ignored=depth))
    ends = np.asarray(trace.column("submit_ns")) + np.asarray(trace.column("response_time_ns"))
    at = sorted(ends.tolist())
    first, last = at[depth], at[-depth - 1]
    within = sum(1 for each in at if first < each <= last)
    per_second, _ = rates([measured_amount(trace)])
    assert per_second == pytest.approx(within / (last - first) * 1e9, rel=0.001)


def test_byte_rate_counts_the_same_ios() -> None:
    """One die reads 1 and 4 pages alternately, 50 µs a page, at any queue depth."""
    small, large = (basic("read", "random", io_size=pages * PAGE) for pages in (1, 4))
    for depth in (1, 4, 16):
        mixed = mix(small, large, 1, queue_depth=depth, io_count=400, seed=3)
        ios, size = rates([measured_amount(run(ONE_DIE, mixed))])
        assert size == pytest.approx(PAGE * ONE_PER_S, rel=0.01)
        assert ios == pytest.approx(ONE_PER_S / 2.5, rel=0.01)


def test_processes_count_while_all_are_active() -> None:
    """Four processes on eight dies, each with one read under way, but for their start."""
    spec = baseline("RR", io_size=PAGE, parallel_degree=4, io_count=400, io_ignore=50, seed=2)
    trace = run(EIGHT_DIES, spec)
    mean = np.asarray(trace.column("response_time_ns"))[np.asarray(trace.column("ignored")) == 0]
    per_second, _ = rates([measured_amount(trace)])
    assert per_second == pytest.approx(4e9 / mean.mean(), rel=0.01)


def test_run_without_two_rounds_is_counted_whole() -> None:
    spec = baseline("SR", io_size=PAGE, queue_depth=16, io_count=24)
    trace = run(ONE_DIE, spec)
    per_second, _ = rates([measured_amount(trace)])
    assert per_second == pytest.approx(24e9 / trace.elapsed_ns())


@pytest.mark.parametrize("scale", ["quick", "standard"])
def test_appends_are_limited_by_pages_of_their_zone(tmp_path: Path, scale: str) -> None:
    """A page of 64 KiB, which two appends fill, takes 637.88 µs; and a zone has a buffer."""
    result = package.run(
        "sim:zns", tmp_path / "r", suite="zones", only=["zone_append"], scale=scale
    )
    experiments = by_pattern(result.summary["micro_benchmarks"]["zone_append"])["SA"]
    assert experiments[-1]["value"] == 64
    for each in experiments:
        assert rate(each) == pytest.approx(2e9 / 637_880, rel=0.001)
    assert smallest_best_depth(experiments)["value"] == 1


def test_queue_depth_benchmark_reaches_link_rate(tmp_path: Path) -> None:
    """Its runs end when their means are known, of which a queue needs its rounds all the same."""
    experiments, text = measure_experiments(
        "sim:demo", tmp_path / "r", "queue_depth", scale="standard", state="random", seed=1
    )
    bound = LINK / (32 << 10)
    for pattern in ("SR", "RR"):
        runs = experiments[pattern]
        assert [run["value"] for run in runs] == DEPTHS
        assert all(run["io_count"] >= ROUNDS * run["value"] for run in runs)
        assert all(rate(run) < 1.01 * bound for run in runs)
        assert all(rate(run) > 0.99 * bound for run in runs[2:])
        assert smallest_best_depth(runs)["value"] == 4
        assert all(run["ios_per_s"] == rate(run) for run in runs)
    assert f"{round(rate(smallest_best_depth(experiments['RR']))):,} at depth 4" in text
