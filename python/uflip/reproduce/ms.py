"""Shared parts of the reproductions of Myers & Sinclair: devices, writes and drawings."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from uflip.benchmark.myers_sinclair import IO_BYTES, batch
from uflip.device.opener import open_device
from uflip.durability import FUA
from uflip.reproduce import figure
from uflip.reproduce.simulated_device import Counters, device_url
from uflip.spec import basic
from uflip.stats import LatencyClass, LatencyClasses, latency_classes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN_IOS = 5_000
"""Number of writes that figures 2, 3 and 4 show."""


@dataclass(frozen=True)
class BatchSeries:
    """One batch of the micro-benchmark.

    Attributes
    ----------
    url : str
        URL of the device, to repeat the measurement by hand.
    response_time_ns : list of int
        One per I/O [ns].
    counters : dict
        Counters of the device over the batch.
    """

    url: str
    response_time_ns: list[int]
    counters: Counters

    @property
    def times_ns(self) -> NDArray[np.uint64]:
        """Return the response times (ios,) [ns]."""
        return np.asarray(self.response_time_ns, dtype=np.uint64)

    @property
    def classes(self) -> LatencyClasses:
        """Return their latency classes."""
        return latency_classes(self.times_ns)


def writes(profile: str, *, settle_ios: int, ios: int, **overrides: Any) -> BatchSeries:
    """Run one batch, after `settle_ios` random writes in functional mode.

    Parameters
    ----------
    profile : str
        Profile of the simulated device.
    settle_ios : int
        Random writes that bring it into its steady state; 0: in its initial state.
    ios : int
        Writes of the batch.
    overrides
        Of the profile.
    """
    url = device_url(profile, **overrides)
    with open_device(url, durability=FUA) as device:
        if settle_ios:
            pages = basic("write", "random", io_size=IO_BYTES, io_count=settle_ios, seed=7)
            device.apply(pages)
        trace = device.run(batch(0, batch_ios=ios))
        times = np.asarray(trace.column("response_time_ns")).tolist()
        return BatchSeries(url, times, json.loads(trace.counters_json() or "{}"))


def nearest(classes: LatencyClasses, mean_ns: float) -> LatencyClass | None:
    """Return the peak with the mean nearest to a printed one, by ratio; None without peaks."""
    peaks = [peak for peak in classes.peaks if peak.mean_ns]
    if not peaks:
        return None
    return min(peaks, key=lambda peak: abs(np.log((peak.mean_ns or 1) / mean_ns)))


def draw_writes(
    axis: "Axes", times_ns: NDArray[np.uint64], levels_ms: Sequence[float], *, first: int = 0
) -> None:
    """Draw every write as a point over its number, and the printed levels."""
    axis.plot(
        np.arange(first, first + len(times_ns)),
        times_ns / 1e6,
        color=figure.WRITES,
        linestyle="none",
        marker="o",
        markersize=2.2 if len(times_ns) <= SHOWN_IOS else 1.2,
        markeredgewidth=0,
        rasterized=True,
        zorder=3,
    )
    for index, level in enumerate(levels_ms):
        label = "printed in the report" if index == 0 else None
        axis.axhline(level, label=label, zorder=2, **figure.PRINTED_LEVEL)
    figure.logarithmic(axis, "response time [ms]")
    axis.set_xlabel("number of the write")
    axis.xaxis.set_major_formatter("{x:,.0f}")
    axis.margins(x=0.01, y=0.08)


def legend_above(axis: "Axes") -> None:
    """Put the legend beside the title, away from the points."""
    axis.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.2)
