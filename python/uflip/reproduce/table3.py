"""uFLIP's Table 3 as data, and the rules by which a simulated cell agrees with it.

**Source**: uFLIP (CIDR 2009), Table 3 and §5.1. Two transcriptions of the table were compared; they
agree in every cell.
**Faithful**: all seven devices and ten columns, with the digits that are printed.
**Simplified**: "=" and "x1" are a factor of 1.
**Ambiguous**: a simulated value agrees if it rounds to the printed one, or is within 5 % of it, by
which the paper's own repetitions differed (§5.1), whichever is wider. Factors round on the scale
that the table uses (1, 1.5, 2, 3, 4, ...; `uflip.report.key_row`); an area and a number of
partitions must be the same power of two. `Cell.wide` is a wider reading: a mean within 15 % or
0.1 ms, a pause within 20 %, a factor within a step of the scale or 25 %.
"""

from dataclasses import dataclass
from math import log

from uflip.data.summary import CharacteristicVerdict, KeyCharacteristics
from uflip.errors import unknown_name
from uflip.microbench.experiment import IoCounts
from uflip.report import key_row

REPEATABILITY = 0.05
"""The share by which the paper's three runs of an experiment differed (§5.1)."""

WIDE_MEAN_SHARE, WIDE_MEAN_MS = 0.15, 0.1
WIDE_PAUSE_SHARE = 0.20
WIDE_FACTOR_SHARE = 0.25
WIDE_STEPS = 1

MIB = 1 << 20


@dataclass(frozen=True)
class Published:
    """One row of Table 3."""

    profile: str  #: The simulated device.
    name: str  #: The name in the table.
    means: tuple[str, str, str, str]  #: SR, RR, SW, RW, as printed [ms].
    pause: str | None  #: As printed [ms]; None for an empty cell: no effect.
    locality: tuple[int, float] | None  #: (area [MB], factor); None for "No" in the table.
    partitions: tuple[int, float]  #: (partitions, factor).
    reverse: float  #: A factor, as the next two.
    in_place: float
    large_increments: float

    @property
    def means_ms(self) -> tuple[float, ...]:
        """SR, RR, SW, RW [ms]."""
        return tuple(map(float, self.means))

    def words(self, column: str) -> str:
        """Return a cell of areas, partitions or factors in the words of the table.

        >>> TABLE[1].words("Locality"), TABLE[6].words("Locality"), TABLE[0].words("Reverse")
        ('8 MB (x2)', 'no', '=')
        """
        factors = {
            "Reverse": self.reverse,
            "In-place": self.in_place,
            "Large Incr": self.large_increments,
        }
        if column in factors:
            return key_row.factor(factors[column])
        extent = {"Locality": self.locality, "Partitions": self.partitions}[column]
        if extent is None:
            return "no"
        size, ratio = extent
        return f"{size}{' MB' if column == 'Locality' else ''} ({key_row.factor(ratio)})"


# profile, name, SR RR SW RW, Pause, Locality, Partitioning, Reverse, In-Place, Large Incr
TABLE = (
    Published("memoright", "Memoright", ("0.3", "0.4", "0.3", "5"), "5", (8, 1), (8, 1), 1, 1, 4),
    Published("mtron", "Mtron", ("0.4", "0.5", "0.4", "9"), "9", (8, 2), (4, 1.5), 1, 1, 2),
    Published(
        "samsung", "Samsung", ("0.5", "0.5", "0.6", "18"), None, (16, 1.5), (4, 2), 1.5, 0.6, 2
    ),
    Published(
        "transcend-module", "Transcend Module", ("1.2", "1.3", "1.7", "18"), None,
        (4, 2), (4, 2), 3, 2, 2,
    ),
    Published(
        "transcend-mlc", "Transcend MLC", ("1.4", "3.0", "2.6", "233"), None,
        (4, 1), (4, 2), 2, 2, 1,
    ),
    Published(
        "kingston-dthx", "Kingston DTHX", ("1.3", "1.5", "1.8", "270"), None,
        (16, 20), (8, 20), 7, 6, 1,
    ),
    Published(
        "kingston-dti", "Kingston DTI", ("1.9", "2.2", "2.9", "256"), None,
        None, (4, 5), 8, 40, 1,
    ),
)  # fmt: skip


def row_of(profile: str, where: str = "device") -> Published:
    """Return the row of a device; `where`: the place of its name, for the error."""
    rows = {row.profile: row for row in TABLE}
    if profile not in rows:
        raise unknown_name("device of Table 3", profile, rows, where=where)
    return rows[profile]


COLUMNS = (
    "SR", "RR", "SW", "RW", "Pause", "Locality", "Partitions", "Reverse", "In-place", "Large Incr",
)  # fmt: skip


IDS = dict(
    zip(
        COLUMNS,
        ("SR", "RR", "SW", "RW", "pause", "locality", "partitions", "reverse", "in_place",
         "large_incr"),
        strict=True,
    )
)  # fmt: skip
"""Column -> name of its values in the ids of published values."""


@dataclass(frozen=True)
class Cell:
    """A printed cell, the simulated one in the same words, and whether the two agree."""

    column: str  #: One of `COLUMNS`.
    published: str
    ours: str
    #: (ours - published) / published; of the factor for a cell with a size and a factor.
    deviation: float | None
    tolerance: str  #: The criterion.
    within: bool
    wide: bool  #: Whether they agree on the wider reading.


def miss(cell: Cell) -> float:
    """Return the distance of a cell from the printed one: 0 if it agrees, else a logarithm."""
    if cell.within:
        return 0.0
    if cell.deviation is None or cell.deviation <= -1:
        return 2.0
    return max(0.05, abs(log(1 + cell.deviation)))


def counts(profile: str) -> dict[str, IoCounts]:
    """Return IOIgnore and IOCount of runs as the paper set them (§5.1).

    >>> counts("memoright")["RW"], counts("kingston-dti")["SR"]
    (IoCounts(io_count=5120, io_ignore=30), IoCounts(io_count=512, io_ignore=0))
    """
    if profile in SOLID_STATE_DISKS:
        short = IoCounts(1024, 0)
        return dict.fromkeys(("SR", "RR", "SW"), short) | {
            "RW": IoCounts(5120, START_UP.get(profile, 0))
        }
    return dict.fromkeys(("SR", "RR", "SW", "RW"), IoCounts(512, 0))


SOLID_STATE_DISKS = ("memoright", "mtron", "samsung", "transcend-mlc")
START_UP = {"memoright": 30, "mtron": 128}
"""IOIgnore of runs with random writes: "we used the values 30 and 128"."""

PAUSE_NS = {"mtron": 5_000_000_000}
"""Between runs; 1 s for every other device."""
OTHER_PAUSE_NS = 1_000_000_000


def compare(published: Published, row: KeyCharacteristics) -> list[Cell]:
    """Compare the `key_characteristics` of a summary with a row of the table, cell by cell."""
    ours = dict(zip(COLUMNS, key_row.cells(row), strict=True))
    cells = [
        _mean(mean.removesuffix("_ms"), printed, row[mean])
        for mean, printed in zip(key_row.MEANS, published.means, strict=True)
    ]
    cells.append(_pause(published.pause, row["pause"], ours["Pause"]))
    area, partitions = row["locality"], row["partitions"]
    size = area.get("locality_bytes")
    for column, printed, finding, value in (
        ("Locality", published.locality, area, None if size is None else size / MIB),
        ("Partitions", published.partitions, partitions, partitions.get("partitions")),
    ):
        words = (published.words(column), ours[column])
        cells.append(_extent(column, words, printed, finding, value))
    factors = (
        ("Reverse", published.reverse, row["reverse"]),
        ("In-place", published.in_place, row["in_place"]),
        ("Large Incr", published.large_increments, row["large_increments"]),
    )
    cells += [_factor(column, printed, finding["factor"]) for column, printed, finding in factors]
    return cells


def _mean(column: str, text: str, ours: float | None) -> Cell:
    printed, tolerance = float(text), _around(text)
    if ours is None:
        return Cell(column, text, "–", None, tolerance, False, False)
    wide = abs(ours - printed) <= max(WIDE_MEAN_SHARE * printed, WIDE_MEAN_MS)
    deviation = ours / printed - 1
    return Cell(column, text, _digits(ours), deviation, tolerance, _rounds(text, ours), wide)


def _half_a_digit(text: str) -> float:
    return 0.5 * 10.0 ** -len(text.partition(".")[2])


def _rounds(text: str, ours: float) -> bool:
    """Return whether a number rounds to the printed one, or is within the paper's repeatability."""
    printed = float(text)
    return abs(ours - printed) <= max(_half_a_digit(text), REPEATABILITY * printed)


def _around(text: str) -> str:
    half = _half_a_digit(text)
    return f"±{half:g} ms" if half > REPEATABILITY * float(text) else SHARE


SHARE = f"±{100 * REPEATABILITY:g} %"


def _digits(mean: float) -> str:
    return f"{mean:.2f}" if mean < 9.995 else f"{mean:.1f}" if mean < 99.95 else f"{mean:.0f}"


def _pause(text: str | None, finding: CharacteristicVerdict, words: str) -> Cell:
    if text is None:
        none = finding["verdict"] == "none"
        return Cell("Pause", "no", words, None, "no effect", none, none)
    tolerance = _around(text)
    pause_ns = finding.get("pause_ns")
    if finding["verdict"] != "found" or pause_ns is None:
        return Cell("Pause", f"{text} ms", words, None, tolerance, False, False)
    ours = pause_ns / 1e6
    deviation = ours / float(text) - 1
    wide = abs(deviation) <= WIDE_PAUSE_SHARE
    return Cell("Pause", f"{text} ms", words, deviation, tolerance, _rounds(text, ours), wide)


def _extent(
    column: str,
    words: tuple[str, str],
    printed: tuple[int, float] | None,
    finding: CharacteristicVerdict,
    value: float | None,
) -> Cell:
    """Compare an area [MB] or a number of partitions, with its factor."""
    if printed is None:
        none = finding["verdict"] == "none"
        return Cell(column, *words, None, "no effect", none, none)
    size, ratio = printed
    tolerance = f"{size:g}, and {_same_step(ratio)}"
    factor, same = finding["factor"], value == size
    if finding["verdict"] != "found" or factor is None:
        return Cell(column, *words, None, tolerance, False, False)
    within, wide = _agree(ratio, factor), key_row.steps_between(ratio, factor) <= WIDE_STEPS
    return Cell(column, *words, factor / ratio - 1, tolerance, same and within, same and wide)


def _factor(column: str, printed: float, ours: float | None) -> Cell:
    text, tolerance = key_row.factor(printed), _same_step(printed)
    if ours is None:
        return Cell(column, text, "–", None, tolerance, False, False)
    deviation = ours / printed - 1
    near = key_row.steps_between(printed, ours) <= WIDE_STEPS
    wide = near or abs(deviation) <= WIDE_FACTOR_SHARE
    words = f"{key_row.factor(ours)} ({ours:.2f})"
    return Cell(column, text, words, deviation, tolerance, _agree(printed, ours), wide)


def _agree(printed: float, ours: float) -> bool:
    """Return whether factors round to the same step of the scale, or are as near as repetitions."""
    same = key_row.step_of(ours) == key_row.step_of(printed)
    return same or abs(ours / printed - 1) <= REPEATABILITY


def _same_step(printed: float) -> str:
    return f"rounds to {key_row.factor(printed)}, or {SHARE}"
