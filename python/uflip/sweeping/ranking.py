"""The best points of a sweep, the Pareto front, and the sensitivity to the varied names.

A point is *beaten* by one that is no worse in any objective and better in one. The others are the
front (Pareto 1906): an improvement in one objective costs something in another. Sensitivity is the
share of the variance of a measure, by Sobol' indices.

**Source** Sobol' (Mathematics and Computers in Simulation 2001); the estimators of Saltelli et al.
(Computer Physics Communications 2010), by SALib.
**Faithful** First order: the share explained by the name alone. Total: the share that would remain
if all others were fixed, its interactions included. Intervals of 95 % by bootstrap.
**Simplified** No second order: it would take twice as many points.
**Ambiguous** A measure without variance: no name has influence, and all indices are 0.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from uflip.data.spec import MODES
from uflip.data.summary import ResponseTime
from uflip.errors import UsageError, unknown_name
from uflip.spec import Basic, Functions, Parallel, Spec
from uflip.stats import PERCENTILES, supports
from uflip.sweeping.measure_point import SweepRow
from uflip.sweeping.points import SweepPoint, library, problem

RATES = {"iops": "ios_per_s", "bytes_per_s": "bytes_per_s"}
"""Measures for which higher is better: name -> field of a row."""
TIMES = ("mean", "p50", "p90", "p95", "p99", "p99_9", "max", "std")
"""Measures for which lower is better [ns]; in a mix with a prefix such as `read_`."""
WRITE_AMPLIFICATION = "write_amplification"
COSTS = ("spare_bytes", "memory_bytes")
"""Costs of a point, see `uflip.sweeping.measure_point`: only for Pareto fronts."""
MIN_BASE_POINTS = 64
"""Base points of a sample below which an index is mostly chance."""
# A fixed seed, so that equal rows give equal intervals.
SEED = 1
RESAMPLES = 200


def measures(spec: Spec, *, timed: bool = True) -> list[str]:
    """Return the measures by which the points of a sweep can be ranked.

    >>> from uflip.spec import baseline
    >>> measures(baseline("RW"), timed=False)
    ['write_amplification']
    """
    pattern_modes = {part.mode for part in spec.parts}
    modes = [mode for mode in MODES if mode in pattern_modes]
    amplified = [WRITE_AMPLIFICATION] if pattern_modes & {"write", "append"} else []
    if not timed:
        return amplified
    times = [*TIMES] if len(modes) == 1 else [
        f"{mode}_{time}" for mode in modes for time in TIMES
    ]  # fmt: skip
    return [*RATES, *times, *amplified]


def check_measure(by: str, spec: Spec, *, timed: bool = True, where: str = "--best") -> None:
    """Reject measures that the points of a sweep do not have.

    Raises UsageError with a list of the possible measures.
    """
    possible = measures(spec, timed=timed)
    if by not in possible:
        raise unknown_name("measure of a point", by, possible, where=where)


def may_have_measure(spec: Functions, by: str, *, timed: bool = True) -> bool:
    """Return whether a row of a pattern may have a measure; False if it certainly lacks it.

    `spec`: complete, as `uflip.device.resolve.resolve` returns it. `by`: one of `measures`, for
    this pattern or for another one of the same sweep.

    >>> from uflip.spec import baseline
    >>> [may_have_measure(baseline("RW", io_count=n, io_ignore=20), "p99") for n in (1019, 1020)]
    [False, True]
    """
    if by not in measures(spec, timed=timed) or all(each.mode == "trim" for each in spec.parts):
        return False
    if by in (*RATES, *COSTS, WRITE_AMPLIFICATION) or spec.stop is not None:
        return True  # the number of I/Os is not known in advance
    name = f"{by.removeprefix('read_').removeprefix('write_')}_ns"
    max_ios = _max_counted_ios(spec)
    if name in PERCENTILES:
        return supports(max_ios, PERCENTILES[name])
    return name != "std_ns" or max_ios > 1


def _max_counted_ios(spec: Functions) -> int:
    """Return the number of I/Os in the statistics, or an upper bound for a mix."""
    if isinstance(spec, Parallel):
        return sum(map(_max_counted_ios, spec.patterns))
    if isinstance(spec, Basic):
        return (spec.ios - spec.ignored_ios) * spec.processes
    return spec.ios * (spec.turns + 1)


def measured(row: SweepRow, by: str) -> float | None:
    """Return a measure of a row; None if it has too few I/Os.

    `row`: of a sweep. `by`: one of `measures`, or of `COSTS`.
    """
    if by in (*RATES, *COSTS, WRITE_AMPLIFICATION):
        value: float | None = getattr(row, RATES.get(by, by))
        return value
    if by in TIMES:
        statistics, time = next(iter(row.times.values()), None), by
    else:
        mode, _, time = by.partition("_")
        statistics = row.times.get(mode)
    return None if statistics is None else statistics[cast("ResponseTime", f"{time}_ns")]


def best(rows: Sequence[SweepRow], by: str) -> SweepRow | None:
    """Return the best row: the highest rate, the lowest response time or write amplification.

    `rows`: from `sweep`. `by`: one of `measures`. Returns the first of equal rows; None if no row
    has the measure.

    >>> from uflip.spec import baseline
    >>> from uflip.sweeping import sweep
    >>> rows = sweep("sim:demo?blocks_per_die=64", baseline("RR"), {"queue_depth": [1, 8]})
    >>> best(rows, "iops").values, best(rows, "mean").values
    ({'queue_depth': 8}, {'queue_depth': 1})
    """
    sign = -1 if by in RATES else 1
    ranked = [(sign * value, row) for row in rows if (value := measured(row, by)) is not None]
    return min(ranked, key=lambda pair: pair[0])[1] if ranked else None


def check_objectives(names: Sequence[str], spec: Spec, *, timed: bool = True) -> tuple[str, ...]:
    """Reject unknown objectives.

    Raises UsageError with a list of objectives; also for fewer than two, or repeated ones.
    """
    possible = [*COSTS, *measures(spec, timed=timed)]
    for name in names:
        if name not in possible:
            raise unknown_name("objective", name, possible, where="--pareto")
    if len(set(names)) < 2 or len(set(names)) < len(names):
        raise UsageError(
            "A Pareto front needs at least two objectives",
            where="--pareto",
            got=",".join(names),
            allowed="two or more, each once, as in spare_bytes,memory_bytes,p99",
            action="name another objective, or use --best for a single one",
        )
    return tuple(names)


def pareto_front(rows: Sequence[SweepRow], objectives: Sequence[str]) -> list[int]:
    """Return the indices of the rows that no other beats, in the order of the objectives.

    `rows`: from `sweep`; rows without one of the objectives are not on the front. `objectives`: of
    `COSTS` and `uflip.sweeping.ranking.measures`: higher rates are better, lower values of all
    others. Rows that are equal in all objectives are all included.

    >>> from uflip.spec import baseline
    >>> from uflip.sweeping import sweep
    >>> rows = sweep(
    ...     "sim:demo?blocks_per_die=64",
    ...     baseline("RW"),
    ...     {"spare_factor": [0.15, 0.3], "gc": ["greedy", "random"]},
    ...     timed=False,
    ... )
    >>> [rows[index].values for index in pareto_front(rows, ["spare_bytes", "write_amplification"])]
    [{'spare_factor': 0.15, 'gc': 'greedy'}, {'spare_factor': 0.3, 'gc': 'greedy'}]
    """
    scored = [
        (score, index) for index, row in enumerate(rows) if (score := _score(row, objectives))
    ]
    # In this order no row is beaten by a later one.
    scored.sort()
    front_rows: list[tuple[tuple[float, ...], int]] = []
    for score, index in scored:
        if not any(_dominates(other, score) for other, _ in front_rows):
            front_rows.append((score, index))
    return [index for _, index in front_rows]


def _score(row: SweepRow, objectives: Sequence[str]) -> tuple[float, ...] | None:
    """Return the objectives with signs, lower is better; None if a value is missing."""
    values = [measured(row, name) for name in objectives]
    signs = [-1 if name in RATES else 1 for name in objectives]
    signed = [sign * value for sign, value in zip(signs, values, strict=True) if value is not None]
    return tuple(signed) if len(signed) == len(objectives) else None


def _dominates(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    pairs = [*zip(one, other, strict=True)]
    return all(mine <= theirs for mine, theirs in pairs) and one != other


@dataclass(frozen=True)
class SobolIndex:
    """Shares of the variance of one name, each with the half-width of its interval."""

    name: str
    first: float
    first_half_width: float
    total: float
    total_half_width: float


def sensitivity(rows: Sequence[SweepRow], by: str) -> list[SobolIndex]:
    """Return the indices of every varied name.

    `rows`: all rows of a sweep with `Sample("sobol", ...)`. `by`: one of
    `uflip.sweeping.ranking.measures`. The result has the order of the names. Raises UsageError if a
    row has too few I/Os for the measure.
    """
    values = [measured(row, by) for row in rows]
    present = [value for value in values if value is not None]
    if len(present) < len(values):
        raise _missing_measure_error(by, len(present), len(values))
    names = [*rows[0].values]
    outputs = np.array(present, dtype=np.float64)
    if np.ptp(outputs) == 0:
        return [SobolIndex(name, 0.0, 0.0, 0.0, 0.0) for name in names]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # resamples without variance
        indices = library("SALib.analyze.sobol", "--sensitivity").analyze(
            problem(len(names)),
            outputs,
            calc_second_order=False,
            num_resamples=RESAMPLES,
            seed=SEED,
        )
    columns = [indices[key].tolist() for key in ("S1", "S1_conf", "ST", "ST_conf")]
    return [SobolIndex(name, *each) for name, *each in zip(names, *columns, strict=True)]


def check_sensitivity(points: Sequence[SweepPoint], by: str, *, timed: bool = True) -> None:
    """Reject points that certainly lack a measure, before any is measured.

    Raises UsageError if a point has too few I/Os, or none of the mode. Raises UnavailableError if
    the library for indices is not installed.
    """
    measurable = sum(may_have_measure(point.spec, by, timed=timed) for point in points)
    if measurable < len(points):
        raise _missing_measure_error(by, measurable, len(points))
    library("SALib.analyze.sobol", "--sensitivity")


def _missing_measure_error(by: str, measurable: int, points: int) -> UsageError:
    return UsageError(
        "Some points lack the measure",
        where="--sensitivity",
        got=f"{by} of {measurable} of {points} points",
        allowed="a measure that every point has",
        action="give more I/Os with --io-count, or use another measure",
    )


def why_sensitivity_doubtful(rows: Sequence[SweepRow]) -> str | None:
    """Return why the indices of a sweep are doubtful; None if they are not."""
    points = len(rows) // (len(rows[0].values) + 2)
    if points >= MIN_BASE_POINTS:
        return None
    return (
        f"{points} points are too few to distinguish the names: draw {MIN_BASE_POINTS} or more "
        f"(--sample sobol:{MIN_BASE_POINTS})"
    )
