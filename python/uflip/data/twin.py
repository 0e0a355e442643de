"""The twin of a device: how far its predictions are from the device, measured on patterns.

`uflip infer` writes the profile of a twin with a table `[twin_errors]`, and `uflip infer --check`
fills it. Simulated devices carry the table, so that each prediction can show it.
"""

from statistics import median

from msgspec import Struct

from uflip.data.document import Name, Text


class TwinPattern(Struct, frozen=True):
    """The error of a twin on a pattern that no probe uses: the twin's over the device's, - 1."""

    pattern: Text  #: The pattern.
    #: Of the mean response time, and of its 99th percentile.
    mean_error: float
    p99_error: float


class TwinErrors(Struct, frozen=True):
    """The errors of a twin."""

    device: Name  #: The device that the twin represents.
    patterns: tuple[TwinPattern, ...] = ()  #: Empty: the error is unknown.


def twin_text(errors: TwinErrors) -> str:
    """Return the error of a twin as a sentence.

    Examples
    --------
    >>> twin_text(TwinErrors("sim:demo"))
    'a twin of sim:demo; its error is unknown'
    >>> twin_text(TwinErrors("sim:demo", (TwinPattern("random writes", -0.02, 0.1),)))
    'a twin of sim:demo; its error on 1 pattern that no probe used: mean 2.0 % (at most 2.0 %), \
p99 10.0 % (at most 10.0 %)'
    """
    if not errors.patterns:
        return f"a twin of {errors.device}; its error is unknown"
    numbers = twin_numbers(errors)
    parts = ", ".join(
        f"{name} {100 * numbers[f'{name}_error']:.1f} % "
        f"(at most {100 * numbers[f'largest_{name}_error']:.1f} %)"
        for name in ("mean", "p99")
    )
    count = len(errors.patterns)
    patterns = f"{count} pattern{'s' if count > 1 else ''} that no probe used"
    return f"a twin of {errors.device}; its error on {patterns}: {parts}"


def twin_numbers(errors: TwinErrors) -> dict[str, float]:
    """Return the median and the largest error of mean and p99; empty if they are unknown."""
    if not errors.patterns:
        return {}
    values = {
        "mean": [abs(one.mean_error) for one in errors.patterns],
        "p99": [abs(one.p99_error) for one in errors.patterns],
    }
    medians = {f"{name}_error": median(each) for name, each in values.items()}
    return medians | {f"largest_{name}_error": max(each) for name, each in values.items()}


def twin_advice(errors: TwinErrors) -> str:
    """Return what a reader of a prediction should do."""
    if errors.patterns:
        return "expect errors of this size in these numbers; confirm decisions on the device"
    return f"measure it: uflip infer --check {errors.device} TWIN.toml"
