"""The reference: a pattern of a result, on a fresh device, until its mean has settled.

::

    response time  |▂▂▂▂▇▅▇▆▇▅▆▇▅▇▆▇▅▇▆▇▆▅▇▆▇
                   |   |   |       |               I/Os ->
                      n/8 n/4     n/2             n
                        a    b        c            reference = c, if a, b and c agree

The reference does not use the analysis under test (no start-up detection, no stop rule, no
confidence interval): a run has n I/Os. If the means of its last half, of the quarter before and of
the eighth before that differ by more than `MAX_DIFFERENCE`, it is repeated with more. A run with
writes also continues until it has written, or the device has programmed, `PASSES` times the amount
that the device can absorb in advance: write cache, SLC cache and spare space of its profile.

A longer run also has a larger target if the pattern visits each address once: it continues over the
rest of the device. A pattern that wraps around in a small target space stays there. Reads of few
addresses cost what the flash pages of these addresses cost: their reference is the mean over
`PLACES` places, drawn over the whole device. A device whose mean never settles has no reference,
only a range. (Example: sequential writes over the data of random writes get cheaper with every
block that becomes wholly invalid.)
"""

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from uflip import _native
from uflip.benchmark.interference import LONGEST_BUSY_NS
from uflip.data.device import DeviceInfo
from uflip.data.ledger import digest_of
from uflip.data.spec import Basic, Mix, MixPart, Parallel, Pattern, table_of
from uflip.data.state_record import StateRequest
from uflip.device import cache
from uflip.device.catalogue import inspect_device
from uflip.device.handle import Device
from uflip.device.opener import open_device
from uflip.footprint import reads_few_addresses
from uflip.safe_files import write_file

PASSES = 2
"""How many times write cache, SLC cache and spare space are written."""
MAX_DIFFERENCE = 0.05
"""Largest relative difference between the means of successive parts of a settled run."""
MIN_IOS = 16_384
"""I/Os of the shortest run: its last half has a standard error of 1 % if the standard deviation is
as large as the mean."""
MAX_IOS, MAX_OVERWRITES = 1 << 21, 1
"""A run that has not settled by then has no reference; overwrites are of the device."""
GROWTH = 2, 32
PLACES = 128
"""Target spaces of reads of few addresses: their mean has a standard error of 2 % if they differ by
20 %."""
SEED = 20_090_104
"""Seed of random addresses: neither that of a plan nor that of a state."""


@dataclass(frozen=True)
class LongRunSpec:
    """The definition of a long run; equal claims share one."""

    url: str  #: The device.
    state: StateRequest | None  #: The state that is enforced first; None: that of the profile.
    pause_ns: int  #: Idle time of the device before the run [ns].
    spec: Pattern  #: The pattern of the claim, with all defaults filled in.
    #: Preceding patterns in functional mode: trims of runs with a fixed order.
    before: tuple[Pattern, ...] = ()
    #: Whether the length is part of the question: then the run is made as it is.
    fixed_length: bool = False

    @property
    def depends_on_place(self) -> bool:
        """Whether it reads few addresses, so that the mean of one place is not that of another."""
        return reads_few_addresses(self.spec)

    @property
    def writes(self) -> bool:
        """Whether any of its I/Os writes."""
        return any(part.is_write for part in self.spec.parts)

    @property
    def name(self) -> str:
        """Return the cache name: a hash of everything that determines the result."""
        info = _inspect(self.url)
        spec = table_of(self.spec if self.fixed_length else _lengthen(self.spec, 1, info))
        preceding = [table_of(each) for each in self.before]
        rules = [PASSES, MAX_DIFFERENCE, MIN_IOS, MAX_IOS, MAX_OVERWRITES]
        if self.depends_on_place:
            rules.append(PLACES)
        if not self.writes:
            rules.append(LONGEST_BUSY_NS)
        return cache.cache_key(
            "long run",
            info.model,
            info.profile_table,
            self.state,
            self.pause_ns,
            spec,
            preceding,
            rules,
        )


@dataclass(frozen=True)
class LongRun:
    """The result of a sufficiently long run."""

    mean_ns: float  #: Mean of its last half [ns].
    ios_per_s: float  #: Throughput of its last half.
    low_ns: float  #: Lowest mean of the compared parts [ns].
    high_ns: float  #: Highest mean of the compared parts [ns].
    ios: int
    bytes_written: int
    settled: bool  #: Whether these parts agree.


def long_run(question: LongRunSpec) -> LongRun:
    """Return the long run of a question, from the cache if it was made before."""
    path = cache.folder().parent / "long-runs" / f"{question.name}.json"
    if cache.limit_bytes() and (cached := _read(path)) is not None:
        return cached
    result = _measure(question)
    if cache.limit_bytes():
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, _encode(result))
    return result


def _encode(result: LongRun) -> bytes:
    """Return the content of a cache file: the digest of the result, and the result."""
    fields = asdict(result)
    return json.dumps({"digest": digest_of(fields), "result": fields}).encode()


def _read(path: Path) -> LongRun | None:
    """Return a cached result; None if the file is missing or damaged."""
    with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
        content = json.loads(path.read_text(encoding="utf-8"))
        if digest_of(content["result"]) == content["digest"]:
            return LongRun(**content["result"])
    return None


def _measure(question: LongRunSpec) -> LongRun:
    device = _prepare_device(question)
    info = device.info
    if question.fixed_length:
        return _evaluate(_run(device, question.spec, question.pause_ns), settled=True)
    if question.depends_on_place:
        return _mean_over_places(device, question)
    needed = PASSES * absorbed_bytes(info) if question.writes else 0
    rows = MIN_IOS
    while True:
        spec = _lengthen(question.spec, rows, info)
        fresh = device.clone()
        before = _programmed_bytes(fresh)
        trace = _run(fresh, spec, question.pause_ns)
        passed = max(_programmed_bytes(fresh) - before, trace.bytes_written)
        result = _evaluate(trace)
        wrote_enough = passed >= needed
        if (wrote_enough and result.settled) or _is_longest(question.spec, result, info):
            return result
        least, most = GROWTH
        missing = needed / passed if passed else most
        rows = min(int(rows * min(max(1.1 * missing, least), most)), MAX_IOS)


def _mean_over_places(device: Device, question: LongRunSpec) -> LongRun:
    """Return the mean over target spaces at random places; its range is a 95 % interval."""
    spec = _lengthen(question.spec, MIN_IOS // PLACES, device.info)
    assert isinstance(spec, Basic), "as `depends_on_place` checks"
    last = (device.info.capacity_bytes - spec.target_bytes) // spec.io_bytes
    begins = np.random.default_rng(SEED).integers(0, last, PLACES, endpoint=True) * spec.io_bytes
    runs = [
        _evaluate(_run(device, spec.but(target_offset=int(begin)), question.pause_ns))
        for begin in begins
    ]
    means = np.array([run.mean_ns for run in runs])
    mean, error = float(means.mean()), 2 * float(means.std(ddof=1)) / PLACES**0.5
    return LongRun(
        mean_ns=mean,
        ios_per_s=PLACES / sum(1 / run.ios_per_s for run in runs),
        low_ns=mean - error,
        high_ns=mean + error,
        ios=sum(run.ios for run in runs),
        bytes_written=0,
        settled=error <= MAX_DIFFERENCE * mean,
    )


def absorbed_bytes(info: DeviceInfo) -> int:
    """Return the bytes that a simulated device absorbs before writes reach their final cost."""
    profile = info.details.profile or {}
    buffered = int(profile.get("cache", {}).get("write_cache_bytes", 0))
    spare = max((info.details.flash_bytes or 0) - info.capacity_bytes, 0)
    geometry, slc = profile.get("geometry", {}), profile.get("slc_cache", {})
    blocks = max(int(slc.get("slc_blocks_max", 0)), int(slc.get("slc_blocks", 0)))
    bits = int(profile.get("timing", {}).get("bits_per_cell", 1))
    dies = int(geometry.get("channels", 1)) * int(geometry.get("dies_per_channel", 1))
    planes = int(geometry.get("planes_per_die", 1))
    block = int(geometry.get("pages_per_block", 0)) * int(geometry.get("page_bytes", 0))
    return buffered + spare + blocks * dies * planes * block // max(bits, 1)


@lru_cache(maxsize=64)
def _inspect(url: str) -> DeviceInfo:
    return inspect_device(url)


@lru_cache(maxsize=1)
def _open_device(url: str) -> Device:
    return open_device(url, writable=True)


@lru_cache(maxsize=1)
def _device_in_state(url: str, state: str | None) -> Device:
    device = _open_device(url).clone()
    if state is not None:
        device.enforce(json.loads(state))
    return device


def _prepare_device(question: LongRunSpec) -> Device:
    """Return a separate device in the state of a question."""
    state = None if question.state is None else json.dumps(question.state)
    device = _device_in_state(question.url, state).clone()
    if not question.writes:
        device.idle(LONGEST_BUSY_NS)
    for spec in question.before:
        device.apply(spec)
    return device


def _run(device: Device, spec: Pattern, pause_ns: int) -> _native.Trace:
    device.idle(pause_ns)
    return device.run(spec)


def _programmed_bytes(device: Device) -> int:
    counted = device.counters() or {}
    return counted.get("pages_programmed", 0) * (device.info.page_bytes or 0)


def _is_longest(spec: Pattern, result: LongRun, info: DeviceInfo) -> bool:
    """Return whether a longer run would measure something else, or nothing new."""
    if result.ios >= MAX_IOS // 2:
        return True
    once = [part for part in spec.parts if part.is_write and _visits_once(spec, part)]
    space = max((part.target_bytes for part in spec.parts if part.is_write), default=0)
    if once:
        # The next pass would meet the blocks that this one wrote in order.
        return result.bytes_written >= info.capacity_bytes // 2
    return bool(space) and result.bytes_written >= MAX_OVERWRITES * info.capacity_bytes


def _evaluate(trace: _native.Trace, *, settled: bool = False) -> LongRun:
    """Compare the last half of a run with the quarter and the eighth before; all if `settled`."""
    submitted = np.asarray(trace.column("submit_ns"))
    order = np.argsort(submitted, kind="stable")
    times = np.asarray(trace.column("response_time_ns"))[order].astype(np.float64)
    submitted = submitted[order]
    n = len(times)
    if settled:
        counted = np.asarray(trace.column("ignored"))[order] == 0
        mean = float(times[counted].mean())
        return LongRun(mean, 0.0, mean, mean, n, trace.bytes_written, settled=True)
    parts = [_mean(times[n // 8 : n // 4]), _mean(times[n // 4 : n // 2]), _mean(times[n // 2 :])]
    quarters = [_mean(times[n // 2 : 3 * n // 4]), _mean(times[3 * n // 4 :])]
    duration_ns = float(submitted[-1] - submitted[n // 2])
    low, high = min(parts + quarters), max(parts + quarters)
    return LongRun(
        mean_ns=parts[-1],
        ios_per_s=(n - 1 - n // 2) / duration_ns * 1e9 if duration_ns else 0.0,
        low_ns=low,
        high_ns=high,
        ios=n,
        bytes_written=trace.bytes_written,
        settled=max(parts) - min(parts) <= MAX_DIFFERENCE * parts[-1],
    )


def _mean(times: NDArray[np.float64]) -> float:
    return float(times.mean())


def _lengthen(spec: Pattern, rows: int, info: DeviceInfo) -> Pattern:
    """Return a pattern with about `rows` I/Os, each measured.

    Seeds and target spaces, which vary between repetitions, are the same for all.
    """
    if isinstance(spec, Parallel):
        each = max(rows // len(spec.patterns), 1)
        some = tuple(_lengthen(one, each, info) for one in spec.patterns)
        return spec.but(patterns=some, seed=SEED, stop=None)
    if isinstance(spec, Mix):
        return _lengthen_mix(spec, rows, info)
    assert isinstance(spec, Basic), "a pattern of functions"
    count = max(rows // spec.processes, 1)
    if spec.burst:
        count = -(-count // (4 * spec.burst)) * 4 * spec.burst
    space = _target_size(spec, spec, count * spec.processes, info.capacity_bytes)
    # The target space must be whole for each process.
    unit = spec.io_bytes * spec.processes
    size = max(space // unit * unit, spec.target_bytes) if space > spec.target_bytes else space
    begin = _begin(spec, size, info.capacity_bytes)
    return spec.but(
        io_count=count, io_ignore=0, stop=None, seed=SEED, target_size=size, target_offset=begin
    )


def _lengthen_mix(spec: Mix, rows: int, info: DeviceInfo) -> Mix:
    drawn = spec.first_percent is not None
    count = max(rows if drawn else rows // (spec.turns + 1), 1)
    parts = []
    for part, other, each in (
        (spec.first, spec.second, count if drawn else count * spec.turns),
        (spec.second, spec.first, count),
    ):
        end = other.begin if other.begin > part.begin else info.capacity_bytes
        size = _target_size(spec, part, each, end - part.begin)
        parts.append(structs.replace(part, target_size=size))
    first, second = parts
    return spec.but(first=first, second=second, io_count=count, io_ignore=0, stop=None, seed=SEED)


def _begin(part: MixPart, size: int, capacity: int) -> int:
    """Return the begin of a longer target space: unchanged if it fits, else 0."""
    if _visits_in_order(part):
        return 0
    return part.begin if part.begin + size <= capacity else 0


def _target_size(spec: Pattern, part: MixPart, ios: int, available: int) -> int:
    """Return the size of the target space of a number of I/Os of a part [bytes]."""
    if not _visits_once(spec, part):
        return part.target_bytes
    step = max(abs(part.incr), 1) if part.incr is not None else 1
    needed = ios * step * part.io_bytes + (part.shift and part.io_bytes)
    unit = part.io_bytes * (part.partitions or 1)
    return max(min(needed, available) // unit * unit, min(part.target_bytes, available))


def _visits_in_order(part: MixPart) -> bool:
    return part.location in ("sequential", "ordered", "partitioned")


def _visits_once(spec: Pattern, part: MixPart) -> bool:
    """Return whether the original pattern visits no address twice."""
    if not _visits_in_order(part) or part.incr == 0:
        return False
    ios = spec.most_ios * part.processes
    if isinstance(spec, Mix) and part is spec.first and spec.first_percent is None:
        ios *= spec.turns
    return ios * part.io_bytes <= part.target_bytes
