"""A hint of §5.3 held against a device: what it says, whether it holds, and what to do."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from uflip.hints.means import Factor
from uflip.microbench.words import format_ratio

CONFIRMED, CONTRADICTED, NOT_MEASURED = "confirmed", "contradicted", "not measured"
Number = str | int | float | bool | None
Numbers = dict[str, Number]
VERDICTS = (CONFIRMED, CONTRADICTED, NOT_MEASURED)


@dataclass(frozen=True)
class Hint:
    """What became of a hint.

    Attributes
    ----------
    number : int
        As in §5.3.
    statement : str
        What it says of flash devices.
    verdict : str
        One of `VERDICTS`; also "not measured" where what was measured does not tell.
    because : str
        The numbers, in a sentence.
    advice : str
        What to do on this device; empty where nothing is known.
    numbers : dict
        Name with unit -> value: what the verdict follows from, and the limit it was held against.
    micro_benchmark : str
        Whose figure shows it.
    """

    number: int
    statement: str
    verdict: str
    because: str
    advice: str
    numbers: Mapping[str, Number]
    micro_benchmark: str

    def as_dict(self) -> "HintSaid":
        """Plain data, in the order of the fields."""
        return {
            "number": self.number,
            "statement": self.statement,
            "verdict": self.verdict,
            "because": self.because,
            "advice": self.advice,
            "numbers": dict(self.numbers),
            "micro_benchmark": self.micro_benchmark,
        }


class HintSaid(TypedDict):
    """A hint as plain data."""

    number: int
    statement: str
    verdict: str
    because: str
    advice: str
    numbers: Numbers
    micro_benchmark: str


def verdict_of(holds: bool | None) -> str:
    """Say whether something holds; None is not known.

    Examples
    --------
    >>> verdict_of(True), verdict_of(None)
    ('confirmed', 'not measured')
    """
    if holds is None:
        return NOT_MEASURED
    return CONFIRMED if holds else CONTRADICTED


def surest(factors: Mapping[Any, Factor], limit: float) -> tuple[Any, Factor, bool | None]:
    """Return the case that says most about whether any is beyond a limit, and whether one is.

    The largest of those that surely are; else, of those that may be; else of all.

    Examples
    --------
    >>> surest({"a": Factor(1.3, 1.1, 1.5), "b": Factor(1.25, 1.23, 1.27)}, 1.2)
    ('b', Factor(value=1.25, low=1.23, high=1.27), True)
    >>> surest({"a": Factor(1.3, 1.1, 1.5), "b": Factor(1.0, 0.9, 1.1)}, 1.2)[2] is None
    True
    >>> surest({"a": Factor(1.5, 1.4, 1.6), "b": Factor(1.7)}, 1.2)[0]
    'a'
    """
    for answer in (True, None, False):
        cases = {name: one for name, one in factors.items() if one.beyond(limit) is answer}
        if cases:
            name = max(cases, key=lambda case: cases[case].value)
            return name, cases[name], answer
    raise ValueError("no factor was given")


def words_of(factor: Factor) -> str:
    """Write a factor with its interval.

    Examples
    --------
    >>> words_of(Factor(1.5, 1.35, 1.65)), words_of(Factor(2.0))
    ('×1.5 (×1.4 to ×1.6)', '×2.0')
    """
    if factor.low is None or factor.high is None:
        return format_ratio(factor.value)
    low = max(factor.low, 0.0)
    return f"{format_ratio(factor.value)} ({format_ratio(low)} to {format_ratio(factor.high)})"


def numbers_of(name: str, factor: Factor) -> dict[str, float | None]:
    """Return a factor with its interval as plain data."""
    return {name: factor.value, f"{name}_low": factor.low, f"{name}_high": factor.high}
