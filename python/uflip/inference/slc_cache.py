"""SLC cache: durable writes of an empty device are fast until it is full.

::

    durable writes │             ▁█████████     a write cache in memory does not make them faster
                   │▁▁▁▁▁▁▁▁▁▁▁▁▁
                   └────────────│──────── written
                              cliff

Pages before the cliff are moved to other cells in idle time, so that their order is lost. All
estimators of reads use the pages beyond it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from uflip.inference.estimate import Estimate, Interval, median_of
from uflip.inference.observations import Observation, Observations
from uflip.inference.structure import Structure
from uflip.inference.times import Times
from uflip.inference.twin import Twin, Value

PROBE = "clear"
KEYS = ("slc_cache_bytes", "slc_program_ns")
# The first writes, and how much longer those beyond a cliff take [times].
FIRST, CLIFF_FACTOR = 8, 1.25
# The same of a fill, in which collection begins.
FILL_FACTOR = 1.4
# A cliff is where this share of as many writes is beyond the middle of both levels.
SLOW_SHARE = 0.75
# Dies reach the cliff within this number of writes; the largest part of the window before it.
MARGIN, LARGEST_PART = 4, 0.75
READS = ("read_each", "read_size", "read_bursts", "read_arrivals")


@dataclass(frozen=True)
class SlcCache:
    """A cliff of durable writes: bytes before it, times of a write on both sides [ns]."""

    size: int
    fast: Interval
    slow: Interval
    io_size: int
    window: int

    @property
    def ordered_from(self) -> int:
        """Offset from which pages of the window are in order [bytes]."""
        return self.size + MARGIN * self.io_size


def slc_cache_of(observations: Observations) -> SlcCache | None:
    """Return the cliff of durable writes on an empty device; None without one."""
    run = observations.last(PROBE, "SW")
    if run is None or len(run.response_ns) < 4 * FIRST:
        return None
    times = run.response_ns
    fast, slow = (
        float(np.median(times[:FIRST])),
        float(np.percentile(times[-len(times) // 4 :], 20)),
    )
    if slow < CLIFF_FACTOR * fast:
        return None
    is_slow = times > (fast + slow) / 2
    shares = np.convolve(is_slow, np.ones(FIRST), mode="valid") / FIRST
    beyond = np.flatnonzero((shares >= SLOW_SHARE) & is_slow[: len(shares)])
    if not len(beyond) or beyond[0] > LARGEST_PART * len(times):
        return None
    at = int(beyond[0])
    early, late = times[:at], times[at + MARGIN :]
    return SlcCache(
        at * run.io_size,
        median_of(early[early <= np.median(early)]),
        median_of(late[late <= np.median(late)]),
        run.io_size,
        len(times) * run.io_size,
    )


def exceeds_window(observations: Observations) -> bool:
    """Return whether the window fits into an SLC cache: a fill is fast at its beginning only."""
    fill = observations.last("fill", "SW")
    if fill is None or slc_cache_of(observations) is not None:
        return False
    times = fill.response_ns
    # Later parts of a fill meet collection.
    later = np.percentile(times[len(times) // 4 : len(times) // 2], 20)
    return bool(later > FILL_FACTOR * np.median(times[:FIRST]))


def beyond(observations: Observations, start: int) -> Observations:
    """Return the observations with reads of the window from an offset on only."""
    if not start:
        return observations

    def later(run: Observation, group: int) -> Observation:
        kept = np.repeat(np.min(run.offset_bytes.reshape(-1, group), axis=1) >= start, group)
        return replace(
            run,
            offset_bytes=run.offset_bytes[kept],
            response_ns=run.response_ns[kept],
            is_write=run.is_write[kept],
        )

    runs = {
        key: later(run, key.value if key.probe == "read_bursts" else 1)
        if key.probe in READS
        else run
        for key, run in observations.runs.items()
    }
    return replace(
        observations, runs={key: run for key, run in runs.items() if len(run.offset_bytes)}
    )


def programs(slc: SlcCache, structure: Structure, times: Times) -> tuple[Times, Interval | None]:
    """Return the times with the program of a page beyond the cliff, and that before it."""
    page, single = structure.page, times.write_page
    if page is None or structure.dies is None or single is None or times.command_write is None:
        return times, None
    rounds = -(-slc.io_size // page // structure.dies)
    difference = (slc.slow - slc.fast) * (1 / rounds)
    expected = times.command_write.value + rounds * single.value
    if abs(expected - slc.slow.value) < abs(expected - slc.fast.value):
        # The cache was still full at the single writes.
        return times, single - difference
    return replace(times, write_page=single + difference), single


def with_slc(twin: Twin, slc: SlcCache, program: Interval) -> Twin:
    """Return the twin with its SLC cache, all reserved: free blocks are not erased yet."""
    pages = twin.number("pages_per_block") // twin.number("bits_per_cell")
    block = pages * twin.dies * twin.number("page_bytes")
    blocks = max(round(slc.size / block), 1)
    transfer = twin.number("page_bytes") + twin.number("spare_bytes")
    transfer *= 1e9 / twin.number("channel_bytes_per_s")
    values: dict[str, Value] = {
        "slc_blocks": blocks,
        "slc_blocks_max": blocks,
        "slc_read_ns": int(twin.number("read_ns")),
        "slc_program_ns": max(round(program.value - transfer), 0),
        "program_middle_ns": int(twin.number("program_ns")),
    }
    return twin.but(**values)


def slc_estimates(
    observations: Observations,
    slc: SlcCache | None,
    program: Interval | None,
    whole: Interval | None,
    cells: Estimate,
) -> Iterator[Estimate]:
    """Yield the size of the cache and the time of its programs.

    `whole` and `cells` are a program beyond the cliff, with its transfer and without.
    """
    if slc is None:
        why = "durable writes have no cliff"
        if exceeds_window(observations):
            why = "the window fits into the cache, which hides its pages and their programs"
        for key in KEYS:
            yield Estimate.absent(key, PROBE, why)
        return
    low, high = slc.size - slc.io_size, slc.size + MARGIN * slc.io_size
    yield Estimate(KEYS[0], slc.size, low, high, PROBE, "without blocks that it borrows")
    if program is None or whole is None or cells.low is None or cells.high is None:
        yield Estimate.absent(KEYS[1], PROBE, "program_ns is not identified")
        return
    less = whole - program
    quickest, slowest = cells.low - less.value - less.half, cells.high - less.value + less.half
    yield Estimate(KEYS[1], cells.number() - less.value, quickest, slowest, PROBE)
