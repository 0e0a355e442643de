"""A reproduction: measures, compares with the paper and draws; its rows and their criteria.

A row has a published value beside the simulated one. `RULES` has a tolerance for each kind of row.
A row may have a wider one with a printed reason. A statement in words has a numeric criterion: the
same object is checked and printed.

A value is *fitted* if a constant of the device was fitted to it, chosen for it or inferred from it,
or to a value from which it follows (`Value.determined_by`); it is *predicted* otherwise. The class
follows from the `[sources]` of the profile and from `SETTINGS` below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from uflip.executors import OnStep, ignore
from uflip.profiles import ConstantSource, profile_sources
from uflip.reproduce.published import PUBLISHED, with_determining_values

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Criterion:
    """A condition and its printed text."""

    text: str  #: The printed text.
    holds: Callable[[float], bool]  #: Returns whether a number satisfies it.


def below(limit: float) -> Criterion:
    """Return the criterion: less than a limit.

    >>> below(1.5).text, below(1.5).holds(1.5)
    ('below 1.5', False)
    """
    return Criterion(f"below {limit:g}", lambda value: value < limit)


def above(limit: float) -> Criterion:
    """Return the criterion: more than a limit."""
    return Criterion(f"above {limit:g}", lambda value: value > limit)


def at_least(limit: float) -> Criterion:
    """Return the criterion: a limit or more."""
    return Criterion(f"at least {limit:g}", lambda value: value >= limit)


def between(low: float, high: float) -> Criterion:
    """Return the criterion: within a range, ends included."""
    return Criterion(f"{low:g} to {high:g}", lambda value: low <= value <= high)


def same(share: float) -> Criterion:
    """Return the criterion: a ratio of one within a tolerance."""
    return Criterion(f"1 ±{100 * share:g} %", lambda value: abs(value - 1) <= share)


PREDICTION, FITTED = "prediction", "fitted"

SETTINGS: Mapping[str, Mapping[str, ConstantSource]] = {
    "ofc": {
        "outstanding requests": ConstantSource(
            "fitted", "of the traffic generator; five cannot carry the writes of a clean device",
            ("ofc/random_reads", "ofc/clean_writes"),
        ),
        "bit errors of devices A, X and Y": ConstantSource(
            "fitted", "the law to half of the pages; the spread is assumed",
            ("ofc/fig1/better", "ofc/fig4/half"),
        ),
    },
    "ofc-pipelined": {
        "outstanding requests": ConstantSource(
            "fitted", "of the traffic generator", ("ofc/random_reads",),
        ),
    },
    "fast-1gb?compat=flashsim2010": {
        "compat": ConstantSource(
            "chosen", "of two readings of what they ran, the one with which the peaks come out",
            ("ms/fig4/zero", "ms/fig4/full", "ms/fig4/n_valid", "ms/fig4/n_data"),
        ),
    },
    "dfc": {
        "spread between LUNs": ConstantSource(
            "chosen", "3 % of the times of cells, assumed",
            ("oc/fig3/writes_spread", "oc/fig3/reads_spread"),
        ),
        "reads that all take the same": ConstantSource(
            "chosen", "the simulator has no others", ("oc/fig2/stable",),
        ),
        "programs that do not wear": ConstantSource(
            "chosen", "the simulator has no others",
            ("oc/fig4/write_time", "oc/fig4/failed_writes"),
        ),
    },
}  # fmt: skip
"""Settings outside of profiles that were chosen with published values in view, by device."""


def fitted_by(value_id: str, device: str | None = None) -> tuple[str, ...]:
    """Return the constants that were set with a published value in view.

    `value_id`: one of `PUBLISHED`. `device`: the profile, with `?key=value&...` for changed keys: a
    changed key is not the fitted one. By default the device of the value.

    >>> fitted_by("ofc/raw_reads")
    ('bus_bytes_per_s',)
    >>> fitted_by("ofc/raw_reads", "ofc?bus_bytes_per_s=100000000"), fitted_by("ofc/raw_writes")
    ((), ())
    """
    device = PUBLISHED[value_id].device if device is None else device
    profile, _, overrides = device.partition("?")
    changed = {pair.partition("=")[0] for pair in overrides.split("&")}
    sources = {
        **{key: one for key, one in profile_sources(profile).items() if key not in changed},
        **SETTINGS.get(profile, {}),
        **SETTINGS.get(device, {}),
    }
    value_ids = with_determining_values(value_id)
    return tuple(key for key, source in sources.items() if _uses(source, value_ids))


def kind_of(value_id: str, device: str | None = None) -> str:
    """Return whether a device's result for a published value is a `PREDICTION`, or `FITTED`."""
    return FITTED if fitted_by(value_id, device) else PREDICTION


def free_constants(profile: str) -> tuple[str, ...]:
    """Return the keys of a profile that were set with published values in view."""
    return tuple(key for key, source in profile_sources(profile).items() if source.values)


def _uses(source: ConstantSource, value_ids: set[str]) -> bool:
    return any(fnmatchcase(value, pattern) for pattern in source.values for value in value_ids)


RULES = {"prediction": 0.10, "fitted": 0.02, "equation": 0.02}
"""Kind -> the share within which two numbers agree. A prediction rests on typical values of data
sheets; a fitted value must come out, and a simulation must agree with an equation whose assumptions
it shares. A value that rounds to the printed digits agrees as well."""

ABOUT = 0.10
"""Tolerance of a number that is printed with "about", for every kind of row."""


@dataclass(frozen=True)
class WiderTolerance:
    """A wider tolerance of a row, and its reason."""

    share: float
    reason: str


AS_PRINTED = WiderTolerance(
    0.05, "as printed, the equation leaves out the metadata page and the blocks that are kept free"
)
"""Tolerance of equation (2) with the numbers of OFC's report."""


@dataclass(frozen=True)
class ReproductionRow:
    """One published value and the simulated one."""

    what: str  #: The quantity.
    unit: str  #: Its unit; "" for a plain ratio or count.
    published: float | str  #: The printed value, or a statement in words.
    ours: float | str  #: The simulated value, or the words of a table's cell for it.
    deviation: float | None  #: (ours - published) / published; None for a statement.
    tolerance: str  #: The criterion: a share, half a digit, or the condition for the words.
    within: bool  #: Whether the two agree.
    #: "prediction": no constant of the device was set with the value in view; "fitted": one was set
    #: for it or for one from which it follows; "equation": the published side is calculated.
    kind: str
    value_id: str | None = None  #: Id of the published value; None for an equation.
    fitted_by: tuple[str, ...] = ()  #: The constants that were set with it in view.
    note: str = ""  #: Explanation of the row; for a miss, the reason.


def compare_printed(
    value_id: str,
    ours: float,
    *,
    what: str | None = None,
    device: str | None = None,
    wider: WiderTolerance | None = None,
    note: str = "",
) -> ReproductionRow:
    """Compare with a printed number.

    >>> row = compare_printed("ofc/random_writes_45", 7.9)
    >>> row.kind, row.tolerance, row.within
    ('prediction', '±10 %', True)
    """
    value = PUBLISHED[value_id]
    if value.number is None:
        raise ValueError(f"{value_id} is in words: {value.printed}")
    by = fitted_by(value_id, device)
    kind = FITTED if by else PREDICTION
    share = max(RULES[kind], ABOUT) if value.about else RULES[kind]
    rounds = 0.0 if value.about else value.half_a_digit
    return _comparison(
        kind, what or value.quantity, value.unit, value.number, ours,
        share=share, rounds=rounds, wider=wider, value_id=value_id, fitted_by=by, note=note,
    )  # fmt: skip


def compare_stated(
    value_id: str,
    ours: float,
    criterion: Criterion,
    *,
    device: str | None = None,
    note: str = "",
) -> ReproductionRow:
    """Compare with a statement in words, which `criterion` turns into numbers.

    >>> from uflip.reproduce.reproduction import above
    >>> compare_stated("ofc/ratio_60_30", 2.6, above(2)).deviation is None
    True
    """
    value, by = PUBLISHED[value_id], fitted_by(value_id, device)
    kind = FITTED if by else PREDICTION
    return ReproductionRow(
        value.quantity, value.unit, value.printed, ours, None, criterion.text,
        criterion.holds(ours), kind, value_id, by, note,
    )  # fmt: skip


def equation(
    what: str,
    unit: str,
    calculated: float,
    ours: float,
    *,
    wider: WiderTolerance | None = None,
    note: str = "",
) -> ReproductionRow:
    """Compare with the result of an equation."""
    return _comparison(
        "equation", what, unit, calculated, ours,
        share=RULES["equation"], rounds=0.0, wider=wider, value_id=None, fitted_by=(), note=note,
    )  # fmt: skip


def cell(
    value_id: str,
    published: str,
    ours: str,
    *,
    deviation: float | None,
    tolerance: str,
    within: bool,
    note: str = "",
) -> ReproductionRow:
    """Compare a cell of a table in the words of the table."""
    value, by = PUBLISHED[value_id], fitted_by(value_id)
    kind = FITTED if by else PREDICTION
    return ReproductionRow(
        value.quantity, "", published, ours, deviation, tolerance, within, kind, value_id, by, note
    )


def _comparison(
    kind: str,
    what: str,
    unit: str,
    published: float,
    ours: float,
    *,
    share: float,
    rounds: float,
    wider: WiderTolerance | None,
    value_id: str | None,
    fitted_by: tuple[str, ...],
    note: str,
) -> ReproductionRow:
    if wider is not None:
        reason = f"±{100 * wider.share:g} % instead of ±{100 * share:g} %: {wider.reason}"
        note = f"{reason}. {note}" if note else reason
        share = wider.share
    digits = rounds > share * abs(published)
    tolerance = f"±{rounds:g}" if digits else f"±{100 * share:g} %"
    difference = abs(ours - published)
    return ReproductionRow(
        what, unit, published, ours, ours / published - 1, tolerance,
        difference <= max(rounds, share * abs(published)), kind, value_id, fitted_by, note,
    )  # fmt: skip


Measurement = TypeVar("Measurement")


@dataclass(frozen=True)
class Reproduction(Generic[Measurement]):
    """One figure or table of a paper."""

    id: str  #: As on the command line: `uflip reproduce ID`.
    title: str  #: Title in one line.
    source: str  #: The paper, section and figure.
    steps: int  #: Number of progress reports of `measure`.
    measure: Callable[[OnStep], Measurement]  #: Runs the experiments; takes a progress callback.
    #: Compares the measurements with the published values.
    rows: Callable[[Measurement], list[ReproductionRow]]
    draw: Callable[[Measurement], Figure]  #: Draws the measurements in the manner of the paper.
    #: Formats the measurements as the paper does; then only the rows that miss are printed.
    text: Callable[[Measurement], str] | None = None


@dataclass(frozen=True)
class ReproductionOutcome:
    """The outcome of a reproduction: its rows, and the series of its figure."""

    reproduction: Reproduction[Any]
    data: Any
    rows: list[ReproductionRow]


def carry_out(reproduction: Reproduction[Any], on_step: OnStep = ignore) -> ReproductionOutcome:
    """Run a reproduction, and compare with the paper."""
    data = reproduction.measure(on_step)
    return ReproductionOutcome(reproduction, data, reproduction.rows(data))
