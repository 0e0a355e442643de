"""The tables of measurements, as observations of phases.

A table is a CSV file, as in the folder `ssdiq` beside this file. Other columns may stand in it, and
other drives. Repetitions of a phase become one observation: their median.
"""

import csv
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from statistics import median

from uflip.errors import ResultsError

BUILT_IN = Path(__file__).parent / "ssdiq"
LAST_FIFTH = (17, 20)
"""The parts of a phase, of twenty, whose counters are compared."""
LEAST_WRITTEN = 0.5
"""Shorter phases, in capacities, are left out: they end before the drive has changed."""

PERCENTS = (50, 99)
"""Percentiles of response times that are compared."""
SHAPE_PERCENTS = (90, 99.9)
"""Percentiles that show the form of a distribution; tables may lack them."""
RATES = "throughput"
"""The table that every folder has."""
RATE, AMPLIFICATION = "rate", "write amplification"


@dataclass(frozen=True, order=True)
class Phase:
    """A phase of writing to a drive."""

    #: As in the tables.
    pattern: str
    details: str
    capacity_gib: float  #: The range that is written [GiB].
    offered_per_s: int = 0  #: Writes that arrive in a second; 0: as many as the drive accepts.


@dataclass(frozen=True)
class Observation:
    """A measured number: the median of the repetitions of a phase."""

    drive: str  #: The drive.
    phase: Phase  #: The phase.
    quantity: str  #: `RATE` [MiB/s], or `AMPLIFICATION`.
    value: float  #: The number.
    written: float  #: Bytes that the phase wrote, in capacities.
    repetitions: int  #: Number of measurements.


@dataclass(frozen=True, order=True)
class LoadedResponse:
    """A percentile of response times at an offered load."""

    offered_per_s: int  #: I/Os of the main stream that arrive in a second.
    #: Share of writes in the stream that is measured: 0.99 in the main one, 0.5 beside it.
    write_share: float
    what: str  #: "read" or "write".
    percent: float  #: The percentile.
    response_us: float  #: The median of its repetitions [µs].


@dataclass(frozen=True)
class Drive:
    """All observations of a drive."""

    name: str  #: As in the tables.
    capacity_gib: float  #: The capacity that most phases write [GiB].
    observations: tuple[Observation, ...]  #: In the order of phases.
    responses: tuple[LoadedResponse, ...] = ()  #: Response times under load.


@dataclass(frozen=True)
class Row:
    """A row of a table: its place, and its cells by column."""

    where: str
    cells: dict[str, str | None]

    def text(self, column: str) -> str:
        """Return a cell, without blanks around it."""
        value = self.cells.get(column)
        if value is None:
            raise self.wrong(column, "no value", "a value")
        return value.strip()

    def has(self, column: str) -> bool:
        """Return whether a cell is not empty."""
        return bool((self.cells.get(column) or "").strip())

    def number(self, column: str) -> float:
        """Return a cell that must be a number."""
        text = self.text(column)
        try:
            value = float(text)
        except ValueError:
            raise self.wrong(column, text or "no value", "a number") from None
        if not isfinite(value):
            raise self.wrong(column, text, "a finite number")
        return value

    def wrong(self, column: str, got: str, allowed: str) -> ResultsError:
        """Return the error for a wrong cell."""
        return ResultsError(
            f"The table has a wrong value in the column {column}",
            where=self.where,
            got=got,
            allowed=allowed,
            action="correct the cell, or remove the row",
        )


def read_drives(*folders: Path) -> list[Drive]:
    """Read tables of measurements.

    `folders`: folders with `throughput.csv`, and `wear.csv` for drives that count physical writes.
    Rows of the same phase of the same drive in several folders are repetitions. The result has the
    order of their names. Raises ResultsError if a table is missing, lacks a column, or has a value
    that is no number.

    Examples
    --------
    >>> [(drive.name, drive.capacity_gib) for drive in read_drives(BUILT_IN)][-2:]
    [('sk-hynix-pe8110-960', 894.0), ('solidigm-p5520-1920-b', 1788.0)]
    """
    rates, worn, loaded = (
        [row for path in paths if path.stem == RATES or path.exists() for row in _rows(path)]
        for name in (RATES, "wear", "response")
        if (paths := [folder / f"{name}.csv" for folder in folders])
    )
    return drives_of(rates, worn, loaded)


def drives_of(rates: Iterable[Row], worn: Iterable[Row], loaded: Iterable[Row]) -> list[Drive]:
    """Return the drives of rows of rates, write amplification and response times."""
    samples: dict[tuple[str, Phase, str], list[tuple[float, float]]] = defaultdict(list)
    capacities: dict[str, Counter[float]] = defaultdict(Counter)
    for row in rates:
        phase = _phase(row)
        written = row.number("written_gib") / phase.capacity_gib
        rate = row.number("write_mib_s")
        if written >= LEAST_WRITTEN and rate > 0:
            samples[row.text("drive"), phase, RATE].append((rate, written))
            capacities[row.text("drive")][phase.capacity_gib] += 1
    for key, sample in _amplifications(worn):
        samples[key].append(sample)
    responses = _responses(loaded)
    return [
        Drive(
            name,
            count.most_common(1)[0][0],
            tuple(_observations(name, samples)),
            tuple(responses.get(name, ())),
        )
        for name, count in sorted(capacities.items())
    ]


def _responses(rows: Iterable[Row]) -> dict[str, list[LoadedResponse]]:
    """Read response times at offered loads; other rows of the tables are left out."""
    samples: dict[tuple[str, int, float, str, float], list[float]] = defaultdict(list)
    for row in rows:
        offered = int(round(row.number("rate"), -1))
        if offered <= 0:
            continue
        for percent in (*PERCENTS, *(one for one in SHAPE_PERCENTS if row.has(column_of(one)))):
            key = (row.text("drive"), offered, row.number("write_share"), row.text("what"), percent)
            value = row.number(column_of(percent))
            if value > 0:
                samples[key].append(value)
    responses: dict[str, list[LoadedResponse]] = defaultdict(list)
    for (drive, offered, share, what, percent), values in sorted(samples.items()):
        response = LoadedResponse(offered, share, what, percent, median(values))
        responses[drive].append(response)
    return responses


def column_of(percent: float) -> str:
    """Return the column of a percentile.

    Examples
    --------
    >>> column_of(50), column_of(99.9)
    ('50p_us', '99p9_us')
    """
    return f"{percent:g}".replace(".", "p") + ("_us" if percent % 1 else "p_us")


def _observations(
    drive: str, samples: dict[tuple[str, Phase, str], list[tuple[float, float]]]
) -> Iterator[Observation]:
    for name, phase, quantity in sorted(samples):
        if name == drive:
            values, written = zip(*samples[name, phase, quantity], strict=True)
            yield Observation(name, phase, quantity, median(values), median(written), len(values))


def _amplifications(
    worn: Iterable[Row],
) -> Iterator[tuple[tuple[str, Phase, str], tuple[float, float]]]:
    """Yield the mean of the last fifth of each phase, as far as it is there.

    A part without a count has a 0.
    """
    for rows in _phases(worn):
        last = [row for row in rows if LAST_FIFTH[0] <= row.number("part") <= LAST_FIFTH[1]]
        counted = [value for row in last if (value := row.number("write_amplification")) > 0]
        if counted:
            written = last[-1].number("host_written_capacities")
            yield _key(last[0]), (sum(counted) / len(counted), written)


def _phase(row: Row) -> Phase:
    capacity = row.number("capacity_gib")
    if not capacity > 0:
        raise row.wrong("capacity_gib", f"{capacity:g}", "a number above 0")
    offered = round(row.number("rate"), -1)
    return Phase(row.text("pattern"), row.text("details"), capacity, int(offered))


def _phases(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield the parts of each phase. Any of them may be missing; a repetition begins anew."""
    phase: list[Row] = []
    for row in rows:
        if phase and (
            _key(row) != _key(phase[0]) or row.number("part") <= phase[-1].number("part")
        ):
            yield phase
            phase = []
        phase.append(row)
    if phase:
        yield phase


def _key(row: Row) -> tuple[str, Phase, str]:
    return row.text("drive"), _phase(row), AMPLIFICATION


def _rows(path: Path) -> Iterator[Row]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ResultsError(
            "The table cannot be read",
            where=str(path),
            got=str(error),
            allowed="a folder with throughput.csv, wear.csv and response.csv",
            action="give the folder of the tables with --data",
        ) from error
    for line, cells in enumerate(csv.DictReader(text.splitlines()), start=2):
        yield Row(f"{path}, line {line}", cells)
