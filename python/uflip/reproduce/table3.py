"""uFLIP's Table 3 as data, and what it means that a cell of ours agrees with it.

**Source**: uFLIP (CIDR 2009), Table 3 and §5.1. Two transcriptions of the table were compared; they
agree in every cell.
**Faithful**: all seven devices and ten columns, as printed.
**Simplified**: "=" is a factor of 1.
**Ambiguous**: the table prints one digit, so the nearest that can be asked for is one step of its
scale (1, 1.5, 2, 3, 4, ...; `uflip.report.key_row`). Milliseconds agree within 15 % or 0.1 ms, a
pause within 20 %; an area and a number of partitions must be the same power of two, with a factor
within one step; other factors agree within one step or 25 %.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from uflip.experiment import Counts
from uflip.report import key_row

MEAN_SHARE, MEAN_MS = 0.15, 0.1
PAUSE_SHARE = 0.20
FACTOR_SHARE = 0.25
STEPS = 1

MIB = 1 << 20


@dataclass(frozen=True)
class Published:
    """One row of Table 3.

    Attributes
    ----------
    profile : str
        The simulated device.
    name : str
        As the table calls it.
    means_ms : tuple of float
        SR, RR, SW, RW [ms].
    pause_ms : float or None
        None where the table is empty: no effect.
    locality : tuple or None
        (area [MB], factor); None where the table says "No".
    partitions : tuple
        (partitions, factor).
    reverse, in_place, large_increments : float
        Factors.
    """

    profile: str
    name: str
    means_ms: tuple[float, float, float, float]
    pause_ms: float | None
    locality: tuple[int, float] | None
    partitions: tuple[int, float]
    reverse: float
    in_place: float
    large_increments: float


# profile, name, SR RR SW RW, Pause, Locality, Partitioning, Reverse, In-Place, Large Incr
TABLE = (
    Published("memoright", "Memoright", (0.3, 0.4, 0.3, 5), 5, (8, 1), (8, 1), 1, 1, 4),
    Published("mtron", "Mtron", (0.4, 0.5, 0.4, 9), 9, (8, 2), (4, 1.5), 1, 1, 2),
    Published("samsung", "Samsung", (0.5, 0.5, 0.6, 18), None, (16, 1.5), (4, 2), 1.5, 0.6, 2),
    Published(
        "transcend-module", "Transcend Module", (1.2, 1.3, 1.7, 18), None, (4, 2), (4, 2), 3, 2, 2
    ),
    Published(
        "transcend-mlc", "Transcend MLC", (1.4, 3.0, 2.6, 233), None, (4, 1), (4, 2), 2, 2, 1
    ),
    Published(
        "kingston-dthx", "Kingston DTHX", (1.3, 1.5, 1.8, 270), None, (16, 20), (8, 20), 7, 6, 1
    ),
    Published("kingston-dti", "Kingston DTI", (1.9, 2.2, 2.9, 256), None, None, (4, 5), 8, 40, 1),
)

COLUMNS = (
    "SR", "RR", "SW", "RW", "Pause", "Locality", "Partitions", "Reverse", "In-place", "Large Incr",
)  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """A cell as printed, ours in the same words, and whether the two agree."""

    column: str
    published: str
    ours: str
    deviation: float | None
    within: bool


def counts(profile: str) -> dict[str, Counts]:
    """Return the lengths of runs of §5.1: IOIgnore and IOCount as the paper set them.

    Examples
    --------
    >>> counts("memoright")["RW"], counts("kingston-dti")["SR"]
    (Counts(io_count=5120, io_ignore=30), Counts(io_count=512, io_ignore=0))
    """
    if profile in SOLID_STATE_DISKS:
        short = Counts(1024, 0)
        return dict.fromkeys(("SR", "RR", "SW"), short) | {
            "RW": Counts(5120, START_UP.get(profile, 0))
        }
    return dict.fromkeys(("SR", "RR", "SW", "RW"), Counts(512, 0))


SOLID_STATE_DISKS = ("memoright", "mtron", "samsung", "transcend-mlc")
START_UP = {"memoright": 30, "mtron": 128}
"""IOIgnore of runs with random writes: "we used the values 30 and 128"."""

PAUSE_NS = {"mtron": 5_000_000_000}
"""Between runs; 1 s for every other device."""
OTHER_PAUSE_NS = 1_000_000_000


def compare(published: Published, found: Mapping[str, Any]) -> list[Cell]:
    """Put the `key_characteristics` of a summary beside a row of the table, cell by cell."""
    ours = dict(zip(COLUMNS, key_row.cells(found), strict=True))
    cells = [
        _mean(pattern, printed, found[f"{pattern}_ms"])
        for pattern, printed in zip(("SR", "RR", "SW", "RW"), published.means_ms, strict=True)
    ]
    cells.append(_pause(published.pause_ms, found["pause"], ours["Pause"]))
    area, partitions = published.locality, published.partitions
    size, number = found["locality"].get("locality_bytes"), found["partitions"].get("partitions")
    size = None if size is None else size / MIB
    cells.append(_extent("Locality", area, found["locality"] | {"value": size}, ours))
    cells.append(_extent("Partitions", partitions, found["partitions"] | {"value": number}, ours))
    factors = (
        ("Reverse", published.reverse, "reverse"),
        ("In-place", published.in_place, "in_place"),
        ("Large Incr", published.large_increments, "large_increments"),
    )
    cells += [_factor(column, printed, found[key]["factor"]) for column, printed, key in factors]
    return cells


def _mean(column: str, printed: float, ours: float | None) -> Cell:
    if ours is None:
        return Cell(column, f"{printed:g}", "–", None, False)
    within = abs(ours - printed) <= max(MEAN_SHARE * printed, MEAN_MS)
    return Cell(column, f"{printed:g}", _digits(ours), ours / printed - 1, within)


def _digits(mean: float) -> str:
    return f"{mean:.2f}" if mean < 9.995 else f"{mean:.1f}" if mean < 99.95 else f"{mean:.0f}"


def _pause(printed_ms: float | None, finding: Mapping[str, Any], words: str) -> Cell:
    if printed_ms is None:
        return Cell("Pause", "no", words, None, finding["verdict"] == "none")
    if finding["verdict"] != "found":
        return Cell("Pause", f"{printed_ms:g} ms", words, None, False)
    deviation = finding["pause_ns"] / 1e6 / printed_ms - 1
    within = abs(deviation) <= PAUSE_SHARE
    return Cell("Pause", f"{printed_ms:g} ms", words, deviation, within)


def _extent(
    column: str,
    printed: tuple[int, float] | None,
    finding: Mapping[str, Any],
    words: Mapping[str, str],
) -> Cell:
    """Compare an area [MB] or a number of partitions, with its factor."""
    if printed is None:
        return Cell(column, "no", words[column], None, finding["verdict"] == "none")
    size, ratio = printed
    text = f"{size}{' MB' if column == 'Locality' else ''} ({key_row.factor(ratio)})"
    if finding["verdict"] != "found":
        return Cell(column, text, words[column], None, False)
    near = key_row.steps_between(ratio, finding["factor"]) <= STEPS
    same = finding["value"] == size
    return Cell(column, text, words[column], finding["factor"] / ratio - 1, same and near)


def _factor(column: str, printed: float, ours: float | None) -> Cell:
    if ours is None:
        return Cell(column, key_row.factor(printed), "–", None, False)
    near = key_row.steps_between(printed, ours) <= STEPS
    within = near or abs(ours / printed - 1) <= FACTOR_SHARE
    words = f"{key_row.factor(ours)} ({ours:.2f})"
    return Cell(column, key_row.factor(printed), words, ours / printed - 1, within)
