"""Options that describe a pattern, shared by `uflip pattern`, `uflip sweep` and `uflip.pattern`."""

from collections.abc import Mapping
from typing import cast

from uflip.errors import UsageError
from uflip.spec import (
    LOCATIONS,
    MIX_ARRIVALS,
    MIX_PARAMETERS,
    MODES,
    OPEN_TIMES,
    PARAMETERS,
    SIZES,
    STOP,
    Basic,
    Functions,
    Mix,
    baseline,
    basic,
    mix,
    until_converged,
)

Parameters = dict[str, str | int]
"""The given parameters of a pattern."""
STOP_RULE_OPTIONS = {name.removesuffix("_ns"): name for name in STOP}
"""Stopping rules of a run: option -> parameter of `until_converged`."""
NAMES = (
    "pattern", "mode", "location", *PARAMETERS, "mix", "ratio", "first_percent", "until_converged",
    *STOP_RULE_OPTIONS,
)  # fmt: skip
"""The options of a pattern."""


def only_given(options: Mapping[str, str | int | float | None]) -> dict[str, str | int | float]:
    """Drop options that were not given: None, and False of a flag, but not 0."""
    return {name: each for name, each in options.items() if each is not None and each is not False}


def parse_pattern(typed: Mapping[str, str | int | float]) -> Functions:
    """Return the specification that options describe.

    Parameters
    ----------
    typed : mapping
        The given ones of `NAMES`: sizes and durations as texts with a unit, or in bytes and
        nanoseconds.

    Returns
    -------
    Basic or Mix
        With its `stop` if `until_converged` is given.

    Raises
    ------
    UsageError
        For incompatible options, an unknown name, or a value that cannot be parsed.

    Examples
    --------
    >>> parse_pattern({"pattern": "SR", "mix": "RW", "ratio": 4}).ratio
    4
    """
    rule = {name: typed[name] for name in STOP_RULE_OPTIONS if name in typed}
    stop_options = (*STOP_RULE_OPTIONS, "until_converged")
    parameters = cast(
        "Parameters", {name: typed[name] for name in typed if name not in stop_options}
    )
    if "until_converged" not in typed:
        if rule:
            name = next(iter(rule)).replace("_", "-")
            raise UsageError(
                "The option needs `--until-converged`",
                where=f"--{name}",
                got=f"--{name} without --until-converged",
                action="give --until-converged as well",
            )
        return _basic_or_mix(parameters)
    if (switch := typed["until_converged"]) not in (True,):
        raise UsageError(
            "`until_converged` must be true or false",
            where="until_converged",
            got=repr(switch),
            allowed="True, False",
            action="give one of them; half_width sets the precision of the mean",
        )
    for name in ("io_count", "io_ignore"):
        if name in parameters:
            option = "--" + name.replace("_", "-")
            raise UsageError(
                "A fixed length cannot be combined with `--until-converged`",
                where=option,
                got=f"{option} with --until-converged",
                action=f"omit one of them; --max-ios is a budget for {option}",
            )
    return until_converged(
        _basic_or_mix(parameters),
        **{STOP_RULE_OPTIONS[name]: value for name, value in rule.items()},
    )


def _basic_or_mix(parameters: Parameters) -> Basic | Mix:
    """Return the pattern without a stopping rule, basic or mixed."""
    second, ratio = parameters.pop("mix", None), parameters.pop("ratio", None)
    drawn = "first_percent" in parameters
    if (second is None) != (ratio is None and not drawn):
        missing = "--mix" if second is None else "--ratio"
        raise UsageError(
            "A mix needs a second pattern, and a ratio or a share",
            where=missing,
            got="nothing",
            allowed="--mix SR|RR|SW|RW with --ratio N or --first-percent N",
            action=f"give {missing} as well",
        )
    if second is None:
        return _basic_pattern(parameters)
    whole = {name: parameters.pop(name) for name in MIX_PARAMETERS if name in parameters}
    if parameters.get("time") in OPEN_TIMES:
        whole |= {name: parameters.pop(name) for name in MIX_ARRIVALS if name in parameters}
    # The second pattern has the sizes and the target of the first.
    shared = {name: parameters[name] for name in SIZES if name in parameters}
    turns = cast("int | None", ratio)  # parsed with the other parameters
    return mix(_basic_pattern(parameters), baseline(str(second), **shared), turns, **whole)


def _basic_pattern(parameters: Parameters) -> Basic:
    """Return the basic pattern."""
    named = ("mode", "location", "pattern")
    others = {name: value for name, value in parameters.items() if name not in named}
    if "pattern" not in parameters:
        for name, values in (("mode", MODES), ("location", LOCATIONS)):
            if name not in parameters:
                raise UsageError(
                    "The pattern is not complete",
                    where=f"--{name}",
                    got="nothing",
                    allowed=", ".join(values),
                    action=f"give --{name}, or a baseline with --pattern SR|RR|SW|RW",
                )
        return basic(str(parameters["mode"]), str(parameters["location"]), **others)
    for name in ("mode", "location"):
        if name in parameters:
            raise UsageError(
                f"--pattern determines the {name} already",
                where=f"--{name}",
                got=f"--pattern {parameters['pattern']} --{name} {parameters[name]}",
                action=f"omit one of them, as in --mode {MODES[0]} --location ordered",
            )
    return baseline(str(parameters["pattern"]), **others)
