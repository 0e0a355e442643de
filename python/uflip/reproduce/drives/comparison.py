"""`uflip reproduce drives`: every row of the tables beside the simulated drive, and null models.

**Source**: Haas, Lee, Bonnet, Leis, *SSD-iq* (PVLDB 2025): rates and write amplification.
**Faithful**: each phase is simulated for its length, on a drive of fitted constants.
**Simplified**: `line_device`, `drive_model`.
**Ambiguous**: `workload`. Phases whose writes are not known are printed without a prediction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING, NamedTuple

from uflip.executors import OnStep, on_all
from uflip.models import write_amplification as theory
from uflip.reproduce import figure
from uflip.reproduce.drives.drive_model import Constants
from uflip.reproduce.drives.fit import (
    POLICIES,
    USUAL_COST,
    calibration_rows,
    fit,
    leave_rows_out,
    optimizer,
    policy_errors,
    policy_name,
)
from uflip.reproduce.drives.knees import LIMITS_US, Knee, find_knees
from uflip.reproduce.drives.loaded_response import (
    TOLERANCES,
    ResponseConstants,
    calibration_rates,
    fit_responses,
    stream_name,
)
from uflip.reproduce.drives.tables import (
    AMPLIFICATION,
    BUILT_IN,
    PERCENTS,
    RATE,
    Drive,
    LoadedResponse,
    Observation,
    Phase,
    read_drives,
)
from uflip.reproduce.drives.workload import workload_of
from uflip.reproduce.reproduction import FITTED, PREDICTION, Reproduction, ReproductionRow
from uflip.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TOLERANCE = 0.10
WRITES_PER_MIB = 256
"""Writes of 4 KiB in a MiB."""
NULL_LINE_PAGES = 4096
"""Pages of a block in the closed form, where more make no difference."""
UNITS = {RATE: "MiB/s", AMPLIFICATION: ""}


@dataclass(frozen=True)
class ComparedRow:
    """A row of a table, beside the model and two null models."""

    observation: Observation  #: The measured number.
    fitted: bool  #: Whether constants were fitted to it.
    predicted: float | None  #: By the simulated drive; None if the phase is not simulated.
    #: The same, from constants fitted without this row; only for fitted rows of random writes.
    without: float | None
    others: float | None  #: The mean of the other drives: rates relative to their sequential rates.
    #: The closed form of greedy collection under uniform writes, for every pattern.
    greedy: float | None

    def within(self, value: float | None) -> bool:
        """Return whether a prediction is within the tolerance."""
        return value is not None and abs(value / self.observation.value - 1) <= TOLERANCE


@dataclass(frozen=True)
class ComparedResponse:
    """A response time under load, beside the closed form and a null model."""

    response: LoadedResponse  #: The measured percentile.
    fitted: bool  #: Whether constants were fitted to it.
    predicted_us: float | None  #: By `loaded_response`; None without its calibration rows.
    others_us: float | None  #: The mean of the other drives at the same load.

    def within(self, value: float | None) -> bool:
        """Return whether a prediction is within the tolerance."""
        measured = self.response.response_us
        return value is not None and abs(value / measured - 1) <= TOLERANCES[self.response.percent]


@dataclass(frozen=True)
class SimulatedDrive:
    """A drive, its constants, and its rows."""

    name: str  #: The drive.
    capacity_gib: float  #: Its capacity [GiB].
    constants: Constants | None  #: None if too few of its rows are calibration rows.
    rows: tuple[ComparedRow, ...]  #: All rows of rates and write amplification.
    #: Victim policy and place of relocated pages -> root mean square error of the calibration rows
    #: of random writes.
    policies: dict[str, float]
    load: ResponseConstants | None  #: Its constants under load.
    responses: tuple[ComparedResponse, ...]  #: All response times under load.
    knees: tuple[Knee, ...] = ()  #: Offered rates at which writes begin to wait.
    unidentified: tuple[str, ...] = ()  #: What its rows do not tell, and the reason.


def compare_drives(on_step: OnStep, folder: Path | None = None) -> list[SimulatedDrive]:
    """Fit every drive of the tables and predict all its rows.

    `on_step`: called after each drive. `folder`: tables beside the built-in ones: more rows, and
    other drives.
    """
    drives = read_drives(*([BUILT_IN] if folder is None else [BUILT_IN, folder]))
    alone = on_all(partial(fit, usual_cost=None), drives)
    costs = dict(zip((drive.name for drive in drives), alone, strict=True))
    return on_all(partial(_compare, drives, costs), drives, on_step, lambda drive: drive.name)


def usual_cost(alone: Mapping[str, Constants | None], drive: str) -> float:
    """Return the cost of a relocated page that is usual among all drives but one."""
    costs = [one.relocation_cost for name, one in alone.items() if one and name != drive]
    return median(costs) if costs else USUAL_COST


def _compare(
    drives: Sequence[Drive], alone: Mapping[str, Constants | None], drive: Drive
) -> SimulatedDrive:
    """Compare a drive; constants that drives share are learned from the others."""
    usual = usual_cost(alone, drive.name)
    constants = fit(drive, usual_cost=usual)
    fitted = {id(row) for row in calibration_rows(drive)}
    without = {} if constants is None else {
        id(row): predicted for row, predicted in leave_rows_out(drive, constants, usual)
    }  # fmt: skip
    greedy = _GreedyAlone(drive)
    others = _MeanOfOthers(drives, drive)
    rows = tuple(
        ComparedRow(
            row,
            id(row) in fitted,
            None if constants is None else constants.predict(row.phase, row.quantity, row.written),
            without.get(id(row)),
            others.predict(row),
            greedy.predict(row),
        )
        for row in drive.observations
    )
    errors = {} if constants is None else policy_errors(drive, constants, usual)
    loaded = compare_responses(drives, drive)
    return SimulatedDrive(
        drive.name, drive.capacity_gib, constants, rows, errors, *loaded,
        (*unidentified_rates(drive, constants), *unidentified_responses(loaded.load)),
    )  # fmt: skip


LEAST_RANDOM_PHASES = 3
"""Fewer phases of random writes do not tell the cost of a relocated page from the spare space."""


def unidentified_rates(drive: Drive, constants: Constants | None) -> Iterator[str]:
    """Yield the constants that the rates of a drive do not show, with the reason."""
    phases = {row.phase: workload for row in calibration_rows(drive)
              if (workload := workload_of(row.phase))}  # fmt: skip
    kinds = [workload.kind for workload in phases.values()]
    is_random = len(kinds) - kinds.count("sequential") - kinds.count("zones")
    if constants is None:
        lacking = "random writes" if not is_random else "sequential writes or zones"
        yield f"all rates: no {lacking} among the calibration rows"
        return
    if "sequential" not in kinds:
        yield "sequential rate: no such row; it is that of the fastest zone"
    if "zones" not in kinds:
        yield "line, rate of long writes: no zones; they are the usual ones of other drives"
    if constants.limit_mib_s is not None:
        yield "spare space, cost, policy: a limit hides them"
    elif is_random < LEAST_RANDOM_PHASES:
        yield f"policy, cost apart from the spare space: {is_random} phases of random writes"


def unidentified_responses(load: ResponseConstants | None) -> Iterator[str]:
    """Yield the response times that the rows of a drive do not show."""
    if load is None:
        yield "response times: no p50 of the main stream's writes, or a single rate"
        return
    if load.read_us is None:
        yield "reads below saturation: no rows"
    if load.buffered_us is None:
        yield "writes below saturation: no rows"
    for main in (True, False):
        for what in ("read", "write"):
            lacking = [
                f"p{one:g}"
                for one in PERCENTS
                if stream_name(main, what, one) not in load.saturated_us
            ]
            if lacking:
                stream = "main stream" if main else "stream beside"
                yield f"{' and '.join(lacking)} of {what}s at saturation, {stream}: no rows"


class LoadedDrive(NamedTuple):
    """A drive under load: its constants, all rows of response times, and its knees."""

    load: ResponseConstants | None
    rows: tuple[ComparedResponse, ...]
    knees: tuple[Knee, ...]


def most_writes_per_s(drive: Drive) -> float:
    """Return the writes per second that a drive cannot exceed; infinite without uniform writes."""
    uniform = _uniform_rate(drive)
    return inf if uniform is None else uniform * WRITES_PER_MIB


def compare_responses(drives: Sequence[Drive], drive: Drive) -> LoadedDrive:
    """Fit the constants of a drive under load, and predict all its response times."""
    most_per_s = most_writes_per_s(drive)
    load = fit_responses(drive.responses, most_per_s)
    rates = calibration_rates(drive.responses, most_per_s)
    others: dict[tuple[int, float, str, float], list[float]] = {}
    for row in (row for other in drives if other is not drive for row in other.responses):
        others.setdefault(_load_of(row), []).append(row.response_us)
    responses = tuple(
        ComparedResponse(
            row,
            row.offered_per_s in rates,
            None if load is None else load.predict(*_load_of(row)),
            mean(others[_load_of(row)]) if _load_of(row) in others else None,
        )
        for row in drive.responses
        if row.percent in PERCENTS
    )
    return LoadedDrive(load, responses, tuple(find_knees(drive.responses, rates, load)))


def _load_of(row: LoadedResponse) -> tuple[int, float, str, float]:
    return row.offered_per_s, row.write_share, row.what, row.percent


def _uniform_rate(drive: Drive) -> float | None:
    uniform = [row.value for row in calibration_rows(drive) if row.phase.pattern == "uniform"]
    return median(uniform) if uniform else None


def _sequential_rate(drive: Drive) -> float | None:
    rates = [
        row.value for row in drive.observations
        if row.quantity == RATE and workload_of(row.phase) == _SEQUENTIAL
    ]  # fmt: skip
    zones = [row.value for row in drive.observations if _is_zone_rate(row)]
    return median(rates) if rates else max(zones, default=None)


def _is_zone_rate(row: Observation) -> bool:
    workload = workload_of(row.phase)
    return row.quantity == RATE and workload is not None and workload.kind == "zones"


_SEQUENTIAL = workload_of(Phase("sequential", "", 1))


class _MeanOfOthers:
    """Predicts the mean of the other drives in the same phase, relative to their capacity."""

    def __init__(self, drives: Iterable[Drive], drive: Drive) -> None:
        self._drive, self._own = drive, _sequential_rate(drive)
        self._values: dict[tuple[object, float, str], list[float]] = {}
        for other in drives:
            base = _sequential_rate(other)
            if other is drive or base is None:
                continue
            for row in other.observations:
                value = row.value / (base if row.quantity == RATE else 1)
                self._values.setdefault(_key(other, row), []).append(value)

    def predict(self, row: Observation) -> float | None:
        values = self._values.get(_key(self._drive, row))
        if not values or self._own is None:
            return None
        return mean(values) * (self._own if row.quantity == RATE else 1)


def _key(drive: Drive, row: Observation) -> tuple[object, float, str]:
    share = round(row.phase.capacity_gib / drive.capacity_gib, 1)
    workload = workload_of(row.phase)
    return (workload or (row.phase.pattern, row.phase.details), share, row.quantity)


class _GreedyAlone:
    """Predicts from one number, the physical capacity, which the uniform rate determines."""

    def __init__(self, drive: Drive) -> None:
        self._sequential = _sequential_rate(drive)
        uniform = _uniform_rate(drive)
        self._physical = None
        if uniform and self._sequential and uniform < self._sequential:
            target = self._sequential / uniform
            spare = optimizer().brentq(lambda one: self._amplify(one) - target, 0.001, 0.99)
            self._physical = drive.capacity_gib / (1 - spare)

    @staticmethod
    def _amplify(spare: float) -> float:
        return theory.greedy(spare_factor=spare, pages_per_block=NULL_LINE_PAGES)

    def predict(self, row: Observation) -> float | None:
        workload = workload_of(row.phase)
        if self._physical is None or self._sequential is None or workload is None:
            return None
        spare = 1 - row.phase.capacity_gib / self._physical
        ordered = workload.kind in ("sequential", "zones")
        if not ordered and not 0 < spare < 1:
            return None
        amplification = 1.0 if ordered else self._amplify(spare)
        return amplification if row.quantity == AMPLIFICATION else self._sequential / amplification


def reproduction_rows(drives: Sequence[SimulatedDrive]) -> list[ReproductionRow]:
    """Return the rows that have a prediction, as rows of a reproduction."""
    rows = [
        ReproductionRow(
            f"{drive.name}, {_what(row)}", UNITS[row.observation.quantity],
            row.observation.value, row.predicted, row.predicted / row.observation.value - 1,
            f"±{100 * TOLERANCE:g} %", row.within(row.predicted),
            FITTED if row.fitted else PREDICTION,
        )
        for drive in drives for row in drive.rows if row.predicted is not None
    ]  # fmt: skip
    responses = [
        ReproductionRow(
            f"{drive.name}, {_load_text(row.response)}", "us",
            row.response.response_us, row.predicted_us,
            row.predicted_us / row.response.response_us - 1,
            f"±{100 * TOLERANCES[row.response.percent]:g} %", row.within(row.predicted_us),
            FITTED if row.fitted else PREDICTION,
        )
        for drive in drives for row in drive.responses if row.predicted_us is not None
    ]  # fmt: skip
    return rows + responses


def _load_text(row: LoadedResponse) -> str:
    stream = f"{100 * row.write_share:g} % writes"
    return f"p{row.percent} of {row.what}s at {row.offered_per_s}/s, {stream}"


def _what(row: ComparedRow) -> str:
    phase = row.observation.phase
    details = f" {phase.details}" if phase.details else ""
    offered = f", {phase.offered_per_s}/s" if phase.offered_per_s else ""
    quantity = f", {AMPLIFICATION}" if row.observation.quantity == AMPLIFICATION else ""
    return f"{phase.pattern}{details} on {phase.capacity_gib:g} GiB{offered}{quantity}"


HEAD = ("drive and phase", "", "measured", "model", "deviation", "without", "others", "greedy")


def format_drives(drives: Sequence[SimulatedDrive]) -> str:
    """Return the constants, all rows, and the shares of rows within the tolerance."""
    parts = [_constants_table(drives).text(), _policy_table(drives).text()]
    for drive in drives:
        cells = [_cells(row) for row in drive.rows]
        parts.append(Table((drive.name, *HEAD[1:]), cells, align="llr").text())
    parts.append(_load_table(drives).text())
    for drive in drives:
        cells = [_response_cells(row) for row in drive.responses]
        if cells:
            head = (drive.name, "", "measured [us]", "model", "deviation", "others")
            parts.append(Table(head, cells, align="llr").text())
    parts += [_wait_table(drives).text(), _knee_table(drives).text()]
    lacking = [(drive.name, text) for drive in drives for text in drive.unidentified]
    if lacking:
        parts.append(Table(("drive", "not identified"), lacking, align="l").text())
    parts += [_scores(drives).text(), _response_scores(drives).text()]
    return "\n\n".join(parts)


def _constants_table(drives: Sequence[SimulatedDrive]) -> Table:
    head = (
        "drive", "sequential [MiB/s]", "physical [GiB]", "spare factor", "relocation cost",
        "line [GiB]", "long write [MiB/s]", "limit [MiB/s]", "policy", "relocated",
    )  # fmt: skip
    return Table(head, [_constants_cells(drive) for drive in drives], align="lrrrrrrrl")


def _policy_table(drives: Sequence[SimulatedDrive]) -> Table:
    """Return the evidence for a policy: the error of each, with constants that suit it best."""
    names = [policy_name(policy, apart) for policy, apart in POLICIES]
    cells = [
        (drive.name, *(f"{drive.policies[one]:.1%}" for one in names))
        for drive in drives if drive.policies
    ]  # fmt: skip
    return Table(("error of a policy", *names), cells, align="lr")


def _constants_cells(drive: SimulatedDrive) -> tuple[str, ...]:
    one = drive.constants
    if one is None:
        return (drive.name, *("–",) * 9)
    limit = "none" if one.limit_mib_s is None else f"{one.limit_mib_s:.0f}"
    return (
        drive.name, f"{one.sequential_mib_s:.0f}", f"{one.physical_gib:.0f}",
        f"{1 - drive.capacity_gib / one.physical_gib:.3f}", f"{one.relocation_cost:.2f}",
        f"{one.line_gib:.2f}", f"{one.zone_mib_s:.0f}", limit,
        one.policy, "apart" if one.apart else "mixed",
    )  # fmt: skip


def _cells(row: ComparedRow) -> tuple[str, ...]:
    measured = row.observation.value
    deviation = "" if row.predicted is None else f"{row.predicted / measured - 1:+.1%}"
    return (
        _what(row), "fitted" if row.fitted else "predicted", _number(measured),
        _number(row.predicted), deviation, _number(row.without), _number(row.others),
        _number(row.greedy),
    )  # fmt: skip


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f}" if value >= 100 else f"{value:.2f}"


def _load_table(drives: Sequence[SimulatedDrive]) -> Table:
    head = ("drive under load", "sustained writes/s", "read [us]", "blocked [us]")
    cells = [
        (
            drive.name, f"{one.sustained_per_s:.0f}", _time(one.read_us), f"{one.blocked_us:.0f}",
        )
        for drive in drives if (one := drive.load) is not None
    ]  # fmt: skip
    return Table(head, cells, align="lr")


def _time(time_us: float | None, digits: int = 0) -> str:
    return "–" if time_us is None else f"{time_us:.{digits}f}"


def _wait_table(drives: Sequence[SimulatedDrive]) -> Table:
    head = (
        "writes under load", "buffered [us]", "p99 [us]", "waits begin at [1/s]", "longest [us]",
        "growth", "shape", "pace",
    )  # fmt: skip
    return Table(
        head,
        [_wait_cells(drive.name, drive.load) for drive in drives if drive.load is not None],
        align="lr",
    )


def _wait_cells(name: str, load: ResponseConstants) -> tuple[str, ...]:
    waits = load.waits
    buffer = (name, _time(load.buffered_us, 1), f"{load.buffered_tail_us:.1f}")
    if waits.onset_per_s is None:
        return (*buffer, "saturation", *("–",) * 4)
    return (
        *buffer, f"{waits.onset_per_s:.0f}", f"{waits.longest_us:.0f}", f"{waits.growth:.2f}",
        f"{waits.shape}", f"{waits.pace:.2f}",
    )  # fmt: skip


def _knee_table(drives: Sequence[SimulatedDrive]) -> Table:
    head = ("knee of writes [1/s]", "", "", "measured between", "model", "deviation", "within 10 %")
    cells = [
        (
            drive.name, f"p{knee.percent} above {LIMITS_US[knee.percent]:g} us",
            "fitted" if knee.fitted else "predicted",
            f"{knee.below_per_s} and {knee.above_per_s}", f"{knee.predicted_per_s:.0f}",
            f"{knee.deviation:+.0%}", "yes" if knee.within else "NO",
        )
        for drive in drives for knee in drive.knees if knee.predicted_per_s is not None
    ]  # fmt: skip
    return Table(head, cells, align="lllrrrl")


def _response_cells(row: ComparedResponse) -> tuple[str, ...]:
    measured = row.response.response_us
    deviation = "" if row.predicted_us is None else f"{row.predicted_us / measured - 1:+.1%}"
    return (
        _load_text(row.response), "fitted" if row.fitted else "predicted", _number(measured),
        _number(row.predicted_us), deviation, _number(row.others_us),
    )  # fmt: skip


def _response_scores(drives: Sequence[SimulatedDrive]) -> Table:
    """Return the shares of response times within their tolerances."""
    rows = [row for drive in drives for row in drive.responses if row.predicted_us is not None]
    cells = []
    for fitted in (False, True):
        for percent, share in TOLERANCES.items():
            those = [row for row in rows if (row.fitted, row.response.percent) == (fitted, percent)]
            if not those:
                continue
            agree = [
                sum(row.within(value) for row, value in pairs)
                for pairs in (
                    [(row, row.predicted_us) for row in those],
                    [(row, row.others_us) for row in those],
                )
            ]
            name = f"{'fitted' if fitted else 'predicted'}, p{percent} within {100 * share:g} %"
            shares = (f"{100 * count / len(those):.0f} %" for count in agree)
            cells.append((name, str(len(those)), *shares))
    return Table(("response times", "rows", "model", "others"), cells, align="lr")


def _scores(drives: Sequence[SimulatedDrive]) -> Table:
    """Return the shares of rows within the tolerance, for the model and the null models."""
    rows = [row for drive in drives for row in drive.rows]
    groups = {
        "predicted": [row for row in rows if not row.fitted and row.predicted is not None],
        "fitted": [row for row in rows if row.fitted],
        "fitted, each left out": [row for row in rows if row.without is not None],
    }
    cells = []
    for name, group in groups.items():
        for quantity in (RATE, AMPLIFICATION):
            those = [row for row in group if row.observation.quantity == quantity]
            if those:
                ours = [row.without if "left" in name else row.predicted for row in those]
                cells.append((
                    f"{name}, {quantity}", str(len(those)), _share(those, ours),
                    _share(those, [row.others for row in those]),
                    _share(those, [row.greedy for row in those]),
                ))  # fmt: skip
    head = (f"within {100 * TOLERANCE:g} %", "rows", "model", "others", "greedy")
    return Table(head, cells, align="lr")


def _share(rows: Sequence[ComparedRow], values: Sequence[float | None]) -> str:
    agree = sum(row.within(value) for row, value in zip(rows, values, strict=True))
    return f"{100 * agree / len(rows):.0f} %"


def draw(drives: Sequence[SimulatedDrive]) -> Figure:
    """Draw predicted over measured rates, relative to the sequential rate."""
    sheet, [axis] = figure.panels(height=5.0)
    axis.plot([0.1, 1], [0.1, 1], **figure.EQUATION)
    for drive in drives:
        if drive.constants is None:
            continue
        pairs = [
            (row.observation.value, row.predicted) for row in drive.rows
            if row.observation.quantity == RATE and row.predicted is not None
        ]  # fmt: skip
        measured, predicted = zip(*pairs, strict=True)
        base = drive.constants.sequential_mib_s
        axis.plot(
            [value / base for value in measured], [value / base for value in predicted],
            linestyle="none", marker="o", markersize=4, label=drive.name,
        )  # fmt: skip
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("measured rate, relative to sequential writes")
    axis.set_ylabel("simulated rate, relative to sequential writes")
    figure.title(axis, "Server drives: measured and simulated", "fitted and predicted rows")
    axis.legend(loc="upper left")
    return sheet


STEPS = 7
REPRODUCTION = Reproduction(
    id="drives",
    title="rates, write amplification and response times of seven server drives",
    source="Haas et al., SSD-iq (PVLDB 2025), its public measurements",
    steps=STEPS,
    measure=compare_drives,
    rows=reproduction_rows,
    draw=draw,
    text=format_drives,
)
