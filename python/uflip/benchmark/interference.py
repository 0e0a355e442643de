"""Interference between runs: sequential reads, a batch of random writes, sequential reads again.

    SR  ········   RW  |||||||||   SR  ''''''''''··········
                                       affected  as before

Work left by the writes makes the first reads after them slower. The number of affected reads, and
their duration, is the lower bound of the pause between runs.

**Source**: uFLIP (CIDR 2009) §4.3, Figure 5; §5.1: an effect of 2.5 s on the Mtron, "for this
device, we therefore overestimate the pause to 5 seconds"; 1 s without an effect.
**Faithful**: the experiment; the pause is twice the effect, and at least that of the plan. Before
it the device idles for the longest pause of the paper: reads that are slowed by earlier writes are
no baseline for later ones.
**Simplified**: the effect is resolved to windows of 64 reads. The three batches are one call of the
engine; the longest gap between two of them is stored as `gap_ns`.
**Ambiguous**: when a read is affected. Decided against the first batch: a window is affected if it
has more slow reads (above the first batch's 95 %), or higher ranks among the first batch
(Mann-Whitney), than chance and the scatter of the first batch's own windows allow. Slow reads that
are too rare for that are tested by blocks of 16 windows: a block is affected if its windows' means
rank higher among those of the first batch than chance allows, and it is slower by `LEAST`. The
effect ends with the last affected window or block.
"""

import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uflip import _native
from uflip._native import Trace
from uflip.data.device import DeviceInfo
from uflip.data.manifest import Interference, Windows
from uflip.device.handle import Device
from uflip.microbench import MICRO_BENCHMARKS
from uflip.microbench.experiment import Context, IoCounts, PlannedRun, run_seed
from uflip.microbench.layout import baseline_spec

NAME = "interference"
BATCHES = ("SR", "RW", "SR")
WINDOW = 64
# Windows per block.
BLOCK = 16
# Chance of one false alarm in all windows and blocks together.
ALPHA = 0.01
# A block that is slower by less counts as unaffected: a device drifts without any writes.
LEAST = 0.02
SLOW_SHARE = 0.05
# The paper: an effect of 2.5 s, a pause of 5 s.
PAUSE_FACTOR = 2
# Reads after the writes: the Mtron's effect took some 3,000 of them. The reads before only have to
# show the usual response times.
READS_AFTER = 5120
QUICK_READS_BEFORE = 1024
# uFLIP §5.1: IOCount of random writes.
STANDARD_WRITES = 5120
# 512 would end half-way through the garbage collection of a device in a random state, on a slope
# that looks like an endless start-up.
QUICK_WRITES = 1024
# The reads before must not be slowed by earlier writes: the longest pause of the paper [ns].
REST_NS = 5_000_000_000
# A device counts as idle when no counter changes for this time [ns].
LONGEST_BUSY_NS = 100_000_000_000

Numbered = tuple[int, PlannedRun]
"""A run with its index in the plan, from 0."""


def lay_out(context: Context) -> list[PlannedRun]:
    """Lay out the three batches."""
    before = QUICK_READS_BEFORE if context.quick else READS_AFTER
    writes = QUICK_WRITES if context.quick else STANDARD_WRITES
    runs = []
    batches = zip(BATCHES, (before, writes, READS_AFTER), strict=True)
    for batch, (pattern, ios) in enumerate(batches, start=1):
        spec = baseline_spec(context, pattern, counts=IoCounts(ios, 0))
        spec = spec.but(seed=run_seed(context.seed, NAME, pattern, batch))
        name = f"{NAME}-{pattern}-batch-{batch}"
        runs.append(PlannedRun(name, NAME, pattern, "batch", batch, "", spec))
    return runs


def lingering(
    before_ns: NDArray[Any],
    after_ns: NDArray[Any],
    submit_ns: NDArray[Any],
    *,
    writes_ns: NDArray[Any] | None = None,
    least_pause_ns: int,
    gap_ns: int = 0,
    device_busy_ns: int | None = None,
) -> Interference:
    """Find the reads after the writes that are affected by them.

    `before_ns`, `after_ns`: response times of the reads before (n,) and after (m,) the writes [ns].
    `submit_ns`: submission times of the reads after the writes (m,) [ns]. `least_pause_ns`: the
    pause is at least this [ns]. `writes_ns`: response times of the writes (k,) [ns], for the
    figure. `gap_ns`: the longest time between two batches [ns]. `device_busy_ns`: busy time that
    the device reports [ns].
    """
    before = np.sort(np.asarray(before_ns, dtype=np.float64))
    after = np.asarray(after_ns, dtype=np.float64)
    slow_ns = float(before[math.ceil((1 - SLOW_SHARE) * len(before)) - 1])
    quiet_windows, windows = (
        _in_windows(np.asarray(before_ns, dtype=np.float64)),
        _in_windows(after),
    )
    end = _end_of_windows(quiet_windows, windows, before, slow_ns)
    end = min(end + BLOCK * _end_of_blocks(quiet_windows, windows[end:]), len(windows))
    reads = _last_slow(after[: end * WINDOW], slow_ns)
    lasted = int(submit_ns[reads - 1] + after[reads - 1] - submit_ns[0]) if reads else 0
    return {
        "reads_affected": reads,
        "lingering_ns": lasted,
        "over": end < len(windows),
        "slow_ns": slow_ns,
        "device_busy_ns": device_busy_ns,
        "gap_ns": gap_ns,
        "pause_ns": max(least_pause_ns, PAUSE_FACTOR * lasted),
        "windows": {
            "ios": WINDOW,
            "before": _windows(before_ns),
            "writes": _windows(np.empty(0) if writes_ns is None else writes_ns),
            "after": _windows(after_ns),
        },
    }


def _windows(times_ns: NDArray[Any]) -> Windows:
    parts = _in_windows(times_ns)
    return {
        "mean_ns": [round(float(part.mean())) for part in parts],
        "max_ns": [int(part.max()) for part in parts],
    }


def _in_windows(times_ns: NDArray[Any]) -> list[NDArray[Any]]:
    return [times_ns[at : at + WINDOW] for at in range(0, len(times_ns), WINDOW)]


def _end_of_windows(
    quiet_windows: list[NDArray[np.float64]],
    windows: list[NDArray[np.float64]],
    before: NDArray[np.float64],
    slow_ns: float,
) -> int:
    """Return where the windows that are affected individually end.

    If reads were independent, the scores of a window in the first batch would have a standard
    deviation of 1. Reads that come in bursts have more, and scores with longer tails: there the
    bound rises with the square, and blocks decide.
    """
    scores_before = _scores(quiet_windows, before, slow_ns)
    spread = np.maximum(scores_before.std(axis=0, ddof=min(1, len(quiet_windows) - 1)), 1.0)
    level = ALPHA / 2 / (2 * max(len(windows), 1))
    bound = float(_native.student_quantile(2 * level, max(len(quiet_windows) - 1, 1)))
    bounds = np.maximum(bound * spread**2, scores_before.max(axis=0))
    return _end_of_affected((_scores(windows, before, slow_ns) > bounds).any(axis=1))


def _scores(
    windows: list[NDArray[np.float64]], before: NDArray[np.float64], slow_ns: float
) -> NDArray[np.float64]:
    """Return the number of slow reads of each window, and ranks: standard scores (windows, 2)."""
    usual_angle = _angle(SLOW_SHARE)
    rows = [
        (
            2 * math.sqrt(len(window)) * (_angle(float((window > slow_ns).mean())) - usual_angle),
            _rank_z(window, before),
        )
        for window in windows
    ]
    return np.array(rows).reshape(-1, 2)


def _angle(share: float) -> float:
    """Transform a share of successes so that its variance is 1 / 4n for every share."""
    return math.asin(math.sqrt(share))


def _end_of_blocks(
    quiet_windows: list[NDArray[np.float64]], windows: list[NDArray[np.float64]]
) -> int:
    """Return where slower blocks end; correlated neighbouring windows raise the bound."""
    means_before = np.array([window.mean() for window in quiet_windows])
    means = np.array([window.mean() for window in windows])
    blocks = [means[at : at + BLOCK] for at in range(0, len(means), BLOCK)]
    deviations = means_before - means_before.mean()
    correlation = float(deviations[1:] @ deviations[:-1]) / (float(deviations @ deviations) or 1.0)
    correlation = min(max(correlation + (1 + 4 * correlation) / len(means_before), 0.0), 0.9)
    bound = math.sqrt((1 + correlation) / (1 - correlation))
    bound *= NormalDist().inv_cdf(1 - ALPHA / 2 / max(len(blocks), 1))
    least = (1 + LEAST) * means_before.mean()
    means_before.sort()
    higher = [block.mean() > least and _rank_z(block, means_before) > bound for block in blocks]
    return _end_of_affected(np.array(higher))


def _end_of_affected(affected: NDArray[np.bool_]) -> int:
    indices = np.flatnonzero(affected)
    return int(indices[-1]) + 1 if len(indices) else 0


def _rank_z(window: NDArray[np.float64], before: NDArray[np.float64]) -> float:
    """Return the Mann-Whitney score of the window's ranks among `before` (sorted)."""
    n, m = len(window), len(before)
    below = np.searchsorted(before, window, side="left")
    ties = np.searchsorted(before, window, side="right") - below
    u = float((below + ties / 2).sum())
    _, repeated = np.unique(np.concatenate([window, before]), return_counts=True)
    total = n + m
    correction = float((repeated.astype(np.float64) ** 3 - repeated).sum()) / (total * (total - 1))
    variance = n * m / 12 * (total + 1 - correction)
    return (u - n * m / 2) / math.sqrt(variance) if variance > 0 else 0.0


def _last_slow(stretch: NDArray[np.float64], slow_ns: float) -> int:
    slow = np.flatnonzero(stretch > slow_ns)
    return int(slow[-1]) + 1 if len(slow) else len(stretch)


def follows_at_once(before: PlannedRun, run: PlannedRun) -> bool:
    """Return whether a run is the next batch of the same experiment."""
    same_experiment = before.micro_benchmark == run.micro_benchmark == NAME
    return same_experiment and int(run.value) == int(before.value) + 1 and not run.reset_before


def group_unpaused(runs: Iterable[Numbered]) -> list[list[Numbered]]:
    """Group runs that must follow each other at once: the batches of one experiment."""
    groups: list[list[Numbered]] = []
    for index, run in runs:
        before = groups[-1][-1][1] if groups else None
        if before is not None and follows_at_once(before, run):
            groups[-1].append((index, run))
        else:
            groups.append([(index, run)])
    return groups


def pause_before(
    run: PlannedRun, before: PlannedRun | None, pause_ns: int, device: DeviceInfo
) -> int:
    """Return the idle time before a run [ns].

    Zero between the batches. On a simulated device a rest (`rests_before`) lasts longer if it is
    still busy then (`busy_ns`).

    `run`, `before`: the run, and the one before it, None for the first. `pause_ns`: the pause
    before any other run [ns]. `device`: the measured device.
    """
    if before is not None and follows_at_once(before, run):
        return 0
    return max(pause_ns, REST_NS) if rests_before(run, before, device) else pause_ns


def rests_before(run: PlannedRun, before: PlannedRun | None, device: DeviceInfo) -> bool:
    """Return whether the effects of earlier writes must have ended before a run.

    They must before the first batch and after the writes of a state. The null device needs no rest,
    and a single pattern or replay starts from the device as it is.
    """
    # After the writes of a state a device has most background work: on sim:tlc-nvme more than a
    # second. A file only lies on a device.
    is_first = (before is None or run.reset_before) and run.micro_benchmark in MICRO_BENCHMARKS
    is_batch = run.micro_benchmark == NAME and (before is None or not follows_at_once(before, run))
    return (is_batch or (is_first and device.kind != "file")) and not device.null


def longest_gap_ns(parts: Sequence[tuple[int, Trace]]) -> int:
    """Return the longest time from the end of a batch to the begin of the next [ns]."""
    gaps, end = [0], None
    for began_ns, trace in parts:
        submit = np.asarray(trace.column("submit_ns")).astype(np.int64) + began_ns
        response = np.asarray(trace.column("response_time_ns")).astype(np.int64)
        if end is not None:
            gaps.append(int(submit.min()) - end)
        end = int((submit + response).max())
    return max(gaps)


def busy_after_writes(device: Device, batches: Sequence[PlannedRun]) -> int | None:
    """Return the busy time of a simulated device after the writes if it idles [ns].

    Measured on a copy, which makes the batches up to the writes; None for devices that cannot be
    copied, and without writes.
    """
    writes = [number for number, run in enumerate(batches) if run.pattern == "RW"]
    if not writes or not device.info.simulated:
        return None
    copy = device.clone()
    copy.run_series([run.spec for run in batches[: writes[0] + 1]])
    return busy_ns(copy)


def busy_ns(device: Device, least_ns: int = 0) -> int | None:
    """Return the busy time of a simulated device if it idles from now on, at least `least_ns` [ns].

    Measured on copies that idle for different times: the shortest idle time after which further
    idling changes no counter. None for devices that cannot be copied.
    """
    if not device.info.simulated or device.counters() is None:
        return None
    settled = _counted_after(device, LONGEST_BUSY_NS)
    busy, idle = least_ns, LONGEST_BUSY_NS
    if _counted_after(device, least_ns) == settled:
        return least_ns
    while idle - busy > max(busy // 100, 1_000):
        middle = (busy + idle) // 2
        if _counted_after(device, middle) == settled:
            idle = middle
        else:
            busy = middle
    return idle


def _counted_after(device: Device, idle_ns: int) -> dict[str, int] | None:
    copy = device.clone()
    copy.idle(idle_ns)
    return copy.counters()
