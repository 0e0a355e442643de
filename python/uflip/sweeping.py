"""One pattern on many simulated devices: every combination of the values that vary, on all cores.

Every point makes a device of its own from its profile, in the state of that profile (the cache
makes the second sweep of the same devices start at once), warms it up if asked to, and runs the
pattern. Points know nothing of each other: a row is what the same command would give alone.
"""

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from uflip.amplification import write_amplification
from uflip.cores import OnStep, ignore, on_all_cores
from uflip.device.catalogue import inspect_device
from uflip.device.opened import Device
from uflip.device.opening import open_device
from uflip.device.resolving import resolve
from uflip.device.url import parse_url, with_overrides
from uflip.durability import CACHED, chosen
from uflip.errors import UsageError
from uflip.spec import CHANGEABLE, Functions, Parallel, Replay, changed
from uflip.stats import summarise

# Each is a device of its own; what is more is a slip of the hand.
MOST_POINTS = 100_000
# What writes wait for varies as a parameter does.
DURABILITY = "durability"

Values = dict[str, Any]
"""What varies: name -> value at a point."""
Statistics = dict[str, int | float | None]
"""As `uflip.stats.Summary` has them."""


@dataclass(frozen=True)
class Point:
    """One combination: a device, a complete pattern, and which values make it this one."""

    values: Values
    url: str
    spec: Functions
    durability: str


@dataclass(frozen=True)
class Row:
    """What a point gave.

    Attributes
    ----------
    values : dict
        What varied.
    device : str
        The device's URL: what is measured here can be repeated by hand.
    durability : str
        What writes waited for, see `uflip.durability`.
    ios : int
        I/Os of the run, ignored ones included.
    elapsed_ns : int or None
        From the first submission to the last completion [ns]; None where no time passed.
    ios_per_s, bytes_per_s : float or None
        Rates of the whole run.
    reads, writes : dict or None
        Of the response times of either: mean_ns, std_ns, percentiles, ...; None without any.
    write_amplification : float or None
        Bytes programmed over bytes that the host wrote; None where it wrote none.
    relocated_pages_per_block : float or None
        Pages moved a collected block; None where none was collected.
    counters : dict
        What the device counted during the run.
    """

    values: Values
    device: str
    durability: str
    ios: int
    elapsed_ns: int | None
    ios_per_s: float | None
    bytes_per_s: float | None
    reads: Statistics | None
    writes: Statistics | None
    write_amplification: float | None
    relocated_pages_per_block: float | None
    counters: dict[str, int]

    def as_dict(self) -> dict[str, Any]:
        """Plain data, in the order of the fields."""
        return asdict(self)


def points(
    url: str, spec: Functions, vary: Mapping[str, Sequence[Any]], durability: str = CACHED
) -> list[Point]:
    """List every combination, the last name varying fastest; all of them are checked.

    Parameters
    ----------
    url : str
        A simulated device; its own overrides hold at every point.
    spec : Basic, Mix or Parallel
        The pattern.
    vary : mapping
        Name -> values. A name is one of `uflip.spec.CHANGEABLE`, "durability", or else a key of the
        profile.
    durability : str
        What writes wait for, see `uflip.durability`, where it does not vary.

    Returns
    -------
    list of Point

    Raises
    ------
    UsageError
        If the device is not simulated, nothing varies, or any point makes no device or pattern.

    Examples
    --------
    >>> from uflip.spec import baseline
    >>> found = points("sim:demo", baseline("RW"), {"gc": ["greedy", "cyclic"], "io_size": ["4k"]})
    >>> [(point.url, point.spec.parts[0].io_size) for point in found]
    [('sim:demo?gc=greedy', 4096), ('sim:demo?gc=cyclic', 4096)]
    """
    if parse_url(url).kind != "sim":
        raise UsageError(
            "Only simulated devices can be swept",
            where="DEVICE",
            got=url,
            allowed="sim:NAME",
            action="a real device is one device: vary a pattern with `uflip run`",
        )
    for name, values in vary.items():
        if not values:
            raise UsageError("Nothing varies", where=name, got="no value", allowed="NAME=V1,V2,...")
    count = math.prod(len(values) for values in vary.values())
    if count > MOST_POINTS:
        raise UsageError(
            "There are too many combinations",
            where="--vary",
            got=str(count),
            allowed=f"at most {MOST_POINTS}",
            action="vary less at a time",
        )
    combinations = [
        dict(zip(vary, values, strict=True)) for values in itertools.product(*vary.values())
    ]
    return [_point(url, spec, values, durability) for values in combinations]


def _point(url: str, spec: Functions, values: Values, durability: str) -> Point:
    overrides = {}
    for name, value in values.items():
        if name == DURABILITY:
            durability = str(value)
        elif name in CHANGEABLE:
            spec = changed(spec, name, value)
        else:
            overrides[name] = value
    url = with_overrides(url, overrides)
    complete = resolve(spec, inspect_device(url)).spec
    assert not isinstance(complete, Replay), "what functions make stays so"
    return Point(values, url, complete, chosen(durability))


def sweep(
    url: str,
    spec: Functions,
    vary: Mapping[str, Sequence[Any]],
    *,
    durability: str = CACHED,
    warm_up: float = 0.0,
    timed: bool = True,
    jobs: int | None = None,
    on_step: OnStep = ignore,
) -> list[Row]:
    """Run a pattern on every combination of the values that vary.

    Parameters
    ----------
    url : str
        A simulated device; its own overrides hold at every point.
    spec : Basic, Mix or Parallel
        The pattern, as `uflip.baseline` and the like make it.
    vary : mapping
        Name -> values. A name is one of `uflip.spec.CHANGEABLE`, "durability", or else a key of the
        profile.
    durability : str
        What writes wait for, see `uflip.durability`, where it does not vary.
    warm_up : float
        Before the run, write so many times the size of the device in functional mode, by the same
        pattern with another seed: what is measured is then its steady state.
    timed : bool
        False: run in functional mode, at the speed of memory. There are no times then, only what
        was counted.
    jobs : int, optional
        So many points at a time; as many as there are cores without it.
    on_step : callable, optional
        Called after each point, in order.

    Returns
    -------
    list of Row
        In the order of `points`, however many run at a time.

    Raises
    ------
    UsageError
        As `points`; for a warm-up by a pattern that only reads, and for writes that wait for their
        durability in functional mode.

    Examples
    --------
    >>> from uflip.spec import baseline
    >>> rows = sweep(
    ...     "sim:demo?blocks_per_die=64", baseline("RW"), {"spare_factor": [0.15, 0.3]}, timed=False
    ... )
    >>> rows[0].write_amplification > rows[1].write_amplification
    True
    """
    if warm_up > 0 and not spec.writes:
        raise UsageError(
            "A pattern that only reads warms nothing up",
            where="warm_up",
            got=str(warm_up),
            action="leave it away, or vary a pattern that writes",
        )
    work = partial(_measure, warm_up=warm_up, timed=timed)
    every = points(url, spec, vary, durability)
    for point in every:
        if not timed and point.durability != CACHED:
            raise UsageError(
                "What takes no time waits for nothing",
                where=DURABILITY,
                got=point.durability,
                allowed=CACHED,
                action="take times (without --untimed), or leave the durability away",
            )
    return on_all_cores(work, every, on_step, _name, jobs)


def _name(point: Point) -> str:
    return " ".join(f"{name}={value}" for name, value in point.values.items())


def _measure(point: Point, *, warm_up: float, timed: bool) -> Row:
    with open_device(point.url, durability=point.durability) as device:
        if warm_up > 0:
            _warm_up(device, point.spec, warm_up)
        return _timed(device, point) if timed else _untimed(device, point)


def _warm_up(device: Device, spec: Functions, times: float) -> None:
    """Write by the same pattern, with a seed of its own, until it is enough."""
    info = device.info
    written = resolve(spec, info).totals.bytes_written
    rounds = times * info.capacity_bytes / max(written, 1)
    device.apply(_longer(spec, rounds).but(seed=((spec.seed or 0) + 1) % 2**64))


def _longer(spec: Functions, rounds: float) -> Functions:
    """Make a pattern so many times as long."""
    if isinstance(spec, Parallel):
        return spec.but(patterns=tuple(_longer(each, rounds) for each in spec.patterns))
    io_count = max(1, round(spec.ios * rounds))
    return spec.but(stop=None, io_count=io_count, io_ignore=0)


def _timed(device: Device, point: Point) -> Row:
    trace = device.run(point.spec)
    kept = np.asarray(trace.column("ignored")) == 0
    response_ns = np.asarray(trace.column("response_time_ns"))
    elapsed_ns = trace.elapsed_ns()
    sizes, modes = (np.asarray(trace.column(name)) for name in ("io_size_bytes", "mode"))
    reads, writes = (_statistics(response_ns[kept & (modes == mode)]) for mode in (0, 1))
    size_bytes = int(sizes.sum(dtype=np.uint64))
    written_bytes = int(sizes[modes == 1].sum(dtype=np.uint64))
    counters = json.loads(trace.counters_json() or "{}")
    return _row(
        point,
        counters,
        write_amplification=write_amplification(counters, device.info.page_bytes, written_bytes),
        ios=len(trace),
        elapsed_ns=elapsed_ns,
        ios_per_s=len(trace) / elapsed_ns * 1e9,
        bytes_per_s=size_bytes / elapsed_ns * 1e9,
        reads=reads,
        writes=writes,
    )


def _statistics(response_ns: np.ndarray) -> Statistics | None:
    return summarise(response_ns).as_dict() if len(response_ns) else None


def _untimed(device: Device, point: Point) -> Row:
    counters = device.apply(point.spec)
    totals = resolve(point.spec, device.info).totals
    ratio = write_amplification(counters, device.info.page_bytes, totals.bytes_written)
    nothing = dict.fromkeys(("elapsed_ns", "ios_per_s", "bytes_per_s", "reads", "writes"))
    return _row(point, counters, write_amplification=ratio, ios=totals.total_ios, **nothing)


def _row(point: Point, counters: dict[str, int], **measured: Any) -> Row:
    collected = counters["blocks_collected"]
    return Row(
        values=point.values,
        device=point.url,
        durability=point.durability,
        relocated_pages_per_block=counters["pages_relocated"] / collected if collected else None,
        counters=counters,
        **measured,
    )
