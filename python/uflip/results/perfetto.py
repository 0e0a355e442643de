"""A run as a file for Perfetto (ui.perfetto.dev): I/Os, waits, channels and dies as tracks.

    host       │ write 4 KiB ────────────────── │
    waits      │   die 3 ───────────── │
                   ╰──▶ arrow
    dies       │ erase ──────────────── │ host program │

An arrow leads from an I/O over its wait to the operation that occupied the die or channel longest
meanwhile. Tracks of I/Os and waits are as many as there are at a time.

**Source** Trace Event Format (Google, 2016): complete events (X), flow events (s, t, f), metadata.
**Faithful** Every I/O, every recorded operation and transfer, every wait, to the nanosecond.
**Simplified** One arrow a wait. A run without a device log has the host's tracks only.
**Ambiguous** The format has microseconds: nanoseconds are decimals.
"""

import gzip
import heapq
import json
from collections.abc import Iterator, Mapping, Sequence
from io import TextIOWrapper
from pathlib import Path

import numpy as np

from uflip.data.spec import MODES
from uflip.results.device_log import OPERATION_NAMES, WAITS, read_device_log
from uflip.results.die_lanes import Lanes, Whole
from uflip.results.reader import StoredRun

HOST, WAITING, CHANNELS, DIES = 1, 2, 3, 4
PROCESSES = {HOST: "host I/Os", WAITING: "waits", CHANNELS: "channels", DIES: "dies"}
CACHE = WAITS.index("write cache")
Event = Mapping[str, object]
Wait = tuple[int, int, str, int, int]
"""Begin, end [ns], name, I/O or −1, and the operation that it waited for or −1."""


def write_perfetto(run: StoredRun, path: Path) -> None:
    """Write a run to a new file, compressed, event by event; equal runs give equal files."""
    with (
        path.open("wb") as raw,
        gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) as packed,
        TextIOWrapper(packed, encoding="utf-8") as file,
    ):
        file.write('{"displayTimeUnit":"ns","traceEvents":[\n')
        for index, event in enumerate(events_of(run)):
            file.write(",\n" if index else "")
            json.dump(event, file, separators=(",", ":"))
        file.write("\n]}\n")


def events_of(run: StoredRun) -> Iterator[Event]:
    """Yield the events of a run: metadata, I/Os, and with a device log everything inside."""
    trace = run.trace()
    submitted, took, size, offset, mode, stream = (
        np.asarray(trace.column(name)).astype(np.int64)
        for name in (
            "submit_ns", "response_time_ns", "io_size_bytes", "offset_bytes", "mode", "stream",
        )
    )  # fmt: skip
    begin_ns = int(submitted.min())
    submitted = submitted - begin_ns
    for process, name in PROCESSES.items():
        yield _metadata("process_name", process, 0, name)
        yield {**_metadata("process_sort_index", process, 0, ""), "args": {"sort_index": process}}
    io_tracks = tracks_of(submitted, submitted + took)
    yield from _names(HOST, [f"I/O slot {track}" for track in range(_count(io_tracks))])
    for number in np.argsort(submitted, kind="stable").tolist():
        yield _slice(
            HOST, int(io_tracks[number]), int(submitted[number]), int(took[number]),
            MODES[mode[number]], io=number, offset=int(offset[number]), size=int(size[number]),
            stream=int(stream[number]),
        )  # fmt: skip
    log = read_device_log(run)
    if log is None:
        return
    numbers = np.argsort(submitted, kind="stable") if len(np.unique(stream)) > 1 else None
    lanes = Lanes(log.operations, numbers, begin_ns)
    yield from _operations(lanes)
    yield from _waits(lanes, io_tracks)


def tracks_of(begin: Whole, end: Whole) -> Whole:
    """Return a track for each interval, so that those on a track do not overlap.

    >>> tracks_of(np.array([0, 1, 5]), np.array([4, 9, 6])).tolist()
    [0, 1, 0]
    """
    tracks = np.zeros(len(begin), np.int64)
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    count = 0
    for row in np.lexsort((end, begin)).tolist():
        while busy and busy[0][0] <= begin[row]:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            tracks[row] = heapq.heappop(free)
        else:
            tracks[row] = count
            count += 1
        heapq.heappush(busy, (int(end[row]), int(tracks[row])))
    return tracks


def _operations(lanes: Lanes) -> Iterator[Event]:
    """Yield the operations of the dies and the transfers of the channels."""
    ops = lanes.operations
    yield from _names(DIES, [lanes.name(die) for die in range(len(lanes.dies))])
    yield from _names(CHANNELS, [f"channel {number}" for number in range(len(lanes.channels))])
    for die, rows in enumerate(lanes.dies):
        for row in rows.tolist():
            begin = int(lanes.busy_from[row])
            yield _slice(
                DIES, die, begin - lanes.begin_ns, int(ops.end[row]) - begin,
                OPERATION_NAMES[ops.code[row]], op=row, **_owner(lanes, row),
            )  # fmt: skip
    for channel, rows in enumerate(lanes.channels):
        for row in rows.tolist():
            begin, end = int(ops.sent[row]), int(ops.sent_until[row])
            yield _slice(
                CHANNELS, channel, begin - lanes.begin_ns, end - begin,
                f"data of {OPERATION_NAMES[ops.code[row]]}", op=row, **_owner(lanes, row),
            )  # fmt: skip


def _owner(lanes: Lanes, row: int) -> dict[str, int]:
    """Return the I/O, job and block of an operation, where it has them."""
    ops = lanes.operations
    owners = {"io": lanes.io[row], "job": ops.job[row], "block": ops.block[row]}
    return {name: int(value) for name, value in owners.items() if value >= 0}


def _waits(lanes: Lanes, io_tracks: Whole) -> Iterator[Event]:
    """Yield the waits, and the arrows from an I/O over its wait to what it waited for."""
    waits = [*_die_waits(lanes), *_channel_waits(lanes), *_page_waits(lanes)]
    if not waits:
        return
    begins, ends = (np.array([wait[index] for wait in waits]) for index in (0, 1))
    tracks = tracks_of(begins, ends)
    yield from _names(WAITING, [f"wait slot {track}" for track in range(_count(tracks))])
    for number, (begin, end, name, io, occupant) in enumerate(waits, 1):
        track, at = int(tracks[number - 1]), begin - lanes.begin_ns
        owner = {"io": io} if io >= 0 else {}
        on = {"waited_for": occupant} if occupant >= 0 else {}
        yield _slice(WAITING, track, at, end - begin, name, **owner, **on)
        if occupant < 0:
            continue
        if 0 <= io < len(io_tracks):
            yield _flow("s", number, HOST, int(io_tracks[io]), at)
        yield _flow("t" if io >= 0 else "s", number, WAITING, track, at)
        yield _arrow_end(lanes, number, name, begin, occupant)


def _arrow_end(lanes: Lanes, number: int, name: str, begin: int, occupant: int) -> Event:
    ops = lanes.operations
    if name.startswith("channel"):
        process, lane, busy = CHANNELS, int(ops.channel[occupant]), int(ops.sent[occupant])
    else:
        process, lane, busy = DIES, int(ops.die[occupant]), int(lanes.busy_from[occupant])
    return {
        **_flow("f", number, process, lane, max(busy, begin) - lanes.begin_ns),
        "bp": "e",
    }


def _die_waits(lanes: Lanes) -> Iterator[Wait]:
    ops = lanes.operations
    for row in range(len(ops)):
        low, high = lanes.die_requested_ns(row), int(ops.begin[row])
        if high > low:
            others = lanes.die_occupants(row)
            occupant = _longest(others[others != row], lanes.occupied_from, ops.end, low, high)
            name = f"die {ops.clocks[ops.die[row]]} for {OPERATION_NAMES[ops.code[row]]}"
            yield low, high, name, int(lanes.io[row]), occupant


def _channel_waits(lanes: Lanes) -> Iterator[Wait]:
    ops = lanes.operations
    for row in np.flatnonzero(ops.sent_until > ops.sent).tolist():
        low, high = lanes.channel_requested_ns(row), int(ops.sent[row])
        if high > low:
            others = lanes.channel_occupants(row)
            occupant = _longest(others[others != row], ops.sent, ops.sent_until, low, high)
            name = f"channel {ops.channel[row]} for {OPERATION_NAMES[ops.code[row]]}"
            yield low, high, name, int(lanes.io[row]), occupant


def _page_waits(lanes: Lanes) -> Iterator[Wait]:
    """Yield the waits for a free page and for the write cache."""
    ops, waits = lanes.operations, lanes.operations.waits
    for row in range(len(waits)):
        low, high = int(waits.begin[row]), int(waits.end[row])
        flush = lanes.flush_of(row) if waits.kind[row] == CACHE else None
        if flush is None:
            others = lanes.on_die(int(waits.die[row]), low, high)
            occupant = _longest(others, lanes.occupied_from, ops.end, low, high)
        else:
            occupant = flush
        if high > low:
            yield low, high, WAITS[waits.kind[row]], int(lanes.waiting[row]), occupant


def _longest(rows: Whole, begin: Whole, end: Whole, low: int, high: int) -> int:
    """Return the operation that is busy longest in a range of time; −1 without one."""
    if not len(rows):
        return -1
    busy = np.minimum(end[rows], high) - np.maximum(begin[rows], low)
    return int(rows[np.argmax(busy)]) if busy.max() > 0 else -1


def _count(tracks: Whole) -> int:
    return int(tracks.max(initial=-1)) + 1


def _names(process: int, names: Sequence[str]) -> Iterator[Event]:
    for track, name in enumerate(names):
        yield _metadata("thread_name", process, track, name)
        sort = _metadata("thread_sort_index", process, track, "")
        yield {**sort, "args": {"sort_index": track}}


def _metadata(kind: str, process: int, track: int, name: str) -> Event:
    return {"ph": "M", "name": kind, "pid": process, "tid": track, "args": {"name": name}}


def _slice(process: int, track: int, begin: int, length: int, name: str, **about: int) -> Event:
    return {
        "ph": "X", "pid": process, "tid": track, "ts": begin / 1000, "dur": length / 1000,
        "name": name, "args": about,
    }  # fmt: skip


def _flow(phase: str, number: int, process: int, track: int, at: int) -> Event:
    return {
        "ph": phase, "id": number, "pid": process, "tid": track, "ts": at / 1000,
        "name": "waits for", "cat": "wait",
    }  # fmt: skip
