"""Range checks for the parameters of the models."""

import math

from uflip.errors import UsageError

_SPARE = "give (S_P - S_L)/S_P: 82 % of over-provisioning is a spare factor of 0.45"


def out_of_range(*, what: str, name: str, got: object, allowed: str, action: str) -> UsageError:
    """Return the error for a value out of range, for the caller to raise."""
    return UsageError(what=what, where=name, got=f"{got!r}", allowed=allowed, action=action)


def open_fraction(name: str, value: float, action: str = "give a share, not a percentage") -> None:
    """Raise unless 0 < value < 1."""
    if not 0 < value < 1:  # written so that NaN fails as well
        raise out_of_range(
            what=f"{name} is not a share between 0 and 1",
            name=name,
            got=value,
            allowed="more than 0 and less than 1",
            action=action,
        )


def spare_factor(value: float) -> None:
    """Raise unless the value is a possible spare factor (S_P - S_L)/S_P, as OFC defines it."""
    open_fraction("spare_factor", value, _SPARE)


def positive(**values: float) -> None:
    """Raise unless every value is finite and above zero."""
    for name, value in values.items():
        if not (value > 0 and math.isfinite(value)):
            raise out_of_range(
                what=f"{name} is not a positive number",
                name=name,
                got=value,
                allowed="finite and more than 0",
                action="check the value and its unit, which is the last word of the name",
            )


def not_negative(**values: float) -> None:
    """Raise unless every value is finite and zero or above."""
    for name, value in values.items():
        if not (value >= 0 and math.isfinite(value)):
            raise out_of_range(
                what=f"{name} is negative or not a number",
                name=name,
                got=value,
                allowed="finite and 0 or more",
                action="check the value and its unit, which is the last word of the name",
            )


def count(name: str, value: int, *, at_least: int = 1, at_most: int | None = None) -> None:
    """Raise unless the value is an integer within its bounds."""
    whole = isinstance(value, int) or float(value).is_integer()
    if whole and at_least <= value and (at_most is None or value <= at_most):
        return
    upper = "" if at_most is None else f" and at most {at_most}"
    raise out_of_range(
        what=f"{name} is not a count that the model can take",
        name=name,
        got=value,
        allowed=f"a whole number, at least {at_least}{upper}",
        action=f"change {name}, or the geometry that bounds it",
    )
