"""A sweep from its design to its rows: on any executor, stored on disk, resumable."""

from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

from uflip.benchmark_options import MOST_WARM_UP
from uflip.data.sweep import Design, read
from uflip.device import cache
from uflip.errors import UsageError
from uflip.executors import OnStep, each, ignore
from uflip.sweeping import data_set
from uflip.sweeping.data_set import DataSet
from uflip.sweeping.measure_point import measure
from uflip.sweeping.points import SweepPoint, checked, combinations
from uflip.sweeping.row import SweepRow, Values
from uflip.units import parse_number

WARMING = ("write", "append")
"""Modes of I/Os that fill a device."""


@dataclass(frozen=True)
class Planned:
    """A planned sweep.

    Attributes
    ----------
    design : Design
        Its design.
    points : list of Point
        In the order of the rows.
    impossible : list
        (values, error) of combinations of a sample that make no device; they have no rows.
    folder : Path or None
        Folder for the rows.
    begun : bool
        Whether the folder exists already.
    """

    design: Design
    points: list[SweepPoint]
    impossible: list[tuple[Values, UsageError]]
    folder: Path | None
    begun: bool

    @cached_property
    def places(self) -> dict[tuple[str, str, str], int]:
        """Index of the first point of each identity: equal points are measured once."""
        found: dict[tuple[str, str, str], int] = {}
        for place, point in enumerate(self.points):
            found.setdefault(point.identity, place)
        return found

    @property
    def distinct(self) -> int:
        """Number of distinct points."""
        return len(self.places)

    def carry_out(self, on_step: OnStep = ignore) -> list[SweepRow]:
        """Measure the points that have no stored row.

        Parameters
        ----------
        on_step : callable, optional
            Called after each point; first with the number of stored rows, if any.

        Returns
        -------
        list of Row
            Of all points, in order.

        Raises
        ------
        ResultsError
            If the folder cannot be written, is of another simulator, or is in use.
        """
        with self._kept() as kept:
            found = {} if kept is None else kept.rows(self.points)
            missing = [place for place in self.places.values() if place not in found]
            done = self.distinct - len(missing)
            if done:
                on_step(done, "as kept")
            work = partial(measure, warm_up=self.design.warm_up, timed=self.design.timed)
            # Sampled devices rarely occur again: caching them gains nothing.
            once = nullcontext() if self.design.sample is None else cache.switched_off()
            with once:
                outcomes = each(work, [self.points[place] for place in missing])
            with closing(cast("Any", outcomes)):
                for index, row in outcomes:
                    place = missing[index]
                    found[place] = row
                    if kept is not None:
                        kept.add(place, row)
                    done += 1
                    on_step(done, str(self.points[place]))
            rows = [_named(found[self.places[one.identity]], one) for one in self.points]
            if kept is not None:
                kept.finish(rows)
            return rows

    @contextmanager
    def _kept(self) -> Iterator[DataSet | None]:
        if self.folder is None:
            yield None
        elif self.begun:
            with DataSet.opened(self.folder) as kept:
                yield kept
        else:
            values = [[*point.values.values()] for point in self.points]
            with DataSet.begun(self.folder, self.design, values) as kept:
                yield kept


def plan(design: Design, folder: Path | None = None) -> Planned:
    """Draw and check the points of a sweep.

    Parameters
    ----------
    design : Design
        Its design.
    folder : Path, optional
        A new folder for the rows.

    Raises
    ------
    UsageError
        As `uflip.sweeping.sweep`.
    ResultsError
        If the folder exists.
    """
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
    parse_number(design.warm_up, "warm_up", 0.0, MOST_WARM_UP)
    if design.warm_up > 0 and not any(part.mode in WARMING for part in design.spec.parts):
        raise UsageError(
            "`--warm-up` needs a pattern that writes data",
            where="warm_up",
            got=str(design.warm_up),
            action="leave it out, or vary a pattern that writes",
        )
    if folder is not None:
        data_set.check_new(folder)
    chosen = checked(design, combinations(design))
    return Planned(design, chosen.points, chosen.impossible, folder, begun=False)


def planned_again(folder: Path) -> Planned:
    """Return the plan of a sweep from its folder, to resume it.

    Raises
    ------
    ResultsError
        If the folder contains no sweep.
    """
    manifest = read(folder)
    points = checked(manifest.design, manifest.points).points
    return Planned(manifest.design, points, [], folder, begun=True)


def kept(folder: Path) -> list[SweepRow]:
    """Read the rows of a folder, from any version of the simulator.

    Raises
    ------
    ResultsError
        If there is no sweep, or its rows are damaged.
    """
    planned = planned_again(folder)
    rows = DataSet(folder, read(folder))
    rows.check()
    found = rows.rows(planned.points)
    places = [planned.places[point.identity] for point in planned.points]
    pairs = zip(places, planned.points, strict=True)
    return [_named(found[place], point) for place, point in pairs if place in found]


def _named(row: SweepRow, point: SweepPoint) -> SweepRow:
    """Return a row under the values of an equal point."""
    if row.values == point.values:
        return row
    return SweepRow(**(vars(row) | {"values": point.values}))
