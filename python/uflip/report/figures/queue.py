"""Throughput and response time against the depth of a queue, side by side, with the knees.

**Source** ours; the knee is that of `uflip.microbench.today.queue_depth`.

**Faithful** Throughput is depth / mean response time, as Little's law has it for a closed loop.

**Simplified** Throughput has no whiskers: an interval of it is that of the mean beside it.

**Ambiguous** The diagonal that throughput leaves at the knee is not drawn: it has another place for
each pattern.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from uflip.data.summary import Experiment, Measured
from uflip.microbench.today.queue_depth import knee, rate
from uflip.microbench.words import by_pattern, format_value
from uflip.report.blocks import Figure
from uflip.report.data import Document, is_simulated
from uflip.report.figures import axes as scales
from uflip.report.figures import palette
from uflip.report.figures.canvas import (
    Drawing,
    legend_above,
    mark_simulated,
    new_figure,
    styled,
    to_drawing,
)
from uflip.report.figures.sweep import draw_experiment, whisker_ms, with_numbers
from uflip.report.words import axis_name, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEIGHT = 3.3
THOUSAND = 1e3


@styled
def draw(micro_benchmark: str, runs: Sequence[Experiment], *, simulated: bool) -> Drawing | None:
    """Draw a queue.

    Parameters
    ----------
    micro_benchmark
        Its name.
    runs
        Its runs, as in the summary.
    simulated
        Whether to mark the figure as simulated.

    Returns
    -------
    Drawing or None
        None if there is nothing to draw.
    """
    experiments = by_pattern(runs)
    if not experiments:
        return None
    figure, (throughput, response) = new_figure(1, 2, height=HEIGHT)
    handles = [
        draw_experiment(response, pattern, experiment, 0.0)
        for pattern, experiment in experiments.items()
    ]
    measured = [run for experiment in experiments.values() for run in experiment]
    ends = [end for run in measured for end in whisker_ms(run)]
    scales.response_time_scale(response, min(ends), max(ends))
    response.set_ylabel("response time [ms]")
    _throughput(throughput, experiments)
    depths = sorted({run["value"] for run in measured})
    for axis in (throughput, response):
        scales.label_values(axis, depths, [format_value(depth, "") for depth in depths])
        axis.grid(visible=False, axis="x")
        axis.set_xlabel(axis_name(measured[0]["parameter"], measured[0]["unit"]))
    legend_above(figure, handles)
    mark_simulated(figure, simulated)
    return to_drawing(figure, micro_benchmark, title(micro_benchmark), _describe(experiments))


def _throughput(axis: "Axes", experiments: Mapping[str, Sequence[Measured]]) -> None:
    """Thousands of I/Os a second; a short line below marks the knee of each pattern."""
    seen = []
    for pattern, runs in experiments.items():
        look = palette.look(pattern)
        rates = [rate(run) / THOUSAND for run in runs]
        seen += rates
        places = scales.positions([run["value"] for run in runs])
        axis.plot(places, rates, color=look.color, marker=look.marker)
        if (found := knee(runs)) is not None and found >= 1:
            (place,) = scales.positions([found])
            axis.axvline(place, ymax=0.06, color=look.color, lw=2.0)
    scales.response_time_scale(axis, min(seen), max(seen))
    axis.set_ylabel("throughput [1,000 I/Os a second]")


def figure(document: Document, micro_benchmark: str) -> Figure | None:
    """A queue, with the numbers of its runs."""
    measured = document["micro_benchmarks"].get(micro_benchmark, [])
    drawing = draw(micro_benchmark, measured, simulated=is_simulated(document))
    return with_numbers(document, micro_benchmark, drawing)


def _describe(experiments: Mapping[str, Sequence[Measured]]) -> str:
    """The figure in words, for those who do not see it."""
    parts = []
    for pattern, runs in experiments.items():
        found = knee(runs)
        told = f"{pattern}: {rate(runs[0]):,.0f} I/Os a second at depth {runs[0]['value']}, "
        told += f"{rate(runs[-1]):,.0f} at depth {runs[-1]['value']}"
        parts.append(told if found is None else f"{told}, knee at {found:.1f}")
    return "Throughput and response time against the queue depth. " + "; ".join(parts) + "."
