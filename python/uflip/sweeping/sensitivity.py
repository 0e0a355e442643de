"""Sensitivity to the varied names: shares of the variance of a measure, by Sobol' indices.

**Source** Sobol' (Mathematics and Computers in Simulation 2001); the estimators of Saltelli et al.
(Computer Physics Communications 2010), by SALib.
**Faithful** First order: the share explained by the name alone. Total: the share that would remain
if all others were fixed, its interactions included. Intervals of 95 % by bootstrap.
**Simplified** No second order: it would take twice as many points.
**Ambiguous** A measure without variance: no name has influence, and all indices are 0.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from uflip.errors import UsageError
from uflip.sweeping.points import SweepPoint
from uflip.sweeping.ranking import may_tell, measured
from uflip.sweeping.row import SweepRow
from uflip.sweeping.sampling import library, problem

FEWEST = 64
"""Base points of a sample below which an index is mostly chance."""
# A fixed seed, so that equal rows give equal intervals.
SEED = 1
RESAMPLES = 200


@dataclass(frozen=True)
class Index:
    """Shares of the variance of one name, each with the half-width of its interval."""

    name: str
    first: float
    first_half_width: float
    total: float
    total_half_width: float


def sensitivity(rows: Sequence[SweepRow], by: str) -> list[Index]:
    """Return the indices of every varied name.

    Parameters
    ----------
    rows : sequence of Row
        All rows of a sweep with `Sample("sobol", ...)`.
    by : str
        One of `uflip.sweeping.ranking.measures`.

    Returns
    -------
    list of Index
        In the order of the names.

    Raises
    ------
    UsageError
        If a row has too few I/Os for the measure.
    """
    values = [measured(row, by) for row in rows]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        raise _untold(by, len(known), len(values))
    names = [*rows[0].values]
    found = np.array(known, dtype=np.float64)
    if np.ptp(found) == 0:
        return [Index(name, 0.0, 0.0, 0.0, 0.0) for name in names]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # resamples without variance
        said = library("SALib.analyze.sobol", "--sensitivity").analyze(
            problem(len(names)),
            found,
            calc_second_order=False,
            num_resamples=RESAMPLES,
            seed=SEED,
        )
    columns = [said[key].tolist() for key in ("S1", "S1_conf", "ST", "ST_conf")]
    return [Index(name, *each) for name, *each in zip(names, *columns, strict=True)]


def check(points: Sequence[SweepPoint], by: str, *, timed: bool = True) -> None:
    """Reject points that certainly lack a measure, before any is measured.

    Raises
    ------
    UsageError
        If a point has too few I/Os, or none of the mode.
    UnavailableError
        If the library for indices is not installed.
    """
    telling = sum(may_tell(point.spec, by, timed=timed) for point in points)
    if telling < len(points):
        raise _untold(by, telling, len(points))
    library("SALib.analyze.sobol", "--sensitivity")


def _untold(by: str, telling: int, points: int) -> UsageError:
    return UsageError(
        "Some points lack the measure",
        where="--sensitivity",
        got=f"{by} of {telling} of {points} points",
        allowed="a measure that every point has",
        action="give more I/Os with --io-count, or use another measure",
    )


def doubt(rows: Sequence[SweepRow]) -> str | None:
    """Return why the indices of a sweep are doubtful; None if they are not."""
    points = len(rows) // (len(rows[0].values) + 2)
    if points >= FEWEST:
        return None
    return (
        f"{points} points are too few to distinguish the names: draw {FEWEST} or more "
        f"(--sample sobol:{FEWEST})"
    )
