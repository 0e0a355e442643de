"""Pattern specifications: plain data that names what to do, and goes down to the native part.

A specification is a JSON object. The builders below check names and read sizes and durations as
people write them; they hold no default and no rule about values, because the native part validates
every specification and owns every default. What is not given is left out.

Source: uFLIP (CIDR 2009) section 3.1; the parameter names are the paper's, in snake case.
"""

from collections.abc import Mapping
from typing import Any

from uflip.errors import UsageError, unknown_name
from uflip.units import parse_count, parse_duration, parse_size

Spec = dict[str, Any]
"""A pattern specification: sizes in bytes, times in nanoseconds."""

MODES = ("read", "write")
LOCATIONS = ("sequential", "random", "ordered", "partitioned")
TIMES = ("consecutive", "pause", "burst")

BASELINES: dict[str, tuple[str, str]] = {
    "SR": ("read", "sequential"),
    "RR": ("read", "random"),
    "SW": ("write", "sequential"),
    "RW": ("write", "random"),
}
"""The four baseline patterns: label -> (mode, location)."""

SIZES = ("io_size", "io_shift", "target_offset", "target_size")
DURATIONS = ("pause",)
COUNTS = (
    "partitions",
    "incr",
    "burst",
    "parallel_degree",
    "queue_depth",
    "io_count",
    "io_ignore",
    "seed",
)
WORDS = ("time",)
PARAMETERS = (*SIZES, *DURATIONS, *COUNTS, *WORDS)
"""What `basic` takes beside mode and location."""

MIX_PARAMETERS = ("first_percent", "queue_depth", "io_count", "io_ignore", "seed")
"""What belongs to a mix as a whole, and never to its components."""

STOP_COUNTS = ("min_ios", "max_ios")
STOP = ("confidence", "half_width", *STOP_COUNTS, "max_time_ns", "max_bytes_written")
"""What `until_converged` takes: how well the mean must be known, and the budget."""

MIX_ORDERS = ("ratio", "first_percent")
"""How a mix takes I/Os of its two patterns; exactly one of these."""

CHANGEABLE = ("pattern", "mode", "location", *PARAMETERS, *MIX_ORDERS)
"""What `changed` can change."""


def basic(mode: str, location: str, **parameters: str | int | None) -> Spec:
    """Describe a basic pattern.

    Parameters
    ----------
    mode : str
        "read" or "write".
    location : str
        "sequential", "random", "ordered" or "partitioned".
    **parameters : str, int or None
        Any of `PARAMETERS`; sizes and the pause may be strings with units. None means "not given".

    Returns
    -------
    Spec
        Checked for names and units only; the native part checks the rest.

    Raises
    ------
    UsageError
        For an unknown name, or a value that cannot be read.

    Examples
    --------
    >>> basic("write", "random", io_size="32KiB", io_count=100)
    {'kind': 'basic', 'mode': 'write', 'location': 'random', 'io_size': 32768, 'io_count': 100}
    """
    _known("mode", mode, MODES)
    _known("location", location, LOCATIONS)
    if (time := parameters.get("time")) is not None:
        _known("time", str(time), TIMES)
    return {"kind": "basic", "mode": mode, "location": location} | _read(parameters, PARAMETERS)


def baseline(label: str, **parameters: str | int | None) -> Spec:
    """Describe one of the four baseline patterns, SR, RR, SW or RW.

    Parameters
    ----------
    label : str
        Which.
    **parameters : str, int or None
        As for `basic`.

    Returns
    -------
    Spec

    Examples
    --------
    >>> baseline("SR", io_size=512)
    {'kind': 'basic', 'mode': 'read', 'location': 'sequential', 'io_size': 512}
    """
    _known("pattern", label, BASELINES)
    mode, location = BASELINES[label]
    return basic(mode, location, **parameters)


def mix(
    first: Spec, second: Spec, ratio: int | None = None, **parameters: str | int | None
) -> Spec:
    """Describe a mixed pattern: in turn, or each I/O drawn at random.

    Parameters
    ----------
    first, second : Spec
        Two basic patterns without any of `MIX_PARAMETERS`.
    ratio : int, optional
        `ratio` I/Os of the first pattern, then one of the second, and so on.
    **parameters : str, int or None
        Any of `MIX_PARAMETERS`. `first_percent` instead of a ratio: the chance of the first
        pattern, drawn for each I/O [%]. `io_count` and `io_ignore` count I/Os of the second, rarer
        pattern, and of both where they are drawn.

    Returns
    -------
    Spec

    Raises
    ------
    UsageError
        For an unknown name, or a parameter of the mix given to a component.

    Examples
    --------
    >>> mix(baseline("SR"), baseline("RR"), 2, io_count=10)["ratio"]
    2
    >>> mix(baseline("RR"), baseline("RW"), first_percent=70)["first_percent"]
    70
    """
    for place, component in (("first", first), ("second", second)):
        for name in MIX_PARAMETERS:
            if name in component:
                raise UsageError(
                    f"{name} belongs to the mix, not to one of its components",
                    where=f"{place} pattern of the mix",
                    got=f"{name}={component[name]}",
                    action=f"give {name} to the mix",
                )
    head = {"kind": "mix", "first": _part(first), "second": _part(second)}
    return head | _read({"ratio": ratio, **parameters}, ("ratio", *MIX_PARAMETERS))


def _part(basic: Spec) -> Spec:
    """Make a part of a mix: always basic, so that it does not say so."""
    return {name: value for name, value in basic.items() if (name, value) != ("kind", "basic")}


def parallel(*patterns: Spec, seed: int | None = None) -> Spec:
    """Describe different patterns that run side by side, one stream each.

    Parameters
    ----------
    *patterns : Spec
        One for each stream.
    seed : int, optional
        Of random addresses; each stream has its own from it.

    Returns
    -------
    Spec

    Examples
    --------
    >>> len(parallel(baseline("SR"), baseline("RW"))["patterns"])
    2
    """
    return {"kind": "parallel", "patterns": list(patterns)} | _read({"seed": seed}, ("seed",))


def until_converged(spec: Spec, **rule: float | int | str | None) -> Spec:
    """Let a run find its own length: `io_count` and `io_ignore` follow from what the device does.

    Parameters
    ----------
    spec : Spec
        Any pattern; its `io_count` and `io_ignore`, if any, are dropped, of patterns side by side
        those of each.
    **rule : float, int, str or None
        Any of `STOP`; the time and the bytes may be strings with units. None means "not given".

    Raises
    ------
    UsageError
        For an unknown name, or a value that cannot be read.

    Examples
    --------
    >>> until_converged(baseline("SR", io_count=5), max_ios=10_000, max_time_ns="2s")["stop"]
    {'max_ios': 10000, 'max_time_ns': 2000000000}
    """
    stop: dict[str, float | int] = {}
    for name, value in rule.items():
        _known("parameter of stop", name, STOP)
        if value is None:
            continue
        if name == "max_time_ns":
            stop[name] = parse_duration(_text_or_whole(name, value), where=name)
        elif name == "max_bytes_written":
            stop[name] = parse_size(_text_or_whole(name, value), where=name)
        else:
            stop[name] = _whole(name, value) if name in STOP_COUNTS else float(value)
    kept = _without_length(spec)
    if spec.get("kind") == "parallel":
        kept["patterns"] = [_without_length(part) for part in spec["patterns"]]
    return kept | {"stop": stop}


def _whole(name: str, value: float | int | str) -> int:
    return value if isinstance(value, int) else parse_count(str(value), name, -(2**63))


def _without_length(spec: Spec) -> Spec:
    return {name: value for name, value in spec.items() if name not in ("io_count", "io_ignore")}


def _text_or_whole(name: str, value: float | int | str) -> str | int:
    return value if isinstance(value, str) else _whole(name, value)


def components(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the basic patterns that a specification is made of, in order."""
    if spec.get("kind") == "mix":
        parts = [spec.get("first"), spec.get("second")]
    elif spec.get("kind") == "parallel":
        parts = spec.get("patterns") or []
    else:
        return [spec]
    # A malformed part is the native part's to report; here it only must not be a crash.
    return [basic for part in parts if isinstance(part, Mapping) for basic in components(part)]


def writes(spec: Mapping[str, Any]) -> bool:
    """Return whether any I/O of a pattern is a write."""
    return any(component.get("mode") != "read" for component in components(spec))


def writes_sequentially(spec: Mapping[str, Any]) -> bool:
    """Return whether a pattern holds sequential, ordered or partitioned writes.

    These disturb the state of a device most, so that a plan keeps their targets apart (uFLIP §4.1).
    """
    return any(
        component.get("mode") == "write" and component.get("location") != "random"
        for component in components(spec)
    )


def changed(spec: Spec, name: str, value: str | int) -> Spec:
    """Return a pattern with one parameter changed: of a mix or a parallel pattern in every part.

    Parameters
    ----------
    spec : Spec
        As made here.
    name : str
        One of `CHANGEABLE`; "pattern" stands for mode and location, as a baseline names them.
    value : str or int
        Sizes and the pause may be strings with units.

    Raises
    ------
    UsageError
        For an unknown name, or a value that cannot be read.

    Examples
    --------
    >>> changed(baseline("SR"), "pattern", "RW")
    {'kind': 'basic', 'mode': 'write', 'location': 'random'}
    >>> changed(mix(baseline("SR"), baseline("RR"), 2), "io_size", "4k")["second"]
    {'mode': 'read', 'location': 'random', 'io_size': 4096}
    """
    _known("parameter of a pattern", name, CHANGEABLE)
    if spec.get("kind") == "parallel":
        if name == "seed":
            return spec | _read({name: value}, (name,))
        # What is missing is told by the part that reads the whole.
        parts = [changed(part, name, value) for part in spec.get("patterns", ())]
        return spec | {"patterns": parts}
    of_mix = spec.get("kind") == "mix"
    if of_mix and name not in (*MIX_PARAMETERS, *MIX_ORDERS):
        there = [part for part in ("first", "second") if part in spec]
        return spec | {part: changed(spec[part], name, value) for part in there}
    if name == "pattern":
        _known("pattern", str(value), BASELINES)
        mode, location = BASELINES[str(value)]
        return spec | {"mode": mode, "location": location}
    if name in (names := {"mode": MODES, "location": LOCATIONS, "time": TIMES}):
        _known(name, str(value), names[name])
    return spec | _read({name: value}, CHANGEABLE)


def sequential_writes(spec: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Return where a specification writes sequentially: (begin, end) of each target [bytes].

    Examples
    --------
    >>> sequential_writes(baseline("SW", target_offset="1MiB", target_size="2MiB"))
    [(1048576, 3145728)]
    """
    return [
        (part.get("target_offset", 0), part.get("target_offset", 0) + part["target_size"])
        for part in components(spec)
        if part.get("mode") == "write" and part.get("location") != "random"
    ]


def _known(parameter: str, value: str, known: Mapping[str, object] | tuple[str, ...]) -> None:
    if value not in known:
        raise unknown_name(parameter, value, known, where=parameter)


def _read(parameters: Mapping[str, str | int | None], allowed: tuple[str, ...]) -> Spec:
    """Read the values that were given, in the order in which they were given."""
    spec: Spec = {}
    for name, value in parameters.items():
        if name not in allowed:
            raise unknown_name("parameter", name, allowed)
        if value is None:
            continue
        if name in SIZES:
            spec[name] = parse_size(value, where=name)
        elif name in DURATIONS:
            spec[name] = parse_duration(value, where=name)
        elif name in COUNTS or name in MIX_ORDERS:
            spec[name] = _whole(name, value)
        else:
            spec[name] = value
    return spec
