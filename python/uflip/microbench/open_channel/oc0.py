"""µOC0: reads and writes of one LUN by one thread, mixed; and the throughput of every LUN.

**Source**: uFLIP-OC (2017) §3.1, Table 1, Figures 2 and 3.
**Faithful**: one thread, a page of all planes an I/O, five mixes over 64 blocks of one LUN; reads
alone and writes alone on every LUN of the device.
**Simplified**: nothing.
**Ambiguous**: 25 % reads "corresponds to a sequence of three writes followed by one read" (§5.1.1),
WWWR; Table 1 prints WWWWR, one read in five. Here it is what the text describes, which is also what
the percentages of §3.1 say; `uflip oc pattern DEVICE --mix WWWWR` makes the table's. In a mix the
number of I/Os is that of the pages, as in the paper, so that not all of them are written.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uflip.microbench.experiment import PlannedRun
from uflip.microbench.micro_benchmark import MicroBenchmark
from uflip.microbench.open_channel.jobs import (
    Bench,
    JobScope,
    measure_each,
    reads_percent,
    throughput,
)
from uflip.microbench.open_channel.series import ResponseSeries

NAME = "oc0"
TITLE = "reads and writes of a single LUN"
FIRST_PAGE = "first_page"
MIXES = ("WWWWW", "WWWR", "WRWR", "WRRR", "RRRR")


@dataclass(frozen=True)
class Oc0:
    """The result of µOC0."""

    mixes: dict[str, ResponseSeries]  #: Response times by mix, on channel 0 and LUN 0.
    throughput: dict[str, float]  #: Throughput by mix [MB/s].
    #: Throughput of every LUN, one at a time, shape (channels, LUNs of a channel) [MB/s].
    write_mb_per_s: NDArray[np.float64]
    read_mb_per_s: NDArray[np.float64]


def mixes(scope: JobScope) -> dict[str, PlannedRun]:
    """Lay out the five mixes on the first LUN."""
    return {mix: scope.job(NAME, mix, mix, reads_percent(mix)) for mix in MIXES}


def luns(scope: JobScope, mix: str) -> list[PlannedRun]:
    """Lay out reads or writes of every LUN alone, channel by channel."""
    geometry = scope.geometry
    every = np.ndindex(geometry.channels, geometry.luns_per_channel)
    return [
        scope.job(
            NAME,
            f"channel{channel}-lun{lun}-{mix}",
            mix,
            ("lun", channel * geometry.luns_per_channel + lun, ""),
            first_channel=channel,
            first_lun=lun,
        )
        for channel, lun in every
    ]


def order(scope: JobScope) -> PlannedRun:
    """Lay out a write of the second page of an erased block."""
    begins = (FIRST_PAGE, 1, "")
    return scope.job(NAME, "order-W", "W", begins, first_page=1, pages=1, blocks=1)


def layout(scope: JobScope) -> list[PlannedRun]:
    """Lay out all jobs but `order`, which comes last in the whole benchmark."""
    return [*mixes(scope).values(), *luns(scope, "W"), *luns(scope, "R")]


def measure_mixes(bench: Bench) -> tuple[dict[str, ResponseSeries], dict[str, float]]:
    """Run the five mixes on the first LUN."""
    return measure_each(bench, mixes(bench.scope))


def measure_luns(bench: Bench, mix: str) -> NDArray[np.float64]:
    """Return the throughput of every LUN alone, shape (channels, LUNs) [MB/s]."""
    geometry = bench.scope.geometry
    rates = [throughput(bench, job) for job in luns(bench.scope, mix)]
    return np.array(rates).reshape(geometry.channels, geometry.luns_per_channel)


def measure_order(bench: Bench) -> list[str]:
    """Write the second page of an erased block first; return the statuses of its addresses."""
    trace = bench.run(order(bench.scope))
    addresses, failed, status = (
        int(np.asarray(trace.column(name))[0]) for name in ("addresses", "failed", "status")
    )
    return [trace.statuses[status]] * failed + [trace.statuses[0]] * (addresses - failed)


def measure(bench: Bench) -> Oc0:
    """Run all jobs."""
    series, rates = measure_mixes(bench)
    return Oc0(series, rates, measure_luns(bench, "W"), measure_luns(bench, "R"))


MICRO_BENCHMARK = MicroBenchmark(
    NAME,
    TITLE,
    addresses="physical",
    jobs=layout,
    question="What do reads and writes of one LUN cost, alone and mixed? Are all LUNs alike?",
)
