"""A published statement beside our value: one line of what `uflip reproduce` prints."""

from dataclasses import dataclass

TOLERANCE = 0.10
"""A prediction within a tenth counts as met: figures are printed with one or two digits, so that
"5 kIOPS" alone is anything from 4.5 to 5.5, and cell times are typical values."""

FIT_TOLERANCE = 0.02
"""What was fitted must come out."""

EQUATION_TOLERANCE = 0.02
"""A simulation of what an equation assumes must agree with it."""

AS_PRINTED_TOLERANCE = 0.05
"""Equation (2) with the numbers of the report leaves out the metadata pages and the blocks that
 are kept free."""


@dataclass(frozen=True)
class Row:
    """One published statement and what we have for it.

    Attributes
    ----------
    what : str
        The quantity.
    unit : str
        Its unit; "" for a plain ratio or count.
    published : float or str
        The printed value, or the statement where no value is printed.
    ours : float or str
        The simulated value, or the words that a cell of a table has for it.
    deviation : float or None
        (ours - published) / published; None where no value is printed.
    within : bool
        Whether the two agree.
    kind : str
        "prediction": nothing was fitted to it; "fitted": a constant was; "equation": the published
        side is calculated; "statement": the published side is in words.
    note : str
        What one has to know to read the row; for a miss, the reason.
    """

    what: str
    unit: str
    published: float | str
    ours: float | str
    deviation: float | None
    within: bool
    kind: str
    note: str = ""


def prediction(
    what: str,
    unit: str,
    published: float,
    ours: float,
    *,
    tolerance: float = TOLERANCE,
    note: str = "",
) -> Row:
    """Compare with a printed number to which nothing was fitted.

    Examples
    --------
    >>> prediction("random writes", "kIOPS", 8.5, 7.9).within
    True
    """
    return _compared("prediction", what, unit, published, ours, tolerance=tolerance, note=note)


def fitted(
    what: str,
    unit: str,
    published: float,
    ours: float,
    *,
    constant: str,
    tolerance: float = FIT_TOLERANCE,
) -> Row:
    """Compare with the printed number to which a constant was fitted."""
    note = f"fitted: {constant}"
    return _compared("fitted", what, unit, published, ours, tolerance=tolerance, note=note)


def equation(
    what: str,
    unit: str,
    calculated: float,
    ours: float,
    *,
    tolerance: float = EQUATION_TOLERANCE,
    note: str = "",
) -> Row:
    """Compare with what an equation gives."""
    return _compared("equation", what, unit, calculated, ours, tolerance=tolerance, note=note)


def statement(
    what: str, unit: str, published: str, ours: float, *, holds: bool, note: str = ""
) -> Row:
    """Compare with what is said in words.

    Examples
    --------
    >>> statement("60 % over 30 %", "", "more than doubles", 2.6, holds=True).deviation is None
    True
    """
    return Row(what, unit, published, ours, None, holds, "statement", note)


def cell(
    what: str, published: str, ours: str, *, deviation: float | None, within: bool, note: str = ""
) -> Row:
    """Compare a cell of a table in the words of the table."""
    return Row(what, "", published, ours, deviation, within, "cell", note)


def _compared(
    kind: str,
    what: str,
    unit: str,
    published: float,
    ours: float,
    *,
    tolerance: float,
    note: str,
) -> Row:
    deviation = ours / published - 1
    return Row(what, unit, published, ours, deviation, abs(deviation) <= tolerance, kind, note)
