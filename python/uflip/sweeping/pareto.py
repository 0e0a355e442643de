"""The Pareto front of a sweep: points that no other beats in all objectives.

A point is *beaten* by one that is no worse in any objective and better in one. The others are the
front (Pareto 1906): an improvement in one objective costs something in another.
"""

from collections.abc import Sequence

from uflip.errors import UsageError, unknown_name
from uflip.spec import Spec
from uflip.sweeping.measure_point import SweepRow
from uflip.sweeping.ranking import COSTS, RATES, measured, measures


def check_objectives(names: Sequence[str], spec: Spec, *, timed: bool = True) -> tuple[str, ...]:
    """Reject unknown objectives.

    Raises
    ------
    UsageError
        With a list of objectives; also for fewer than two, or repeated ones.
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


def front(rows: Sequence[SweepRow], objectives: Sequence[str]) -> list[int]:
    """Return the indices of the rows that no other beats, in the order of the objectives.

    Parameters
    ----------
    rows : sequence of SweepRow
        From `sweep`; rows without one of the objectives are not on the front.
    objectives : sequence of str
        Of `COSTS` and `uflip.sweeping.ranking.measures`: higher rates are better, lower values of
        all others.

    Returns
    -------
    list of int
        Rows that are equal in all objectives are all included.

    Examples
    --------
    >>> from uflip.spec import baseline
    >>> from uflip.sweeping import sweep
    >>> rows = sweep(
    ...     "sim:demo?blocks_per_die=64",
    ...     baseline("RW"),
    ...     {"spare_factor": [0.15, 0.3], "gc": ["greedy", "random"]},
    ...     timed=False,
    ... )
    >>> [rows[index].values for index in front(rows, ["spare_bytes", "write_amplification"])]
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
