"""Does a figure of a page show its chart's values at the right positions of its axes?"""

import base64
import io
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uflip.report.figures import svg
from uflip.report.figures.axes import round_ticks
from uflip.report.figures.chart import (
    MARKERS,
    Area,
    Axis,
    Band,
    Box,
    Chart,
    Panel,
    Polyline,
    ReferenceLine,
    Spans,
    TextLabel,
)
from uflip.report.figures.svg import Drawing, draw, lay_out, text_width
from uflip.report.page import render


def draw_marks(
    *marks: object, x: Axis | None = None, y: Axis | None = None, **more: object
) -> Drawing:
    panel = Panel(x or Axis(0, 10), y or Axis(0, 10), marks)  # type: ignore[arg-type]
    return draw(Chart([panel], 200, **more), "x", "title", "described")  # type: ignore[arg-type]


def path_data(drawing: Drawing, style: str) -> list[str]:
    return [e.attributes["d"] for e in drawing.elements if style in e.attributes.get("style", "")]


def parse_numbers(d: str) -> list[float]:
    return [float(each) for each in re.findall(r"-?\d+(?:\.\d+)?", d)]


def test_points_are_placed_by_the_axes() -> None:
    chart = Chart(
        [Panel(Axis(0, 10), Axis(1, 100, log=True), [Polyline([0, 5, 10], [1, 10, 100])])], 200
    )
    (frame,) = lay_out(chart).frames
    (d,) = path_data(draw(chart, "x", "t", "d"), "stroke-width:1.5")
    middle = (frame.left + frame.right) / 2, (frame.top + frame.bottom) / 2
    expected = [frame.left, frame.bottom, *middle, frame.right, frame.top]
    assert parse_numbers(d) == pytest.approx(expected, abs=0.006)
    # With an inverted axis.
    chart = Chart([Panel(Axis(0, 10), Axis(10, 0), [Polyline([0, 10], [0, 10])])], 200)
    (frame,) = lay_out(chart).frames
    (d,) = path_data(draw(chart, "x", "t", "d"), "stroke-width:1.5")
    assert parse_numbers(d) == pytest.approx(
        [frame.left, frame.top, frame.right, frame.bottom], abs=0.006
    )


def test_svg_matches_matplotlib() -> None:
    """Points of a line have the same relative positions in their panel in both drawings."""
    from uflip.report.figures.matplotlib_chart import figure_of, styled

    x, y = Axis(0, 100, ticks=()), Axis(0.1, 10, log=True, ticks=())
    at, high = np.array([10.0, 35.0, 90.0]), np.array([0.3, 2.0, 8.0])
    chart = Chart(
        [Panel(x, y, [Polyline(at, high), ReferenceLine(1.0, "#aa0000"), Band(20, 30)])], 200
    )
    figure = styled(figure_of)(chart)
    (axes,) = figure.axes
    (frame,) = lay_out(chart).frames
    inside = axes.transAxes.inverted().transform(
        axes.transData.transform(np.column_stack([at, high]))
    )
    (d,) = path_data(draw(chart, "x", "t", "d"), "stroke-width:1.5")
    ours = np.array(parse_numbers(d)).reshape(-1, 2)
    ours = (ours - [frame.left, frame.bottom]) / [frame.width, -frame.height]
    assert ours == pytest.approx(inside, abs=1e-3)


def test_every_mark_is_drawn_and_closed() -> None:
    marks = [
        *(Polyline([1, 2], [3, 4], marker=marker, edge="#123456") for marker in MARKERS),
        Polyline([1, 2], [3, 4], marker="o", raster=True),
        Polyline([1, 2, 3], [3, 4, 5], step=True),
        Spans([1], [2], [3], "#000000"),
        Spans([1], [2], [3], "#000000", horizontal=True),
        ReferenceLine(3, "#000000", vertical=True, span=0.5),
        Band(1, 2),
        Box((1, 2), (3, 4), "#00ff00", edge="#0000ff"),
        Area([1, 2], [3, 4], "#00ff00"),
        TextLabel(1, 2, "two\nlines <&> of text"),
    ]
    drawing = draw_marks(*marks)
    svg = render("blocks/drawing.html", drawing=drawing)
    assert svg.count("<path") == svg.count("</path>")
    assert not re.search(r"nan|inf\b|None", svg)
    assert "lines &lt;&amp;&gt; of text" in svg
    assert svg.count("data:image/png;base64,") == 1


@pytest.mark.parametrize("size", [2.0, 5.5, 9.0])
@pytest.mark.parametrize("marker", [each for each in MARKERS if each not in {"", "_"}])
def test_marks_have_their_size(marker: str, size: float) -> None:
    """Measure marks by their outline; a diamond is a square on its corner."""
    (d,) = path_data(
        draw_marks(Polyline([5], [5], "#00ff00", width=0, marker=marker, size=size)), "#00ff00"
    )
    x = y = 0.0
    points = []
    for command, arguments in re.findall(r"([mlaM])([^mlaMz]*)", d):
        values = parse_numbers(arguments)
        if command == "M":
            continue
        moved = values[-2:] if command == "a" else values
        for dx, dy in zip(moved[::2], moved[1::2], strict=True):
            x, y = x + dx, y + dy
            points.append((x, y))
    across = np.ptp(np.array(points), axis=0)
    assert across[0] == pytest.approx(size * (1.42 if marker == "D" else 1), abs=0.03)
    assert np.abs(np.mean([np.max(points, axis=0), np.min(points, axis=0)], axis=0)).max() < 0.03


@given(st.floats(-1e9, 1e9), st.floats(1e-9, 1e9), st.integers(3, 12))
def test_round_ticks_are_few_and_in_range(low: float, span: float, max_ticks: int) -> None:
    span = max(span, 1e-6 * abs(low))
    high = low + span
    ticks = round_ticks(low, high, max_ticks)
    assert len(ticks) <= max_ticks
    assert ticks == sorted(set(ticks))
    assert all(low - 1e-6 * span <= tick <= high + 1e-6 * span for tick in ticks)
    assert len(ticks) >= max_ticks // 4


def test_text_width_matches_the_font() -> None:
    from matplotlib import font_manager
    from matplotlib.ft2font import FT2Font

    font = FT2Font(font_manager.findfont("DejaVu Sans"))
    font.set_size(100, 72)
    for text in ("response time [ms]", "RW random write", "0.01 %  (p99.99)", "{~}|"):
        font.set_text(text, 0.0)
        wide, _ = font.get_width_height()
        assert text_width(text, 100) == pytest.approx(wide / 64, rel=0.03)


def test_text_stays_inside_the_figure() -> None:
    """Long names are inside the figure, even in the widest font."""
    panels = [
        Panel(Axis(0.5, 10_240.5), Axis(0, 1_000_000, "response time [ms]"), [], "title")
        for _ in range(4)
    ]
    legend = [Polyline(label=f"a name of some length {number}") for number in range(9)]
    chart = Chart(panels, 300, columns=2, legend=legend, x_label="I/O number", simulated=True)
    for element in draw(chart, "x", "t", "d").elements:
        if element.tag != "text" or "transform" in element.attributes:
            continue
        width, x = text_width(element.text), float(element.attributes["x"])
        anchor = element.attributes.get("text-anchor", "start")
        left = x - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
        assert left >= -0.5, element
        assert left + width <= chart.width + 0.5, element
        assert 0 < float(element.attributes["y"]) <= chart.height


def test_dots_have_their_position_size_and_opacity() -> None:
    from PIL import Image

    extent, size, alpha = (100.0, 50.0), 4.0, 0.5
    at = np.array([25.0, 75.0, 75.0]), np.array([10.0, 40.0, 40.0])
    url = svg.dots_as_image(at, extent, size, "#123456", alpha)
    content = base64.b64decode(url.removeprefix("data:image/png;base64,"))
    pixels = np.array(Image.open(io.BytesIO(content)).convert("RGBA")).astype(float)
    height, width, _ = pixels.shape
    assert (width, height) == (278, 139)
    opacity = pixels[..., 3] / 255
    painted = opacity > 0
    assert set(map(tuple, pixels[painted][:, :3])) == {(0x12, 0x34, 0x56)}
    for x, y, expected in ((25, 10, alpha), (75, 40, 1 - (1 - alpha) ** 2)):
        column, row = int(x * svg.DENSITY), int(y * svg.DENSITY)
        assert opacity[row, column] == pytest.approx(expected, abs=1.5 / svg.LEVELS)
        around = painted[row - 10 : row + 11, column - 10 : column + 11]
        area = np.sum(opacity[row - 10 : row + 11, column - 10 : column + 11]) / expected
        assert area == pytest.approx(np.pi * (size * svg.DENSITY / 2) ** 2, rel=0.05)
        assert abs(np.argwhere(around).mean(axis=0) - 10).max() < 0.5
    assert painted.sum() == painted[:, :139].sum() + painted[:, 139:].sum()
    # Points outside the panel are left out.
    none = svg.dots_as_image(
        (np.array([-50.0, 1e4]), np.array([10.0, -9.0])), extent, size, "#123456", 1
    )
    content = base64.b64decode(none.removeprefix("data:image/png;base64,"))
    assert not np.array(Image.open(io.BytesIO(content)).convert("RGBA"))[..., 3].any()
