"""Figures of the pages: the micro-benchmarks of a result, all devices, a device over time."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row

from uflip.data.summary import Summary
from uflip.report.figures import palette, side_by_side
from uflip.report.figures.axes import log_axis, response_time_axis
from uflip.report.figures.chart import DASHED, Axis, Chart, Panel, Polyline, TextLabel
from uflip.report.figures.svg import Drawing, Element, draw

MAX_NAMED = 16
"""Beyond this number of devices their names would cover each other."""
DAY, MINUTE = len("2009-01-04"), len("2009-01-04T12:00")
MARGIN = 1.5
"""Factor between the outermost points of a logarithmic axis and its ends."""


def micro_benchmarks(summary: Summary) -> Drawing | None:
    """Return the micro-benchmarks of a result; None without any."""
    chart = side_by_side.thumbnails(summary)
    return None if chart is None else _draw(chart, "micro-benchmarks", "Micro-benchmarks")


def scatter(devices: Sequence[Row[Any]]) -> Drawing | None:
    """Return the cost of random writes over that of sequential ones; None for fewer than two."""
    points = [each for each in devices if each.sw_ms and each.rw_ms]
    if len(points) < 2:
        return None
    lowest = min(min(each.sw_ms, each.rw_ms) for each in points) / MARGIN
    highest = max(max(each.sw_ms, each.rw_ms) for each in points) * MARGIN
    marks: list[Polyline | TextLabel] = [
        Polyline([lowest, highest], [lowest, highest], palette.MUTED, 0.8, DASHED)
    ]
    looks = {True: ("simulated", palette.MANY[0], "o"), False: ("measured", palette.MANY[1], "s")}
    legend = []
    for simulated, (label, color, marker) in looks.items():
        of_kind = [each for each in points if (each.kind == "sim") is simulated]
        if of_kind:
            x, y = [each.sw_ms for each in of_kind], [each.rw_ms for each in of_kind]
            marks.append(Polyline(x, y, color, 0, marker=marker, size=6))
            legend.append(Polyline(color=color, width=0, marker=marker, size=6, label=label))
    if len(points) <= MAX_NAMED:
        marks += [TextLabel(each.sw_ms, each.rw_ms, each.device, shift=6) for each in points]
    panel = Panel(
        log_axis(lowest, highest, "sequential write [ms]"),
        log_axis(lowest, highest, "random write [ms]"),
        marks,
    )
    return _draw(Chart([panel], 300, legend=legend, width=420), "devices", f"{len(points)} devices")


def trend(results: Sequence[Row[Any]]) -> Drawing | None:
    """Return the baselines over time, under the most frequent conditions; None without two."""
    conditions = Counter((each.scale, each.state, each.durability) for each in results)
    most = conditions.most_common(1)[0][0]
    chosen = [
        each for each in reversed(results) if (each.scale, each.state, each.durability) == most
    ]
    marks = []
    for name, look in palette.PATTERNS.items():
        means = [(_seconds(each), getattr(each, f"{name.lower()}_ms")) for each in chosen]
        points = [(at, mean) for at, mean in means if mean]
        if len(points) > 1:
            x, y = zip(*points, strict=True)
            marks.append(Polyline(x, y, look.color, 1.2, marker=look.marker, label=name))
    if not marks:
        return None
    times = [_seconds(each) for each in chosen]
    margin = max(0.04 * (times[-1] - times[0]), 1)
    ends = [chosen[0], chosen[-1]] if times[0] < times[-1] else chosen[:1]
    same_day = ends[0].created_utc[:DAY] == ends[-1].created_utc[:DAY]
    stop = MINUTE if same_day else DAY
    ticks = [(_seconds(each), each.created_utc[:stop].replace("T", " ")) for each in ends]
    x_axis = Axis(times[0] - margin, times[-1] + margin, "measured", ticks=ticks, grid=False)
    means_ms = [float(mean) for mark in marks for mean in mark.y]
    panel = Panel(x_axis, response_time_axis(min(means_ms), max(means_ms)), marks, ", ".join(most))
    return _draw(Chart([panel], 220, legend=marks), "trend", "baselines over time")


def _seconds(result: Row[Any]) -> float:
    return datetime.fromisoformat(result.created_utc).replace(tzinfo=UTC).timestamp()


def _draw(chart: Chart, name: str, title: str) -> Drawing:
    drawing = draw(chart, name, title, title)
    return replace(drawing, elements=[_without_style(each) for each in drawing.elements])


def _without_style(element: Element) -> Element:
    """Return an element with attributes for its style, which the policy of the pages forbids."""
    attributes = dict(element.attributes)
    style = str(attributes.pop("style", ""))
    for each in filter(None, style.split(";")):
        key, value = each.split(":", 1)
        attributes[key] = value
    return replace(element, attributes=attributes)
