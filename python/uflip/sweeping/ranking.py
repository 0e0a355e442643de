"""The best point of a sweep, and the measures for ranking."""

from collections.abc import Sequence

from uflip.data.spec import MODES
from uflip.errors import unknown_name
from uflip.spec import Basic, Functions, Parallel, Spec
from uflip.stats import PERCENTILES, supports
from uflip.sweeping.measure_point import SweepRow

RATES = {"iops": "ios_per_s", "bytes_per_s": "bytes_per_s"}
"""Measures for which higher is better: name -> field of a row."""
TIMES = ("mean", "p50", "p90", "p95", "p99", "p99_9", "max", "std")
"""Measures for which lower is better [ns]; in a mix with a prefix such as `read_`."""
WRITE_AMPLIFICATION = "write_amplification"
COSTS = ("spare_bytes", "memory_bytes")
"""Costs of a point, see `uflip.sweeping.measure_point`: only for Pareto fronts."""


def measures(spec: Spec, *, timed: bool = True) -> list[str]:
    """Return the measures by which the points of a sweep can be ranked.

    Examples
    --------
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

    Raises
    ------
    UsageError
        With a list of the possible measures.
    """
    possible = measures(spec, timed=timed)
    if by not in possible:
        raise unknown_name("measure of a point", by, possible, where=where)


def may_have_measure(spec: Functions, by: str, *, timed: bool = True) -> bool:
    """Return whether a row of a pattern may have a measure; False if it certainly lacks it.

    Parameters
    ----------
    spec : Basic, Mix or Parallel
        Complete, as `uflip.device.resolve.resolve` returns it.
    by : str
        One of `measures`, for this pattern or for another one of the same sweep.

    Examples
    --------
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

    Parameters
    ----------
    row : SweepRow
        Of a sweep.
    by : str
        One of `measures`, or of `COSTS`.
    """
    if by in (*RATES, *COSTS, WRITE_AMPLIFICATION):
        value: float | None = getattr(row, RATES.get(by, by))
        return value
    if by in TIMES:
        statistics, time = next(iter(row.times.values()), None), by
    else:
        mode, _, time = by.partition("_")
        statistics = row.times.get(mode)
    return None if statistics is None else statistics[f"{time}_ns"]


def best(rows: Sequence[SweepRow], by: str) -> SweepRow | None:
    """Return the best row: the highest rate, the lowest response time or write amplification.

    Parameters
    ----------
    rows : sequence of SweepRow
        From `sweep`.
    by : str
        One of `measures`.

    Returns
    -------
    SweepRow or None
        The first of equal rows; None if no row has the measure.

    Examples
    --------
    >>> from uflip.spec import baseline
    >>> from uflip.sweeping import sweep
    >>> rows = sweep("sim:demo?blocks_per_die=64", baseline("RR"), {"queue_depth": [1, 8]})
    >>> best(rows, "iops").values, best(rows, "mean").values
    ({'queue_depth': 8}, {'queue_depth': 1})
    """
    sign = -1 if by in RATES else 1
    ranked = [(sign * value, row) for row in rows if (value := measured(row, by)) is not None]
    return min(ranked, key=lambda pair: pair[0])[1] if ranked else None
