"""Builders of pattern specifications from names and values as people write them.

They check names and parse counts, sizes and durations; the native part owns every default and all
other checks of values. Parameters that were not given are omitted.

Source: uFLIP (CIDR 2009) section 3.1; the parameter names are the paper's, in snake case.
"""

from collections.abc import Mapping, Sequence
from typing import Any, SupportsIndex, TypedDict, TypeVar, Unpack

from msgspec.structs import replace

from uflip.data.document import Table
from uflip.data.locations import LOCATION_PARAMETERS
from uflip.data.spec import (
    LOCATIONS,
    MODES,
    OPEN_TIMES,
    TIMES,
    Basic,
    Functions,
    Mix,
    MixPart,
    Parallel,
    Pattern,
    Replay,
    Spec,
    Stop,
    read_spec,
)  # fmt: skip
from uflip.errors import UsageError, unknown_name, wrong_argument
from uflip.units import parse_count, parse_duration, parse_number, parse_size

__all__ = [
    "BASELINES",
    "CHANGEABLE",
    "LOCATIONS",
    "MODES",
    "OPEN_TIMES",
    "PARAMETERS",
    "TIMES",
    "Basic",
    "Functions",
    "Mix",
    "MixPart",
    "Parallel",
    "Pattern",
    "Replay",
    "Spec",
    "Stop",
    "baseline",
    "basic",
    "changed",
    "mix",
    "parallel",
    "read_spec",
    "until_converged",
]  # fmt: skip

P = TypeVar("P", bound=Spec)
B = TypeVar("B", Basic, MixPart)
ParameterValue = str | int | None  # a value as people write it; None: not given

BASELINES: dict[str, tuple[str, str]] = {
    "SR": ("read", "sequential"),
    "RR": ("read", "random"),
    "SW": ("write", "sequential"),
    "RW": ("write", "random"),
}
"""The four baseline patterns: label -> (mode, location)."""

SIZES = ("io_size", "io_shift", "target_offset", "target_size")
RUN_TIMES = ("run_time", "ramp_time")
DURATIONS = ("pause", "interval", *RUN_TIMES)
COUNTS = (
    *(parameter.name for parameter in LOCATION_PARAMETERS), "write_stream", "hot_write_stream",
    "compress_percent", "duplicate_percent", "burst", "parallel_degree", "queue_depth", "io_count",
    "io_ignore", "seed",
)  # fmt: skip
PARAMETERS = (*SIZES, *DURATIONS, *COUNTS, "time")
"""Parameters of `basic`, apart from mode and location."""

MIX_PARAMETERS = ("first_percent", "queue_depth", "io_count", "io_ignore", *RUN_TIMES, "seed")
"""Parameters of a mix as a whole, not of its components."""
MIX_ARRIVALS = ("time", "interval")  # in an open loop they belong to the mix as a whole

STOP_COUNTS = ("min_ios", "max_ios")
STOP = ("confidence", "half_width", *STOP_COUNTS, "max_time_ns", "max_bytes_written")
"""Parameters of `until_converged`: the required precision of the mean, and the budget."""
MIX_ORDERS = ("ratio", "first_percent")  # exactly one of these
CHANGEABLE = ("pattern", "mode", "location", *PARAMETERS, *MIX_ORDERS)  # by `changed`


class PatternParameters(TypedDict, total=False):
    """Keywords of `basic` and `baseline`: `PARAMETERS`, for editors. None means "not given"."""

    io_size: ParameterValue
    io_shift: ParameterValue
    target_offset: ParameterValue
    target_size: ParameterValue
    pause: ParameterValue
    interval: ParameterValue
    partitions: ParameterValue
    incr: ParameterValue
    skew_percent: ParameterValue
    hot_space_percent: ParameterValue
    hot_io_percent: ParameterValue
    zone_ios: ParameterValue
    open_zones: ParameterValue
    zone_capacity_ios: ParameterValue
    random_turns: ParameterValue
    write_stream: ParameterValue
    hot_write_stream: ParameterValue
    compress_percent: ParameterValue
    duplicate_percent: ParameterValue
    burst: ParameterValue
    parallel_degree: ParameterValue
    queue_depth: ParameterValue
    io_count: ParameterValue
    io_ignore: ParameterValue
    run_time: ParameterValue
    ramp_time: ParameterValue
    seed: ParameterValue
    time: ParameterValue


class MixParameters(TypedDict, total=False):
    """Keywords of `mix`: `MIX_PARAMETERS` and `MIX_ARRIVALS`."""

    first_percent: ParameterValue
    queue_depth: ParameterValue
    io_count: ParameterValue
    io_ignore: ParameterValue
    run_time: ParameterValue
    ramp_time: ParameterValue
    seed: ParameterValue
    time: ParameterValue
    interval: ParameterValue


class StopRule(TypedDict, total=False):
    """Keywords of `until_converged`: `STOP`."""

    confidence: float | str | None
    half_width: float | str | None
    min_ios: ParameterValue
    max_ios: ParameterValue
    max_time_ns: ParameterValue
    max_bytes_written: ParameterValue


def basic(mode: str, location: str, **parameters: Unpack[PatternParameters]) -> Basic:
    """Describe a basic pattern.

    Parameters
    ----------
    mode : str
        "read", "write", "trim" (deallocate); of zones "append", "reset", "finish", "open", "close".
    location : str
        One of `LOCATIONS`, such as "sequential" or "random".
    **parameters : str, int or None
        Any of `PARAMETERS`: sizes in bytes, the pause in nanoseconds, or strings with units. None
        means "not given".

    Returns
    -------
    Basic
        Checked for names and units only; the native part checks the rest.

    Raises
    ------
    UsageError
        For an unknown name, or a value that cannot be parsed.

    Examples
    --------
    >>> basic("write", "random", io_size="32KiB", io_count=100)
    Basic(mode='write', location='random', io_size=32768, io_count=100)
    """
    _check_name("mode", mode, MODES)
    _check_name("location", location, LOCATIONS)
    if (time := parameters.get("time")) is not None:
        _check_name("time", str(time), TIMES)
    return Basic(mode, location, **_read(parameters, PARAMETERS))  # type: ignore[arg-type]


def baseline(label: str, **parameters: Unpack[PatternParameters]) -> Basic:
    """Describe one of the four baseline patterns, SR, RR, SW or RW (uFLIP Table 1).

    Parameters
    ----------
    label : str
        Which: sequential or random, reads or writes.
    **parameters : str, int or None
        As for `basic`.

    Returns
    -------
    Basic

    Raises
    ------
    UsageError
        As `basic`.

    Examples
    --------
    >>> baseline("SR", io_size=512)
    Basic(mode='read', location='sequential', io_size=512)
    """
    _check_name("pattern", label, BASELINES)
    # Check the names first: mode and location are not parameters of a baseline.
    return basic(*BASELINES[label], **_read(parameters, PARAMETERS))


def mix(
    first: Basic,
    second: Basic,
    ratio: int | None = None,
    *,
    others: Sequence[Basic] = (),
    weights: Sequence[int] | None = None,
    drawn: bool | None = None,
    **parameters: Unpack[MixParameters],
) -> Mix:
    """Describe a mixed pattern: alternating, by weights, or drawn at random (uFLIP §3.1).

    Parameters
    ----------
    first, second : Basic
        Two basic patterns without any of `MIX_PARAMETERS`.
    ratio : int, optional
        `ratio` I/Os of the first pattern, then one of the second, and so on.
    others : sequence of Basic
        The third and later patterns, which need weights.
    weights : sequence of int, optional
        Instead of a ratio: I/Os of each pattern, in order, for each Σ `weights` I/Os.
    drawn : bool, optional
        Whether each I/O is drawn by the weights; by default they are exact, and evenly spread.
    **parameters : str, int or None
        Any of `MIX_PARAMETERS`, and in an open loop of `MIX_ARRIVALS`. `first_percent`, instead of
        a ratio, is the probability of the first pattern, drawn for each I/O [%]. `io_count` and
        `io_ignore` count I/Os of the second, rarer pattern; of all where they are drawn or have
        weights.

    Returns
    -------
    Mix

    Raises
    ------
    UsageError
        For an unknown name, or a parameter of the mix given to a component.

    Examples
    --------
    >>> mix(baseline("SR"), baseline("RR"), 2, io_count=10).ratio
    2
    >>> mix(baseline("RR"), baseline("RW"), first_percent=70).first_percent
    70
    >>> mix(baseline("SR"), baseline("RR"), others=[baseline("RW")], weights=[6, 3, 1]).weights
    (6, 3, 1)
    """
    read = _read({"ratio": ratio, **parameters}, ("ratio", *MIX_PARAMETERS, *MIX_ARRIVALS))
    _check_name("time of a mix", read.get("time", OPEN_TIMES[0]), OPEN_TIMES)
    if weights is not None:
        read["weights"] = tuple(parse_count(each, "weights", least=1) for each in weights)
    if drawn is not None:
        read["drawn"] = bool(drawn)
    further = tuple(_part(f"{number}.", each) for number, each in enumerate(others, start=3))
    return Mix(_part("first", first), _part("second", second), others=further, **read)


def _part(position: str, basic: Basic) -> MixPart:
    """Return a component of a mix; reject parameters that belong to the whole mix."""
    where = f"{position} pattern of the mix"
    if not isinstance(basic, Basic):
        raise wrong_argument("A mix needs two basic patterns", where, basic, "uflip.basic")
    for name in MIX_PARAMETERS:
        if (value := getattr(basic, name, None)) is not None:
            raise UsageError(
                f"{name} belongs to the mix, not to one of its components",
                where=where,
                got=f"{name}={value}",
                action=f"give {name} to the mix",
            )
    for name in ("parallel_degree", "stop"):
        if getattr(basic, name) is not None:
            raise UsageError(
                f"A component of a mix has no {name}",
                where=where,
                action="run mixes side by side (parallel); let the whole mix end by a rule",
            )
    return MixPart(**{name: getattr(basic, name) for name in MixPart.__struct_fields__})


def parallel(*patterns: Basic | Mix, seed: int | None = None) -> Parallel:
    """Describe different patterns that run in parallel, one stream each.

    Parameters
    ----------
    *patterns : Basic or Mix
        One for each stream.
    seed : int, optional
        Of random addresses; the seed of each stream is derived from it.

    Returns
    -------
    Parallel

    Raises
    ------
    UsageError
        For an argument that is not a pattern, or an invalid seed; the native part checks the rest.

    Examples
    --------
    >>> len(parallel(baseline("SR"), baseline("RW")).patterns)
    2
    """
    for each in patterns:
        if not isinstance(each, Basic | Mix):
            raise wrong_argument(
                "A stream must be a pattern", "parallel", each, "uflip.basic or uflip.mix"
            )
    return Parallel(patterns, **_read({"seed": seed}, ("seed",)))


def until_converged(spec: P, **rule: Unpack[StopRule]) -> P:
    """Let the engine choose the length of a run: `io_count` and `io_ignore` follow from the device.

    Parameters
    ----------
    spec : Basic, Mix or Parallel
        Any pattern; its `io_count` and `io_ignore`, if any, are dropped, for parallel patterns
        those of each.
    **rule : float, int, str or None
        Any of `STOP`; the time and the bytes may be strings with units. None means "not given".

    Returns
    -------
    Basic, Mix or Parallel
        The same pattern with its `stop`.

    Raises
    ------
    UsageError
        For an unknown name, or a value that cannot be parsed.

    Examples
    --------
    >>> until_converged(baseline("SR", io_count=5), max_ios=10_000, max_time_ns="2s").stop
    Stop(max_ios=10000, max_time_ns=2000000000)
    """
    read = {
        name: _parse_stop_value(name, value) for name, value in rule.items() if value is not None
    }
    stop = Stop(**read)
    if isinstance(spec, Parallel):
        patterns = tuple(each.but(io_count=None, io_ignore=None) for each in spec.patterns)
        return spec.but(patterns=patterns, stop=stop)
    return spec.but(io_count=None, io_ignore=None, stop=stop)


def _parse_stop_value(name: str, value: Any) -> Any:
    _check_name("parameter of stop", name, STOP)
    if name == "max_time_ns":
        return parse_duration(value, where=name)
    if name == "max_bytes_written":
        return parse_size(value, where=name)
    return _parse_integer(name, value) if name in STOP_COUNTS else parse_number(value, name, -1e9)


def _parse_integer(name: str, value: float | int | str) -> int:
    text_or_int = value if isinstance(value, SupportsIndex) else str(value)
    least = -(2**63) if name == "incr" else 0  # strides may be negative
    return parse_count(text_or_int, name, least)


def changed(spec: Functions, name: str, value: str | int) -> Functions:
    """Return a pattern with one parameter changed; in a mix or a parallel pattern in every part.

    Parameters
    ----------
    spec : Basic, Mix or Parallel
        As made here.
    name : str
        One of `CHANGEABLE`; "pattern" stands for mode and location, as a baseline names them.
    value : str or int
        Sizes and the pause may be strings with units.

    Raises
    ------
    UsageError
        For an unknown name, or a value that cannot be parsed.

    Examples
    --------
    >>> changed(baseline("SR"), "pattern", "RW")
    Basic(mode='write', location='random')
    >>> changed(mix(baseline("SR"), baseline("RR"), 2), "io_size", "4k").second
    MixPart(mode='read', location='random', io_size=4096)
    """
    _check_name("parameter of a pattern", name, CHANGEABLE)
    if isinstance(spec, Parallel):
        if name == "seed":
            return spec.but(**_read({name: value}, (name,)))
        return spec.but(patterns=tuple(changed(each, name, value) for each in spec.patterns))
    if isinstance(spec, Basic):
        return _with_parameter(spec, name, value)
    if name in (*MIX_PARAMETERS, *MIX_ORDERS, "interval"):
        return spec.but(**_read({name: value}, CHANGEABLE))
    return spec.but(
        first=_with_parameter(spec.first, name, value),
        second=_with_parameter(spec.second, name, value),
        others=tuple(_with_parameter(each, name, value) for each in spec.others),
    )


def _with_parameter(part: B, name: str, value: str | int) -> B:
    """Return a basic pattern, or one of a mix, with one parameter changed."""
    if name == "pattern":
        _check_name("pattern", str(value), BASELINES)
        mode, location = BASELINES[str(value)]
        return replace(part, mode=mode, location=location)
    if name in (names := {"mode": MODES, "location": LOCATIONS, "time": TIMES}):
        _check_name(name, str(value), names[name])
        return replace(part, **{name: str(value)})
    if name not in part.__struct_fields__:
        raise UsageError(
            f"A {'basic pattern' if isinstance(part, Basic) else 'part of a mix'} has no {name}",
            where=name,
            got=str(value),
            allowed=", ".join(n for n in CHANGEABLE if n in (*part.__struct_fields__, "pattern")),
            action="change a parameter that it has",
        )
    return replace(part, **_read({name: value}, CHANGEABLE))


def _check_name(parameter: str, value: str, known: Mapping[str, object] | tuple[str, ...]) -> None:
    if value not in list(known):  # a list, because the value may not be hashable
        raise unknown_name(parameter, value, known, where=parameter)


def _read(parameters: Mapping[str, object], allowed: tuple[str, ...]) -> Table:
    """Parse the given values, in the order in which they were given."""
    read: Table = {}
    value: Any
    for name, value in parameters.items():
        if name not in allowed:
            raise unknown_name("parameter", name, allowed)
        if value is None:
            continue
        if name in SIZES:
            read[name] = parse_size(value, where=name)
        elif name in DURATIONS:
            read[name] = parse_duration(value, where=name)
        else:
            read[name] = _parse_integer(name, value) if name in (*COUNTS, *MIX_ORDERS) else value
    return read
