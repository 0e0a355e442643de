"""Does a plan find start-up, period, run length and pause, and report if it cannot?"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ruptures
from arviz_stats.base import array_stats
from command_line import uflip
from scipy import optimize, signal, stats
from statsmodels.tsa.stattools import acf
from stored import pattern_phases

import generated_series as make
from uflip import _native
from uflip.analysis import analyse
from uflip.benchmark import Choices, interference, make_plan
from uflip.benchmark.interference import WINDOW, lingering
from uflip.benchmark.run_lengths import MIN_IOS, adapt_spec, find_phases
from uflip.device.catalogue import inspect_device
from uflip.device.opener import open_device
from uflip.microbench.experiment import PlannedRun
from uflip.results import Results, summary
from uflip.spec import baseline, read_spec

MTRON_STARTUP, MTRON_PERIOD = 125, 3


def mtron(n: int) -> Any:
    """The device of uFLIP §4.2: 125 cheap writes, then cheap, cheap, expensive, and so on."""
    times = np.where(np.arange(n) % MTRON_PERIOD == 2, 27_000_000, 400_000)
    times[:MTRON_STARTUP] = 400_000
    return times


# The paper's cautions


def test_short_run_without_io_ignore_underestimates_by_a_quarter() -> None:
    """§4.2: "the measured time will be about 25% lower than it should be"."""
    true_mean = (2 * 0.4 + 27) / 3
    measured = mtron(512).mean() / 1e6
    assert measured / true_mean - 1 == pytest.approx(-0.25, abs=0.02)
    phases = find_phases({"RW": mtron(5120)})
    # The last two cheap writes could as well be the first of the running phase.
    assert 0 <= MTRON_STARTUP - phases["startup_ios"] < MTRON_PERIOD == phases["period_ios"]
    assert phases["patterns"]["RW"].mean_ns / 1e6 == pytest.approx(true_mean, rel=0.01)


@pytest.mark.parametrize("ratio", [1, 4, 8, 64])
def test_short_mix_beyond_ratio_4_measures_only_startup(ratio: int) -> None:
    """§4.2: of RR/RW only the initial, very cheap writes; not if scaled by the ratio."""
    rare = 512 // (ratio + 1)
    times = mtron(rare)
    only_cheap = bool((times == 400_000).all())
    assert only_cheap == (ratio > 4 or rare <= MTRON_STARTUP)
    # A plan uses the counts and budgets of the rarer pattern.
    info = open_device("sim:demo").info
    plan = make_plan(info, "standard", 1, Choices(only=("mix",), repetitions=1))
    (run,) = [r for r in plan.runs if (r.pattern, r.value) == ("RR/RW", ratio)]
    assert run.spec.stop.min_ios == MIN_IOS > 2 * MTRON_STARTUP


# Run length


def test_run_length_covers_phases() -> None:
    info = open_device("sim:demo").info
    plan = make_plan(info, "standard", 1, Choices(only=("granularity",), repetitions=1))
    (run,) = [each for each in plan.runs if (each.pattern, each.value) == ("RW", 32768)]
    (small,) = [each for each in plan.runs if (each.pattern, each.value) == ("RW", 8192)]
    (reads,) = [each for each in plan.runs if (each.pattern, each.value) == ("SR", 8192)]

    def min_ios_after(planned: PlannedRun, startup: int, period: int) -> int:
        phases = {
            "startup_ios": startup,
            "period_ios": period,
            "patterns": {"RW": pattern_phases(startup, 10**7)},
            "again": {},
        }
        return int(adapt_spec(planned, phases, 32768).stop.min_ios)

    assert adapt_spec(run, None, 32768) == run.spec
    assert min_ios_after(run, 10, 3) == MIN_IOS
    assert min_ios_after(run, 1500, 128) == 2 * 1500 + 10 * 128
    assert min_ios_after(small, 1500, 128) == 4 * 2 * 1500 + 10 * 128, "as many bytes"
    assert min_ios_after(reads, 1500, 128) == 10 * 128, "which reads do not write"
    assert min_ios_after(run, 10_240, 1) == run.spec.stop.max_ios
    assert min_ios_after(run, 10_241, 1) == MIN_IOS, (
        "which no length leaves behind: it will be marked"
    )


def test_paper_method_keeps_paper_lengths() -> None:
    info = open_device("sim:demo").info
    plan = make_plan(info, "standard", 1, Choices(only=("granularity",), method="paper"))
    runs = [run for run in plan.runs if run.micro_benchmark == "granularity"]
    assert {run.spec.io_count for run in runs} == {1024, 5120}
    assert {run.spec.io_ignore for run in runs if run.pattern == "RW"} == {128}


# Interference


def exponential(n: int, mean: float, seed: int) -> Any:
    return np.random.default_rng(seed).exponential(mean, n) + 100_000


def submitted(times: Any) -> Any:
    return np.concatenate([[0], np.cumsum(times)[:-1]])


@pytest.mark.parametrize("affected", [0, 300, 1000, 3000])
@pytest.mark.parametrize("shape", ["constant", "exponential"])
def test_affected_reads_are_counted(affected: int, shape: str) -> None:
    """Figure 5: some 3,000 reads are slower after the writes, then as before."""
    if shape == "constant":
        before, after = np.full(1024, 400_000.0), np.full(5120, 400_000.0)
    else:
        before, after = exponential(1024, 50_000, 1), exponential(5120, 50_000, 2)
    after[:affected] *= 2
    effect = lingering(before, after, submitted(after), least_pause_ns=1_000_000_000)
    assert abs(effect["reads_affected"] - affected) <= WINDOW
    assert effect["over"]
    elapsed = after[: effect["reads_affected"]].sum()
    assert effect["lingering_ns"] == pytest.approx(elapsed, rel=1e-6, abs=2)
    assert effect["pause_ns"] == max(1_000_000_000, 2 * effect["lingering_ns"])


def test_effect_outlasting_reads_is_reported() -> None:
    before, after = np.full(1024, 4e5), np.full(1024, 8e5)
    effect = lingering(before, after, submitted(after), least_pause_ns=0)
    assert (effect["over"], effect["reads_affected"]) == (False, 1024)


@pytest.mark.parametrize(
    ("changed", "end"),
    [
        (slice(128, 3128), 3128),
        ([at for at in range(3000) if at % 256 < 64], 2880),
        (slice(0, 3000, 60), 2941),
        (slice(0, 3000, 20), 2981),
        (slice(0, 3000, 10), 2991),
    ],
    ids=["late", "spells", "every 60th", "every 20th", "every 10th"],
)
@pytest.mark.parametrize("reads_before", [1024, 5120])
def test_late_intermittent_and_sparse_effects_are_counted(
    changed: Any, end: int, reads_before: int
) -> None:
    """Each makes the first 3,000 reads slower by a third to twice: the pause must be as long."""
    rng = np.random.default_rng(1)
    before, after = (4e5 * np.exp(0.05 * rng.normal(size=n)) for n in (reads_before, 5120))
    share = after[changed].size / 3000
    after[changed] *= 2.5 if share > 0.2 else 1 + 1 / share
    effect = lingering(before, after, submitted(after), least_pause_ns=0)
    assert effect["over"]
    assert end - interference.BLOCK * WINDOW // 2 <= effect["reads_affected"]
    assert effect["reads_affected"] <= end + interference.BLOCK * WINDOW // 2


def autoregressive(n: int, rng: Any) -> Any:
    return np.exp(0.3 * signal.lfilter([np.sqrt(1 - 0.9**2)], [1, -0.9], rng.normal(size=n)))


@pytest.mark.parametrize(
    "shape",
    [
        lambda n, rng: rng.exponential(1, n) + 2,
        lambda n, rng: np.exp(rng.normal(size=n)),
        autoregressive,
        lambda n, rng: np.where(rng.random(n) < 0.02, 30, np.exp(0.05 * rng.normal(size=n))),
        lambda n, rng: np.where(np.arange(n) % 50 == 7, 30, np.exp(0.05 * rng.normal(size=n))),
    ],
    ids=["exponential", "lognormal", "autoregressive", "rare spikes", "regular spikes"],
)
def test_unaffected_reads_raise_few_false_alarms(shape: Any) -> None:
    """One false alarm in a hundred is allowed: five of 100 happen in 0.3 % of such hundreds."""
    alarms = 0
    for seed in range(100):
        # The writes between the two batches are as long as the first of them.
        series = 1e5 * shape(1024 + 1024 + 5120, np.random.default_rng(seed))
        before, after = series[:1024], series[2048:]
        effect = lingering(before, after, submitted(after), least_pause_ns=0)
        alarms += effect["reads_affected"] > 0
    assert alarms <= 4


def test_rank_statistic_agrees_with_scipy() -> None:
    before, window = exponential(500, 40_000, 3).round(-4), exponential(64, 60_000, 4).round(-4)
    z = interference._rank_z(window, np.sort(before))
    p = stats.mannwhitneyu(
        window, before, alternative="greater", method="asymptotic", use_continuity=False
    ).pvalue
    assert stats.norm.sf(z) == pytest.approx(p, rel=1e-6)


def test_simulated_device_reports_busy_time() -> None:
    device = open_device("sim:demo")
    device.idle(10**12)
    assert interference.busy_ns(device) == 0
    device.run(baseline("RW", io_count=2000))
    busy = interference.busy_ns(device)
    assert busy is not None
    assert busy > 0
    assert interference.busy_ns(device, busy + 5) == busy + 5
    before = device.counters()
    device.idle(busy)
    settled = device.counters()
    assert settled != before
    device.idle(10**12)
    assert device.counters() == settled
    assert interference.busy_ns(open_device("null")) is None


def test_busy_time_is_measured_on_a_copy() -> None:
    device, same = open_device("sim:demo"), open_device("sim:demo")
    batches = _batches()
    before = device.counters()
    busy = interference.busy_after_writes(device, batches)
    assert device.counters() == before, "nothing happened to the device itself"
    same.run_series([run.spec for run in batches[:2]])
    assert busy == interference.busy_ns(same)
    assert interference.busy_after_writes(device, batches[:1]) is None


def _batches() -> list[PlannedRun]:
    plan = make_plan(inspect_device("sim:demo"), "quick", 1, Choices(only=("baseline",)))
    return [run for run in plan.runs if run.micro_benchmark == interference.NAME]


def test_batches_run_back_to_back() -> None:
    """On a real clock: there is nothing but the loop between two batches."""
    with open_device("null") as device:
        specs = [run.spec for run in _batches()]
        parts = device.run_series(specs)
        gaps = sorted(interference.longest_gap_ns(device.run_series(specs)) for _ in range(9))
    assert [len(trace) for _, trace in parts] == [spec.io_count for spec in specs]
    ends = [began + trace.elapsed_ns() for began, trace in parts]
    begins = [began for began, _ in parts]
    assert begins[0] == 0
    assert all(end <= begin for end, begin in zip(ends[:-1], begins[1:], strict=True))
    # Storing a run of this size takes some milliseconds, making room for its trace hundreds of
    # microseconds; the median ignores interruptions by the system.
    assert gaps[4] < 50_000


def test_only_batches_of_one_experiment_are_joined() -> None:
    batches = _batches()
    assert interference.follows_at_once(batches[0], batches[1])
    assert interference.follows_at_once(batches[1], batches[2])
    assert not interference.follows_at_once(batches[0], batches[2])
    other = replace(batches[1], micro_benchmark="order")
    assert not interference.follows_at_once(batches[0], other)
    assert not interference.follows_at_once(batches[0], replace(batches[1], reset_before=True))


# The whole


def test_benchmark_stores_phases_and_interference(tmp_path: Path) -> None:
    arguments = ("--scale", "quick", "--only", "baseline,order", "--method", "auto")
    out = ("--repetitions", "2", "--out", tmp_path / "r", "--quiet")
    outcome = uflip("run", "sim:demo", *arguments, *out)
    assert outcome.code == 0, outcome.err
    results = Results.load(tmp_path / "r")
    phases = results.manifest.phases
    assert set(phases["patterns"]) == {"SR", "RR", "SW", "RW"}
    every = [*phases["patterns"].values(), *phases["again"].values()]
    assert phases["startup_ios"] == max(phase.startup_ios for phase in every)
    effect = results.manifest.interference
    assert effect["device_busy_ns"] > 0
    assert effect["pause_ns"] >= 1_000_000_000
    assert effect["gap_ns"] == 0, "in virtual time nothing lies between the batches"
    before_sequential_writes = [phases["patterns"]["RW"], *phases["again"].values()]
    startup = max(phase.startup_ios for phase in before_sequential_writes)
    min_ios = min(2 * startup, 1024)
    for run in results.runs:
        end = run.trace().ended_json
        measures_device = run.micro_benchmark in ("baseline", "interference")
        # Behind a start-up that is known a run is as long as it must be; reads have none here.
        assert (end is None) == (measures_device or run.pattern == "SW")
        if end is None and not measures_device:
            spec = read_spec(run.trace().spec_json)
            assert spec.io_ignore >= 1.25 * startup
            assert spec.io_count - spec.io_ignore >= min_ios
        batch = run.value if run.micro_benchmark == "interference" else 0
        follows_state = run.id == results.runs[0].id or results.manifest.entry(run.id).reset_before
        pause = interference.REST_NS if batch or follows_state else 1_000_000_000
        assert run.meta.pause_ns == (0 if batch in (2, 3) else pause)
    document = summary(results)
    assert "interference" not in document["micro_benchmarks"]
    for experiment in document["micro_benchmarks"]["order"]:
        assert len(experiment["repetitions"]) == 2
        assert {each["converged"] for each in experiment["repetitions"]} <= {True, False}


# The kernels of the method against statsmodels, ruptures and ArviZ.


IOS = 20_000


def autoregressive_process(rho: float, seed: int, n: int = IOS) -> np.ndarray:
    return make.autoregressive(rho, 0.3)(np.random.default_rng(seed), n).times


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9, 0.99])
def test_autocorrelation_agrees_with_statsmodels(rho: float) -> None:
    """statsmodels uses one mean and variance for both sides of a pair; uflip one for each side.

    The difference is of the order of the variance of a mean, in units of that of single values.
    """
    logs = np.log(autoregressive_process(rho, seed=7))
    expected = acf(logs, adjusted=True, nlags=200, fft=False)
    mean_variance = (1 + rho) / (1 - rho) / IOS
    assert np.abs(_native.autocorrelation(logs, 200) - expected).max() < mean_variance


@pytest.mark.parametrize("period", [3, 7, 128, 512])
def test_period_agrees_with_statsmodels_peak(period: int) -> None:
    series = make.periodic(period, (30.0,))(np.random.default_rng(period), IOS)
    peaks = acf(np.log(series.times), adjusted=True, nlags=3 * period // 2, fft=True)
    assert analyse(series.times).period_ios == 2 + int(np.argmax(peaks[2:])) == period


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("penalty", [4.0, 20.0])
def test_change_points_agree_with_ruptures(seed: int, penalty: float) -> None:
    """PELT with squares of deviations, any length of segment and every place: the same optimum."""
    random = np.random.default_rng(seed)
    levels = random.normal(0, 2, 6).repeat(random.integers(8, 60, 6))
    values = levels + random.normal(size=len(levels))
    search = ruptures.Pelt(model="l2", min_size=1, jump=1).fit(values)
    assert [*_native.pelt(values, penalty), len(values)] == search.predict(pen=penalty)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9, 0.97])
def test_interval_width_agrees_with_arviz_ess(rho: float) -> None:
    """The same variance of the mean by another way: autocorrelations summed by Geyer's rule.

    Half widths scatter by a sixth, as 32 batches know a variance; ours takes the wider of two
    divisions and is corrected for skewness, so that it is somewhat wider on average.
    """
    ratios = []
    for seed in range(25):
        times = autoregressive_process(rho, seed)
        analysis = analyse(times)
        running = times[analysis.startup_ios :]
        ess = float(array_stats.ess(running[None, :], chain_axis=0, draw_axis=1, method="mean"))
        expected = stats.norm.ppf(0.975) * running.std(ddof=1) / np.sqrt(ess)
        assert analysis.half_width_ns is not None
        ratios.append(analysis.half_width_ns / expected)
    assert 1.0 < np.median(ratios) < 1.45, ratios


def test_few_independent_values_do_not_converge() -> None:
    """A hundred effective values know a mean to a fifth of the scatter, which is as large as it."""
    for seed in range(25):
        times = make.bursty(2000, 400)(np.random.default_rng(seed), IOS).times
        ess = float(array_stats.ess(times[None, :], chain_axis=0, draw_axis=1, method="mean"))
        assert ess < 100
        assert not analyse(times).converged


# Percentiles


def slowly_moving(random: np.random.Generator, n: int) -> np.ndarray:
    """Return values correlated over 100 I/Os; log-normal with median 1."""
    innovations = random.normal(size=n + 1000)
    logs = signal.lfilter([np.sqrt(1 - 0.99**2)], [1, -0.99], innovations)
    return np.asarray(np.exp(0.5 * logs[1000:]))


def bursts(random: np.random.Generator, n: int) -> np.ndarray:
    """Eight times as slow in bursts of 100 I/Os on average, 400 apart."""
    slow: list[bool] = []
    now = random.random() < 0.2
    while len(slow) < n:
        slow += [now] * int(random.geometric(1 / (100 if now else 400)))
        now = not now
    return np.where(slow[:n], 8, 1) * np.exp(0.5 * random.normal(size=n))


def below_bursts(x: float) -> float:
    return float(0.8 * stats.norm.cdf(np.log(x) / 0.5) + 0.2 * stats.norm.cdf(np.log(x / 8) / 0.5))


@pytest.mark.parametrize(
    ("series", "share", "true"),
    [
        (slowly_moving, 0.5, 1.0),
        (bursts, 0.5, optimize.brentq(lambda x: below_bursts(x) - 0.5, 0.01, 100)),
        (bursts, 0.9, optimize.brentq(lambda x: below_bursts(x) - 0.9, 0.01, 100)),
    ],
)
def test_percentile_intervals_cover_correlated_ios(
    series: Callable[[np.random.Generator, int], np.ndarray], share: float, true: float
) -> None:
    """The nominal level is 95 %: by chance 5 % of such tests have 16 wrong intervals or more."""
    random, intervals, wrong = np.random.default_rng(4), 0, 0
    for _ in range(200):
        for percentile in analyse(1e5 * series(random, 4096)).percentiles:
            if percentile.share == share:
                intervals += 1
                wrong += not percentile.low_ns <= 1e5 * true <= percentile.high_ns
    assert intervals > 40
    assert wrong <= 15
