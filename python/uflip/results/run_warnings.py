"""Checks of every run: is there a reason to doubt its numbers?

A check is a function of one run. It returns the severity and the numbers behind it, or None.
`CHECKS` is the list, in the order in which warnings are shown; `warnings` gathers the results.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uflip.data.counters import CounterMark
from uflip.data.device import DeviceInfo
from uflip.data.manifest import IMPORTED
from uflip.data.run import HostSummary, StopDocument
from uflip.data.spec import Basic, Parallel, Spec
from uflip.results.columns import split
from uflip.results.rate_limit import find_ticks
from uflip.stats import Distribution, drift

Numbers = Mapping[str, object]
"""Numbers behind a warning: names and plain values."""

# Below 30 I/Os the standard error of a mean is itself unreliable.
FEW_IOS = 30
# A few I/Os dominate the mean of a skewed distribution: a factor of two between mean and median.
SKEW_FACTOR = 2.0
HARNESS_SHARE = 0.05
PAUSE_TOLERANCE = 0.10
# A drift is reported if it is large (a fifth) and beyond chance (three standard errors).
DRIFT_CHANGE = 0.20
DRIFT_Z = 3.0
# Between two I/Os the host needs tens of nanoseconds: beyond this limit it did something else.
STALL_NS = 50_000
# One in a thousand I/Os, or a hundredth of the time: less shows in no mean and no percentile.
STALLED_IOS, STALLED_TIME = 1e-3, 1e-2
# Fewer of the slow I/Os leave most of them unexplained.
HOST_SHARE = 0.2
# An open loop that lags by this share of the run at its end has a queue that keeps growing.
BEHIND_SHARE = 0.05
FEW_ARRIVALS = 100


@dataclass(frozen=True, slots=True)
class RunArrays:
    """Input of a check: arrays over the I/Os of a run, start-up included except where noted."""

    micro_benchmark: str
    spec: Spec
    device: DeviceInfo
    harness: Mapping[str, float]
    stream: NDArray[Any]
    submit_ns: NDArray[Any]
    response_time_ns: NDArray[Any]
    measured_ns: NDArray[Any]  # response times without the start-up
    stop: StopDocument | None = None  # the end of a run with a stop rule
    # Counters of a fresh run on a simulated device; else empty.
    counters: Mapping[str, int] = field(default_factory=dict)
    # Activity of other processes on a real target: see `uflip.device.identity`.
    disturbed: Mapping[str, int] = field(default_factory=dict)
    # Doubts about the counters of the drive.
    counter_marks: Sequence[CounterMark] = ()
    # Delay of the host before it submitted I/Os that were due; empty in virtual time.
    host_gap_ns: NDArray[Any] = field(default_factory=lambda: np.empty(0))
    # Disturbances by the host, sampled beside the run of a real device.
    host: HostSummary | None = None

    @property
    def is_timed_by_host(self) -> bool:
        """Whether our own clock timed the submissions: not in virtual time, nor in logs.

        Logs of fio contain the end of an I/O, in whole milliseconds.
        """
        return self.device.real and self.micro_benchmark != IMPORTED


@dataclass(frozen=True, slots=True)
class RunCheck:
    """A check for every run."""

    code: str
    finding: str  # completes "In 3 of 20 runs …"
    worst: str  # formats the numbers of the worst run
    advice: str
    check: Callable[[RunArrays], tuple[float, Numbers] | None]  # (how bad, numbers)


def few_ios(run: RunArrays) -> tuple[float, Numbers] | None:
    """Warn about too few I/Os for statistics."""
    n = len(run.measured_ns)
    return (1 / max(n, 1), {"count": n}) if n < FEW_IOS else None


def wide_spread(run: RunArrays) -> tuple[float, Numbers] | None:
    """Warn about a standard deviation above the mean."""
    if len(run.measured_ns) < 2:
        return None
    mean = float(run.measured_ns.mean())
    squares = sum(float(np.square(part - mean).sum()) for part in split(run.measured_ns))
    std = sqrt(squares / (len(run.measured_ns) - 1))
    return (std / mean, _ns(mean=mean, std=std)) if std > mean > 0 else None


def skewed(run: RunArrays) -> tuple[float, Numbers] | None:
    """Warn about a mean far from the median."""
    if len(run.measured_ns) == 0:
        return None
    mean, median = float(run.measured_ns.mean()), _median(run.measured_ns)
    if min(mean, median) <= 0:
        return None
    factor = max(mean / median, median / mean)
    return (factor, _ns(mean=mean, median=median)) if factor > SKEW_FACTOR else None


def _median(values: NDArray[Any]) -> float:
    """Return the median (n,); of a long run an observed one, in bounded memory."""
    if len(values) <= Distribution.FEW:
        return float(np.median(values))
    distribution = Distribution()
    for part in split(values):
        distribution.add(part)
    return float(distribution.percentile(0.5) or 0)


def harness_share(run: RunArrays) -> tuple[float, Numbers] | None:
    """Warn about a harness that is a visible part of the result; virtual time has no such cost."""
    cost = run.harness.get("null_ns_per_io")
    real = run.device.real
    if cost is None or not real or len(run.measured_ns) == 0:
        return None
    median = _median(run.measured_ns)
    share = float(cost) / median if median > 0 else float("inf")
    if share <= HARNESS_SHARE or median <= 0:
        return None
    return share, _ns(harness=float(cost), median=median)


def pause_off(run: RunArrays) -> tuple[float, Numbers] | None:
    """Warn about pauses that were longer or shorter than requested."""
    part = run.spec if isinstance(run.spec, Basic) else None
    requested, achieved = float((part and part.pause) or 0), achieved_pauses(run)
    if requested <= 0 or len(achieved) == 0:
        return None
    median = float(np.median(achieved))
    off = abs(median - requested) / requested
    return (off, _ns(asked=requested, achieved_median=median)) if off > PAUSE_TOLERANCE else None


def falling_behind(run: RunArrays) -> tuple[float, Numbers] | None:
    """Warn about an open loop whose I/Os arrive faster than they are completed."""
    lags = [_lag(run.submit_ns[own], run.response_time_ns[own]) for own in _open_loops(run)]
    return max((each for each in lags if each is not None), key=lambda one: one[0], default=None)


def _open_loops(run: RunArrays) -> Iterator[NDArray[np.bool_] | slice]:
    """Yield the I/Os of each open loop; a closed loop beside it has no arrival rate."""
    if not isinstance(run.spec, Parallel):
        if run.spec.is_open:
            yield slice(None)
        return
    first = 0
    for pattern in run.spec.patterns:
        last = first + (pattern.processes if isinstance(pattern, Basic) else 1)
        if pattern.is_open:
            yield (first <= run.stream) & (run.stream < last)
        first = last


def _lag(submit_ns: NDArray[Any], response_time_ns: NDArray[Any]) -> tuple[float, Numbers] | None:
    if (arrivals := len(submit_ns)) < FEW_ARRIVALS:
        return None
    span = float(submit_ns.max() - submit_ns.min())
    last: NDArray[np.int64] | slice = slice(-(arrivals // 10), None)
    if (submit_ns[1:] < submit_ns[:-1]).any():
        last = np.argsort(submit_ns, kind="stable")[last]
    behind = float(np.median(response_time_ns[last]))
    if behind <= BEHIND_SHARE * span:
        return None
    return behind / max(span, 1), _ns(behind=behind, lasted=span)


def unsteady(run: RunArrays) -> tuple[float, Numbers] | None:
    """Warn about a long baseline run whose second half differs from its first."""
    if run.micro_benchmark != "baseline":
        return None
    halves = drift(run.measured_ns)
    if halves is None or abs(halves.change) < DRIFT_CHANGE or abs(halves.z) < DRIFT_Z:
        return None
    return abs(halves.change), _ns(
        first_half=halves.first_half_ns, second_half=halves.second_half_ns
    )


def not_converged(run: RunArrays) -> tuple[float, Numbers] | None:
    """Warn about a run that used its budget before its mean converged."""
    if run.stop is None or run.stop["converged"]:
        return None
    widths = [
        (width / one["mean_ns"], width, one["mean_ns"])
        for one in run.stop["series"]
        if (width := one["half_width_ns"]) is not None
    ]
    if not widths:
        return float("inf"), _ns(half_width=0, mean=0)
    ratio, half_width, mean = max(widths, key=lambda one: one[0])
    return ratio, _ns(half_width=half_width, mean=mean)


def at_ticks(run: RunArrays) -> tuple[float, Numbers] | None:
    """Warn about slow I/Os that end with a timer of the host; simulated devices have no timer."""
    if not run.is_timed_by_host:
        return None
    ticks = find_ticks(run.submit_ns, run.response_time_ns)
    if ticks is None:
        return None
    numbers = {"count": ticks.ios, "share_of_time": round(ticks.share_of_time, 4)}
    return ticks.share_of_time, {**numbers, **_ns(tick=ticks.tick_ns)}


def host_stalls(run: RunArrays) -> tuple[float, Numbers] | None:
    """Warn about a host that did something else while I/Os were due."""
    gaps = run.host_gap_ns
    stalls = gaps[gaps > STALL_NS]
    if not run.is_timed_by_host or len(stalls) == 0:
        return None
    lasted = int((run.submit_ns + run.response_time_ns).max() - run.submit_ns.min())
    of_ios, of_time = len(stalls) / len(gaps), int(stalls.sum()) / max(lasted, 1)
    if of_ios <= STALLED_IOS and of_time <= STALLED_TIME:
        return None
    numbers = {"count": len(stalls), "ios": len(gaps), "share_of_time": round(of_time, 4)}
    return max(of_ios, of_time), {**numbers, **_ns(longest=float(stalls.max()))}


def host_disturbances(run: RunArrays) -> tuple[float, Numbers] | None:
    """Warn about slow I/Os in windows in which the host was disturbed."""
    if run.host is None or not run.host["coincide"]:
        return None
    first = run.host["coincide"][0]
    share = first["slow_ios"] / run.host["slow_ios"]
    if share < HOST_SHARE:
        return None
    numbers = {"what": first["what"], "count": first["slow_ios"], "slow": run.host["slow_ios"]}
    of_all = round(first["ios"] / run.host["ios"], 4)
    return share, {**numbers, "of_all": of_all, **_ns(window=run.host["window_ns"])}


def unreadable(run: RunArrays) -> tuple[float, Numbers] | None:
    """Warn about pages whose bit errors the ECC could not correct."""
    lost, read = run.counters.get("uncorrectable_reads", 0), run.counters.get("pages_read", 0)
    return (lost / max(read, 1), {"count": lost, "pages_read": read}) if lost else None


# Activity of other processes -> its description.
DISTURBANCES = {
    "closed_by_writers": "closed by others who could write",
    "opened": "opened by others",
    "modified": "changed by others",
    "sectors_written": "sectors written by others",
    "sectors_read": "sectors read by others",
}


def disturbed(run: RunArrays) -> tuple[float, Numbers] | None:
    """Warn about other users of the target during the run."""
    activity = {name: run.disturbed[name] for name in DISTURBANCES if name in run.disturbed}
    if not activity:
        return None
    description = ", ".join(f"{DISTURBANCES[name]}: {count}" for name, count in activity.items())
    return float(sum(activity.values())), {**activity, "told": description}


# Marks of `CounterMark` that are a reason to doubt -> their description. Counters that are too
# coarse for a short run are not.
COUNTER_MARKS = {
    "not_read": "could not be read",
    "went_back": "went back",
    "power_lost": "changed: the drive lost power, or was reset",
    "others_wrote": "counted writes of others",
}


def doubtful_counters(run: RunArrays) -> tuple[float, Numbers] | None:
    """Warn about counters of the drive that do not show what the run did."""
    marks = [mark for mark in run.counter_marks if mark.code in COUNTER_MARKS]
    if not marks:
        return None
    parts = [
        f"{mark.counter or 'the counters'} {COUNTER_MARKS[mark.code]}"
        + (f" ({mark.detail})" if mark.detail else "")
        for mark in marks
    ]
    return float(len(marks)), {"marks": len(marks), "told": "; ".join(parts)}


CHECKS: tuple[RunCheck, ...] = (
    RunCheck(
        "disturbed",
        "another process used the target during the run",
        "{told}",
        "find out who (`fuser -v TARGET`, `lsof TARGET`), stop it, and measure again: these runs "
        "shared the device, and what was written may not be what the next runs expect",
        disturbed,
    ),
    RunCheck(
        "drive_counters",
        "the counters of the drive do not show what the run did",
        "{told}",
        "do not quote the write amplification of these runs; stop other users of the drive, and "
        "look for resets in the kernel log (`dmesg`)",
        doubtful_counters,
    ),
    RunCheck(
        "not_converged",
        "the budget was spent before the mean was as accurate as requested",
        "{mean} ± {half_width}",
        "quote these means with their intervals; a larger budget (max_ios of stop in a plan file) "
        "makes them narrower, unless the device never gets steady",
        not_converged,
    ),
    RunCheck(
        "few_ios",
        f"fewer than {FEW_IOS} I/Os are left after the start-up",
        "{count} I/Os",
        "raise io_count, lower io_ignore, or replay a longer trace; do not quote these numbers",
        few_ios,
    ),
    RunCheck(
        "at_ticks",
        "slow I/Os ended with a timer of the host",
        "{count} I/Os at its ticks of {tick}, {share_of_time} of all time",
        "a scheduler was measured, not the device: something limits the rate of this disk (io.max "
        "of a control group, a virtual disk of a cloud); measure without the limit, or read these "
        "numbers as those of the limit",
        at_ticks,
    ),
    RunCheck(
        "unsteady",
        "the response time was still changing: the halves of the run differ by more than "
        f"{DRIFT_CHANGE:.0%}",
        "{first_half} in the first half, {second_half} in the second",
        "write the whole device before measuring (uFLIP §4.1), or raise io_count and io_ignore",
        unsteady,
    ),
    RunCheck(
        "harness_share",
        f"the harness takes more than {HARNESS_SHARE:.0%} of the median response time",
        "{harness} of {median}",
        "ignore differences below this cost; larger I/Os make the share smaller",
        harness_share,
    ),
    RunCheck(
        "falling_behind",
        "I/Os arrived faster than they were completed",
        "{behind} behind after {lasted}",
        "the queue grows as long as the run lasts, and response times with it: quote no mean of "
        "them; let I/Os arrive more slowly (--interval, --speed), or allow a deeper queue",
        falling_behind,
    ),
    RunCheck(
        "pause_off",
        f"the pauses were off by more than {PAUSE_TOLERANCE:.0%}",
        "{achieved_median} instead of {asked}",
        "read the achieved pause from the submit times; an idle host keeps time better",
        pause_off,
    ),
    RunCheck(
        "host_stalls",
        f"the host submitted due I/Os late, by more than {STALL_NS // 1000} µs each",
        "before {count} of {ios} I/Os, {longest} at most, {share_of_time} of the time in all",
        "the device rested meanwhile, and may have collected garbage; an I/O that arrived waited: "
        "stop other load, give the run a processor of its own (taskset, isolcpus), look for steal "
        "on a virtual machine; `host_gap_ns` of the trace is the delay of each I/O",
        host_stalls,
    ),
    RunCheck(
        "host_disturbances",
        "slow I/Os coincide with disturbances by the host",
        "{count} of the {slow} slowest I/Os lie in windows of {window} with {what}, and "
        "{of_all} of all I/Os",
        "these I/Os show the host, not the device: stop other load, give the run a processor of "
        "its own (taskset, isolcpus), measure on a machine without a hypervisor; `uflip explore` "
        "lists each of them with what the host did",
        host_disturbances,
    ),
    RunCheck(
        "wide_spread",
        "the standard deviation exceeds the mean",
        "{std} around {mean}",
        "quote percentiles beside the mean, and look at the traces: cheap and expensive I/Os "
        "alternate",
        wide_spread,
    ),
    RunCheck(
        "skewed",
        f"mean and median differ by more than a factor of {SKEW_FACTOR:g}",
        "mean {mean}, median {median}",
        "the mean is a response time that hardly ever happens: quote both, and a high percentile",
        skewed,
    ),
    RunCheck(
        "unreadable",
        "flash pages had more bit errors than the ECC corrects",
        "{count} of {pages_read} pages read",
        "a real device would have lost data; fail_uncorrectable = true makes such a read an error",
        unreadable,
    ),
)


def achieved_pauses(run: RunArrays) -> NDArray[np.float64]:
    """Return the pauses that were achieved between I/Os [ns].

    Between completion and next submission within a stream: after every I/O for `time = pause`,
    after every group of `burst` I/Os for `time = burst`; empty for any other pattern.

    ::

        stream   |--io 0--|<- pause ->|--io 1--|<- pause ->|--io 2--|
    """
    spec, n = run.spec, len(run.submit_ns)
    if not isinstance(spec, Basic) or spec.time not in ("pause", "burst") or n < 2:
        return np.empty(0)
    starts = np.flatnonzero(np.diff(run.stream, prepend=run.stream[0] - 1.0) != 0)
    lengths = np.diff(starts, append=n)
    completed = run.submit_ns.astype(np.int64) + run.response_time_ns.astype(np.int64)
    for stream in np.split(completed, starts[1:]):
        # With a queue, the preceding I/O is not always the last one to end.
        np.maximum.accumulate(stream, out=stream)
    gaps = (run.submit_ns[1:].astype(np.int64) - completed[:-1]).astype(np.float64)
    group = (spec.burst or 1) if spec.time == "burst" else 1
    position = np.arange(n) - np.repeat(starts, lengths)  # 0, 1, 2, … within each stream
    pauses: NDArray[np.float64] = gaps[(position[1:] > 0) & (position[1:] % group == 0)]
    return pauses


def _ns(**numbers: float) -> Numbers:
    """Return durations in whole nanoseconds, with the unit as the last word of the name."""
    return {f"{name}_ns": round(value) for name, value in numbers.items()}
