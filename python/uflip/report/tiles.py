"""Key figures: one tile per baseline pattern, with the shape of its distribution.

A tile says mean, median and p99, and draws how the response times are spread: all four on the same
logarithmic scale, so that shapes and places can be compared from tile to tile.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from uflip.report.data import BaselineTrace
from uflip.report.figures import palette
from uflip.report.words import PATTERN_NAMES, format_ms, format_value, tail_percentile
from uflip.results.summarise import PATTERNS, baseline_of

BINS = 48
BAR_WIDTH, HEIGHT = 4, 34


def tiles(document: Mapping[str, Any], traces: Sequence[BaselineTrace]) -> str:
    """The four tiles as HTML; a pattern that was not measured says so.

    Parameters
    ----------
    document
        The summary.
    traces
        I/Os of the baseline runs.
    """
    edges = _common_edges(traces)
    shapes = {trace.pattern: _histogram(trace, edges) for trace in traces}
    return "\n".join(_tile(document, pattern, shapes.get(pattern, "")) for pattern in PATTERNS)


def scale_note(traces: Sequence[BaselineTrace]) -> str:
    """What the little histograms span, in words."""
    edges = _common_edges(traces)
    if len(edges) == 0:
        return ""
    ends = " to ".join(f"{format_ms(edge * 1e6)} ms" for edge in (edges[0], edges[-1]))
    return f"The strips show how response times are spread, on one logarithmic scale from {ends}."


def _tile(document: Mapping[str, Any], pattern: str, shape: str) -> str:
    run = baseline_of(dict(document), pattern)
    name = PATTERN_NAMES[pattern]
    head = f'<h3><abbr title="{name}">{pattern}</abbr> <span>{name}</span></h3>'
    variable = palette.look(pattern).variable
    if run is None or run["statistics"] is None:
        return f'<div class="tile" style="--hue: var(--{variable})">{head}<p>not measured</p></div>'
    statistics = run["statistics"]
    tail, tail_ns = tail_percentile(statistics)
    size = format_value(run["spec"].get("io_size"), "bytes")
    facts = (("p50", format_ms(statistics["p50_ns"])), (tail, format_ms(tail_ns)))
    cells = "".join(
        f"<div><dt>{escape(key)}</dt><dd>{escape(value)} ms</dd></div>" for key, value in facts
    )
    return (
        f'<div class="tile" style="--hue: var(--{variable})">{head}'
        f'<p class="big">{format_ms(statistics["mean_ns"])} <small>ms mean</small></p>'
        f"{shape}<dl>{cells}</dl>"
        f'<p class="note">{statistics["count"]:,} I/Os of {escape(size)}</p></div>'
    )


def _common_edges(traces: Sequence[BaselineTrace]) -> np.ndarray:
    """Bin edges [ms] over all patterns, even in the logarithm; empty without data."""
    times = [trace.measured_ms[trace.measured_ms > 0] for trace in traces]
    every = np.concatenate(times) if times else np.empty(0)
    if len(every) == 0:
        return np.empty(0)
    low, high = float(every.min()) / 1.05, float(every.max()) * 1.05
    return np.geomspace(low, high, BINS + 1)


def _histogram(trace: BaselineTrace, edges: np.ndarray) -> str:
    """Bars as high as the square root of the count: one slow I/O in a thousand is still seen."""
    if len(edges) == 0:
        return ""
    counts, _ = np.histogram(trace.measured_ms, edges)
    heights = np.sqrt(counts / max(counts.max(), 1)) * HEIGHT
    bars = "".join(
        f'<rect x="{index * BAR_WIDTH}" y="{HEIGHT - height:.1f}" width="{BAR_WIDTH - 1}" '
        f'height="{height:.1f}"/>'
        for index, height in enumerate(heights)
        if height > 0
    )
    return (
        f'<svg class="strip" viewBox="0 0 {BINS * BAR_WIDTH} {HEIGHT + 1}" aria-hidden="true" '
        f'preserveAspectRatio="none">{bars}<path d="M0 {HEIGHT + 0.5}h{BINS * BAR_WIDTH}"/></svg>'
    )
