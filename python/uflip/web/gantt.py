"""Gantt chart of the dies and channels of a simulated device during a part of a run.

In a short part every operation is drawn; in a long one the share of each time interval that each
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
from uflip.results.device_log import (
    JOBS,
    OPERATION_NAMES,
    WAITS,
    read_device_log,
)
from uflip.results.die_lanes import Lanes, Whole
from uflip.web.api_io_types import DieOperation, Flash, Lane, Operation, OperationGroup, Share, Wait
from uflip.web.open_results import OpenResults
from uflip.web.open_run import OpenRun
from uflip.web.window import AXES, RAW, Arrays, Axis, Header, Picture

MAX_OPERATIONS = 12_000
"""Maximum number of operations drawn individually."""
MIN_COLUMNS, MAX_COLUMNS = 16, 800
CACHE = WAITS.index("write cache")


@lru_cache(maxsize=2)
def _lanes(run: OpenRun) -> Lanes | None:
    log = read_device_log(run.run)
    if log is None:
        return None
    grid = run.wait()
    numbers = None
    if run.run.is_job or len(grid.streams) > 2:
        # The event loop submits the earliest I/O; with equal times, that of the first stream.
        numbers = np.argsort(run.column("submit_ns", 0, run.io_count), kind="stable")
    return Lanes(log.operations, numbers, grid.begin_ns, holds=run.run.is_job)


def recorded_lanes(run: OpenRun) -> Lanes | None:
    """Return the recorded operations of a run; None without a usable record."""
    if run.run.meta.inside is None:
        return None
    try:
        return _lanes(run)
    except ResultsError:
        return None  # only the device log is damaged, not the run


def lanes_of(opened: OpenResults, key: str, name: str) -> tuple[OpenRun, Lanes]:
    """Return a run and the recorded operations of its dies."""
    run = opened.run(key, name)
    lanes = recorded_lanes(run)
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
    run: OpenRun, lanes: Lanes, axis: Axis, visible_range: tuple[float, float], columns: int
) -> Picture:
    """Return the picture of a part of a run; parameters as of `uflip.web.window.picture`."""
    begin, end = _times(run, lanes, axis, *visible_range)
    ops = lanes.operations
    visible = np.flatnonzero((ops.end > begin) & (ops.requested < end))
    gaps = ops.gaps[(ops.gaps[:, 1] > begin) & (ops.gaps[:, 0] < end)] - lanes.begin_ns
    lane_rows: list[Lane] = []
    for channel in range(len(lanes.channels)):
        lane_rows.append({"name": f"channel {channel}", "channel": channel, "die": -1})
        dies = np.flatnonzero(ops.channels == channel).tolist()
        lane_rows += [
            {"name": lanes.name(die), "channel": channel, "die": die}
            for die in dies
            if len(lanes.dies[die])
        ]
    header: Header = {
        "from_ns": begin - lanes.begin_ns,
        "until_ns": end - lanes.begin_ns,
        "operations": len(visible),
        "kept": len(ops),
        "recorded": ops.recorded,
        "whats": list(OPERATION_NAMES),
        "jobs": list(JOBS),
        "gaps": gaps.tolist(),
        "lanes": lane_rows,
    }
    if len(visible) <= MAX_OPERATIONS:
        return Picture(
            {"kind": "operations", **header}, _operation_arrays(lanes, visible, begin, end)
        )
    columns = min(max(columns, MIN_COLUMNS), MAX_COLUMNS)
    shares = _shares(lanes, lane_rows, np.linspace(begin, end, columns + 1))
    return Picture({"kind": "shares", "columns": columns, **header}, {"shares": shares})


def gantt_view(run: OpenRun, axis: Axis, low: float, high: float, columns: int) -> Picture:
    """Return the picture of a part of a run; it is empty if no operations were recorded."""
    lanes = recorded_lanes(run)
    if lanes is None:
        return Picture({"kind": "nothing"}, {})
    return gantt(run, lanes, axis, (low, high), columns)


def flash_view(run: OpenRun, number: int) -> Flash | None:
    """Return the flash operations of an I/O; None if they are unknown."""
    lanes = recorded_lanes(run)
    return None if lanes is None else io_operations(lanes, number)


def _times(run: OpenRun, lanes: Lanes, axis: Axis, low: float, high: float) -> tuple[int, int]:
    """Return the visible range as times since the run began."""
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


def _operation_arrays(lanes: Lanes, visible: Whole, low: int, high: int) -> Arrays:
    ops, waits = lanes.operations, lanes.operations.waits
    waiting = np.flatnonzero((waits.end > low) & (waits.begin < high))
    times = {
        "asked": ops.requested,
        "begin": lanes.busy_from,
        "end": ops.end,
        "cells_from": ops.cells_from,
        "cells_until": ops.cells_from + ops.cells,
        "sent": ops.sent,
        "sent_until": ops.sent_until,
    }
    columns: Arrays = {name: values[visible] - lanes.begin_ns for name, values in times.items()}
    job = ops.job[visible]
    made = np.where(job >= 0, np.append(ops.jobs, 0)[job], 0)
    codes = {"row": visible, "die": ops.die[visible], "what": ops.code[visible], "made": made}
    signed = {"io": lanes.io[visible], "job": job, "block": ops.block[visible]}
    times = {"begin": waits.begin - lanes.begin_ns, "end": waits.end - lanes.begin_ns}
    owners = {"die": waits.die, "kind": waits.kind, "io": lanes.waiting}
    waited = {f"wait_{name}": values[waiting] for name, values in {**times, **owners}.items()}
    signed |= {"wait_io": waited.pop("wait_io")}
    return (
        columns
        | codes
        | waited
        | {name: values.astype(np.float64) for name, values in signed.items()}
    )


def _shares(lanes: Lanes, lane_rows: list[Lane], edges: NDArray[np.float64]) -> NDArray[Any]:
    """Return shares of time, in 255ths (lanes × purposes × time intervals,)."""
    ops = lanes.operations
    shares = np.zeros((len(lane_rows), len(OPERATION_NAMES), len(edges) - 1), np.uint8)
    width = float(edges[1] - edges[0])
    for index, lane in enumerate(lane_rows):
        on_die = lane["die"] >= 0
        rows = lanes.dies[lane["die"]] if on_die else lanes.channels[lane["channel"]]
        begin, end = (lanes.busy_from, ops.end) if on_die else (ops.sent, ops.sent_until)
        for purpose in np.unique(ops.code[rows]):
            some = rows[ops.code[rows] == purpose]
            busy = np.diff(busy_until(begin[some], end[some], edges))
            shares[index, purpose] = np.ceil(np.clip(busy / width, 0, 1) * 255)
    return shares.reshape(-1)


def busy_until(begin: Whole, end: Whole, at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the busy time of a lane with disjoint intervals before each moment (n,)."""
    if not len(begin):
        return np.zeros(len(at))
    before = np.concatenate([[0], np.cumsum(end - begin)])
    begun = np.searchsorted(begin, at, "right")
    last = np.maximum(begun - 1, 0)
    over = np.clip(end[last] - at, 0, None)
    busy: NDArray[np.float64] = before[begun] - np.where(begun > 0, over, 0)
    return busy


def operation(lanes: Lanes, row: int) -> Operation:
    """Return all details of one operation, with its waits."""
    ops = lanes.operations
    if not 0 <= row < len(ops):
        raise UsageError(
            "There is no such operation",
            where="row",
            got=str(row),
            allowed=f"0 to {len(ops) - 1}",
            action="use the number of an operation of the run",
        )
    return {
        **_die_operation(lanes, row),
        "asked": int(ops.requested[row]),
        "begin": int(ops.begin[row]),
        "end": int(ops.end[row]),
        "cells": int(ops.cells[row]),
        "waited_ns": int(ops.begin[row]) - lanes.die_requested_ns(row),
        "waited_for": waited_for(lanes, [row]),
        "channel_waited_ns": _channel_wait(lanes, row),
        "channel_waited_for": waited_for(lanes, [row], channel=True),
    }


def _channel_wait(lanes: Lanes, row: int) -> int:
    ops = lanes.operations
    is_sent = ops.sent_until[row] > ops.sent[row]
    return int(ops.sent[row]) - lanes.channel_requested_ns(row) if is_sent else 0


def _die_operation(lanes: Lanes, row: int) -> DieOperation:
    ops = lanes.operations
    view: DieOperation = {
        "what": OPERATION_NAMES[ops.code[row]],
        "die": int(ops.clocks[ops.die[row]]),
    }
    if lanes.io[row] >= 0:
        view["io"] = int(lanes.io[row])
    if ops.job[row] >= 0:
        view["job"] = int(ops.job[row])
        view["made"] = JOBS[ops.jobs[ops.job[row]]]
    if ops.block[row] >= 0:
        view["block"] = int(ops.block[row])
        if 0 <= view.get("job", -1) < len(ops.valid) and ops.valid[view["job"]] >= 0:
            view["valid"] = int(ops.valid[view["job"]])
    return view


def waited_for(lanes: Lanes, rows: list[int], *, channel: bool = False) -> list[Share]:
    """Return the causes of the waits of operations by purpose and job, the longest first."""
    ops = lanes.operations
    shares = _OccupantShares(lanes, channel=channel)
    for row in rows:
        low = lanes.channel_requested_ns(row) if channel else lanes.die_requested_ns(row)
        high = int(ops.sent[row] if channel else ops.begin[row])
        others = lanes.channel_occupants(row) if channel else lanes.die_occupants(row)
        shares.add(others[others != row], low, high)
    return shares.sorted()


class _OccupantShares:
    """Busy time of a die or a channel, grouped by purpose and job."""

    def __init__(self, lanes: Lanes, *, channel: bool = False) -> None:
        ops = lanes.operations
        self.lanes = lanes
        self.begin, self.end = (
            (ops.sent, ops.sent_until) if channel else (lanes.occupied_from, ops.end)
        )
        self.found: OrderedDict[tuple[int, ...], Share] = OrderedDict()

    def add(self, rows: Whole, low: int, high: int) -> None:
        """Add the work of these operations, in order, in a range of time."""
        ops, lanes, counted_until = self.lanes.operations, self.lanes, low
        for row in rows.tolist():
            # A read from the die for which a program holds a channel may overtake it.
            ns = min(int(self.end[row]), high) - max(int(self.begin[row]), counted_until)
            if ns <= 0:
                continue
            counted_until = max(counted_until, min(int(self.end[row]), high))
            of_job = int(ops.job[row])
            group = (int(ops.code[row]), of_job, -1 if of_job >= 0 else int(lanes.io[row]))
            each = self.found.setdefault(group, {**_die_operation(lanes, row), "count": 0, "ns": 0})
            each["count"] += 1
            each["ns"] += ns

    def sorted(self) -> list[Share]:
        """Return the groups, the longest first."""
        return sorted(self.found.values(), key=lambda each: -int(each["ns"]))


def io_operations(lanes: Lanes, number: int) -> Flash | None:
    """Return the flash operations and waits of an I/O; None if they are not stored.

    The program that freed the I/O's slot in the write cache counts as one of its operations.
    """
    ops = lanes.operations
    own = np.flatnonzero(lanes.io == number)
    waits = np.flatnonzero(lanes.waiting == number).tolist()
    flushes = [lanes.flush_of(row) for row in waits if ops.waits.kind[row] == CACHE]
    own = np.concatenate([own, np.array([row for row in flushes if row is not None], np.int64)])
    if not len(own) and not waits:
        return None
    order = own[np.argsort(ops.begin[own], kind="stable")]
    grouped: OrderedDict[tuple[int, int], OperationGroup] = OrderedDict()
    for row in order.tolist():
        key = int(ops.code[row]), int(ops.job[row])
        each = grouped.setdefault(
            key, {**_die_operation(lanes, row), "count": 0, "ns": 0, "dies": []}
        )
        each["count"] += 1
        each["ns"] += int(ops.end[row] - ops.begin[row])
        die = int(ops.clocks[ops.die[row]])
        if die not in each["dies"]:
            each["dies"].append(die)
    requested = [row for row in order.tolist() if row not in flushes]
    return {
        "did": list(grouped.values()),
        "waited_for": waited_for(lanes, requested),
        "waits": [_wait(lanes, row) for row in waits],
        "rows": order.tolist(),
    }


def _wait(lanes: Lanes, row: int) -> Wait:
    """Return a page's wait outside of the dies, with the operations of its die during the wait."""
    waits = lanes.operations.waits
    die, begin, end = (int(each[row]) for each in (waits.die, waits.begin, waits.end))
    shares = _OccupantShares(lanes)
    shares.add(lanes.on_die(die, begin, end), begin, end)
    return {
        "kind": WAITS[waits.kind[row]],
        "page": int(waits.page[row]),
        "die": int(lanes.operations.clocks[die]),
        "begin": begin - lanes.begin_ns,
        "end": end - lanes.begin_ns,
        "ns": end - begin,
        "waited_for": shares.sorted(),
    }
