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
from uflip.sweeping.measure_point import SweepRow
from uflip.sweeping.points import SweepPoint, library, problem
from uflip.sweeping.ranking import may_have_measure, measured

MIN_BASE_POINTS = 64
"""Base points of a sample below which an index is mostly chance."""
# A fixed seed, so that equal rows give equal intervals.
SEED = 1
RESAMPLES = 200


@dataclass(frozen=True)
class SobolIndex:
    """Shares of the variance of one name, each with the half-width of its interval."""

    name: str
    first: float
    first_half_width: float
    total: float
    total_half_width: float


def sensitivity(rows: Sequence[SweepRow], by: str) -> list[SobolIndex]:
    """Return the indices of every varied name.

    Parameters
    ----------
    rows : sequence of SweepRow
        All rows of a sweep with `Sample("sobol", ...)`.
    by : str
        One of `uflip.sweeping.ranking.measures`.

    Returns
    -------
    list of SobolIndex
        In the order of the names.

    Raises
    ------
    UsageError
        If a row has too few I/Os for the measure.
    """
    values = [measured(row, by) for row in rows]
    present = [value for value in values if value is not None]
    if len(present) < len(values):
        raise _missing_measure_error(by, len(present), len(values))
    names = [*rows[0].values]
    outputs = np.array(present, dtype=np.float64)
    if np.ptp(outputs) == 0:
        return [SobolIndex(name, 0.0, 0.0, 0.0, 0.0) for name in names]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # resamples without variance
        indices = library("SALib.analyze.sobol", "--sensitivity").analyze(
            problem(len(names)),
            outputs,
            calc_second_order=False,
            num_resamples=RESAMPLES,
            seed=SEED,
        )
    columns = [indices[key].tolist() for key in ("S1", "S1_conf", "ST", "ST_conf")]
    return [SobolIndex(name, *each) for name, *each in zip(names, *columns, strict=True)]


def check(points: Sequence[SweepPoint], by: str, *, timed: bool = True) -> None:
    """Reject points that certainly lack a measure, before any is measured.

    Raises
    ------
    UsageError
        If a point has too few I/Os, or none of the mode.
    UnavailableError
        If the library for indices is not installed.
    """
    measurable = sum(may_have_measure(point.spec, by, timed=timed) for point in points)
    if measurable < len(points):
        raise _missing_measure_error(by, measurable, len(points))
    library("SALib.analyze.sobol", "--sensitivity")


def _missing_measure_error(by: str, measurable: int, points: int) -> UsageError:
    return UsageError(
        "Some points lack the measure",
        where="--sensitivity",
        got=f"{by} of {measurable} of {points} points",
        allowed="a measure that every point has",
        action="give more I/Os with --io-count, or use another measure",
    )


def why_doubtful(rows: Sequence[SweepRow]) -> str | None:
    """Return why the indices of a sweep are doubtful; None if they are not."""
    points = len(rows) // (len(rows[0].values) + 2)
    if points >= MIN_BASE_POINTS:
        return None
    return (
        f"{points} points are too few to distinguish the names: draw {MIN_BASE_POINTS} or more "
        f"(--sample sobol:{MIN_BASE_POINTS})"
    )
