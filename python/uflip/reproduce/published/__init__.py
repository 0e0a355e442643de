"""Published values as data: all numbers and statements that reproductions compare with.

Profiles name by these ids the values that a constant was fitted to (`[sources]`), reproductions
the values that they compare with, and `uflip.reproduce.evidence` classifies a row by both.
"""

from collections.abc import Iterator

from uflip.reproduce.published import myers_sinclair_2010, oc_2017, ofc_2011, uflip_2009
from uflip.reproduce.published.value import Value

PUBLISHED: dict[str, Value] = {
    value.id: value
    for paper in (uflip_2009, myers_sinclair_2010, ofc_2011, oc_2017)
    for value in paper.VALUES
}
"""Id -> value."""


def with_determining_values(value_id: str) -> set[str]:
    """Return the ids of a value and of all values from which it follows.

    Examples
    --------
    >>> sorted(with_determining_values("ofc/reads_mb"))
    ['ofc/reads_mb', 'ofc/sequential_reads']
    """
    return set(_walk(value_id, set()))


def _walk(value_id: str, visited: set[str]) -> Iterator[str]:
    if value_id in visited:
        return
    visited.add(value_id)
    yield value_id
    for other in PUBLISHED[value_id].determined_by:
        yield from _walk(other, visited)


__all__ = ["PUBLISHED", "Value", "with_determining_values"]
