"""Options that describe a pattern: of `uflip pattern`, `uflip sweep` and `uflip.pattern`.

The parameters of a pattern are those of the paper (Table 1), under its names.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import cast

from uflip.benchmark_options import MAX_IOS
from uflip.data.document import Table
from uflip.data.locations import DRAWN, LOCATION_PARAMETERS, LocationParameter
from uflip.errors import UsageError
from uflip.options import (
    COMPLETION,
    DURABILITY,
    OPENING,
    POWER,
    Option,
    parse_switch,
    parse_text,
)
from uflip.spec import (
    BASELINES,
    LOCATIONS,
    MIX_ARRIVALS,
    MIX_PARAMETERS,
    MODES,
    OPEN_TIMES,
    SIZES,
    STOP,
    TIMES,
    Basic,
    Functions,
    Mix,
    StopRule,
    baseline,
    basic,
    mix,
    until_converged,
)
from uflip.units import UNSIGNED, parse_count, parse_duration, parse_number, parse_size

Parameters = dict[str, str | int]
"""The given parameters of a pattern."""
OptionValue = str | int | float | None
"""The parsed value of an option; None, or False of a flag, if it was not given."""
MAX_WEIGHT = 1_000_000


def _size(name: str, text: str) -> Option:
    return Option(name, "SIZE", text, parse_size)


def _count(name: str, text: str, least: int = 0, most: int = UNSIGNED) -> Option:
    return Option(name, "N", text, partial(parse_count, least=least, most=most))


def _location_parameter(parameter: LocationParameter) -> Option:
    name, text = parameter.name, f"{parameter.help}; {parameter.location} only."
    if parameter.is_signed:
        return _count(name, text, least=-(2**63), most=2**63 - 1)
    return _count(name, text)


def _one_of(name: str, known: Iterable[str], text: str) -> Option:
    return Option(name, "|".join(known), text, parse_text)


PATTERN = (
    _one_of("pattern", BASELINES, "A baseline: mode and location in one."),
    _one_of("mode", MODES, "Operation of the I/Os."),
    _one_of("location", LOCATIONS, "Order of the addresses."),
    _one_of("time", TIMES, "When I/Os are submitted."),
    _size("io_size", "Size of an I/O."),
    _size("io_shift", "Shift of every address against multiples of the I/O size."),
    _size("target_offset", "Start of the target space."),
    _size("target_size", "Size of the target space."),
    *map(_location_parameter, LOCATION_PARAMETERS),
    _count("write_stream", "Write stream of the I/Os; 0 by default."),
    _count("hot_write_stream", "Write stream of the hot area; hotcold only."),
    _count("compress_percent", "Share of the written data that compression removes.", most=100),
    _count("duplicate_percent", "Share of the written blocks that are duplicates.", most=100),
    Option("pause", "DURATION", "Length of a pause; pause and burst only.", parse_duration),
    _count("burst", "I/Os between two pauses; burst only."),
    Option(
        "interval", "DURATION", "Mean time between arrivals; fixed and poisson only.",
        parse_duration,
    ),
    _count("parallel_degree", "Processes, each in its part of the target."),
    _count("queue_depth", "I/Os of each process in flight."),
    _count(
        "io_count", "I/Os of each process; of the rarer pattern in a mix.", least=1, most=MAX_IOS
    ),
    _count("io_ignore", "I/Os at the start that the statistics ignore."),
    Option(
        "run_time", "DURATION", "Time of the run, if --io-count does not end it before.",
        parse_duration,
    ),
    Option(
        "ramp_time", "DURATION", "Time before it that the statistics ignore.", parse_duration,
    ),
    _count("seed", "Seed of random addresses."),
    _one_of("mix", BASELINES, "Mix in a second baseline."),
    _count("ratio", "I/Os of the first pattern for each one of the second."),
    _count("first_percent", "Instead: probability of the first pattern, for each I/O."),
    Option(
        "bssplit", "SIZE/WEIGHT:...",
        "Sizes of random I/Os, drawn by weights, as in fio: 4k/60:64k/40.", parse_text,
    ),
)  # fmt: skip

STOPPING = (
    Option(
        "until_converged", "",
        "Run until the mean has converged; determines --io-count and --io-ignore.", parse_switch,
    ),
    Option("confidence", "P", "Confidence of the interval.", parse_number),
    Option(
        "half_width", "SHARE", "Required half-width of the interval, relative to the mean.",
        parse_number,
    ),
    _count("min_ios", "Minimum number of I/Os."),
    _count("max_ios", "Maximum number of I/Os, as --io-count counts them."),
    Option("max_time", "DURATION", "Maximum time.", parse_duration),
    _size("max_bytes_written", "Maximum of bytes written."),
)  # fmt: skip
"""The required precision of the mean, and the budget; see `uflip.spec.until_converged`."""
STOP_RULE_OPTIONS = {name.removesuffix("_ns"): name for name in STOP}
"""Stopping rules of a run: option -> parameter of `until_converged`."""
OPENED = (DURABILITY, COMPLETION, POWER, *OPENING)
"""Options for opening the device of a pattern."""
VERIFY = Option(
    "verify",
    "",
    "Write data with a stamp in every sector, read all of it after the run, and compare.",
    parse_switch,
    default=False,
)


def only_given(options: Mapping[str, object]) -> Table:
    """Drop options that were not given: None, and False of a flag, but not 0."""
    return {name: each for name, each in options.items() if each is not None and each is not False}


def parse_pattern(typed: Mapping[str, str | int | float]) -> Functions:
    """Return the specification that options describe.

    `typed`: the given ones of `PATTERN` and `STOPPING`: sizes and durations as texts with a unit,
    or in bytes and nanoseconds. Returns the pattern with its `stop` if `until_converged` is given.
    Raises UsageError for incompatible options, an unknown name, or a value that cannot be parsed.

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
    for name in ("io_count", "io_ignore"):
        if name in parameters:
            option = "--" + name.replace("_", "-")
            raise UsageError(
                "A fixed length cannot be combined with `--until-converged`",
                where=option,
                got=f"{option} with --until-converged",
                action=f"omit one of them; --max-ios is a budget for {option}",
            )
    stop = cast("StopRule", {STOP_RULE_OPTIONS[name]: value for name, value in rule.items()})
    return until_converged(_basic_or_mix(parameters), **stop)


def _basic_or_mix(parameters: Parameters) -> Basic | Mix:
    """Return the pattern without a stopping rule, basic or mixed."""
    if "bssplit" in parameters:
        return _sizes_by_weight(parameters)
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
    whole = _of_the_mix(parameters)
    # The second pattern has the sizes and the target of the first.
    shared = {name: parameters[name] for name in SIZES if name in parameters}
    turns = cast("int | None", ratio)  # parsed with the other parameters
    return mix(_basic_pattern(parameters), baseline(str(second), **shared), turns, **whole)


def _sizes_by_weight(parameters: Parameters) -> Mix:
    """Return a mix of the same random pattern at several sizes."""
    split = str(parameters.pop("bssplit"))
    if excluded := [
        name
        for name in ("mix", "ratio", "first_percent", "io_size", "parallel_degree")
        if name in parameters
    ]:
        option = "--" + excluded[0].replace("_", "-")
        raise UsageError(
            "--bssplit determines the sizes and the mix already",
            where=option,
            got=f"{option} with --bssplit",
            action=f"omit {option}",
        )  # fmt: skip
    sizes, weights = [], []
    for entry in split.split(":"):
        size, _, weight = entry.partition("/")
        sizes.append(parse_size(size, "--bssplit"))
        weights.append(parse_count(weight, "--bssplit", least=1, most=MAX_WEIGHT))
    if len(sizes) < 2:
        raise UsageError(
            "--bssplit needs two sizes or more",
            where="--bssplit",
            got=split,
            allowed="SIZE/WEIGHT:SIZE/WEIGHT, such as 4k/60:64k/40",
            action="for one size use --io-size",
        )
    whole = _of_the_mix(parameters)
    first, second, *others = (_basic_pattern({**parameters, "io_size": size}) for size in sizes)
    if first.location not in DRAWN:
        raise UsageError(
            "--bssplit needs random addresses",
            where="--bssplit",
            got=f"location {first.location}",
            allowed=", ".join(DRAWN),
            action="each size has addresses of its own; describe sequential ones as a mix in JSON",
        )
    return mix(first, second, others=others, weights=weights, drawn=True, **whole)


def _of_the_mix(parameters: Parameters) -> Table:
    """Remove and return the parameters of the mix as a whole."""
    names = [*MIX_PARAMETERS]
    if parameters.get("time") in OPEN_TIMES:
        names += MIX_ARRIVALS
    return {name: parameters.pop(name) for name in names if name in parameters}


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
