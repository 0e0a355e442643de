"""The picture of a part of a run: single I/Os if they are few, else rows of neighbours.

**Source** The min-max aggregation of M4 (Jugel et al., PVLDB 2014), as in `uflip.results.pyramid`.
**Faithful** The minimum and the maximum of each row are those of its I/Os, so that no spike is lost
at any zoom.
**Simplified** A row is a power of two of neighbours of one stream, never a part of a pixel: rows
stay in place while the user moves the view. So a row at an end of the part may reach beyond it.
**Ambiguous** Time. A row extends from the first to the last submission of its I/Os, so that rows of
parallel streams overlap.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from uflip.results.causes import cause_name
from uflip.stats import summarise
from uflip.web.open_run import CLASSES, Grid, OpenRun, classes_of, merged
from uflip.web.slow_ios import sample

Axis = Literal["number", "time"]
AXES: tuple[Axis, ...] = ("number", "time")
POINTS = 6000
"""Maximum number of I/Os drawn individually."""
RAW = 1 << 19
"""Maximum number of I/Os read for one picture; beyond it, blocks are aggregated."""
MIN_COLUMNS, MAX_COLUMNS = 16, 4096
POINT_COLUMNS = (
    "submit_ns", "response_time_ns", "offset_bytes", "io_size_bytes", "mode", "component", "stream",
    "ignored",
)  # fmt: skip
IoRange = tuple[int, int]
Arrays = dict[str, NDArray[Any]]
Header = Mapping[str, object]
"""Header of a picture: JSON data."""


@dataclass(frozen=True)
class Picture:
    """A picture: a header of plain data, and its arrays."""

    header: Header
    arrays: Mapping[str, NDArray[Any]]

    def pack(self) -> bytes:
        """Return bytes: length of the header, header, arrays, each at a multiple of 8."""
        about, parts = [], []
        for name, values in self.arrays.items():
            flat = _portable(values)
            about.append({"name": name, "type": flat.dtype.str[1:], "length": len(flat)})
            content = flat.tobytes()
            parts.append(content + bytes(-len(content) % 8))
        head = json.dumps({**self.header, "arrays": about}, allow_nan=False).encode()
        head += b" " * (-(len(head) + 8) % 8)
        return len(head).to_bytes(8, "little") + head + b"".join(parts)


def picture(run: OpenRun, axis: Axis, low: float, high: float, columns: int) -> Picture:
    """Return the picture of a part of a run.

    `axis`: one of `AXES`. `low`, `high`: the part: numbers of I/Os, or time since
    the first submission [ns]. `columns`: approximate maximum number of rows.
    """
    columns = min(max(columns, MIN_COLUMNS), MAX_COLUMNS)
    grid = run.grid()
    if grid is None:
        return _from_pyramid(run, axis, columns)
    begin = grid.begin_ns
    last = int(grid.last_ns.max()) - begin if len(grid) else 0
    extent = {"io_count": len(grid), "last_ns": last, "streams": len(grid.streams) - 1}
    if axis == "number":
        io_ranges = _numbered(grid, low, high)
    else:
        io_ranges = _submitted(run, grid, begin + low, begin + high)
    total = sum(stop - start for start, stop in io_ranges)
    if total <= POINTS:
        header, arrays = _points(run, io_ranges)
    elif total <= RAW:
        header, arrays = _from_ios(run, grid, io_ranges, columns)
    else:
        header, arrays = _from_blocks(run, grid, io_ranges, columns)
    for name in ("submit_ns", "first_ns", "last_ns"):
        if name in arrays:
            arrays[name] = arrays[name].astype(np.int64) - begin
    return Picture({"complete": True, **extent, **header}, arrays)


def addresses(run: OpenRun, start: int, stop: int) -> Picture:
    """Return the addresses of the I/Os in a range, or of a sample (`uflip.web.slow_ios.sample`)."""
    numbers = sample(run, start, stop, POINTS)
    arrays: Arrays = {"number": numbers}
    if len(numbers):
        low, high = int(numbers[0]), int(numbers[-1]) + 1
        for name in ("offset_bytes", "response_time_ns"):
            if run.has(name):
                parts = _pieces_of(run, name, low, high, numbers)
                arrays[name] = np.concatenate(parts)
    header = {"complete": True, "kind": "ios", "io_count": run.io_count}
    start, stop = max(start, 0), min(stop, run.io_count)
    return Picture({**header, "start": start, "stop": max(stop, start)}, arrays)


def _pieces_of(
    run: OpenRun, name: str, low: int, high: int, numbers: NDArray[np.int64]
) -> list[NDArray[Any]]:
    """Return selected I/Os of a column, read a piece at a time."""
    pieces = []
    for begin in range(low, high, RAW):
        end = min(begin + RAW, high)
        selected = numbers[(numbers >= begin) & (numbers < end)] - begin
        if len(selected):
            pieces.append(run.column(name, begin, end)[selected])
    return pieces


def _numbered(grid: Grid, low: float, high: float) -> list[IoRange]:
    """Return the I/Os in a range of numbers, a range for each stream."""
    io_ranges = []
    for first, last in pairwise(grid.streams.tolist()):
        start = min(max(floor(low), first), last)
        stop = min(max(ceil(high), start), last)
        if start < stop:
            io_ranges.append((start, stop))
    return io_ranges


def _submitted(run: OpenRun, grid: Grid, low: float, high: float) -> list[IoRange]:
    """Return the I/Os submitted in a range of time [ns], a range for each stream."""
    io_ranges = []
    for first, last in pairwise(np.searchsorted(grid.starts, grid.streams).tolist()):
        from_block = first + int(np.searchsorted(grid.last_ns[first:last], low))
        to_block = first + int(np.searchsorted(grid.first_ns[first:last], high, "right"))
        if from_block < to_block:
            whole = int(grid.starts[from_block]), int(grid.starts[to_block])
            io_ranges.append(_trimmed(run, whole, grid.size, low, high))
    return io_ranges


def _trimmed(run: OpenRun, io_range: IoRange, size: int, low: float, high: float) -> IoRange:
    """Cut off the I/Os submitted before or after, in the blocks at the ends."""
    start, stop = io_range
    head = run.column("submit_ns", start, min(start + size, stop))
    tail_from = max(stop - size, start)
    tail = run.column("submit_ns", tail_from, stop)
    begin = start + int(np.searchsorted(head, low))
    return begin, max(tail_from + int(np.searchsorted(tail, high, "right")), begin)


def _points(run: OpenRun, io_ranges: Sequence[IoRange]) -> tuple[dict[str, object], Arrays]:
    names = [name for name in POINT_COLUMNS if run.has(name)]
    arrays = {name: _read(run, name, io_ranges) for name in names}
    arrays = {"number": _numbers(io_ranges), **arrays}
    if run.causes and io_ranges:
        spent = np.array([_read(run, cause, io_ranges) for cause in run.causes])
        arrays["cause"] = spent.argmax(axis=0).astype(np.uint8)
    times = arrays["response_time_ns"].astype(np.int64)
    spread = np.bincount(classes_of(times), minlength=CLASSES)
    header: dict[str, object] = {"kind": "ios", "window": _statistics(times), **_covered(io_ranges)}
    header["causes"] = [cause_name(each) for each in run.causes]
    header["cause_columns"] = run.causes
    return header, arrays | _spread(spread[None, :], header) | _averages(run, io_ranges, 1, times)


def _from_ios(
    run: OpenRun, grid: Grid, io_ranges: Sequence[IoRange], columns: int
) -> tuple[dict[str, object], Arrays]:
    """Return rows of I/Os, read from the file."""
    total = sum(stop - start for start, stop in io_ranges)
    step = 1 << (max(total - 1, 1) // columns).bit_length()
    widened = [(_aligned(grid, start, step), stop) for start, stop in io_ranges]
    times = _read(run, "response_time_ns", widened).astype(np.int64)
    submitted = _read(run, "submit_ns", widened).astype(np.int64)
    rows = [np.arange(start, stop, step) for start, stop in widened]
    begins = np.concatenate([[0], np.cumsum([stop - start for start, stop in widened])])
    pairs = zip(rows, begins[:-1], strict=True)
    at = np.concatenate([each - each[0] + begin for each, begin in pairs])
    lengths = np.diff(at, append=len(times))
    start = np.concatenate(rows)
    offsets = np.repeat(np.arange(len(at)), lengths) * CLASSES
    spread = np.bincount(offsets + classes_of(times), minlength=len(at) * CLASSES)
    inside = _inside(io_ranges, widened)
    header = {"kind": "rows", "window": _statistics(times[inside]), **_covered(io_ranges)}
    sums = np.add.reduceat(times, at)
    arrays = {
        "start": start,
        "stop": start + lengths,
        "min_ns": np.minimum.reduceat(times, at),
        "max_ns": np.maximum.reduceat(times, at),
        "mean_ns": sums / lengths,
        "first_ns": np.minimum.reduceat(submitted, at),
        "last_ns": np.maximum.reduceat(submitted, at),
    }
    classes = _spread(spread.reshape(len(at), CLASSES), header)
    return header, arrays | classes | _averages(run, widened, step, times)


def _from_blocks(
    run: OpenRun, grid: Grid, io_ranges: Sequence[IoRange], columns: int
) -> tuple[dict[str, object], Arrays]:
    """Return rows of whole blocks."""
    total = sum(stop - start for start, stop in io_ranges)
    together = max(-(-total // grid.size // columns), 1)
    picked: list[NDArray[np.int64]] = []
    groups: list[NDArray[np.int64]] = []
    covered: list[IoRange] = []
    for start, stop in io_ranges:
        first = int(np.searchsorted(grid.starts, start, "right")) - 1
        last = int(np.searchsorted(grid.starts, stop))
        begin = sum(len(each) for each in picked)
        picked.append(np.arange(first, last))
        groups.append(begin + np.arange(0, last - first, together))
        covered.append((int(grid.starts[first]), int(grid.starts[last])))
    blocks, at = np.concatenate(picked), np.concatenate(groups)
    spread = merged(grid.spread[blocks], at, np.add)
    lengths = merged(np.diff(grid.starts)[blocks], at, np.add)
    sums, begins = merged(grid.sum_ns[blocks], at, np.add), grid.starts[blocks][at]
    arrays = {
        "start": begins,
        "stop": begins + lengths,
        "min_ns": merged(grid.min_ns[blocks], at, np.minimum),
        "max_ns": merged(grid.max_ns[blocks], at, np.maximum),
        "mean_ns": sums / lengths,
        "first_ns": merged(grid.first_ns[blocks], at, np.minimum),
        "last_ns": merged(grid.last_ns[blocks], at, np.maximum),
    }
    statistics = {
        "count": int(lengths.sum()),
        "min_ns": int(arrays["min_ns"].min()),
        "max_ns": int(arrays["max_ns"].max()),
        "mean_ns": float(sums.sum() / lengths.sum()),
        "exact": False,
    }
    header = {"kind": "rows", "window": statistics, **_covered(covered)}
    if len(grid.streams) == 2:
        total_ns = run.prefix_ns[np.searchsorted(grid.starts, begins + lengths)]
        arrays |= _averaged(run, begins + lengths, total_ns)
    return header, arrays | _spread(spread, header)


def _from_pyramid(run: OpenRun, axis: Axis, columns: int) -> Picture:
    """Return the whole run from its pyramid, while the I/Os are being read."""
    pyramid = run.pyramid
    assert pyramid is not None, "a log without a pyramid is short"
    over = pyramid.over_number if axis == "number" else pyramid.over_time
    factor = 1 << (max(len(over) - 1, 1) // columns).bit_length()
    pyramid = pyramid.coarser(factor)
    n, last = run.io_count, pyramid.ns_per_row * len(pyramid.over_time)
    if axis == "number":
        rows, step = pyramid.over_number, pyramid.ios_per_row
    else:
        rows, step = pyramid.over_time, pyramid.ns_per_row
    start = np.arange(len(rows)) * step
    used = rows["count"] > 0
    rows, start = rows[used], start[used]
    ends = {"number": ("start", "stop"), "time": ("first_ns", "last_ns")}[axis]
    arrays = {
        ends[0]: start,
        ends[1]: start + step,
        "min_ns": rows["min_ns"],
        "max_ns": rows["max_ns"],
        "mean_ns": rows["sum_ns"] / rows["count"],
    }
    statistics = {
        "count": n,
        "min_ns": int(rows["min_ns"].min()),
        "max_ns": int(rows["max_ns"].max()),
        "mean_ns": float(rows["sum_ns"].sum() / rows["count"].sum()),
        "exact": False,
    }
    header = {"complete": False, "io_count": n, "last_ns": last, "streams": 1, "kind": "rows"}
    return Picture({**header, "window": statistics, "start": 0, "stop": n}, arrays)


def _averages(
    run: OpenRun, io_ranges: Sequence[tuple[int, int]], step: int, times: NDArray[np.int64]
) -> dict[str, NDArray[Any]]:
    """Return running averages at the end of every row of `step` I/Os, for a single stream.

    Source: uFLIP (CIDR 2009) §5.1, Figure 3: dashed with the start-up phase, solid without.
    """
    grid = run.grid()
    if grid is None or len(grid.streams) != 2 or len(io_ranges) != 1 or not len(times):
        return {}
    start, stop = io_ranges[0]
    ends = np.minimum(np.arange(start, stop, step) + step, stop)
    total = run.sum_before(start) + np.cumsum(times)[ends - start - 1]
    return _averaged(run, ends, total)


def _averaged(run: OpenRun, ends: NDArray[Any], total_ns: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return averages over all I/Os before each end (n,), with and without the start-up.

    Those without it are NaN inside the start-up.
    """
    ignored = min(run.io_ignore, run.io_count)
    measured = np.where(ends > ignored, ends - ignored, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        without = np.where(measured > 0, (total_ns - run.ignored_ns) / measured, np.nan)
    columns = {"average_ns": without}
    return columns | ({"average_with_ns": total_ns / ends} if ignored else {})


def _aligned(grid: Grid, number: int, step: int) -> int:
    """Return the start of the row of an I/O."""
    stream = int(grid.streams[np.searchsorted(grid.streams[:-1], number, "right") - 1])
    return number - (number - stream) % step


def _read(run: OpenRun, name: str, io_ranges: Sequence[IoRange]) -> NDArray[Any]:
    parts = [run.column(name, start, stop) for start, stop in io_ranges]
    return np.concatenate(parts) if parts else np.zeros(0, np.uint64)


def _numbers(io_ranges: Sequence[IoRange]) -> NDArray[np.int64]:
    parts = [np.arange(start, stop) for start, stop in io_ranges]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _inside(io_ranges: Sequence[IoRange], widened: Sequence[IoRange]) -> NDArray[np.bool_]:
    """Return which I/Os of widened ranges are within the ranges themselves."""
    pairs = zip(io_ranges, widened, strict=True)
    return np.concatenate([np.arange(wide[0], wide[1]) >= each[0] for each, wide in pairs])


def _covered(io_ranges: Sequence[IoRange]) -> dict[str, int]:
    """Return the range of I/O numbers of some ranges."""
    if not io_ranges:
        return {"start": 0, "stop": 0}
    return {"start": min(each[0] for each in io_ranges), "stop": max(e[1] for e in io_ranges)}


def _statistics(times: NDArray[np.int64]) -> Header:
    """Return statistics of response times (n,) [ns]."""
    statistics = summarise(times) if len(times) else {"count": 0}
    return {**statistics, "exact": True}


def _spread(spread: NDArray[Any], header: dict[str, object]) -> Arrays:
    """Cut off empty classes at the ends; store the first class in the header."""
    used = np.flatnonzero(spread.sum(axis=0))
    first, stop = (int(used[0]), int(used[-1]) + 1) if len(used) else (0, 1)
    header["first_class"], header["classes"] = first, stop - first
    return {"spread": spread[:, first:stop].astype(np.uint32).ravel()}


def _portable(values: NDArray[Any]) -> NDArray[Any]:
    """Return the values in types for a browser: floats, or integers of 32 or 8 bits."""
    if values.dtype == np.bool_:
        return values.astype("<u1")
    if values.dtype.itemsize == 1:
        return values.astype("<u1")
    if values.dtype in (np.uint32, np.uint16):
        return values.astype("<u4")
    return values.astype("<f8")
