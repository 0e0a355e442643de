"""µOC1: a block is erased, written and read until it fails.

**Source**: uFLIP-OC (2017) §3.1, Table 1, Figure 4.
**Faithful**: cycles of one erase, writes of all pages in order, reads of all pages in order, by one
thread; it ends when an erase fails, or after a number of cycles (the paper stopped after 17,000).
**Simplified**: a row per cycle is stored, not one per page.
**Ambiguous**: nothing.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uflip import _native
from uflip.data.spec import Job
from uflip.microbench.experiment import PlannedRun
from uflip.microbench.micro_benchmark import MicroBenchmark
from uflip.microbench.open_channel.jobs import Bench, Block, JobScope

NAME = "oc1"
TITLE = "wear of one block"

SMOOTHED_CYCLES = 200
"""Cycles in the mean of the share of failing reads: a cycle has a few hundred reads."""


@dataclass(frozen=True)
class Oc1:
    """The result of µOC1: a row per cycle."""

    block: Block  #: Channel, LUN and number of the sacrificed block.
    pages: int  #: Reads, and writes, per cycle.
    #: Time of the erase, mean times of a write and a read (cycles,) [ms].
    erase_ms: NDArray[np.float64]
    write_ms: NDArray[np.float64]
    read_ms: NDArray[np.float64]
    #: Number of failures among `pages` (cycles,).
    failed_reads: NDArray[np.uint64]
    failed_writes: NDArray[np.uint64]
    erase_failed: bool  #: Whether it ended with a failed erase.

    @staticmethod
    def from_trace(trace: _native.FlashTrace, block: Block, pages: int) -> "Oc1":
        """Read the rows from the log of a wear job."""

        def ms(name: str) -> NDArray[np.float64]:
            return np.asarray(trace.column(name)) / 1e6

        def count(name: str) -> NDArray[np.uint64]:
            return np.asarray(trace.column(name)).copy()

        failed = count("failed_reads"), count("failed_writes")
        times = ms("erase_ns"), ms("write_ns"), ms("read_ns")
        return Oc1(block, pages, *times, *failed, trace.erase_failed)

    @property
    def cycles(self) -> int:
        """Number of cycles."""
        return len(self.erase_ms)

    def first_failure(self) -> int | None:
        """Return the number of erases before the first failed read; None without a failure."""
        failing = np.flatnonzero(self.failed_reads)
        return int(failing[0]) + 1 if len(failing) else None

    def failing_share(self) -> NDArray[np.float64]:
        """Return the share of reads that fail, smoothed over cycles, shape (cycles,)."""
        width = min(SMOOTHED_CYCLES, max(self.cycles, 1))
        sums = np.concatenate([[0.0], np.cumsum(self.failed_reads / self.pages)])
        ends = np.arange(1, self.cycles + 1)
        begins = np.maximum(ends - width, 0)
        smoothed: NDArray[np.float64] = (sums[ends] - sums[begins]) / (ends - begins)
        return smoothed

    def cycles_until(self, share: float) -> int | None:
        """Return the erases after which this share of reads fails; None if it is never reached."""
        reached = np.flatnonzero(self.failing_share() >= share)
        # The mean belongs to the middle of its cycles.
        return int(reached[0]) + 1 - SMOOTHED_CYCLES // 2 if len(reached) else None


def layout(scope: JobScope) -> list[PlannedRun]:
    """Lay out the cycles of the sacrificed block; empty without one."""
    if scope.sacrifice is None:
        return []
    channel, lun, number = scope.sacrifice
    job = Job(
        kind="wear",
        first_channel=channel,
        first_lun=lun,
        first_block=number,
        blocks=1,
        pages=pages_worn(scope),
        repeat=scope.scale.cycles,
    )
    return [PlannedRun("oc1-wear", NAME, "WR", "cycles", scope.scale.cycles, "", job)]


def pages_worn(scope: JobScope) -> int:
    """Return the number of pages of the block that are written and read in each cycle."""
    return min(scope.scale.wear_pages, scope.geometry.pages_per_block)


def measure(bench: Bench) -> Oc1:
    """Wear out a block."""
    (job,) = layout(bench.scope)
    assert bench.scope.sacrifice is not None, "a block to wear out"
    return Oc1.from_trace(bench.run(job), bench.scope.sacrifice, pages_worn(bench.scope))


MICRO_BENCHMARK = MicroBenchmark(
    NAME,
    TITLE,
    addresses="physical",
    jobs=layout,
    question="How do times and failures of a block change as it wears out?",
)
