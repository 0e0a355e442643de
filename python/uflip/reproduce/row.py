"""A row of `uflip reproduce`: a published value beside the simulated one.

`RULES` has a tolerance for each kind of row. A row may have a wider one with a printed reason.
"""

from dataclasses import dataclass

from uflip.reproduce import evidence
from uflip.reproduce.criterion import Criterion
from uflip.reproduce.published import PUBLISHED

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
    """One published value and the simulated one.

    Attributes
    ----------
    what : str
        The quantity.
    unit : str
        Its unit; "" for a plain ratio or count.
    published : float or str
        The printed value, or a statement in words.
    ours : float or str
        The simulated value, or the words of a table's cell for it.
    deviation : float or None
        (ours - published) / published; None for a statement.
    tolerance : str
        The criterion: a share, half a digit, or the condition for the words.
    within : bool
        Whether the two agree.
    kind : str
        "prediction": no constant of the device was set with the value in view; "fitted": one was
        set for it or for one from which it follows; "equation": the published side is calculated.
    value_id : str or None
        Id of the published value; None for an equation.
    fitted_by : tuple of str
        The constants that were set with it in view.
    note : str
        Explanation of the row; for a miss, the reason.
    """

    what: str
    unit: str
    published: float | str
    ours: float | str
    deviation: float | None
    tolerance: str
    within: bool
    kind: str
    value_id: str | None = None
    fitted_by: tuple[str, ...] = ()
    note: str = ""


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

    Parameters
    ----------
    value_id : str
        One of `PUBLISHED`.
    ours : float
        The simulated value.
    what : str, optional
        Name of the row, if several rows compare with one value.
    device : str, optional
        As of `evidence.fitted_by`.
    wider : Wider, optional
        A wider tolerance.
    note : str
        Explanation of the row.

    Examples
    --------
    >>> row = compare_printed("ofc/random_writes_45", 7.9)
    >>> row.kind, row.tolerance, row.within
    ('prediction', '±10 %', True)
    """
    value = PUBLISHED[value_id]
    if value.number is None:
        raise ValueError(f"{value_id} is in words: {value.printed}")
    by = evidence.fitted_by(value_id, device)
    kind = evidence.FITTED if by else evidence.PREDICTION
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

    Examples
    --------
    >>> from uflip.reproduce.criterion import above
    >>> compare_stated("ofc/ratio_60_30", 2.6, above(2)).deviation is None
    True
    """
    value, by = PUBLISHED[value_id], evidence.fitted_by(value_id, device)
    kind = evidence.FITTED if by else evidence.PREDICTION
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
    value, by = PUBLISHED[value_id], evidence.fitted_by(value_id)
    kind = evidence.FITTED if by else evidence.PREDICTION
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
