"""A figure of an explanation: every I/O, the bytes written, slow I/Os by property, quantiles."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from uflip import _native
from uflip.explain.explanation import ExplainedLog
from uflip.explain.finding import FOUND, Finding
from uflip.explain.io_log import WRITE, Floats
from uflip.explain.nearest_device import SHARES
from uflip.report.blocks import Figure
from uflip.report.figures import axes as scales
from uflip.report.figures import matplotlib_chart, palette
from uflip.report.figures.chart import (
    DASHED,
    Axis,
    Band,
    Box,
    Chart,
    Mark,
    Panel,
    Polyline,
    ReferenceLine,
)
from uflip.report.figures.svg import draw
from uflip.report.page import ReportPage, Section, render_page
from uflip.results import outputs
from uflip.table import Table

PAGE = ".html"
PANEL_HEIGHT, HEIGHT = 150.0, 40.0
MAX_POINTS = 20_000
BLOCKS = 200
MAX_PROPERTIES = 8
SHOWN_DEVICES = 2
MIB = 1 << 20
LEGEND = (
    Polyline(color=palette.MUTED, width=0, marker="o", size=2, label="one I/O"),
    Polyline(color=palette.INK, width=1.2, label="mean of neighbours"),
    Box(edge=palette.GRID, label="start-up"),
)


def check_picture(path: Path, *, force: bool = False) -> None:
    """Refuse the name of a picture that cannot be written, before anything is read."""
    outputs.check_ending(path, "picture", "--out", (PAGE, *outputs.FIGURES))
    if path.suffix == PAGE:
        outputs.check(path, outputs.REPORT, "--out", force=force)
    else:
        matplotlib_chart.check_library()
        matplotlib_chart.check_name(path, force=force)


def write_picture(explained: ExplainedLog, name: str, path: Path, *, force: bool = False) -> None:
    """Write the figure of an explanation, on a page with its statements or alone."""
    chart = chart_of(explained)
    if path.suffix != PAGE:
        _save_figure(chart, path, force=force)
        return
    findings = explained.document.findings
    drawing = draw(chart, "why", f"Response times of {name}", _description(findings))
    rows = [[each.topic, each.subject, each.verdict, each.statement] for each in findings]
    numbers = [
        [each.topic, each.subject, key, "" if value is None else f"{value}"]
        for each in findings
        for key, value in each.numbers.items()
    ]
    figure = Figure(
        "why",
        "The I/Os of the file",
        drawing,
        "Each dot is an I/O. The line over the bytes written is the mean of neighbouring writes: a "
        "step up is a cache, or free flash, that is used up.",
        data=[Table(["topic", "I/Os", "number", "value"], numbers, "llll")],
    )
    statements = Table(["topic", "I/Os", "verdict", "statement"], rows, "llll")
    sections = [
        Section("figure", "Figure", [figure]),
        Section("statements", "Statements", [statements]),
    ]
    found = sum(each.verdict == FOUND for each in findings)
    content = render_page(
        ReportPage(
            benchmark="uFLIP",
            source="Explanation of the response times of one file.",
            version=_native.__version__,
            device=name,
            title=f"{name}: explanation",
            badge="explanation",
            facts=[f"{len(explained.log):,} I/Os", explained.document.read_as.describe()],
            abstract=f"{found} of {len(findings)} statements were found in the data.",
            sections=sections,
        )
    )
    output = outputs.check(path, outputs.REPORT, "--out", force=force)
    outputs.write(output, content.encode())


@matplotlib_chart.styled
def _save_figure(chart: Chart, path: Path, *, force: bool) -> None:
    matplotlib_chart.save(matplotlib_chart.figure_of(chart), path, "why", force=force)


def chart_of(explained: ExplainedLog) -> Chart:
    """Return the chart: a panel for each kind of evidence that the file has."""
    panels = [_times_panel(explained)]
    panels += [
        each
        for each in (
            _bytes_panel(explained),
            _properties_panel(explained),
            _quantiles_panel(explained),
        )
        if each is not None
    ]
    rows = -(-len(panels) // 2)
    return Chart(panels, HEIGHT + PANEL_HEIGHT * rows, columns=2, legend=_legend(explained))


def _found(explained: ExplainedLog, topic: str) -> list[Finding]:
    findings = explained.document.findings
    return [each for each in findings if each.topic == topic and each.verdict == FOUND]


def _times_panel(explained: ExplainedLog) -> Panel:
    log = explained.log
    y = scales.times_axis(log.took / 1e6)
    step = max(1, len(log) // MAX_POINTS)
    marks: list[Mark] = []
    for finding in _found(explained, "start-up"):
        rows = dict(log.subjects)[finding.subject]
        marks.append(Band(0.5, float(rows[int(finding.numbers["startup_ios"] or 0)]) + 0.5))
    for subject, rows in log.subjects:
        look = palette.look("RW" if subject == "writes" else "RR")
        chosen = rows[::step]
        marks.append(
            Polyline(
                chosen + 1, log.took[chosen] / 1e6, look.dot, width=0, marker="o", size=1.3,
                alpha=0.7, raster=True,
            )
        )  # fmt: skip
    names = ", ".join(subject for subject, _ in log.subjects)
    x = Axis(0.5, len(log) + 0.5, "I/O number", grid=False)
    return Panel(x, y, marks, f"All {len(log):,} I/Os ({names})")


def _bytes_panel(explained: ExplainedLog) -> Panel | None:
    log = explained.log
    if log.size is None or log.mode is None:
        return None
    writes = log.rows(WRITE)
    if len(writes) < 2:
        return None
    written = np.cumsum(log.size[writes]) / MIB
    length = max(1, len(writes) // BLOCKS)
    means = _block_means(log.took[writes] / 1e6, length)
    marks: list[Mark] = [Polyline(_block_means(written, length), means, width=1.2)]
    for finding in _found(explained, "cache"):
        at = float(finding.numbers["bytes"] or 0) / MIB
        low, high = (float(finding.numbers[f"{end}_bytes"] or 0) / MIB for end in ("low", "high"))
        marks = [
            Band(low, high),
            *marks,
            ReferenceLine(at, palette.MUTED, dashes=DASHED, vertical=True),
        ]
    x = Axis(0, float(written[-1]), "MiB written", grid=False)
    return Panel(x, scales.times_axis(means), marks, "Writes over the bytes written")


def _block_means(values: Floats, length: int) -> Floats:
    count = len(values) // length
    means: Floats = values[: count * length].reshape(count, length).mean(axis=1)
    return means


def _properties_panel(explained: ExplainedLog) -> Panel | None:
    """Return the risk of being slow with each property over that without it."""
    rows = [
        (f"{each.name} ({subject})" if len(explained.properties) > 1 else each.name, each)
        for subject, tested in explained.properties.items()
        for each in tested
        if each.ratio > 0
    ]
    rows = sorted(rows, key=lambda row: row[1].p_value)[:MAX_PROPERTIES]
    if not rows:
        return None
    at = np.arange(len(rows))[::-1].astype(np.float64)
    ratios = np.array([each.ratio for _, each in rows])
    common = {
        finding.numbers[key]
        for finding in _found(explained, "slow I/Os")
        for key in finding.numbers
        if key.startswith("property_") and key.count("_") == 1
    }
    is_common = np.array([each.name in common for _, each in rows])
    marks: list[Mark] = [ReferenceLine(1.0, palette.MUTED, dashes=DASHED, vertical=True)]
    for chosen, face in ((is_common, None), (~is_common, "none")):
        if chosen.any():
            marks.append(
                Polyline(
                    ratios[chosen], at[chosen], palette.INK, width=0, marker="o", face=face,
                    edge=palette.INK,
                )
            )  # fmt: skip
    high, low = max(2.0, float(ratios.max())), min(0.5, float(ratios.min()))
    x = scales.log_axis(low, high, "risk of a slow I/O, with over without")
    ticks = [(float(y), name[:40]) for y, (name, _) in zip(at, rows, strict=True)]
    return Panel(
        x,
        Axis(-0.7, len(rows) - 0.3, ticks=ticks),
        marks,
        "Slow I/Os by property (filled: significant)",
    )


def _quantiles_panel(explained: ExplainedLog) -> Panel | None:
    """Return quantiles of the log and of the nearest devices."""
    if not explained.likenesses:
        return None
    count = len(explained.likenesses[0].took)
    places = np.arange(len(SHARES)).astype(np.float64)
    measured = np.quantile(explained.log.took[:count], SHARES) / 1e6
    marks: list[Mark] = [Polyline(places, measured, width=1.6, marker="o")]
    every = [measured]
    for index, each in enumerate(explained.likenesses[:SHOWN_DEVICES]):
        values = np.quantile(each.took, SHARES) / 1e6
        every.append(values)
        marks.append(replace(_device_line(index, each.name), x=places, y=values))
    ticks = [(float(at), f"p{100 * share:g}") for at, share in zip(places, SHARES, strict=True)]
    x = Axis(-0.3, len(SHARES) - 0.7, ticks=ticks)
    title = f"Quantiles of the first {count:,} I/Os"
    return Panel(x, scales.times_axis(np.concatenate(every)), marks, title)


def _device_line(index: int, name: str) -> Polyline:
    color = palette.MUTED if index else palette.INK
    return Polyline(
        color=color, width=1.2, dashes=DASHED, marker="s^"[index], face="none", edge=color,
        label=name,
    )  # fmt: skip


def _legend(explained: ExplainedLog) -> list[Polyline | Box]:
    nearest = explained.likenesses[:SHOWN_DEVICES]
    return [*LEGEND, *(_device_line(index, each.name) for index, each in enumerate(nearest))]


def _description(findings: Sequence[Finding]) -> str:
    return " ".join(f"{each.topic}: {each.statement}." for each in findings)
