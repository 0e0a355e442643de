"""A simulated device for experiments: overridden, brought into a state, cloned, measured; traffic.

`uflip.device.handle.Device` is a device of any kind and only runs patterns. This module adds the
functional mode and copies of simulated devices, on the same native device, and OFC's traffic
generator: one-page requests with a limit of outstanding ones. A request that completes is followed
by the next of the same sequence at once, so that a fixed number of requests is outstanding at any
time: the queue depth of a pattern.

**Source**: OFC (2011) §V.A: "the number of requests outstanding at any point in time is limited"; a
pseudo-random generator, the Super Fast Hash; pages of the host's block size.
**Faithful**: a bound on all requests together; uniform random addresses with replacement; a new
request as soon as one completes; a mix draws for each request whether it reads or writes.
**Simplified**: a long window is made of runs, and the queue runs empty between two of them: once in
half a million requests, and once a round of a sequential stream.
**Ambiguous**: the bound is not printed; see `uflip.reproduce.ofc.OUTSTANDING`. Equal seeds give
reads the same addresses as writes, in the same order, as step 6 of its figure 7 needs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from uflip import _native
from uflip.data.locations import Location
from uflip.device.handle import Device
from uflip.device.opener import open_sim
from uflip.device.url import parse_url
from uflip.spec import Spec, basic, mix

Counters = dict[str, int]
"""Counters of a device: host_pages_written, pages_relocated, blocks_collected, ..."""


@dataclass(frozen=True)
class Window:
    """The statistics of one pattern, or several in a row, in the timed mode."""

    ios: int  #: I/Os that completed.
    elapsed_ns: int  #: From the first submission to the last completion, summed over the runs [ns].
    counters: Counters  #: Counters of the device over that time.
    #: Completion times of the I/Os, in order (ios,) [ns from the beginning of the window].
    completed_ns: NDArray[np.uint64]

    @property
    def kiops(self) -> float:
        """Thousands of I/Os a second."""
        return self.ios / self.elapsed_ns * 1e6

    @property
    def relocated_pages(self) -> float:
        """Relocated pages per collected block; 0 if no block was collected."""
        return relocated_pages(self.counters)

    def kiops_each_second(self) -> NDArray[np.float64]:
        """Thousands of I/Os in each whole second of the window (seconds,)."""
        seconds = np.arange(self.elapsed_ns // 10**9 + 1, dtype=np.uint64) * 10**9
        return np.diff(np.searchsorted(self.completed_ns, seconds)) / 1e3


def relocated_pages(counters: Counters) -> float:
    """Return relocated pages per collected block; 0 if no block was collected.

    >>> relocated_pages({"pages_relocated": 60, "blocks_collected": 4})
    15.0
    """
    return counters["pages_relocated"] / max(counters["blocks_collected"], 1)


def device_url(profile: str, **overrides: Any) -> str:
    """Return the URL of a simulated device, so that a measurement can be repeated by hand.

    >>> device_url("ofc", gc="greedy_window:8", copy_back=False)
    'sim:ofc?gc=greedy_window:8&copy_back=false'
    """
    pairs = (f"{key}={str(value).lower()}" for key, value in overrides.items())
    return f"sim:{profile}" + ("?" + "&".join(pairs) if overrides else "")


class SimulatedDevice:
    """A simulated device in both modes."""

    def __init__(self, url: str, native: _native.Device | None = None) -> None:
        self.url = url
        self._native = open_sim(parse_url(url)) if native is None else native
        self._device = Device(self._native, url)
        profile = self._device.info.profile_table
        self.page_bytes = int(profile["geometry"]["page_bytes"])
        """Data of a flash page [bytes]."""
        self.page_bytes_with_spare = self.page_bytes + int(profile["geometry"]["spare_bytes"])
        """Bytes that channel and bus transfer for a page."""
        self.logical_pages = self._device.info.capacity_bytes // self.page_bytes
        """S_L: pages that the host can address."""

    def clone(self) -> Self:
        """Return a copy of the device in the same state."""
        return type(self)(self.url, self._device.native_copy())

    def __reduce__(self) -> tuple[Callable[[str, bytes], SimulatedDevice], tuple[str, bytes]]:
        """Pickle the device as a snapshot, as `uflip run --save` writes it."""
        with TemporaryDirectory(prefix="uflip-") as folder:
            path = Path(folder) / "device.snapshot"
            self._device.save(path)
            return _unpickle, (self.url, path.read_bytes())

    def idle(self, duration_ns: int) -> None:
        """Let virtual time pass [ns]: the device may collect blocks ahead."""
        self._device.idle(duration_ns)

    def apply(self, spec: Spec) -> Counters:
        """Run a pattern in functional mode; return the counters."""
        counters: Counters = self._device.apply(spec)
        return counters

    def trim(self, first_page: int, pages: int) -> None:
        """Deallocate pages."""
        self._device.trim(first_page * self.page_bytes, pages * self.page_bytes)

    def run(self, *specs: Spec) -> Window:
        """Run patterns one after another in the timed mode."""
        return concatenate_windows(self._window(spec) for spec in specs)

    def _window(self, spec: Spec) -> Window:
        trace = self._device.run(spec)
        submitted, response = (
            np.asarray(trace.column(name)) for name in ("submit_ns", "response_time_ns")
        )
        counters: Counters = json.loads(trace.counters_json() or "{}")
        began, completed = submitted.min(), submitted + response
        completed.sort()
        return Window(len(trace), int(completed[-1] - began), counters, completed)


def _unpickle(url: str, snapshot: bytes) -> SimulatedDevice:
    with TemporaryDirectory(prefix="uflip-") as folder:
        path = Path(folder) / "device.snapshot"
        path.write_bytes(snapshot)
        return SimulatedDevice(url, open_sim(parse_url(f"sim:{path}")))


def concatenate_windows(windows: Iterable[Window]) -> Window:
    """Concatenate windows.

    >>> one = Window(2, 10, {"blocks_collected": 1}, np.array([5, 10], dtype=np.uint64))
    >>> both = concatenate_windows([one, one])
    >>> both.ios, both.elapsed_ns, both.counters, both.completed_ns.tolist()
    (4, 20, {'blocks_collected': 2}, [5, 10, 15, 20])
    """
    parts = list(windows)
    completed = np.concatenate([part.completed_ns for part in parts])
    first = began = 0
    for part in parts:
        completed[first : first + part.ios] += np.uint64(began)
        first, began = first + part.ios, began + part.elapsed_ns
    return Window(
        ios=sum(part.ios for part in parts),
        elapsed_ns=sum(part.elapsed_ns for part in parts),
        counters={name: sum(part.counters[name] for part in parts) for name in parts[0].counters},
        completed_ns=completed,
    )


GENERATOR: Location = "super_fast_hash"
"""Location of the random requests."""

RUN_IOS = 500_000
"""I/Os of a run: longer windows consist of several runs, because a run records each I/O."""


def random_requests(
    mode: str, *, page_bytes: int, outstanding: int, ios: int, seed: int
) -> Iterator[Spec]:
    """Make random one-page requests over the whole device, one run after another.

    `mode`: "read" or "write". `page_bytes`: size of a request [bytes]. `outstanding`: requests in
    flight. `ios`: total number of requests. `seed`: the first run draws from this seed, the next
    one from the seed after it.

    >>> [run] = random_requests("read", page_bytes=4096, outstanding=3, ios=10, seed=1)
    >>> run.queue_depth, run.io_count, run.seed
    (3, 10, 1)
    """
    for number, part in enumerate(_parts(ios, RUN_IOS)):
        yield basic(
            mode,
            GENERATOR,
            io_size=page_bytes,
            io_count=part,
            queue_depth=outstanding,
            seed=seed + number,
        )


def sequential_requests(
    mode: str,
    *,
    logical_pages: int,
    page_bytes: int,
    outstanding: int,
    ios: int,
    run_ios: int = RUN_IOS,
) -> Iterator[Spec]:
    """Make a sequential stream of one-page requests that wraps round the device, run after run.

    `mode`: "read" or "write". `logical_pages`: pages of the device. `page_bytes`, `outstanding`,
    `ios`: as for `random_requests`. `run_ios`: requests of a run; a run ends early at the end of
    the device.

    >>> requests = sequential_requests(
    ...     "read", logical_pages=20, page_bytes=1, outstanding=4, ios=24, run_ios=8
    ... )
    >>> [(run.target_offset, run.io_count) for run in requests]
    [(0, 8), (8, 8), (16, 4), (0, 4)]
    """
    first = 0
    while ios > 0:
        part = min(run_ios, logical_pages - first, ios)
        yield basic(
            mode,
            "sequential",
            io_size=page_bytes,
            target_offset=first * page_bytes,
            target_size=part * page_bytes,
            io_count=part,
            queue_depth=outstanding,
        )
        ios -= part
        first = (first + part) % logical_pages


def mixed_requests(
    read_percent: int, *, page_bytes: int, outstanding: int, ios: int, seed: int
) -> Spec:
    """Make a single run of random reads and writes, in which each request draws its kind.

    `read_percent`: the probability of a read, 1 to 99 [%]. `page_bytes`, `outstanding`, `ios`,
    `seed`: as for `random_requests`.

    >>> run = mixed_requests(75, page_bytes=4096, outstanding=2, ios=80, seed=1)
    >>> run.first.mode, run.first_percent, run.io_count
    ('read', 75, 80)
    """
    read, write = (basic(mode, GENERATOR, io_size=page_bytes) for mode in ("read", "write"))
    return mix(
        read, write, first_percent=read_percent, io_count=ios, queue_depth=outstanding, seed=seed
    )


def _parts(whole: int, part: int) -> Iterator[int]:
    """Divide a number into parts; the last one is the remainder."""
    yield from [part] * (whole // part)
    if whole % part:
        yield whole % part
