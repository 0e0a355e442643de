"""The micro-benchmark of Myers & Sinclair: random writes of 4 KiB over a device, in batches.

**Source** Myers & Sinclair, "Measuring Solid-State Drive Behavior" (2010), sections 4 and 5.

**Faithful** Single pages of 4 KiB at random addresses of the whole device, one after another
without a pause, synchronous and past the page cache; 100,000 of them before anything is written
out, five times. Latency classes as in `uflip.stats.latency_classes`.

**Simplified** They opened with O_DIRECT and O_SYNC; a device opened with `durability="fua"`, as
`uflip pattern --preset` does, has O_DIRECT and, with each write, RWF_DSYNC. These differ by
metadata that a block device does not have. O_NOATIME has no effect on one either.

**Ambiguous** In the report the end of the start-up is read off a figure; here `uflip.analysis`
finds it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uflip._native import Trace
from uflip.analysis import Analysis, analyse
from uflip.device.handle import Device
from uflip.native_wait import OnProgress
from uflip.spec import Basic, basic
from uflip.stats import LatencyClasses, latency_classes

IO_BYTES = 4096
BATCHES = 5
BATCH_IOS = 100_000

OnBatch = Callable[[int, Trace], None]
"""Called with (number of the batch from 0 on, its trace) before the next one begins."""


@dataclass(frozen=True, kw_only=True)
class Findings:
    """The result of the micro-benchmark."""

    response_time_ns: NDArray[np.uint64]  #: Response times of all batches (ios,) [ns].
    analysis: Analysis  #: Phases of the whole series.
    startup: LatencyClasses | None  #: Classes of the start-up; None without one.
    steady: LatencyClasses  #: Classes of the rest, or of everything.

    @property
    def ios(self) -> int:
        """Number of writes of all batches."""
        return len(self.response_time_ns)


def batch(number: int, *, batch_ios: int = BATCH_IOS, seed: int = 42) -> Basic:
    """Return the pattern of one batch, the first one being number 0.

    >>> batch(1, seed=7).seed
    8
    """
    return basic(
        "write",
        "random",
        io_size=IO_BYTES,
        io_count=batch_ios,
        io_ignore=0,
        seed=seed + number,
    )


def findings(response_time_ns: NDArray[np.uint64]) -> Findings:
    """Find start-up, steady state and classes in a series of response times (ios,) [ns]."""
    analysis = analyse(response_time_ns)
    end = analysis.startup_ios
    return Findings(
        response_time_ns=response_time_ns,
        analysis=analysis,
        startup=latency_classes(response_time_ns[:end]) if end else None,
        steady=latency_classes(response_time_ns[end:]),
    )


def run(
    device: Device,
    *,
    batches: int = BATCHES,
    batch_ios: int = BATCH_IOS,
    seed: int = 42,
    on_batch: OnBatch | None = None,
    on_progress: OnProgress | None = None,
) -> Findings:
    """Run the micro-benchmark on a device open with `durability="fua"`, which it overwrites.

    `seed`: that of the first batch; each further one has the next. `on_batch`: receives each
    finished batch, to write it out. `on_progress`: as for `Device.run`, counted over all batches.

    >>> from uflip.device.opener import open_device
    >>> result = run(open_device("sim:demo?blocks_per_die=64"), batches=2, batch_ios=500)
    >>> result.steady.ios + (result.startup.ios if result.startup else 0)
    1000
    """
    parts = []
    for number in range(batches):

        def progress(done: int, _: int, last_ns: int, before: int = number * batch_ios) -> None:
            if on_progress is not None:
                on_progress(before + done, batches * batch_ios, last_ns)

        trace = device.run(batch(number, batch_ios=batch_ios, seed=seed), progress)
        parts.append(np.asarray(trace.column("response_time_ns")).copy())
        if on_batch is not None:
            on_batch(number, trace)
    return findings(np.concatenate(parts))
