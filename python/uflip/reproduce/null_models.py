"""Table 3 predicted without any simulator: what a leave-one-out score is compared with.

Structures that were searched without a cell (`uflip.reproduce.table3_structures`) have learned
something only if they predict more cells than the other rows of the table do on their own.

**Source**: uFLIP (CIDR 2009), Table 3; null models as in cross-validation (Stone 1974).
**Faithful**: a prediction uses the other devices, and of its own device at most the other cells;
cells are compared by the rules of `uflip.reproduce.table3`.
**Simplified**: nothing.
**Ambiguous**: the median of an even number of values, or of values in words, is the lower one. A
nearer device is one whose logarithms of times and factors are nearer. A pause counts only as an
effect or none; an area or an effect that a device does not have counts as a factor of `ABSENT`.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from math import log
from statistics import median_low
from typing import Any

from uflip.data.summary import KeyCharacteristics
from uflip.reproduce import table3

MIB = 1 << 20
ABSENT = 20.0
"""The largest factor of an area in the table."""
PAUSE = table3.COLUMNS.index("Pause")
Values = tuple[Any, ...]
"""The cells of a row, in the order of the columns; None for a pause or an area that it lacks."""
NullModel = Callable[[int, Values, Sequence[Values]], Any]
"""Column, the row whose cell is predicted, the other rows -> the predicted cell."""


def values_of_row(row: table3.Published) -> Values:
    """Return the cells of a row."""
    pause = None if row.pause is None else float(row.pause)
    factors = (row.reverse, row.in_place, row.large_increments)
    return (*row.means_ms, pause, row.locality, row.partitions, *factors)


def median_of_others(column: int, _row: Values, others: Sequence[Values]) -> Any:
    """Predict the median of the other devices; none if most of them have none."""
    values = [other[column] for other in others if other[column] is not None]
    if 2 * len(values) <= len(others):
        return None
    if isinstance(values[0], tuple):
        sizes, factors = zip(*values, strict=True)
        return median_low(sizes), median_low(factors)
    return median_low(values)


def commonest_of_others(column: int, _row: Values, others: Sequence[Values]) -> Any:
    """Predict the commonest value of the other devices, the first of several."""
    return Counter(other[column] for other in others).most_common(1)[0][0]


def nearest_device(column: int, row: Values, others: Sequence[Values]) -> Any:
    """Predict the value of the device whose other cells are nearest."""
    near = min(others, key=lambda other: _distance(row, other, column))
    return near[column]


def nearest_means(column: int, row: Values, others: Sequence[Values]) -> Any:
    """Predict the value of the device whose SR, RR, SW and RW are nearest."""
    near = min(others, key=lambda other: _distance(row[:4], other[:4], column))
    return near[column]


NULL_MODELS: dict[str, NullModel] = {
    "median of the others": median_of_others,
    "commonest value": commonest_of_others,
    "nearest device": nearest_device,
    "nearest means": nearest_means,
}


def _distance(one: Values, other: Values, without: int) -> float:
    columns = [column for column in range(len(one)) if column != without]
    gaps = [_logarithm(column, one) - _logarithm(column, other) for column in columns]
    return sum(gap**2 for gap in gaps)


def _logarithm(column: int, row: Values) -> float:
    cell = row[column]
    if cell is None:
        return log(ABSENT)
    if column == PAUSE:
        return 0.0
    return log(cell[1] if isinstance(cell, tuple) else cell)


def predicted_row(profile: str, model: str) -> KeyCharacteristics:
    """Return the key characteristics that a null model predicts, each cell held out by itself."""
    rows = {row.profile: values_of_row(row) for row in table3.TABLE}
    own = rows.pop(profile)
    predict = NULL_MODELS[model]
    cells = [predict(column, own, list(rows.values())) for column in range(len(own))]
    sr, rr, sw, rw, pause, area, partitions, reverse, in_place, gaps = cells
    absent: Any = {"verdict": "none", "factor": None}
    locality: Any = absent if area is None else {
        "verdict": "found", "locality_bytes": area[0] * MIB, "factor": area[1],
        "reference": "sequential",
    }  # fmt: skip
    return {
        "SR_ms": sr, "RR_ms": rr, "SW_ms": sw, "RW_ms": rw,
        "pause": absent if pause is None else {
            "verdict": "found", "pause_ns": pause * 1e6, "factor": 1.0,
        },
        "locality": locality,
        "partitions": {
            "verdict": "found", "partitions": partitions[0], "factor": partitions[1],
            "reference": "sequential",
        },
        "reverse": {"verdict": "found", "factor": reverse},
        "in_place": {"verdict": "found", "factor": in_place},
        "large_increments": {"verdict": "found", "factor": gaps},
    }  # fmt: skip


def score(profile: str, model: str, columns: Sequence[str] = table3.COLUMNS) -> int:
    """Return how many cells of a row a null model predicts.

    >>> {name: score("mtron", name) for name in NULL_MODELS}
    {'median of the others': 0, 'commonest value': 1, 'nearest device': 2, 'nearest means': 2}
    """
    row = next(row for row in table3.TABLE if row.profile == profile)
    cells = table3.compare(row, predicted_row(profile, model))
    return sum(cell.within for cell in cells if cell.column in columns)
