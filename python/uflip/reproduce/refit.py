"""Cross-validation of Table 3: devices fitted again without some cells, and scored on these.

Most constants of the seven devices were set until their row of the table came out, so that the row
is weak evidence about the devices. Here constants that were fitted to a held-out cell start from a
value that does not depend on the cell, and are searched with the remaining cells. A constant that
these do not constrain stays at its start.

**Source**: uFLIP (CIDR 2009), Table 3; cross-validation (Stone 1974), holding out a cell at a time.
**Faithful**: a constant that names a held-out cell in its `[sources]` does not depend on it; cells
are compared by the rules of `uflip.reproduce.table3`.
**Simplified**: choices among mechanisms (`chosen`, `inferred`) stay: the sources name the reasons.
Only the micro-benchmarks that the cells need are run, in a plan of their own, whose targets lie
elsewhere than in the whole one. Coordinates are searched one by one, by ever smaller factors,
within a budget.
**Ambiguous**: the start value of a constant without evidence. Without a *cell*: the median of the
other devices of the table. Without a *column*, for all devices: the value of data sheets, or the
mechanism's absence.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from math import inf, log
from statistics import median_low
from typing import Any

from uflip.data.device import DeviceInfo
from uflip.device.cache import switched_off
from uflip.errors import UsageError, unknown_name
from uflip.executors import OnStep, ignore, on_all
from uflip.profiles import profile_sources
from uflip.reproduce import null_models, table3
from uflip.reproduce.simulated_device import device_url
from uflip.reproduce.uflip_table3 import benchmark
from uflip.results.summary_document import key_row_of
from uflip.table import Table

Number = int | float
Constants = Mapping[str, Number]
Measure = Callable[[Constants, Sequence[str]], Mapping[str, table3.Cell] | None]
"""Makes the device with some constants changed and returns the cells of some columns; None if
there is no such device."""

LEAVE_OUT_UNITS = ("cell", "column")
FACTORS = (4.0, 2.0, 1.4, 1.15)
BUDGET = 40
"""Number of devices that one search makes."""

RUNS = {
    "Pause": ("pause",),
    "Locality": ("locality",),
    "Partitions": ("partitioning",),
    **dict.fromkeys(("Reverse", "In-place", "Large Incr"), ("order",)),
}
"""Column -> the micro-benchmarks that it needs, besides the baselines."""

UNFITTED_VALUES: Constants = {
    # Data sheets of 8 Gbit SLC NAND of 2008, and of interfaces.
    "program_ns": 200_000, "program_high_ns": 800_000, "channel_bytes_per_s": 40_000_000,
    "link_bytes_per_s": 100_000_000, "unit_bytes": 1 << 20,
    # One of each, or none.
    "command_read_ns": 0, "command_write_ns": 0, "seek_read_ns": 0, "relocate_ns": 0,
    "banks": 1, "streams": 1, "resumed_streams": 1, "merges_at_once": 1, "free_clusters": 0,
    "switch_map_pages": 0, "log_map_pages": 0, "open_map_pages": 0, "reads_per_step": 0,
    "log_clusters": 1, "log_units": 1, "log_members": 0, "small_log_clusters": 0,
    "backward_clusters": 0, "rewrites": 0, "open_units": 1,
}  # fmt: skip
"""Values of constants without evidence from any column."""


@dataclass(frozen=True)
class Fold:
    """Held-out cells, and their values after the search."""

    held_out: tuple[str, ...]  #: Columns.
    #: Key -> (value of the profile, start of the search, end of the search).
    constants: dict[str, tuple[Number, Number, Number]]
    #: The held-out cells, measured on the device that was found; empty without one.
    cells: tuple[table3.Cell, ...]
    devices: int  #: Number of devices that were made.


def published_row(profile: str, where: str = "--refit") -> table3.Published:
    """Return the row of a device."""
    rows = {row.profile: row for row in table3.TABLE}
    if profile not in rows:
        raise unknown_name("device of Table 3", profile, rows, where=where)
    return rows[profile]


def check_columns(columns: Iterable[str]) -> tuple[str, ...]:
    """Return columns by their names in the table or in its ids.

    Examples
    --------
    >>> check_columns(["in_place", "RW"])
    ('In-place', 'RW')
    """
    by_id = {one_id: column for column, one_id in table3.IDS.items()}
    names = []
    for name in columns:
        column = by_id.get(name, name)
        if column not in table3.COLUMNS:
            raise unknown_name("column", name, tuple(by_id), where="--without")
        names.append(column)
    return tuple(names)


def fitted_keys(profile: str, values: Constants, columns: Iterable[str]) -> list[str]:
    """Return the numeric keys of a profile that were fitted to any of the columns."""
    ids = [f"uflip/table3/{profile}/{table3.IDS[column]}" for column in columns]
    return [
        key
        for key, source in profile_sources(profile).items()
        if source.kind == "fitted"
        and key in values
        and any(fnmatchcase(value_id, pattern) for pattern in source.values for value_id in ids)
    ]


def start_values(
    keys: Iterable[str], profile_values: Constants, others: Sequence[Constants], leave: str
) -> dict[str, Number]:
    """Return the start value of each constant, independent of the fitted one.

    Examples
    --------
    >>> start_values(["streams"], {"streams": 8}, [{"streams": 4}, {"streams": 4}, {}], "cell")
    {'streams': 4}
    >>> start_values(["streams"], {"streams": 8}, [{"streams": 4}], "column")
    {'streams': 1}
    """
    starts: dict[str, Number] = {}
    for key in keys:
        fitted_elsewhere = [other[key] for other in others if key in other]
        if leave == "cell" and fitted_elsewhere:
            starts[key] = median_low(fitted_elsewhere)
        else:
            starts[key] = UNFITTED_VALUES.get(key, profile_values[key])
    return starts


def miss(cell: table3.Cell) -> float:
    """Return the distance of a cell from the printed one: 0 if it agrees, else a logarithm."""
    if cell.within:
        return 0.0
    if cell.deviation is None or cell.deviation <= -1:
        return 2.0
    return max(0.05, abs(log(1 + cell.deviation)))


def search(
    start: Constants, free: Sequence[str], columns: Sequence[str], measure: Measure
) -> tuple[dict[str, Number], int]:
    """Search the free constants, one by one, for the least total miss of the columns."""

    def loss(constants: Constants) -> float:
        cells = measure(constants, columns)
        return inf if cells is None else sum(miss(cells[column]) for column in columns)

    return minimise(start, free, loss) if free and columns else (dict(start), 0)


def minimise(
    start: Constants,
    free: Sequence[str],
    loss: Callable[[Constants], float],
    factors: Sequence[float] = FACTORS,
    budget: int = BUDGET,
) -> tuple[dict[str, Number], int]:
    """Search the free constants, one by one, by ever smaller factors, for the least loss.

    Returns the constants, and how often the loss was calculated.
    """
    best, devices, least = dict(start), 1, loss(start)
    for factor in factors:
        improved = True
        while improved:
            improved = False
            for key in free:
                for value in _steps(key, best[key], factor):
                    if devices >= budget or least == 0:
                        return best, devices
                    tried, devices = best | {key: value}, devices + 1
                    if (missed := loss(tried)) < least:
                        best, least, improved = tried, missed, True
                        break
    return best, devices


def _steps(key: str, value: Number, factor: float) -> tuple[Number, ...]:
    """Return a step up and one down; integers stay integers, and leave zero by 1, or by 100 µs."""
    if value == 0:
        return (100_000 if key.endswith("_ns") else 1,)
    up, down = value * factor, value / factor
    if isinstance(value, int):
        return (max(round(up), value + 1), min(round(down), value - 1))
    return (up, down)


def folds(
    profile: str,
    groups: Sequence[tuple[str, ...]],
    leave: str,
    values: Mapping[str, Constants],
    on_step: OnStep = ignore,
) -> list[Fold]:
    """Hold out each of several groups of columns, several groups in parallel; see `fold`."""
    hold_out = partial(fold, profile, leave=leave, values=values, measure=RefitMeasurer(profile))
    return on_all(hold_out, groups, on_step, ", ".join)


def fold(
    profile: str,
    held_out: tuple[str, ...],
    leave: str,
    values: Mapping[str, Constants],
    measure: Measure,
) -> Fold:
    """Hold columns out, refit their constants with the other columns, and score the result.

    `held_out`: columns of its row. `leave`: one of `LEAVE_OUT_UNITS`:
    whether other devices may use the columns. `values`: key -> value, for every device of the
    table.
    """
    profile_values = values[profile]
    keys = fitted_keys(profile, profile_values, held_out)
    others = [values[name] for name in values if name != profile]
    start = start_values(keys, {key: profile_values[key] for key in keys}, others, leave)
    remaining = [column for column in table3.COLUMNS if column not in held_out]
    constrained = [
        column
        for column in remaining
        if set(keys) & set(fitted_keys(profile, profile_values, [column]))
    ]
    free = [
        key
        for key in keys
        if any(key in fitted_keys(profile, profile_values, [constant]) for constant in constrained)
    ]
    refitted, devices = search(start, free, constrained, measure)
    cells = measure(refitted, held_out)
    return Fold(
        held_out,
        {key: (profile_values[key], start[key], refitted[key]) for key in keys},
        () if cells is None else tuple(cells[column] for column in held_out),
        devices + 1,
    )


@dataclass(frozen=True)
class RefitMeasurer:
    """Measures simulated devices; equal measurements are made once."""

    profile: str  #: The device.
    _cells: dict[tuple[Any, ...], Mapping[str, table3.Cell] | None] = field(default_factory=dict)

    def __call__(
        self, constants: Constants, columns: Sequence[str]
    ) -> Mapping[str, table3.Cell] | None:
        """Make the device with some constants changed; return cells of these columns and others."""
        runs = sorted({name for column in columns for name in RUNS.get(column, ())})
        key = (tuple(sorted(constants.items())), *runs)
        if key not in self._cells:
            url = device_url(self.profile, **constants)
            try:
                with switched_off():
                    document = benchmark(self.profile, ("baseline", *runs), url)
            except UsageError:
                self._cells[key] = None
            else:
                cells = table3.compare(published_row(self.profile), key_row_of(document))
                self._cells[key] = {cell.column: cell for cell in cells}
        return self._cells[key]


def values_of(info: DeviceInfo) -> Constants:
    """Return all numeric constants of a simulated device, by key."""
    return {
        key: value
        for part in info.profile_table.values()
        if isinstance(part, dict)
        for key, value in part.items()
        if isinstance(value, int | float)
    }


HEAD = ("held out", "printed", "refitted", "agrees", "widely", "constants: fitted, start, refitted")


def text(profile: str, leave: str, folds: Sequence[Fold]) -> str:
    """Format folds with their score."""
    rows: list[tuple[str, ...]] = []
    for fold in folds:
        constants = ", ".join(
            f"{key} {short(fitted)}, {short(start)}, {short(refitted)}"
            for key, (fitted, start, refitted) in fold.constants.items()
        )
        by_column = {cell.column: cell for cell in fold.cells}
        for column in fold.held_out:
            cell = by_column.get(column)
            columns = ("", "no such device", "NO", "NO") if cell is None else (
                cell.published, cell.ours, _yes(cell.within), _yes(cell.wide),
            )  # fmt: skip
            rows.append((column, *columns, constants or "none was fitted to it"))
    cells = [cell for fold in folds for cell in fold.cells]
    total = sum(len(fold.held_out) for fold in folds)
    score = (
        f"sim:{profile}, holding out a {leave}: {sum(cell.within for cell in cells)} of {total} "
        f"agree, {sum(cell.wide for cell in cells)} on the wide scale; "
        f"{sum(fold.devices for fold in folds)} devices were made"
    )
    held_out = {column for fold in folds for column in fold.held_out}
    nulls = ", ".join(
        f"{name} {null_models.score(profile, name, sorted(held_out))}"
        for name in null_models.NULL_MODELS
    )
    return f"{Table(HEAD, rows).text()}\n\n{score}\nwithout any simulator: {nulls} of {total}"


def short(value: Number) -> str:
    """Format a constant."""
    return f"{value:_}" if isinstance(value, int) else f"{value:g}"


def _yes(agrees: bool) -> str:
    return "yes" if agrees else "NO"
