"""One micro-benchmark of a result, drawn as in the report on axes of the caller.

Several panels are placed within those axes, which are then hidden.
"""

from typing import TYPE_CHECKING

from uflip.microbench.labels import by_pattern
from uflip.report.data import Document
from uflip.report.figures import kind_of
from uflip.report.figures.chart import Chart
from uflip.report.figures.matplotlib_chart import draw_chart, styled
from uflip.report.labels import title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANELS_TITLE = 20.0
"""Distance of the title above several panels [points]."""


def benchmark_names(document: Document) -> list[str]:
    """Return the names of the micro-benchmarks that can be drawn."""
    return [name for name, runs in document["micro_benchmarks"].items() if by_pattern(runs)]


def benchmark_chart(document: Document, micro_benchmark: str) -> Chart:
    """Return the chart of one of `benchmark_names`."""
    return kind_of(micro_benchmark).chart(document, micro_benchmark)


@styled
def draw_benchmark(axis: "Axes | None", document: Document, micro_benchmark: str) -> "Axes":
    """Draw one of `benchmark_names` on axes of the caller, or of a new figure of pyplot."""
    if axis is None:
        from matplotlib import pyplot

        _, axis = pyplot.subplots(layout="constrained")
    chart = benchmark_chart(document, micro_benchmark)
    draw_chart(axis, chart)
    # Panels may have titles of their own.
    axis.set_title(title(micro_benchmark), pad=None if len(chart.panels) == 1 else PANELS_TITLE)
    return axis
