"""The inference from a table of measurements, of a device that is not here.

The constants of `uflip.reproduce.drives` are fitted to the calibration rates, and to every write
amplification of random writes; other rates check them. Constants that fit hardly worse than the
best ones make the intervals. Rates of whole phases show how much flash collection has and what a
relocated page costs. A policy needs counted write amplification: the cost of a relocated page makes
the rates of any policy fit. No rate shows a page, die or channel.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import log, sqrt
from pathlib import Path
from statistics import median

import numpy as np

from uflip.data.device import TwinErrors
from uflip.inference.estimate import Estimate
from uflip.inference.twin import errors_table
from uflip.profiles import with_twin_errors
from uflip.reproduce.drives.comparison import (
    ComparedRow,
    SimulatedDrive,
    compare_responses,
    most_writes_per_s,
    unidentified_rates,
)
from uflip.reproduce.drives.drive_model import Constants
from uflip.reproduce.drives.drive_profile import drive_profile
from uflip.reproduce.drives.fit import (
    COST,
    LINES_GIB,
    PHYSICAL,
    POLICIES,
    calibration_rows,
    fit,
    fit_space,
    log_ratio,
    policy_name,
    random_rows,
    sizes_of_lines,
    squares,
    zone_rows,
)
from uflip.reproduce.drives.loaded_response import calibration_rates, fit_responses
from uflip.reproduce.drives.single_table import read_table
from uflip.reproduce.drives.tables import AMPLIFICATION, Drive, Observation

RATES, WEAR, ZONES, RESPONSES = "rates", "write amplification", "zones", "response times"
ALL_POLICIES = (
    *POLICIES, ("cyclic", True), ("cost_benefit", False), ("d_choices:4", False), ("random", True),
    ("random", False),
)  # fmt: skip
# Errors are root mean squares of log ratios. Constants fit as well as the best ones if their error
# is larger by less than the first. A policy is excluded if it misses the write amplification of a
# row by more than the best one does at its worst, and by the second. No family fits if the error of
# the fitted rows is above the third, or the median of the others above the fourth.
MODEL_ERROR, POLICY_MARGIN, MISFIT, MISFIT_OTHERS = 0.035, 0.05, 0.1, 0.25
LEAST_WORN_PHASES = 3
"""Fewer phases of counted writes agree with several policies, each with its own spare space."""
# Steps of the searched intervals.
STEP, COSTS = 1.01, tuple(float(cost) for cost in np.geomspace(*COST, 24))
COST_STEP = COSTS[1] / COSTS[0]
GIB = 1 << 30

NOT_IN_RATES = "rates of whole phases are those of all dies together"
NOT_MEASURED = "no row measures it: `uflip infer DEVICE` has a probe for it"
HIDDEN = {
    NOT_IN_RATES: (
        "page_bytes", "mapping_unit_bytes", "dies", "channels", "allocator", "pages_per_block",
        "program_ns", "erase_ns", "channel_bytes_per_s", "link_bytes_per_s",
    ),
    NOT_MEASURED: (
        "command_read_ns", "command_write_ns", "read_ns", "page_kinds", "read_middle_ns",
        "read_high_ns", "map_cache_range_bytes", "slc_cache_bytes", "slc_program_ns",
        "suspends_programs", "program_suspend_ns", "write_cache_bytes", "flush",
        "write_cache_drain_bytes_per_s",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class TableInference:
    """The result of an inference from a table."""

    drive: SimulatedDrive  #: The constants, and every row beside the model.
    estimates: tuple[Estimate, ...]  #: All properties, also those that are not identified.
    why_no_twin: str = ""  #: Why there is no twin.

    def estimate(self, key: str) -> Estimate:
        """Return the estimate of a property."""
        return next(each for each in self.estimates if each.key == key)

    def twin_text(self, table: str) -> str:
        """Return the twin as TOML; its error is unknown until `uflip infer --check`."""
        errors = errors_table(TwinErrors(self.drive.name))
        return with_twin_errors(drive_profile(self.drive, table), errors)

    def rows(self) -> "tuple[RowDocument, ...]":
        """Return the rows beside the model."""
        return tuple(
            RowDocument(
                row.observation.phase.pattern, row.observation.phase.details,
                row.observation.phase.capacity_gib, row.observation.quantity,
                row.observation.value, row.predicted, row.fitted,
            )
            for row in self.drive.rows
        )  # fmt: skip


@dataclass(frozen=True)
class RowDocument:
    """A row beside the model, as plain data: rates [MiB/s], write amplification."""

    pattern: str
    details: str
    capacity_gib: float
    quantity: str
    measured: float
    twin: float | None  #: None if the phase is not simulated.
    fitted: bool  #: Whether constants were fitted to it; else it checks them.


@dataclass(frozen=True)
class TableDocument:
    """An inference from a table as plain data: `uflip infer --observations FILE --json`."""

    observations: str  #: The table.
    drive: str
    properties: tuple[Estimate, ...]
    rows: tuple[RowDocument, ...]
    written_to: str | None  #: The file of the twin.
    why_no_twin: str


def infer_table(path: Path) -> TableInference:
    """Infer the properties of the drive of a table, CSV or JSON."""
    drive = read_table(path)
    worn = random_rows(row for row in drive.observations if row.quantity == AMPLIFICATION)
    calibration = calibration_rows(drive)
    fitted = [*calibration, *worn]
    constants = fit(drive, fitted, ALL_POLICIES)
    rows = tuple(
        ComparedRow(
            row, row in fitted,
            None if constants is None else constants.predict(row.phase, row.quantity, row.written),
            None, None, None,
        )
        for row in drive.observations
    )  # fmt: skip
    simulated = SimulatedDrive(
        drive.name, drive.capacity_gib, constants, rows, {}, *compare_responses([drive], drive)
    )
    found = list(_responses(drive, simulated))
    found += [Estimate.absent(key, "", why) for why, keys in HIDDEN.items() for key in keys]
    why = _misfit(rows) if constants else next(iter(unidentified_rates(drive, constants)))
    if why or constants is None:
        keys = ("spare_factor", "gc", "separate_streams", "relocation_cost", "superblock_bytes")
        found += [Estimate.absent(key, RATES, why) for key in (*keys, "ftl")]
        return TableInference(simulated, tuple(found), why)
    found += _space(drive, constants, [*random_rows(calibration), *worn])
    found += _policy(drive, constants, worn)
    found.append(_line(constants, zone_rows(fitted)))
    return TableInference(simulated, tuple(found))


def _misfit(rows: Sequence[ComparedRow]) -> str:
    """Return why no family fits; empty if one does."""
    fitted, others = (
        [
            log(row.predicted / row.observation.value)
            for row in rows
            if row.fitted == is_fitted and row.predicted is not None
        ]
        for is_fitted in (True, False)
    )
    why = "no known family fits: the best model misses"
    if (error := sqrt(float(np.mean(np.square(fitted))))) > MISFIT:
        return f"{why} the fitted rows by {error:.0%}"
    if others and (error := median(map(abs, others))) > MISFIT_OTHERS:
        return f"{why} half of the other rows by {error:.0%}"
    return ""


def _error(one: Constants, rows: Sequence[Observation]) -> float:
    return sqrt(squares(one, rows) / len(rows))


def _space(drive: Drive, best: Constants, rows: Sequence[Observation]) -> Iterator[Estimate]:
    """Yield spare space, and the cost of a relocated page."""
    plausible = _plausible(drive, best, rows)
    spares = [1 - drive.capacity_gib / one.physical_gib for one in plausible]
    bounds = [1 - 1 / physical for physical in PHYSICAL]
    if max(spares) > bounds[1] - 0.01 or min(spares) < bounds[0] + 0.005:
        why = f"the rows allow more than the searched {bounds[0]:.2f} to {bounds[1]:.2f}"
        yield Estimate.absent("spare_factor", RATES, why)
    else:
        value = 1 - drive.capacity_gib / best.physical_gib
        yield Estimate("spare_factor", value, min(spares), max(spares), RATES)
    costs = [one.relocation_cost for one in plausible]
    low, high = max(min(costs) / COST_STEP, COST[0]), min(max(costs) * COST_STEP, COST[1])
    if (low, high) == COST:
        why = f"the rows allow all of the searched {COST[0]:g} to {COST[1]:g}"
        yield Estimate.absent("relocation_cost", RATES, why)
    else:
        value, low, high = (round(cost, 3) for cost in (best.relocation_cost, low, high))
        yield Estimate("relocation_cost", value, low, high, RATES)


def _plausible(drive: Drive, best: Constants, rows: Sequence[Observation]) -> list[Constants]:
    """Return the constants of all policies that fit hardly worse than the best ones."""
    fits = [best, *fit_space(drive, rows, best, ALL_POLICIES)]
    limit = min(_error(one, rows) for one in fits) + MODEL_ERROR
    found = [one for one in fits if _error(one, rows) <= limit]
    low, high = (drive.capacity_gib * bound for bound in PHYSICAL)
    for one in found[:]:
        for step in (STEP, 1 / STEP):
            physical, near = one.physical_gib * step, [one]
            while near and low < physical < high:
                others = [
                    replace(one, physical_gib=physical, relocation_cost=cost) for cost in COSTS
                ]
                near = [other for other in others if _error(other, rows) <= limit]
                found += near
                physical *= step
            # The end of the interval is the first value that fits worse.
            found.append(replace(one, physical_gib=min(max(physical, low), high)))
    return found


def _policy(drive: Drive, best: Constants, worn: Sequence[Observation]) -> Iterator[Estimate]:
    """Yield the family, victim policy and place of relocated pages, if counted writes show them."""
    keys = ("gc", "separate_streams")
    if (phases := len({row.phase for row in worn})) < LEAST_WORN_PHASES:
        why = f"{phases} phases of random writes have a write amplification, of {LEAST_WORN_PHASES}"
        yield from (Estimate.absent(key, WEAR, why) for key in (*keys, "ftl"))
        return
    yield Estimate("ftl", "page_map", probe=WEAR)
    fits = fit_space(drive, worn, best, ALL_POLICIES, None)
    errors = [max(abs(log_ratio(one, row)) for row in worn) for one in fits]
    limit = min(errors) + POLICY_MARGIN
    plausible = [one for one, error in zip(fits, errors, strict=True) if error <= limit]
    names = ", ".join(policy_name(one.policy, one.apart) for one in plausible)
    why = f"these miss no row by {POLICY_MARGIN:.0%} more than the best one: {names}"
    policies = {one.policy.partition(":")[0] for one in plausible}
    places = {"yes" if one.apart else "no" for one in plausible}
    for key, values in zip(keys, (policies, places), strict=True):
        if len(values) > 1:
            yield Estimate.absent(key, WEAR, why)
        else:
            yield Estimate(key, values.pop(), probe=WEAR)


def _line(best: Constants, zones: Sequence[Observation]) -> Estimate:
    """Return the superblock: the line that zones show, between its neighbours of the grid."""
    if not zones:
        return Estimate.absent("superblock_bytes", ZONES, "no zones among the calibration rows")
    sizes = sizes_of_lines(best, zones)
    errors = [_error(one, zones) for one in sizes]
    limit = min(errors) + MODEL_ERROR
    lines = [one.line_gib for one, error in zip(sizes, errors, strict=True) if error <= limit]
    if min(lines) == LINES_GIB[0] or max(lines) == sizes[-1].line_gib:
        why = f"the rows allow lines beyond the searched ones, up to {sizes[-1].line_gib:g} GiB"
        return Estimate.absent("superblock_bytes", ZONES, why)
    low, high = LINES_GIB.index(min(lines)) - 1, LINES_GIB.index(max(lines)) + 1
    value, low_bytes, high_bytes = (
        round(size * GIB) for size in (best.line_gib, LINES_GIB[low], LINES_GIB[high])
    )
    return Estimate("superblock_bytes", value, low_bytes, high_bytes, ZONES, "a line of zones")


def _responses(drive: Drive, simulated: SimulatedDrive) -> Iterator[Estimate]:
    """Yield the times of single I/Os; the interval is that of fits without one offered load."""
    most = most_writes_per_s(drive)
    others = [
        fit_responses([row for row in drive.responses if row.offered_per_s != rate], most)
        for rate in calibration_rates(drive.responses, most)
    ]
    for key, name in (
        ("command_read_latency_ns", "read_us"),
        ("command_write_latency_ns", "buffered_us"),
    ):
        value = getattr(simulated.load, name, None)
        times = [time for one in others if (time := getattr(one, name, None)) is not None]
        if value is None or len(times) < 2:
            yield Estimate.absent(key, RESPONSES, "too few response times below saturation")
            continue
        low, high = min(value, *times), max(value, *times)
        yield Estimate(key, 1e3 * value, 1e3 * low, 1e3 * high, RESPONSES)
