"""The constants of a drive from its calibration rows.

Constants are fitted to rates alone: counted write amplification is always a prediction. The
sequential rate and a limit of random writes are read off their rows.
Least squares of log ratios give the physical capacity and the cost of a relocated page, for each
policy in turn; then the size of a line follows from the zones.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import log, sqrt
from statistics import median
from typing import Any

import numpy as np

from uflip.errors import UnavailableError
from uflip.reproduce.drives.drive_model import Constants
from uflip.reproduce.drives.line_device import LEAST_SPARE_LINES
from uflip.reproduce.drives.tables import RATE, Drive, Observation
from uflip.reproduce.drives.workload import Workload, is_calibration, workload_of

POLICIES = (
    ("greedy", True), ("greedy", False), ("cost_benefit", True), ("d_choices:4", True),
    ("cyclic", False),
)  # fmt: skip
POLICIES_WITH_ZONES = 2
"""The policies that agree best with random writes are tried on zones as well."""
PHYSICAL = (1.03, 1.6)
"""Bounds of the physical capacity, in capacities of the drive."""
COST = (1.0, 2.5)
"""Bounds of the cost of a relocated page: it is read as well as written."""
USUAL_COST, COST_WEIGHT = 1.35, 0.1
"""Where rows do not tell the cost from the spare space, it is the usual one of other drives; this
one if there are no other drives."""
USUAL_LINE_GIB, USUAL_LONG_WRITES = 2.8, 0.9
"""Line, and rate of long writes in sequential rates, of a drive without zones: the medians of the
seven drives that have some."""
STARTS = (1.08, 1.25)
LINES_GIB = tuple(float(size) for size in np.geomspace(0.5, 12, 14).round(3))
SAME_RATE = 0.005
"""Rates of different patterns that differ by no more than this share meet a limit."""
LEAST_AT_LIMIT = 3


def optimizer() -> Any:
    """Import `scipy.optimize`.

    Raises UnavailableError if scipy is not installed.
    """
    try:
        from scipy import optimize
    except ImportError as error:
        raise UnavailableError(
            "Constants of drives are fitted by an optional library",
            where="uflip reproduce drives",
            got=f"no module {error.name}",
            allowed="scipy",
            action="install it: pip install 'uflip[sweep]'",
        ) from error
    return optimize


def calibration_rows(drive: Drive, quantity: str = RATE) -> list[Observation]:
    """Return the rows of a drive to which constants are fitted."""
    return [
        row
        for row in drive.observations
        if row.quantity == quantity and is_calibration(row.phase, drive.capacity_gib)
    ]


def fit(
    drive: Drive,
    rows: Sequence[Observation] | None = None,
    policies: Iterable[tuple[str, bool]] = POLICIES,
    usual_cost: float | None = USUAL_COST,
) -> Constants | None:
    """Fit the constants of a drive.

    `rows`: the rows; by default all calibration rows. `policies`: victim
    policies, and whether relocated pages fill lines of their own. `usual_cost`: the usual cost of a
    relocated page; None lets the rows alone decide. Returns None without a sequential and a random
    rate among the rows.
    """
    rows = calibration_rows(drive) if rows is None else rows
    zones = zone_rows(rows)
    # Long writes that cause no collection are sequential: the rate of a drive without such rows.
    sequential = [row.value for row in rows if _workload(row).kind == "sequential"] or (
        [max(row.value for row in zones)] if zones else []
    )
    random = random_rows(rows)
    if not sequential or not random:
        return None
    rate = median(sequential)
    long_writes = rate * USUAL_LONG_WRITES
    start = Constants(rate, 0.0, 1.0, USUAL_LINE_GIB, long_writes, _limit(random))
    fits = fit_space(drive, random, start, policies, usual_cost)
    sized = [
        min(sizes_of_lines(constants, zones), key=lambda one: squares(one, zones))
        for constants in fits[:POLICIES_WITH_ZONES]
    ]
    return min(sized, key=lambda one: squares(one, [*random, *zones]))


def policy_name(policy: str, apart: bool) -> str:
    """Return a policy and the place of relocated pages as text."""
    return f"{policy} {'apart' if apart else 'mixed'}"


def policy_errors(
    drive: Drive, constants: Constants, usual_cost: float | None = USUAL_COST
) -> dict[str, float]:
    """Return how well each policy can agree with the calibration rows of random writes.

    Returns `policy_name` -> the root mean square of ln(predicted / measured), each with the
    constants that suit it best.
    """
    rows = random_rows(calibration_rows(drive))
    return {
        policy_name(one.policy, one.apart): sqrt(squares(one, rows) / len(rows))
        for one in fit_space(drive, rows, constants, POLICIES, usual_cost)
    }


def fit_space(
    drive: Drive,
    rows: Sequence[Observation],
    start: Constants,
    policies: Iterable[tuple[str, bool]],
    usual_cost: float | None = USUAL_COST,
) -> list[Constants]:
    """Fit physical capacity and relocation cost for each policy; the best comes first."""
    fits = [
        _fit_space(drive, replace(start, policy=policy, apart=apart), rows, usual_cost)
        for policy, apart in policies
    ]
    return [constants for _, constants in sorted(fits, key=lambda one: one[0])]


def squares(constants: Constants, rows: Iterable[Observation]) -> float:
    """Return the sum of squared log ratios."""
    return sum(log_ratio(constants, row) ** 2 for row in rows)


def random_rows(rows: Iterable[Observation]) -> list[Observation]:
    """Return the rows to which physical capacity, relocation cost and policy are fitted."""
    with_workloads = ((row, workload_of(row.phase)) for row in rows)
    return [
        row
        for row, workload in with_workloads
        if workload is not None and workload.kind not in ("sequential", "zones")
    ]


def zone_rows(rows: Iterable[Observation]) -> list[Observation]:
    """Return the rows of zones: only they depend on the size of a line."""
    return [row for row in rows if _workload(row).kind == "zones"]


def leave_rows_out(
    drive: Drive, constants: Constants, usual_cost: float | None = USUAL_COST
) -> list[tuple[Observation, float]]:
    """Predict each calibration row of random writes from a fit to all others.

    Returns the row, and its prediction without it (Observation, float).
    """
    rows = [row for row in calibration_rows(drive) if _workload(row).kind != "zones"]
    outcomes = []
    for row in rows:
        if _workload(row).kind == "sequential":
            continue
        others = [other for other in rows if other is not row]
        found = fit(drive, others, [(constants.policy, constants.apart)], usual_cost)
        predicted = found and found.predict(row.phase, row.quantity, row.written)
        if predicted:
            outcomes.append((row, predicted))
    return outcomes


def _workload(row: Observation) -> Workload:
    workload = workload_of(row.phase)
    assert workload is not None
    return workload


def _limit(rows: Sequence[Observation]) -> float | None:
    rates = sorted(row.value for row in rows if row.quantity == RATE)
    at_limit = [rate for rate in rates if rate >= rates[-1] * (1 - SAME_RATE)]
    return median(at_limit) if len(at_limit) >= LEAST_AT_LIMIT else None


def log_ratio(constants: Constants, row: Observation) -> float:
    """Return ln(predicted / measured)."""
    predicted = constants.predict(row.phase, row.quantity, row.written)
    assert predicted is not None
    return log(predicted / row.value)


def _fit_space(
    drive: Drive, start: Constants, rows: Sequence[Observation], usual_cost: float | None
) -> tuple[float, Constants]:
    """Fit physical capacity and relocation cost; return the sum of squares with them."""

    def with_values(values: Sequence[float]) -> Constants:
        return replace(
            start, physical_gib=drive.capacity_gib * values[0], relocation_cost=values[1]
        )

    def residuals(values: Sequence[float]) -> list[float]:
        usual = COST_WEIGHT * log(values[1] / usual_cost) if usual_cost else 0.0
        return [*(log_ratio(with_values(values), row) for row in rows), usual]

    bounds = tuple(zip(PHYSICAL, COST, strict=True))
    fits = [
        optimizer().least_squares(
            residuals, (physical, USUAL_COST), bounds=bounds, diff_step=0.01, xtol=1e-4, ftol=1e-5
        )
        for physical in STARTS
    ]
    best = min(fits, key=lambda one: one.cost)
    return float(best.cost), with_values([float(value) for value in best.x])


def sizes_of_lines(constants: Constants, rows: Sequence[Observation]) -> list[Constants]:
    """Return the constants with each possible line, and the rate of long writes that suits it.

    `rows`: zones; without one the line stays.
    """
    if not rows:
        return [constants]
    largest = max(rows, key=lambda row: _workload(row).zone_gib)

    def with_line(line_gib: float) -> Constants:
        sized = replace(constants, line_gib=line_gib)
        phase = largest.phase
        excess = sized.amplification(_workload(largest), phase.capacity_gib, largest.written) - 1
        moved_s = excess * sized.relocation_cost / sized.sequential_mib_s
        base_s = max(1 / largest.value - moved_s, 1 / sized.sequential_mib_s)
        return replace(sized, zone_mib_s=1 / base_s)

    # Write amplification has steps where zones and lines are commensurate: no descent.
    spare_gib = constants.physical_gib - largest.phase.capacity_gib
    possible = [size for size in LINES_GIB if size * LEAST_SPARE_LINES <= spare_gib]
    return [with_line(size) for size in possible or LINES_GIB[:1]]
