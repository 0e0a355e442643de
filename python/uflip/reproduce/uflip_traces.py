"""uFLIP's figures 3 to 5: response times I/O by I/O, of Mtron and Kingston DTI.

**Source**: uFLIP (CIDR 2009) §4.2, §4.3, §5.1, figures 3, 4 and 5.
**Faithful**: long runs of the baseline patterns on devices in the random state; sequential reads,
a batch of random writes, sequential reads again.
**Simplified**: nothing.
**Ambiguous**: the number of random writes in the batch of figure 5: 1,000 here, more than the
start-up. The limit of an expensive write: ten times the cheapest one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from uflip.device.handle import Device
from uflip.device.opener import open_device
from uflip.executors import OnStep
from uflip.reproduce import figure
from uflip.reproduce.reproduction import Reproduction, ReproductionRow, compare_printed
from uflip.spec import baseline

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

IO_SIZE = 32 << 10
REST_NS = 60 * 10**9
EXPENSIVE = 10
SPREAD_NOTE = "as many reads as in the paper are slowed, each of them by less"


@dataclass(frozen=True)
class ResponseTrace:
    """Response times [ms] in order of submission; in figure 5 of the reads around the writes."""

    response_time_ms: tuple[float, ...]
    before: int = 0
    """Number of reads before the batch of random writes."""


def _response_times_ms(
    device: Device, pattern: str, io_count: int, **changes: int
) -> NDArray[np.float64]:
    trace = device.run(baseline(pattern, io_size=IO_SIZE, io_count=io_count, seed=3, **changes))
    return np.asarray(trace.column("response_time_ns")) / 1e6


def measure_mtron(on_step: OnStep) -> ResponseTrace:
    """Write at random to a Mtron that was idle before."""
    with open_device("sim:mtron") as device:
        device.idle(REST_NS)
        times = _response_times_ms(device, "RW", 5120)
    on_step(1, "random writes on sim:mtron")
    return ResponseTrace(tuple(times.tolist()))


def rows_mtron(data: ResponseTrace) -> list[ReproductionRow]:
    """Compare start-up, levels, and the mean of a short run without IOIgnore."""
    times = np.array(data.response_time_ms)
    slow = times > EXPENSIVE * times.min()
    start_up = int(np.argmax(slow))
    running = times[start_up:]
    low = float(100 * (1 - times[:512].mean() / running.mean()))
    return [
        compare_printed("uflip/fig3/mtron/start_up", start_up),
        compare_printed("uflip/fig3/mtron/cheap", float(np.median(times[~slow]))),
        compare_printed("uflip/fig3/mtron/expensive", float(np.median(times[slow]))),
        compare_printed("uflip/fig3/mtron/mean", float(running.mean())),
        compare_printed("uflip/fig3/mtron/short_mean", low),
    ]


def measure_dti_trace(on_step: OnStep) -> ResponseTrace:
    """Write sequentially to a Kingston DTI."""
    with open_device("sim:kingston-dti") as device:
        times = _response_times_ms(device, "SW", 1024)
    on_step(1, "sequential writes on sim:kingston-dti")
    return ResponseTrace(tuple(times.tolist()))


def rows_dti_trace(data: ResponseTrace) -> list[ReproductionRow]:
    """Compare the period, and the mean of Table 3."""
    times = np.array(data.response_time_ms)
    slow = np.flatnonzero(times > EXPENSIVE * times.min())
    # The first write closes units that earlier writes left open, and is not part of the pattern.
    period = float(np.median(np.diff(slow[1:])))
    return [
        compare_printed("uflip/fig4/kingston-dti/period", period),
        compare_printed("uflip/fig4/kingston-dti/mean", float(times[128:].mean())),
    ]


def measure_lingering(on_step: OnStep) -> ResponseTrace:
    """Read, write at random, read again."""
    with open_device("sim:mtron") as device:
        device.idle(REST_NS)
        target = {"target_size": 8000 * IO_SIZE}
        before = _response_times_ms(device, "SR", 1000, **target)
        _response_times_ms(device, "RW", 1000)
        after = _response_times_ms(device, "SR", 8000, **target)
    on_step(1, "reads around random writes on sim:mtron")
    return ResponseTrace((*before.tolist(), *after.tolist()), len(before))


def rows_lingering(data: ResponseTrace) -> list[ReproductionRow]:
    """Compare the number of reads that the writes slow down."""
    times = np.array(data.response_time_ms)
    before, after = times[: data.before], times[data.before :]
    slowed = int(np.flatnonzero(after > 1.05 * before.max()).max(initial=-1)) + 1
    seconds = float(after[:slowed].sum()) / 1e3
    return [
        compare_printed("uflip/fig5/mtron/reads", slowed),
        compare_printed("uflip/fig5/mtron/seconds", seconds, note=SPREAD_NOTE),
    ]


def draw_traces(title: str, below: str, data: ResponseTrace) -> "Figure":
    """Draw a dot for each I/O, on a logarithmic axis as in the paper."""
    sheet, [axis] = figure.panels(height=3.6)
    times = np.array(data.response_time_ms)
    drawn_times = times if data.before else times[:600]
    color = figure.SEQUENTIAL_READS if data.before else figure.WRITES
    axis.plot(np.arange(len(drawn_times)), drawn_times, ".", markersize=2.5, color=color)
    if data.before:
        axis.axvline(data.before, color=figure.FAINT, linestyle=":", linewidth=1)
    else:
        _draw_running_averages(axis, times, len(drawn_times))
    figure.logarithmic(axis, "response time [ms]")
    axis.set_xlabel("I/O")
    figure.title(axis, title, below)
    return sheet


def _draw_running_averages(axis: "Axes", times: NDArray[np.float64], drawn_ios: int) -> None:
    """Draw averages as in figure 3: dashed from the first I/O, solid from the first slow one on."""
    slow = np.flatnonzero(times > EXPENSIVE * times.min())
    # A device whose first I/O is slow has no start-up to ignore.
    starts = [(0, "--"), (int(slow[0]), "-")] if len(slow) and slow[0] > 0 else [(0, "--")]
    for start, style in starts:
        part = times[start:drawn_ios]
        running = np.cumsum(part) / np.arange(1, len(part) + 1)
        ios = np.arange(start, start + len(part))
        axis.plot(ios, running, color=figure.FAINT, linestyle=style, linewidth=1.2)


def _reproduction(
    number: int,
    title: str,
    measure: Callable[[OnStep], ResponseTrace],
    rows: Callable[[ResponseTrace], list[ReproductionRow]],
    below: str,
) -> Reproduction[ResponseTrace]:
    source = f"uFLIP (2009) figure {number}"
    return Reproduction(
        id=f"uflip-fig{number}",
        title=title,
        source=source,
        steps=1,
        measure=measure,
        rows=rows,
        draw=partial(draw_traces, title[0].upper() + title[1:], f"{source}: {below}"),
    )


FIGURE_3 = _reproduction(
    3, "starting and running phase of Mtron", measure_mtron, rows_mtron,
    "random writes; running averages with the start-up (dashed) and without (solid)",
)  # fmt: skip
FIGURE_4 = _reproduction(
    4, "running phase of Kingston DTI", measure_dti_trace, rows_dti_trace,
    "sequential writes; dashed: running average",
)  # fmt: skip
FIGURE_5 = _reproduction(
    5, "pause determination for Mtron", measure_lingering, rows_lingering,
    "sequential reads before and after 1,000 random writes (dotted)",
)  # fmt: skip
