"""Length of runs: until their mean has converged, or fixed as in the paper.

The baselines come first. They show start-up and period of the device, which bound the length of all
other runs. A current drive writes into a cache, then into an SLC cache or blocks that it collected
while idle, and only then at its long-term rate; a baseline of 10,240 writes ends before that. If
its writes were answered from a buffer (`uflip.flash_waits`), the device idles as before any run and
the baseline is made again, up to eight times as long, as often as the budget of bytes and of time
allows twice the length:

    laid out   ▁▁▁▃▃▃▃▃▃▃                       320 MiB: write cache, blocks that were ready
    continued  ▁▁▁▃▃▃▃▃▃▃▃▃▃▃█████████████████  2.5 GiB: and the cost of garbage collection

**Source**: uFLIP (CIDR 2009) §4.2: run SR, RR, SW and RW with a very large IOCount, identify the
two phases of each pattern, derive upper bounds of start-up and period across the patterns. It names
an automatic IOCount as future work; §5.1 has fixed ones.
**Faithful**: all four baselines; the bounds are the largest values of any pattern. `paper` keeps
the counts of §5.1.
**Simplified**: `uflip.analysis` replaces the eye. A run ends by its budget at the latest;
`converged` records whether it had to. Of several runs of a baseline the longest is stored; its
first half is ignored: it cannot show a longer start-up.
**Ambiguous**: (1) the budgets. The planned length has room for twice the longest start-up and ten
of the longest periods that baselines may show. (2) How the bounds fix IOCount. No run with a stop
rule may end before it has seen twice the longest start-up and `MIN_PERIODS` of the longest
periods. The rule may prolong it by a quarter at most, room for a second look: more I/Os are better
spent on repetitions at other times and places (`rounds`). IOIgnore is the start-up that the run
shows itself. Runs of fixed length are laid out with the longest IOIgnore that fits. Once the
baselines are known they ignore the start-up of these and a quarter more, at least the first I/O,
and keep as many I/Os as before. (3) The unit of the start-up: see `uflip.startup`. (4) A run is
bound by the baselines made before it: reads and random writes are not bound by sequential writes
(`plan`). (5) A device that was idle for longer has more free blocks. The batches of the
interference experiment follow the longest rest; they count as repeated baselines, and are the only
ones in a plan without baselines. (6) The length of a longer baseline. As much as the spare space of
most drives must be written before a start-up can be called over (`SPARE_SHARE`); the run writes a
little more. In the standard scale only, 32 GiB of 32 KiB I/Os at most, and where 120 s are enough
at the pace of the last quarter of the run before. Where that does not suffice, the runs are marked
(`uflip.results.startup_check`).
"""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from uflip._native import Trace
from uflip.analysis import analyse
from uflip.data.device import DeviceInfo
from uflip.data.manifest import Phases, PhasesOfPattern
from uflip.errors import UsageError
from uflip.flash_waits import is_buffered, writes_of
from uflip.microbench import BASELINE
from uflip.microbench.experiment import PlannedRun
from uflip.microbench.layout import ROUNDS
from uflip.spec import Basic, Mix, Spec, Stop, read_spec, until_converged
from uflip.startup import SPARE_SHARE, Startup, in_rows, startup_of

# uFLIP §5.1: its shortest run. Rarer events may go unseen.
MIN_IOS = 1024
# Budget of all repetitions, relative to the I/Os of runs of the shortest length.
REPETITION_BUDGET = 2
# Upper limit for a run with rare slow I/Os on a slow device.
MAX_TIME_NS = 300_000_000_000
# All I/Os of a mix together: its trace has to fit into memory.
MIX_IOS = 1 << 19
MIN_PERIODS = 10
# Start-ups vary: the same device shows 106 I/Os and then 119.
STARTUP_MARGIN = 1.25
# Numbers of parts of the beginning, tried from the finest on. A difference of less than this share
# of the mean, or of less than three standard errors, is not a start-up.
PART_COUNTS = (16, 8, 4, 2, 1)
MIN_EFFECT = 0.05
MIN_STANDARD_ERRORS = 3.0
# Fewer I/Os do not show the usual response time.
MIN_RUNNING_IOS = 64
# Limits of a longer baseline.
BASELINE_IOS = 1 << 20
BASELINE_NS = 120_000_000_000
# More than the spare space by a tenth: a part of the run is ignored.
BASELINE_SHARE = 1.1 * SPARE_SHARE
# A repeat has at least twice the length, limited by the pace of the run before it.
MIN_PROLONGATION, MAX_PROLONGATION = 2, 8


def with_stop_rule(run: PlannedRun) -> PlannedRun:
    """Let a run end when its mean has converged; its planned length becomes its budget."""
    spec = run.spec
    budget = spec.ios
    if isinstance(spec, Mix):
        budget = min(budget, MIX_IOS // (spec.turns + 1))
    fewest = max(MIN_IOS, ROUNDS * spec.depth)
    stopped = until_converged(
        spec, min_ios=min(fewest, budget), max_ios=budget, max_time_ns=MAX_TIME_NS
    )
    return replace(run, spec=stopped)


def max_unconverged_ios(shortest_ios: int) -> int:
    """Return the largest length of an unconverged run: a second look needs at most a fifth more."""
    return shortest_ios + -(-shortest_ios // 4)


def at_shortest_length(spec: Spec) -> Spec:
    """Return the specification of a run of the shortest allowed length."""
    if spec.stop is None or spec.stop.min_ios is None:
        return spec
    return spec.but(stop=structs.replace(spec.stop, max_ios=spec.stop.min_ios))


def find_phases(
    response_time_ns: Mapping[str, NDArray[Any]], again: Mapping[str, NDArray[Any]] | None = None
) -> Phases:
    """Find the phases of each baseline pattern, and the upper bounds across them.

    `response_time_ns`: label -> every response time (n,) [ns] of the long run, start-up included.
    `again`: runs of the same patterns after a longer rest: they count for the bound of the
    start-up.
    """
    patterns, others = _analyse_patterns(response_time_ns), _analyse_patterns(again or {})
    every = [*patterns.values(), *others.values()]
    return {
        "patterns": patterns,
        "again": others,
        "startup_ios": max((each.startup_ios for each in every), default=0),
        "period_ios": max((each.period_ios for each in patterns.values()), default=1),
    }


def _analyse_patterns(response_time_ns: Mapping[str, NDArray[Any]]) -> dict[str, PhasesOfPattern]:
    phases: dict[str, PhasesOfPattern] = {}
    for label, times in response_time_ns.items():
        with suppress(UsageError):
            series = np.asarray(times, dtype=np.float64)
            analysis = analyse(series)
            ios = settled_ios(series, analysis.startup_ios)
            begin, running = float(series[: ios or None].mean()), float(series[ios:].mean())
            phases[label] = PhasesOfPattern(
                **structs.asdict(analysis), settled_ios=ios, settling_ns=begin, running_ns=running
            )
    return phases


def settled_ios(times_ns: NDArray[np.float64], startup_ios: int) -> int:
    """Return where the initial parts of a run that differ from its running phase end.

    `times_ns`: response times (n,) [ns]. `startup_ios`: end of the start-up by the analysis: chance
    may prolong it, and hide it where slow I/Os alternate with quick ones.

    >>> settled_ios(np.array([1.0] * 128 + [2.0, 4.0] * 500), 250)
    144
    """
    first = max(startup_ios, len(times_ns) // 2)
    running = times_ns[first:]
    if len(running) < MIN_RUNNING_IOS:
        return startup_ios
    mean, spread = running.mean(), running.std()
    for parts in PART_COUNTS:
        each = -(-first // parts)
        starts = np.arange(0, first, each)
        sizes = np.diff(np.append(starts, first))
        means = np.add.reduceat(times_ns[:first], starts) / sizes
        # A single slow I/O is not a start-up.
        largest = np.maximum.reduceat(times_ns[:first], starts)
        others = (means * sizes - largest) / np.maximum(sizes - 1, 1)
        means = np.where(means > mean, np.maximum(others, mean), means)
        beyond = np.maximum(MIN_EFFECT * mean, MIN_STANDARD_ERRORS * spread / np.sqrt(sizes))
        differ = np.append(np.abs(means - mean) > beyond, np.False_)
        if differ[0]:
            return min(int(np.argmin(differ)) * each, first)
    return startup_ios if startup_ios < first // PART_COUNTS[0] else 0


def fixed_length_spec(run: PlannedRun, phases: Phases | None, io_size: int) -> Spec:
    """Return the specification of a run of fixed length: the shortest that `adapt_spec` allows.

    It ignores the start-up of the baselines, whether or not this run would show it.
    """
    spec = adapt_spec(run, phases, io_size)
    most = _rule(run.spec).most
    startup = startup_of(phases, io_size) if phases is not None else Startup(0, 0, io_size)
    with_margin = replace(startup, writes=math.ceil(STARTUP_MARGIN * startup.writes))
    ignored = in_rows(spec, with_margin)
    if ignored > most // 2:
        # There is no room for it: keep the length, and mark it (`uflip.results.startup_check`).
        ignored = 0
    ios = min(_rule(spec).fewest + ignored, most)
    return spec.but(stop=None, io_count=ios, io_ignore=ignored)


def adapt_spec(run: PlannedRun, phases: Phases | None, io_size: int) -> Spec:
    """Return the specification of a run on a device with these phases.

    `run`: with a stop rule, or with the longest `io_ignore` that it has room for. `phases`: the
    phases, if known. `io_size`: I/O size of the runs that show them [bytes].
    """
    if phases is None:
        return run.spec
    longest_startup, stop = startup_of(phases, io_size), run.spec.stop
    startup = in_rows(run.spec, longest_startup)
    if stop is None:
        # A later baseline may still show that the first I/O is different.
        with_margin = replace(
            longest_startup, writes=max(math.ceil(STARTUP_MARGIN * longest_startup.writes), 1)
        )
        ignored = min(in_rows(run.spec, with_margin), run.spec.ignored_ios)
        shorter = run.spec.ignored_ios - ignored
        return run.spec.but(io_count=run.spec.ios - shorter, io_ignore=ignored)
    after_startup = 2 * startup if 2 * startup <= stop.most else 0
    needed = max(stop.fewest, after_startup + MIN_PERIODS * phases["period_ios"])
    shortest = min(needed, stop.most)
    # A longer run gains little where the device changes more slowly: see `rounds`.
    most = min(max_unconverged_ios(shortest), stop.most)
    return run.spec.but(stop=structs.replace(stop, min_ios=shortest, max_ios=most))


def _rule(spec: Spec) -> Stop:
    assert spec.stop is not None, "it ends by a rule"
    return spec.stop


def longer_baseline(run: PlannedRun, info: DeviceInfo, scale: str, method: str) -> Basic | None:
    """Return the longest repeat of a baseline; None for a run without one.

    `run`: a run of a plan. `info`: the device; its capacity is the measured part. `scale`,
    `method`: as planned.
    """
    if run.micro_benchmark != BASELINE or run.pattern not in ("SW", "RW") or method == "paper":
        return None
    if scale != "standard" or info.null or info.zoned or not isinstance(run.spec, Basic):
        return None
    ios = int(BASELINE_SHARE * info.capacity_bytes) // run.spec.io_bytes
    is_possible = MIN_PROLONGATION * run.spec.ios <= ios <= BASELINE_IOS
    return _with_length(run.spec, ios) if is_possible else None


def _with_length(spec: Basic, ios: int) -> Basic:
    longer = spec.but(io_count=ios, io_ignore=ios // 2)
    return longer.but(target_size=ios * spec.io_bytes) if spec.writes_sequentially else longer


def next_length(longest: Basic, trace: Trace) -> Basic | None:
    """Return the baseline that follows a finished one; None if the budget is spent."""
    times = np.asarray(trace.column("response_time_ns"))
    pace_ns = max(float(times[-len(times) // 4 :].mean()), 1.0)
    ios = min(longest.ios, MAX_PROLONGATION * len(times), int(BASELINE_NS / pace_ns))
    return _with_length(longest, ios) if ios >= MIN_PROLONGATION * len(times) else None


def was_buffered(trace: Trace, read_ns: float | None) -> bool:
    """Return whether the writes of a baseline were answered from a buffer.

    `trace`: the baseline at its planned length. `read_ns`: the quickest random reads of this size,
    where they were measured [ns].
    """
    return any(is_buffered(each, read_ns) for each in writes_of(trace, read_spec(trace.spec_json)))
