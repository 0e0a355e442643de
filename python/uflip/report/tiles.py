"""Key figures: one tile per baseline pattern, with a histogram of its response times.

A tile shows mean, median and p99, and a histogram: all four on the same logarithmic scale, so that
the tiles can be compared.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from uflip.microbench.labels import PATTERN_NAMES, format_value
from uflip.report.data import BaselineTrace, Document, Traces, pooled
from uflip.report.figures import palette
from uflip.report.labels import format_ms, tail_percentile
from uflip.results.summary_document import PATTERNS, baseline_of

BINS = 48
BAR_WIDTH, HEIGHT = 4, 34


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a histogram, from the ground up, in its units."""

    left: int
    height: float
    width: int = BAR_WIDTH - 1


@dataclass(frozen=True, slots=True)
class Tile:
    """A pattern and its response times; `mean` is empty if it was not measured.

    Attributes
    ----------
    pattern, name, hue
        Its label, its full name, and the CSS variable of its colour.
    mean
        Response time [ms].
    times
        (name, response time [ms]) of the median and of a percentile in the tail.
    ios
        Number and size of the I/Os.
    bars
        Histogram of the response times, in a strip of `width` by `height`.
    """

    pattern: str
    name: str
    hue: str
    mean: str = ""
    times: Sequence[tuple[str, str]] = ()
    ios: str = ""
    bars: Sequence[Bar] = ()
    width: int = BINS * BAR_WIDTH
    height: int = HEIGHT


def tiles(document: Document, traces: Traces) -> list[Tile]:
    """Return the four tiles."""
    edges = _common_edges(traces)
    bars = {trace.pattern: _histogram(trace, edges) for trace in pooled(traces)}
    return [_tile(document, pattern, bars.get(pattern, [])) for pattern in PATTERNS]


def scale_note(traces: Traces) -> str:
    """Return the range of the histograms, as a sentence."""
    edges = _common_edges(traces)
    if len(edges) == 0:
        return ""
    ends = " to ".join(f"{format_ms(edge * 1e6)} ms" for edge in (edges[0], edges[-1]))
    return f"The strips are histograms of response times on one logarithmic scale from {ends}."


def _tile(document: Document, pattern: str, bars: Sequence[Bar]) -> Tile:
    run = baseline_of(document, pattern)
    name, hue = PATTERN_NAMES[pattern], palette.look(pattern).variable
    if run is None or run["statistics"] is None:
        return Tile(pattern, name, hue)
    statistics = run["statistics"]
    tail, tail_ns = tail_percentile(statistics)
    size = format_value(run["spec"].get("io_size"), "bytes")
    return Tile(
        pattern,
        name,
        hue,
        mean=format_ms(statistics["mean_ns"]),
        times=[("p50", format_ms(statistics["p50_ns"])), (tail, format_ms(tail_ns))],
        ios=f"{statistics['count']:,} I/Os of {size}",
        bars=bars,
    )


def _common_edges(traces: Traces) -> np.ndarray:
    """Return common bin edges [ms] of all patterns, logarithmic; empty without data."""
    times = [trace.measured_ms[trace.measured_ms > 0] for trace in traces]
    every = np.concatenate(times) if times else np.empty(0)
    if len(every) == 0:
        return np.empty(0)
    low, high = float(every.min()) / 1.05, float(every.max()) * 1.05
    return np.geomspace(low, high, BINS + 1)


def _histogram(trace: BaselineTrace, edges: np.ndarray) -> list[Bar]:
    """Return bars with the square root of the count: one slow I/O in a thousand stays visible."""
    if len(edges) == 0:
        return []
    counts, _ = np.histogram(trace.measured_ms, edges)
    heights = np.sqrt(counts / max(counts.max(), 1)) * HEIGHT
    return [
        Bar(index * BAR_WIDTH, float(height)) for index, height in enumerate(heights) if height > 0
    ]
