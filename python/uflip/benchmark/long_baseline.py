"""Longer baseline runs of writes, for devices that answer writes from a buffer.

    laid out   ▁▁▁▃▃▃▃▃▃▃                       320 MiB: write cache, blocks that were ready
    goes on    ▁▁▁▃▃▃▃▃▃▃▃▃▃▃█████████████████  2.5 GiB: and the cost of garbage collection

A current drive writes into a cache, then into an SLC cache or blocks that it collected while idle,
and only then at its long-term rate. A baseline of 10,240 writes ends before that. If its writes
were answered from a buffer (`uflip.flash_waits`), the device idles as before any run and the
baseline is made again, up to eight times as long, as often as the budget of bytes and of time
allows twice the length. Slow devices keep the planned length, and so do devices without a buffer.

**Source** uFLIP (CIDR 2009) §4.2: run the baselines "with a very large IOCount" to see the
start-up.
**Faithful** The start-up of such devices is seen, and their running phase.
**Simplified** The longest run is stored, and the shorter ones before it are dropped. Its first half
is ignored: it cannot show a longer start-up.
**Ambiguous** The length. As much as the spare space of most drives must be written before a
start-up can be called over (`SPARE_SHARE`); the run writes a little more. In the standard scale
only, 32 GiB of 32 KiB I/Os at most, and where 120 s are enough at the pace of the last quarter of
the run before. Where that does not suffice, the runs are marked (`uflip.results.startup_check`).
"""

from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from uflip._native import Trace
from uflip.data.device import DeviceInfo
from uflip.experiment import PlannedRun
from uflip.flash_waits import is_buffered, writes_of
from uflip.microbench import BASELINE
from uflip.spec import Basic, read_spec
from uflip.startup import SPARE_SHARE

if TYPE_CHECKING:
    from uflip.benchmark.plan import Plan

STANDARD = "standard"
MAX_IOS = 1 << 20
TIME_NS = 120_000_000_000
# More than the spare space by a tenth: a part of the run is ignored.
LENGTH_SHARE = 1.1 * SPARE_SHARE
PATTERNS = ("SW", "RW")
# A repeat has at least twice the length, limited by the pace of the run before it.
WORTHWHILE, LONGER = 2, 8


def longer_baseline(run: PlannedRun, info: DeviceInfo, scale: str, method: str) -> Basic | None:
    """Return the longest repeat of a baseline; None for a run without one.

    Parameters
    ----------
    run : PlannedRun
        A run of a plan.
    info : DeviceInfo
        The device; its capacity is the measured part.
    scale, method : str
        As planned.
    """
    if run.micro_benchmark != BASELINE or run.pattern not in PATTERNS or method == "paper":
        return None
    if scale != STANDARD or info.null or info.zoned or not isinstance(run.spec, Basic):
        return None
    ios = int(LENGTH_SHARE * info.capacity_bytes) // run.spec.io_bytes
    is_possible = WORTHWHILE * run.spec.ios <= ios <= MAX_IOS
    return _with_length(run.spec, ios) if is_possible else None


def _with_length(spec: Basic, ios: int) -> Basic:
    longer = spec.but(io_count=ios, io_ignore=ios // 2)
    return longer.but(target_size=ios * spec.io_bytes) if spec.writes_sequentially else longer


def longer_baseline_in(plan: "Plan", run: PlannedRun) -> Basic | None:
    """Return the same for a run of a plan."""
    info = structs.replace(plan.device, capacity_bytes=plan.target_size)
    return longer_baseline(run, info, plan.scale, plan.method)


def next_length(longest: Basic, trace: Trace) -> Basic | None:
    """Return the baseline that follows a finished one; None if the budget is spent."""
    times = np.asarray(trace.column("response_time_ns"))
    pace_ns = max(float(times[-len(times) // 4 :].mean()), 1.0)
    ios = min(longest.ios, LONGER * len(times), int(TIME_NS / pace_ns))
    return _with_length(longest, ios) if ios >= WORTHWHILE * len(times) else None


def was_buffered(trace: Trace, read_ns: float | None) -> bool:
    """Return whether the writes of a baseline were answered from a buffer.

    Parameters
    ----------
    trace : Trace
        The baseline at its planned length.
    read_ns : float or None
        The quickest random reads of this size, where they were measured [ns].
    """
    return any(is_buffered(each, read_ns) for each in writes_of(trace, read_spec(trace.spec_json)))
