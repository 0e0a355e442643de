"""Gantt chart of the dies and channels of a simulated device in a stretch of a run.

In a short stretch every operation is drawn; in a long one the share of each time interval that each
lane was busy with each purpose. Both have the same layout: one row per lane, a channel above its
dies.

**Source** The Gantt chart of scheduling (a row per resource), with the die queues of OFC (2011)
§III.
**Faithful** Every recorded operation. An operation waited for those that occupied its die, or its
channel, meanwhile.
**Simplified** With cache program a page is in the register of a die while the cells program the one
before: the chart shows the work of the die, and the transfer on its channel.
**Ambiguous** Nothing.
"""

from collections import OrderedDict
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uflip.errors import ResultsError, UsageError
from uflip.results.device_log import read_device_log
from uflip.results.operations import JOBS, WAITS, WHATS
from uflip.web.api_io_types import Did, DieOperation, Flash, Lane, Operation, Share, Wait
from uflip.web.die_operations import Lanes
from uflip.web.open_results import Opened
from uflip.web.open_run import OpenRun
from uflip.web.query import Query, number, text
from uflip.web.window import AXES, RAW, Arrays, Axis, Header, Picture

MOST = 12_000
"""Maximum number of operations drawn individually."""
LEAST_COLUMNS, MOST_COLUMNS = 16, 800
CACHE = WAITS.index("write cache")
Whole = NDArray[np.int64]


@lru_cache(maxsize=2)
def _lanes(run: OpenRun) -> Lanes | None:
    found = read_device_log(run.run)
    if found is None or found.operations is None:
        return None
    run.wait()
    grid = run.grid()
    assert grid is not None, "wait() makes it"
    begin = int(grid.first_ns.min()) if len(grid) else 0
    numbers = None
    if run.run.is_job or len(grid.streams) > 2:
        # The event loop submits the earliest I/O; with equal times, that of the first stream.
        numbers = np.argsort(run.column("submit_ns", 0, run.io_count), kind="stable")
    return Lanes(found.operations, numbers, begin, holds=run.run.is_job)


def _of(run: OpenRun) -> Lanes | None:
    if run.run.meta.inside is None:
        return None
    try:
        return _lanes(run)
    except ResultsError:
        return None  # only the device log is damaged, not the run


def lanes_of(opened: Opened, key: str, name: str) -> tuple[OpenRun, Lanes]:
    """Return a run and the recorded operations of its dies.

    Raises
    ------
    UsageError
        If none were recorded.
    """
    run = opened.run(key, name)
    lanes = _of(run)
    if lanes is None:
        raise UsageError(
            "The flash operations of this run were not recorded",
            where=name,
            got="a run without a device log",
            allowed="a run on a simulated device, recorded with --inside",
            action=f"uflip run {run.results.manifest.device.url} --inside",
        )
    return run, lanes


def gantt(
    run: OpenRun, lanes: Lanes, axis: Axis, stretch: tuple[float, float], columns: int
) -> Picture:
    """Return the picture of a stretch of a run; parameters as of `uflip.web.window.picture`."""
    begin, end = _times(run, lanes, axis, *stretch)
    of = lanes.of
    seen = np.flatnonzero((of.end > begin) & (of.asked < end))
    gaps = of.gaps[(of.gaps[:, 1] > begin) & (of.gaps[:, 0] < end)] - lanes.begin_ns
    shown: list[Lane] = []
    for channel in range(len(lanes.channels)):
        shown.append({"name": f"channel {channel}", "channel": channel, "die": -1})
        dies = np.flatnonzero(of.channels == channel).tolist()
        shown += [
            {"name": lanes.name(die), "channel": channel, "die": die}
            for die in dies
            if len(lanes.dies[die])
        ]
    header: Header = {
        "from_ns": begin - lanes.begin_ns,
        "until_ns": end - lanes.begin_ns,
        "operations": len(seen),
        "kept": len(of),
        "recorded": of.recorded,
        "whats": list(WHATS),
        "jobs": list(JOBS),
        "gaps": gaps.tolist(),
        "lanes": shown,
    }
    if len(seen) <= MOST:
        return Picture({"kind": "operations", **header}, _drawn(lanes, seen, begin, end))
    columns = min(max(columns, LEAST_COLUMNS), MOST_COLUMNS)
    shares = _shares(lanes, shown, np.linspace(begin, end, columns + 1))
    return Picture({"kind": "shares", "columns": columns, **header}, {"shares": shares})


def drawn(opened: Opened, query: Query) -> Picture:
    """Return the requested picture."""
    run = opened.run(text(query, "key"), text(query, "run"))
    lanes = _of(run)
    if lanes is None:
        return Picture({"kind": "nothing"}, {})
    axis = next((each for each in AXES if each == query.get("axis")), AXES[0])
    low, high = number(query, "from"), number(query, "to")
    return gantt(run, lanes, axis, (low, high), int(number(query, "columns")))


def operation_view(opened: Opened, query: Query) -> Operation:
    """Return the requested operation, and what it waited for."""
    _, lanes = lanes_of(opened, text(query, "key"), text(query, "run"))
    return operation(lanes, int(number(query, "row")))


def beside(run: OpenRun, number: int) -> Flash | None:
    """Return the flash operations of an I/O; None if they are unknown."""
    lanes = _of(run)
    return None if lanes is None else of_io(lanes, number)


def _times(run: OpenRun, lanes: Lanes, axis: Axis, low: float, high: float) -> tuple[int, int]:
    """Return the stretch as times since the run began."""
    if axis == AXES[1]:
        return int(lanes.begin_ns + low), int(lanes.begin_ns + max(high, low + 1))
    start = min(max(int(low), 0), max(run.io_count - 1, 0))
    stop = min(max(int(np.ceil(high)), start + 1), run.io_count)
    first, last = [], []
    for begin in range(start, stop, RAW):
        end = min(begin + RAW, stop)
        submitted = run.column("submit_ns", begin, end).astype(np.int64)
        first.append(int(submitted.min()))
        took = run.column("response_time_ns", begin, end).astype(np.int64)
        last.append(int((submitted + took).max()))
    return (min(first), max(last)) if first else (lanes.begin_ns, lanes.begin_ns + 1)


def _drawn(lanes: Lanes, seen: Whole, low: int, high: int) -> Arrays:
    of, waits = lanes.of, lanes.of.waits
    waiting = np.flatnonzero((waits.end > low) & (waits.begin < high))
    times = {
        "asked": of.asked,
        "begin": lanes.busy,
        "end": of.end,
        "cells_from": of.cells_from,
        "cells_until": of.cells_from + of.cells,
        "sent": of.sent,
        "sent_until": of.sent_until,
    }
    found: Arrays = {name: values[seen] - lanes.begin_ns for name, values in times.items()}
    job = of.job[seen]
    made = np.where(job >= 0, np.append(of.jobs, 0)[job], 0)
    codes = {"row": seen, "die": of.die[seen], "what": of.what[seen], "made": made}
    signed = {"io": lanes.io[seen], "job": job, "block": of.block[seen]}
    times = {"begin": waits.begin - lanes.begin_ns, "end": waits.end - lanes.begin_ns}
    whose = {"die": waits.die, "kind": waits.kind, "io": lanes.waiting}
    waited = {f"wait_{name}": values[waiting] for name, values in {**times, **whose}.items()}
    signed |= {"wait_io": waited.pop("wait_io")}
    return (
        found
        | codes
        | waited
        | {name: values.astype(np.float64) for name, values in signed.items()}
    )


def _shares(lanes: Lanes, shown: list[Lane], edges: NDArray[np.float64]) -> NDArray[Any]:
    """Return shares of time, in 255ths (lanes × purposes × time intervals,)."""
    of = lanes.of
    found = np.zeros((len(shown), len(WHATS), len(edges) - 1), np.uint8)
    wide = float(edges[1] - edges[0])
    for place, lane in enumerate(shown):
        on_die = lane["die"] >= 0
        rows = lanes.dies[lane["die"]] if on_die else lanes.channels[lane["channel"]]
        begin, end = (lanes.busy, of.end) if on_die else (of.sent, of.sent_until)
        for what in np.unique(of.what[rows]):
            some = rows[of.what[rows] == what]
            busy = np.diff(busy_until(begin[some], end[some], edges))
            found[place, what] = np.ceil(np.clip(busy / wide, 0, 1) * 255)
    return found.reshape(-1)


def busy_until(begin: Whole, end: Whole, at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the busy time of a lane with disjoint intervals before each moment (n,)."""
    if not len(begin):
        return np.zeros(len(at))
    before = np.concatenate([[0], np.cumsum(end - begin)])
    begun = np.searchsorted(begin, at, "right")
    last = np.maximum(begun - 1, 0)
    over = np.clip(end[last] - at, 0, None)
    found: NDArray[np.float64] = before[begun] - np.where(begun > 0, over, 0)
    return found


def operation(lanes: Lanes, row: int) -> Operation:
    """Return all details of one operation, and what it waited for."""
    of = lanes.of
    if not 0 <= row < len(of):
        raise UsageError(
            "There is no such operation",
            where="row",
            got=str(row),
            allowed=f"0 to {len(of) - 1}",
            action="use the number of an operation of the run",
        )
    return {
        **_die_operation(lanes, row),
        "asked": int(of.asked[row]),
        "begin": int(of.begin[row]),
        "end": int(of.end[row]),
        "cells": int(of.cells[row]),
        "sent_ns": int(of.sent_until[row] - of.sent[row]),
        "waited_ns": int(of.begin[row]) - lanes.came_to_die(row),
        "waited_for": waited_for(lanes, [row]),
        "channel_waited_ns": _channel_wait(lanes, row),
        "channel_waited_for": waited_for(lanes, [row], channel=True),
    }


def _channel_wait(lanes: Lanes, row: int) -> int:
    of = lanes.of
    is_sent = of.sent_until[row] > of.sent[row]
    return int(of.sent[row]) - lanes.came_to_channel(row) if is_sent else 0


def _die_operation(lanes: Lanes, row: int) -> DieOperation:
    of = lanes.of
    found: DieOperation = {"what": WHATS[of.what[row]], "die": int(of.clocks[of.die[row]])}
    if lanes.io[row] >= 0:
        found["io"] = int(lanes.io[row])
    if of.job[row] >= 0:
        found["job"] = int(of.job[row])
        found["made"] = JOBS[of.jobs[of.job[row]]]
    if of.block[row] >= 0:
        found["block"] = int(of.block[row])
        if 0 <= found.get("job", -1) < len(of.valid) and of.valid[found["job"]] >= 0:
            found["valid"] = int(of.valid[found["job"]])
    return found


def waited_for(lanes: Lanes, rows: list[int], *, channel: bool = False) -> list[Share]:
    """Return what operations waited for, grouped by purpose and job, the longest first."""
    of = lanes.of
    found = _Shares(lanes, channel=channel)
    for row in rows:
        low = lanes.came_to_channel(row) if channel else lanes.came_to_die(row)
        high = int(of.sent[row] if channel else of.begin[row])
        others = lanes.had_channel(row) if channel else lanes.had_die(row)
        found.add(others[others != row], low, high)
    return found.sorted()


class _Shares:
    """Busy time of a die or a channel, grouped by purpose and job."""

    def __init__(self, lanes: Lanes, *, channel: bool = False) -> None:
        of = lanes.of
        self.lanes = lanes
        self.begin, self.end = (of.sent, of.sent_until) if channel else (lanes.held, of.end)
        self.found: OrderedDict[tuple[int, ...], Share] = OrderedDict()

    def add(self, rows: Whole, low: int, high: int) -> None:
        """Add the work of these operations, in order, in a stretch of time."""
        of, lanes, known = self.lanes.of, self.lanes, low
        for row in rows.tolist():
            # A read from the die for which a program holds a channel may overtake it.
            ns = min(int(self.end[row]), high) - max(int(self.begin[row]), known)
            if ns <= 0:
                continue
            known = max(known, min(int(self.end[row]), high))
            of_job = int(of.job[row])
            group = (int(of.what[row]), of_job, -1 if of_job >= 0 else int(lanes.io[row]))
            each = self.found.setdefault(group, {**_die_operation(lanes, row), "count": 0, "ns": 0})
            each["count"] += 1
            each["ns"] += ns

    def sorted(self) -> list[Share]:
        """Return the groups, the longest first."""
        return sorted(self.found.values(), key=lambda each: -int(each["ns"]))


def of_io(lanes: Lanes, number: int) -> Flash | None:
    """Return the flash operations of an I/O, and what it waited for; None if they are not stored.

    The program that freed the I/O's slot in the write cache counts as one of its operations.
    """
    of = lanes.of
    own = np.flatnonzero(lanes.io == number)
    waits = np.flatnonzero(lanes.waiting == number).tolist()
    flushes = [lanes.flush_of(row) for row in waits if of.waits.kind[row] == CACHE]
    own = np.concatenate([own, np.array([row for row in flushes if row is not None], np.int64)])
    if not len(own) and not waits:
        return None
    order = own[np.argsort(of.begin[own], kind="stable")]
    grouped: OrderedDict[tuple[int, int], Did] = OrderedDict()
    for row in order.tolist():
        key = int(of.what[row]), int(of.job[row])
        each = grouped.setdefault(
            key, {**_die_operation(lanes, row), "count": 0, "ns": 0, "dies": []}
        )
        each["count"] += 1
        each["ns"] += int(of.end[row] - of.begin[row])
        die = int(of.clocks[of.die[row]])
        if die not in each["dies"]:
            each["dies"].append(die)
    asked = [row for row in order.tolist() if row not in flushes]
    return {
        "did": list(grouped.values()),
        "waited_for": waited_for(lanes, asked),
        "waits": [_wait(lanes, row) for row in waits],
        "rows": order.tolist(),
    }


def _wait(lanes: Lanes, row: int) -> Wait:
    """Return a page's wait outside of the dies, and what its die did meanwhile."""
    waits = lanes.of.waits
    die, begin, end = (int(each[row]) for each in (waits.die, waits.begin, waits.end))
    found = _Shares(lanes)
    found.add(lanes.on_die(die, begin, end), begin, end)
    return {
        "kind": WAITS[waits.kind[row]],
        "page": int(waits.page[row]),
        "die": int(lanes.of.clocks[die]),
        "begin": begin - lanes.begin_ns,
        "end": end - lanes.begin_ns,
        "ns": end - begin,
        "waited_for": found.sorted(),
    }
