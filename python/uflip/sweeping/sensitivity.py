"""Which of the names that vary matter: shares of the variance of a measure, by Sobol' indices.

**Source** Sobol' (Mathematics and Computers in Simulation 2001); the estimators of Saltelli et al.
(Computer Physics Communications 2010), by SALib.
**Faithful** First order: what varying the name alone explains. Total: what would remain if all
others were known, its interactions included. Intervals of 95 % by bootstrap.
**Simplified** No second order: it would take twice as many points.
**Ambiguous** What a measure without any variance says: no name matters, all indices are 0.
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
"""Points of a sample, each with its neighbours, below which chance makes most of an index."""
# The same rows give the same intervals.
SEED = 1
RESAMPLES = 200


@dataclass(frozen=True)
class Index:
    """Of one name: shares of the variance, each with the half width of its interval."""

    name: str
    first: float
    first_half_width: float
    total: float
    total_half_width: float


def sensitivity(rows: Sequence[SweepRow], by: str) -> list[Index]:
    """Return the indices of every name that varies.

    Parameters
    ----------
    rows : sequence of Row
        Of a sweep with `Sample("sobol", ...)`, all of them.
    by : str
        One of `uflip.sweeping.ranking.measures`.

    Returns
    -------
    list of Index
        In the order of the names.

    Raises
    ------
    UsageError
        If a row has too few I/Os to tell.
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
        warnings.simplefilter("ignore")  # of resamples without variance
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
    """Refuse points of which some are known not to tell a measure, before any is measured.

    Raises
    ------
    UsageError
        If a point has too few I/Os, or none of the mode.
    UnavailableError
        If the library that tells indices is not there.
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
        action="give more I/Os with --io-count, or ask for another measure",
    )


def doubt(rows: Sequence[SweepRow]) -> str | None:
    """Say why the indices of a sweep are to be doubted; None where nothing speaks against them."""
    points = len(rows) // (len(rows[0].values) + 2)
    if points >= FEWEST:
        return None
    return (
        f"{points} points are too few to tell names apart: draw {FEWEST} or more "
        f"(--sample sobol:{FEWEST})"
    )
