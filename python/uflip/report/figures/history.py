"""Consecutive workloads on one device: I/O rate over time.

**Source** OFC (2011) §V.F, Figure 7: nine workloads in a row, values for each second.
**Faithful** Rates over time, a line per workload, each in the state that the previous one left.
**Simplified** A workload is cut into `WINDOWS` intervals of equal length; time between workloads is
left out.
**Ambiguous** When an I/O counts: at its completion.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from uflip.report.figures import palette
from uflip.report.figures.matplotlib_chart import Dashes
from uflip.results import Results, StoredRun
from uflip.results.columns import as_array
from uflip.results.summary_document import BASELINE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WINDOWS = 60
MAX_WORKLOADS = 24
"""Maximum number of workloads; of more, only the baselines are drawn."""
MIN_IOS_PER_WINDOW = 5
MIN_LABEL_SHARE = 0.06
"""Share of the axis that a label needs."""


@dataclass(frozen=True)
class WorkloadHistory:
    """A workload: its pattern, duration [s], and rate in each interval (n,) [IOPS]."""

    pattern: str
    seconds: float
    iops: NDArray[np.float64]


def runs_of(results: Results) -> list[StoredRun]:
    """Return the runs of a result to draw, in the order in which they were made."""
    runs = [run for run in results.runs if not run.is_job]
    if len(runs) > MAX_WORKLOADS:
        runs = [run for run in runs if run.micro_benchmark == BASELINE][:MAX_WORKLOADS]
    return runs


def workloads_of(results: Results) -> list[WorkloadHistory]:
    """Read the runs to draw."""
    workloads = []
    for run in runs_of(results):
        trace = run.trace()
        completed = as_array(trace, "submit_ns") + as_array(trace, "response_time_ns")
        workloads.append(
            workload(run.pattern, completed / 1e9 - as_array(trace, "submit_ns").min() / 1e9)
        )
    return workloads


def workload(pattern: str, completed_s: NDArray[np.float64]) -> WorkloadHistory:
    """Return a workload from the completion times of its I/Os [s since the first submission]."""
    seconds = float(completed_s.max())
    windows = max(min(WINDOWS, len(completed_s) // MIN_IOS_PER_WINDOW), 1)
    counts, _ = np.histogram(completed_s, bins=windows, range=(0, seconds))
    return WorkloadHistory(pattern, seconds, counts / (seconds / windows))


def draw_history(
    axis: "Axes", workloads: Sequence[WorkloadHistory], dashes: Mapping[str, Dashes]
) -> None:
    """Draw workloads along one time axis, numbered, with dashes by pattern."""
    begins = [0.0, *accumulate(each.seconds for each in workloads)]
    named = set()
    top = 1.15 * max(float(each.iops.max()) for each in workloads) / 1e3
    for number, (each, begin) in enumerate(zip(workloads, begins, strict=False), 1):
        middles = begin + (np.arange(len(each.iops)) + 0.5) * each.seconds / len(each.iops)
        axis.plot(
            middles,
            each.iops / 1e3,
            color=palette.look(each.pattern).color,
            linewidth=1.1,
            linestyle=dashes.get(each.pattern, "-"),
            label=each.pattern if each.pattern not in named else f"{each.pattern} again",
        )
        named.add(each.pattern)
        if number > 1:
            axis.axvline(begin, color=palette.MUTED, linewidth=0.6)
        # A label needs space.
        if each.seconds >= MIN_LABEL_SHARE * begins[-1]:
            middle = begin + each.seconds / 2
            axis.text(middle, top, f"#{number}", ha="center", va="top", fontsize=6.5)
    axis.set_xlim(0, begins[-1])
    axis.set_ylim(0, top)
    axis.set_xlabel("time with I/Os [s]")
    axis.set_ylabel("kIOPS")
    handles = [line for line in axis.get_lines() if str(line.get_label()) in named]
    axis.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1.05), ncols=2)
