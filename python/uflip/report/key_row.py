"""Key characteristics as a row of uFLIP's Table 3, in the notation of its cells.

The paper rounds: "=" for equal costs, else x1.5, x2, x3, ... `step_of` applies this scale as a
rule, so that every row is rounded in the same way.
"""

import math
from collections.abc import Mapping
from typing import Literal

from uflip.data.summary import (
    CHARACTERISTICS,
    CharacteristicVerdict,
    KeyCharacteristics,
    Summary,
)
from uflip.report.labels import format_ms
from uflip.results.key_characteristics import LIKE_FACTOR, NEARLY_FACTOR
from uflip.units import format_duration_ns

COLUMNS = (
    "SR [ms]", "RR [ms]", "SW [ms]", "RW [ms]", "Pause", "Locality", "Partitions", "Reverse",
    "In-place", "Large Incr",
)  # fmt: skip

STEPS = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)
"""Factors of one digit, as in the table, and x1.5; the steps repeat for tens and hundreds."""

WORDS = {
    "none": "no",
    "everywhere": "everywhere",
    "not_repeatable": "?",
    "undecided": "undecided",
    "not_measured": "–",
}


UNKNOWN = ("not_repeatable", "undecided")

MEANS: tuple[Literal["SR_ms", "RR_ms", "SW_ms", "RW_ms"], ...] = (
    "SR_ms", "RR_ms", "SW_ms", "RW_ms",
)  # fmt: skip


def cells(characteristics: KeyCharacteristics) -> list[str]:
    """Return the cells of a row, one for each of `COLUMNS`."""
    row = characteristics
    return [
        *(format_ms(None if (ms := row[mean]) is None else ms * 1e6) for mean in MEANS),
        _pause(row["pause"]),
        _with_factor(row["locality"], _megabytes(row["locality"]), " MB"),
        _with_factor(row["partitions"], row["partitions"].get("partitions"), ""),
        *map(_bare, (row["reverse"], row["in_place"], row["large_increments"])),
    ]


def numbers(characteristics: KeyCharacteristics) -> list[float | None]:
    """Return the number behind each of the `cells`; None for a cell with a word."""
    row = characteristics
    return [
        *(row[mean] for mean in MEANS),
        row["pause"].get("pause_ns"),
        row["locality"].get("locality_bytes"),
        row["partitions"].get("partitions"),
        *(
            None if each["verdict"] in UNKNOWN else each["factor"]
            for each in (row["reverse"], row["in_place"], row["large_increments"])
        ),
    ]


def factor(ratio: float | None) -> str:
    """Return a factor in the notation of the table.

    Examples
    --------
    >>> [factor(ratio) for ratio in (1.1, 1.4, 2.2, 0.58, 17.0, 41.0, None)]
    ['=', 'x1.5', 'x2', 'x0.6', 'x15', 'x40', '–']
    """
    if ratio is None:
        return "–"
    step = step_of(ratio)
    return "=" if step == 1 else f"x{step:g}"


def step_of(ratio: float) -> float:
    """Return the nearest step of the table's scale, nearest on a logarithmic scale.

    Below "=" a step is a tenth.

    Examples
    --------
    >>> [step_of(ratio) for ratio in (0.97, 1.2, 1.3, 2.5, 130)]
    [1.0, 1.0, 1.5, 3.0, 150.0]
    """
    if ratio < 1:
        return round(ratio, 1)
    return min(_scale(ratio), key=lambda step: abs(math.log(step / ratio)))


def steps_between(one: float, other: float) -> int:
    """Count the steps from one factor to another, both rounded to the scale.

    Examples
    --------
    >>> [steps_between(*pair) for pair in ((1.1, 1.4), (2.1, 2.9), (20, 14), (8, 20))]
    [1, 1, 1, 4]
    """
    low, high = sorted((step_of(one), step_of(other)))
    scale = [tenth / 10 for tenth in range(10)] + _scale(max(high, 1))
    return scale.index(high) - scale.index(low)


def _scale(highest: float) -> list[float]:
    """Return the steps from 1 to beyond `highest`."""
    decades = range(math.floor(math.log10(max(highest, 1))) + 2)
    return [step * 10**decade for decade in decades for step in STEPS]


def _pause(finding: CharacteristicVerdict) -> str:
    if finding["verdict"] != "found":
        return WORDS[finding["verdict"]]
    first, last = finding.get("pause_from_ns") or 0, finding.get("pause_to_ns") or 0
    return f"{_shortest(finding)} ({format_duration_ns(first)} to {format_duration_ns(last)})"


def _shortest(finding: CharacteristicVerdict) -> str:
    return format_duration_ns(float(f"{finding.get('pause_ns') or 0:.2g}"))


def _megabytes(finding: CharacteristicVerdict) -> float | None:
    area = finding.get("locality_bytes")
    return None if area is None else area / (1 << 20)


def _with_factor(finding: CharacteristicVerdict, value: float | None, name: str) -> str:
    if finding["verdict"] == "found":
        return f"{value or 0:g}{name} ({factor(finding['factor'])})"
    return WORDS[finding["verdict"]]


def _bare(finding: CharacteristicVerdict) -> str:
    has_factor = finding["verdict"] not in UNKNOWN
    return factor(finding["factor"]) if has_factor else WORDS[finding["verdict"]]


def has_characteristics(document: Summary) -> bool:
    """Return whether more than the baselines was measured; always false for a null device."""
    row = document["key_characteristics"]
    return not (document["device"].null or row is None) and any(
        isinstance(finding, Mapping) and finding["verdict"] != "not_measured"
        for finding in row.values()
    )


def in_words(characteristics: KeyCharacteristics) -> list[str]:
    """Return the characteristics in words, a sentence each; what was not measured is left out."""
    row = characteristics
    pause, area, partitions = row["pause"], row["locality"], row["partitions"]
    random, sequential = row["RW_ms"], row["SW_ms"]
    overall = f"; anywhere, {random / sequential:.2g} times" if random and sequential else ""
    megabytes, streams = f"{_megabytes(area) or 0:g} MB", f"{partitions.get('partitions') or 0:g}"
    by_verdict = {
        (
            "pause",
            "found",
        ): f"After a pause of {_shortest(pause)}, a random write costs about as "
        "much as a sequential one.",
        ("pause", "everywhere"): "A random write costs about as much as a sequential one without "
        "any pause.",
        ("pause", "none"): "No measured pause makes random writes as cheap as sequential ones.",
        ("locality", "found"): f"A random write within {megabytes} costs {_cost(area['factor'])}"
        f"{overall}.",
        ("locality", "everywhere"): f"A random write costs at most {_cost(area['factor'])} in "
        "areas of all measured sizes.",
        ("locality", "none"): "No measured area makes random writes cheap.",
        ("partitions", "found"): f"Sequential writes to {streams} partitions side by side cost at "
        f"most {_cost(partitions['factor'])} each, to more partitions significantly more.",
        ("partitions", "everywhere"): f"Sequential writes to {streams} partitions side by side, "
        f"the most measured, cost at most {_cost(partitions['factor'])} each.",
        ("partitions", "none"): "Sequential writes to two partitions already cost significantly "
        "more.",
        ("reverse", "found"): f"A write in reverse order costs {_cost(row['reverse']['factor'])}.",
        ("in_place", "found"): f"A write in place costs {_cost(row['in_place']['factor'])}.",
        ("large_increments", "found"): "A write 1 to 8 MB after the one before costs at most "
        f"{_cost(row['large_increments']['factor'], 'random')}.",
    }
    texts = [by_verdict.get((name, row[name]["verdict"])) for name in CHARACTERISTICS]
    unknown = [
        name.replace("_", " ") for name in CHARACTERISTICS if row[name]["verdict"] in UNKNOWN
    ]
    return [
        *(text for text in texts if text),
        *([f"Undecided: {', '.join(unknown)}."] if unknown else []),
    ]


def _cost(ratio: float | None, kind: str = "sequential") -> str:
    """Return a cost relative to a sequential or random write in words."""
    step = factor(ratio)
    return f"as much as a {kind} one" if step == "=" else f"{step[1:]} times a {kind} one"


def note() -> str:
    """Return the explanation of the row."""
    return (
        "As in uFLIP's Table 3: factors relative to the sequential write; for large increments, to "
        "the random write. Pause: the shortest with which random writes behave like sequential "
        f"ones (cost up to x{LIKE_FACTOR:g}), between the two measured pauses given. Locality, "
        "Partitions: the largest measured value without significant degradation, and its maximum "
        f"cost. A factor up to x{NEARLY_FACTOR:g} is not significant, since the paper's table "
        "ignores x2 and x3 begins there. It is relative to the sequential write, or to the "
        "smallest area (two partitions) if that already costs more. ?: the same pattern differs by "
        "more when it is measured again."
    )
