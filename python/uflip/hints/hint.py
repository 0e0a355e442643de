"""A hint of §5.3, checked against a device: statement, verdict, advice."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from uflip.hints.means import Factor
from uflip.microbench.labels import format_ratio

CONFIRMED, CONTRADICTED = "confirmed", "contradicted"
UNDECIDED, NOT_MEASURED = "undecided", "not measured"
Number = str | int | float | bool | None
Numbers = dict[str, Number]
VERDICTS = (CONFIRMED, CONTRADICTED, UNDECIDED, NOT_MEASURED)


@dataclass(frozen=True)
class Hint:
    """The outcome of a hint.

    Attributes
    ----------
    number : int
        As in §5.3.
    statement : str
        The statement about flash devices.
    verdict : str
        One of `VERDICTS`: undecided if a run that supports it is inside the start-up or the write
        cache, or if an interval includes the limit; not measured if runs are missing.
    because : str
        The numbers, in a sentence.
    advice : str
        Advice for this device; empty unless the hint is confirmed or contradicted.
    numbers : dict
        Name with unit -> value: the numbers behind the verdict, and the limit.
    micro_benchmark : str
        The micro-benchmark whose figure shows it.
    decided_by : str
        The command of a run that would decide an open hint; otherwise empty.
    """

    number: int
    statement: str
    verdict: str
    because: str
    advice: str
    numbers: Mapping[str, Number]
    micro_benchmark: str
    decided_by: str = ""

    @property
    def next_step(self) -> str:
        """The advice, or the run that would decide the hint."""
        return self.advice or (f"to decide: {self.decided_by}" if self.decided_by else "")

    def as_dict(self) -> "HintDocument":
        """Return plain data, in the order of the fields."""
        return {
            "number": self.number,
            "statement": self.statement,
            "verdict": self.verdict,
            "because": self.because,
            "advice": self.advice,
            "numbers": dict(self.numbers),
            "micro_benchmark": self.micro_benchmark,
            "decided_by": self.decided_by,
        }


class HintDocument(TypedDict):
    """A hint as plain data."""

    number: int
    statement: str
    verdict: str
    because: str
    advice: str
    numbers: Numbers
    micro_benchmark: str
    decided_by: str


def verdict_of(holds: bool | None) -> str:
    """Return the verdict of a measured statement; None is undecided.

    Examples
    --------
    >>> verdict_of(True), verdict_of(None)
    ('confirmed', 'undecided')
    """
    if holds is None:
        return UNDECIDED
    return CONFIRMED if holds else CONTRADICTED


def most_decisive(factors: Mapping[Any, Factor], limit: float) -> tuple[Any, Factor, bool | None]:
    """Return the case that best decides whether any factor is beyond a limit, with the answer.

    This is the largest of the cases that are certainly beyond; else of the undecided; else of all.

    Examples
    --------
    >>> most_decisive({"a": Factor(1.3, 1.1, 1.5), "b": Factor(1.25, 1.23, 1.27)}, 1.2)
    ('b', Factor(value=1.25, low=1.23, high=1.27, mark=None), True)
    >>> most_decisive({"a": Factor(1.3, 1.1, 1.5), "b": Factor(1.0, 0.9, 1.1)}, 1.2)[2] is None
    True
    >>> most_decisive({"a": Factor(1.5, 1.4, 1.6), "b": Factor(1.7)}, 1.2)[0]
    'a'
    """
    for answer in (True, None, False):
        cases = {
            name: factor for name, factor in factors.items() if factor.exceeds(limit) is answer
        }
        if cases:
            name = max(cases, key=lambda case: cases[case].value)
            return name, cases[name], answer
    raise ValueError("no factor was given")


def format_factor(factor: Factor) -> str:
    """Return a factor with its interval as text; a marked factor is shown without interval.

    Examples
    --------
    >>> format_factor(Factor(1.5, 1.35, 1.65)), format_factor(Factor(2.0))
    ('×1.5 (×1.4 to ×1.6)', '×2.0')
    """
    if factor.low is None or factor.high is None or factor.mark:
        return format_ratio(factor.value)
    low = max(factor.low, 0.0)
    return f"{format_ratio(factor.value)} ({format_ratio(low)} to {format_ratio(factor.high)})"


def factor_numbers(name: str, factor: Factor) -> dict[str, float | None]:
    """Return a factor with its interval as plain data."""
    return {name: factor.value, f"{name}_low": factor.low, f"{name}_high": factor.high}
