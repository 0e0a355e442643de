"""Which points nobody beats in everything: the front between what is had and what it costs.

A point is *beaten* by one that is no worse in any objective and better in one. The others are the
front (Pareto 1906): whoever wants more of one objective pays with another.
"""

from collections.abc import Sequence

from uflip.errors import UsageError, unknown_name
from uflip.spec import Spec
from uflip.sweeping.ranking import COSTS, RATES, measured, measures
from uflip.sweeping.row import SweepRow


def check_objectives(names: Sequence[str], spec: Spec, *, timed: bool = True) -> tuple[str, ...]:
    """Refuse what is no objective.

    Raises
    ------
    UsageError
        It lists what is one; for a single one, or one that is said twice.
    """
    known = [*COSTS, *measures(spec, timed=timed)]
    for name in names:
        if name not in known:
            raise unknown_name("objective", name, known, where="--pareto")
    if len(set(names)) < 2 or len(set(names)) < len(names):
        raise UsageError(
            "A Pareto front needs at least two objectives",
            where="--pareto",
            got=",".join(names),
            allowed="two or more, each once, as in spare_bytes,memory_bytes,p99",
            action="name another one, or take --best for a single one",
        )
    return tuple(names)


def front(rows: Sequence[SweepRow], objectives: Sequence[str]) -> list[int]:
    """Return the places of the rows that no other beats, in the order of the objectives.

    Parameters
    ----------
    rows : sequence of Row
        What `sweep` returned; those without one of the objectives are on no front.
    objectives : sequence of str
        Of `COSTS` and `uflip.sweeping.ranking.measures`: rates are better the higher, all others
        the lower.

    Returns
    -------
    list of int
        Rows that are alike in all objectives are all there.

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
    >>> [rows[place].values for place in front(rows, ["spare_bytes", "write_amplification"])]
    [{'spare_factor': 0.15, 'gc': 'greedy'}, {'spare_factor': 0.3, 'gc': 'greedy'}]
    """
    scored = [
        (score, place) for place, row in enumerate(rows) if (score := _score(row, objectives))
    ]
    # Nobody is beaten by who comes later in this order.
    scored.sort()
    found: list[tuple[tuple[float, ...], int]] = []
    for score, place in scored:
        if not any(_beats(other, score) for other, _ in found):
            found.append((score, place))
    return [place for _, place in found]


def _score(row: SweepRow, objectives: Sequence[str]) -> tuple[float, ...] | None:
    """Return what is the better the less; None where something is not known."""
    values = [measured(row, name) for name in objectives]
    signs = [-1 if name in RATES else 1 for name in objectives]
    known = [sign * value for sign, value in zip(signs, values, strict=True) if value is not None]
    return tuple(known) if len(known) == len(objectives) else None


def _beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    pairs = [*zip(one, other, strict=True)]
    return all(mine <= theirs for mine, theirs in pairs) and one != other
