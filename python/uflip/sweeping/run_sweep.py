"""A sweep from its design to its rows: on any executor, stored on disk, resumable."""

from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

from uflip.benchmark_options import MAX_WARM_UP
from uflip.data.document import Table
from uflip.data.sweep import Design, read
from uflip.device import cache
from uflip.errors import UsageError
from uflip.executors import OnStep, ignore, iterate_outcomes
from uflip.sweeping import data_set
from uflip.sweeping.data_set import DataSet
from uflip.sweeping.measure_point import SweepRow, measure
from uflip.sweeping.points import SweepPoint, check_points, combinations
from uflip.units import parse_number

FILLING_MODES = ("write", "append")
"""Modes of I/Os that fill a device."""


@dataclass(frozen=True)
class PlannedSweep:
    """A planned sweep."""

    design: Design  #: Its design.
    points: list[SweepPoint]  #: In the order of the rows.
    #: (values, error) of combinations of a sample that make no device; they have no rows.
    impossible: list[tuple[Table, UsageError]]
    folder: Path | None  #: Folder for the rows.
    folder_exists: bool  #: Whether the folder exists already.

    @cached_property
    def first_indices(self) -> dict[tuple[str, str, str], int]:
        """Index of the first point of each identity: equal points are measured once."""
        indices: dict[tuple[str, str, str], int] = {}
        for index, point in enumerate(self.points):
            indices.setdefault(point.identity, index)
        return indices

    @property
    def distinct(self) -> int:
        """Number of distinct points."""
        return len(self.first_indices)

    def carry_out(self, on_step: OnStep = ignore) -> list[SweepRow]:
        """Measure the points that have no stored row.

        `on_step`: called after each point; first with the number of stored rows, if any. Returns
        the rows of all points, in order.
        """
        with self._open_data_set() as stored:
            rows_by_index = {} if stored is None else stored.rows(self.points)
            missing = [index for index in self.first_indices.values() if index not in rows_by_index]
            done = self.distinct - len(missing)
            if done:
                on_step(done, "stored rows")
            work = partial(measure, warm_up=self.design.warm_up, timed=self.design.timed)
            # Sampled devices rarely occur again: caching them gains nothing.
            once = nullcontext() if self.design.sample is None else cache.switched_off()
            with once:
                outcomes = iterate_outcomes(work, [self.points[index] for index in missing])
            with closing(cast("Any", outcomes)):
                for number, row in outcomes:
                    index = missing[number]
                    rows_by_index[index] = row
                    if stored is not None:
                        stored.add(index, row)
                    done += 1
                    on_step(done, str(self.points[index]))
            rows = [
                _with_values_of(rows_by_index[self.first_indices[point.identity]], point)
                for point in self.points
            ]
            if stored is not None:
                stored.finish(rows)
            return rows

    @contextmanager
    def _open_data_set(self) -> Iterator[DataSet | None]:
        if self.folder is None:
            yield None
        elif self.folder_exists:
            with DataSet.resume(self.folder) as stored:
                yield stored
        else:
            values = [[*point.values.values()] for point in self.points]
            with DataSet.create(self.folder, self.design, values) as stored:
                yield stored


def plan(design: Design, folder: Path | None = None) -> PlannedSweep:
    """Draw and check the points of a sweep."""
    if not design.vary:
        raise UsageError(
            "Nothing varies",
            where="vary",
            got="{}",
            allowed="names with their values, or ranges",
            action="name a key of the profile or a parameter of the pattern",
        )
    if not isinstance(design.timed, bool):
        raise UsageError(
            "Wrong type of an option",
            where="timed",
            got=repr(design.timed),
            allowed="True or False",
            action="False for the functional mode",
        )
    parse_number(design.warm_up, "warm_up", 0.0, MAX_WARM_UP)
    if design.warm_up > 0 and not any(part.mode in FILLING_MODES for part in design.spec.parts):
        raise UsageError(
            "`--warm-up` needs a pattern that writes data",
            where="warm_up",
            got=str(design.warm_up),
            action="omit it, or vary a pattern that writes",
        )
    if folder is not None:
        data_set.check_new(folder)
    chosen = check_points(design, combinations(design))
    return PlannedSweep(design, chosen.points, chosen.impossible, folder, folder_exists=False)


def load_plan(folder: Path) -> PlannedSweep:
    """Return the plan of a sweep from its folder, to resume it."""
    manifest = read(folder)
    points = check_points(manifest.design, manifest.points).points
    return PlannedSweep(manifest.design, points, [], folder, folder_exists=True)


def read_rows(folder: Path) -> list[SweepRow]:
    """Read the rows of a folder, from any version of the simulator."""
    planned = load_plan(folder)
    rows = DataSet(folder, read(folder))
    rows.check()
    rows_by_index = rows.rows(planned.points)
    indices = [planned.first_indices[point.identity] for point in planned.points]
    pairs = zip(indices, planned.points, strict=True)
    return [
        _with_values_of(rows_by_index[index], point)
        for index, point in pairs
        if index in rows_by_index
    ]


def _with_values_of(row: SweepRow, point: SweepPoint) -> SweepRow:
    """Return a row under the values of an equal point."""
    if row.values == point.values:
        return row
    return SweepRow(**(vars(row) | {"values": point.values}))
