"""uFLIP-OC's Figure 4: wearing out a block.

**Source**: uFLIP-OC (2017) §5.1.3, Figure 4; its values are in the text.
**Faithful**: µOC1 with 512 pages of 32 KiB, 17,000 cycles; 20 devices that differ in their seed
alone, of which the first is drawn.
**Simplified**: 16 of the 20 stop at the first failed read.
**Ambiguous**: the paper's block had an unknown number of erases; the simulated one is new. The
paper states that erase times grow in steps, but not by how much; see `erase_step_ns`.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from uflip.data.spec import Job
from uflip.executors import OnStep, on_all
from uflip.microbench.open_channel.jobs import Block
from uflip.microbench.open_channel.oc1 import Oc1
from uflip.oc import figures
from uflip.report.figures.matplotlib_chart import figure_of
from uflip.reproduce import oc
from uflip.reproduce.reproduction import (
    Reproduction,
    ReproductionRow,
    WiderTolerance,
    above,
    below,
    between,
    compare_printed,
    compare_stated,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CYCLES, SHARE = 17_000, 0.10
ONE_BLOCK = WiderTolerance(0.05, "one block of the card against a mean of seeds")
SEEDS = range(1, 21)
# Number of seeds that continue until a tenth of the reads fails.
FULL_SEEDS = 4
UNTIL_SHARE = 18_500
# Cycles between checks of the other seeds.
CHECK_CYCLES = 250
BLOCK: Block = (0, 0, 0)
RATED = 3_000


@dataclass(frozen=True)
class BlockWearOut:
    """The first block, cycle by cycle, and the failures of all blocks.

    Attributes
    ----------
    pages : int
        Reads of a cycle.
    erase_ms, write_ms, read_ms, failed_reads, failed_writes : list
        Of the first seed, a value per cycle; times are means [ms].
    first_failures : list of int
        Erases before the first failed read, a value per seed.
    share_reached : list of int
        Erases until a tenth of the reads fails, for the first `FULL_SEEDS` seeds.
    """

    pages: int
    erase_ms: list[float]
    write_ms: list[float]
    read_ms: list[float]
    failed_reads: list[int]
    failed_writes: list[int]
    first_failures: list[int]
    share_reached: list[int]

    def worn(self) -> Oc1:
        """The first block up to the cycle at which the paper stopped."""
        times = [np.array(t[:CYCLES]) for t in (self.erase_ms, self.write_ms, self.read_ms)]
        failed = [np.array(f[:CYCLES], np.uint64) for f in (self.failed_reads, self.failed_writes)]
        erase_ms, write_ms, read_ms = times
        reads, writes = failed
        return Oc1(BLOCK, self.pages, erase_ms, write_ms, read_ms, reads, writes, False)


def wear_out(seed: int) -> list[Oc1]:
    """Wear out a block of a device with a seed of its own, in one or more pieces."""
    session = oc.session(lambda _done, _text: None, seed=seed)
    pages = session.device.geometry.pages_per_block
    at_once = UNTIL_SHARE if seed <= FULL_SEEDS else CHECK_CYCLES
    job = Job(kind="wear", pages=pages, repeat=at_once)
    pieces: list[Oc1] = []
    for _ in range(UNTIL_SHARE // at_once):
        pieces.append(Oc1.from_trace(session.device.run(job), BLOCK, pages))
        if pieces[-1].erase_failed or pieces[-1].first_failure() is not None:
            break
    return pieces


def first_failure(pieces: list[Oc1]) -> int:
    """Return the number of erases before the first failed read; all erases if none failed."""
    before = sum(piece.cycles for piece in pieces[:-1])
    return before + (pieces[-1].first_failure() or pieces[-1].cycles)


def measure_figure_4(on_step: OnStep) -> BlockWearOut:
    """Wear out a block for each seed."""
    worn = on_all(wear_out, list(SEEDS), on_step, lambda seed: f"seed {seed}")
    first = worn[0][0]
    return BlockWearOut(
        first.pages,
        first.erase_ms.round(6).tolist(),
        first.write_ms.round(6).tolist(),
        first.read_ms.round(6).tolist(),
        first.failed_reads.tolist(),
        first.failed_writes.tolist(),
        [first_failure(pieces) for pieces in worn],
        [block.cycles_until(SHARE) or block.cycles for (block, *_) in worn[:FULL_SEEDS]],
    )


def rows_figure_4(data: BlockWearOut) -> list[ReproductionRow]:
    """Compare failures, erase times and write times with the text."""
    erase, write = np.array(data.erase_ms[:CYCLES]), np.array(data.write_ms[:CYCLES])
    steps = np.flatnonzero(np.diff(erase))
    # Times that fall again are not a stepwise increase.
    times = len(steps) + 1 if (np.diff(erase) >= 0).all() else 0
    drift = abs(write[-1000:].mean() / write[:1000].mean() - 1)
    return [
        compare_printed(
            "oc/fig4/first_failure", float(np.mean(data.first_failures)), wider=ONE_BLOCK,
            what=f"first failing read, mean of {len(data.first_failures)} seeds",
        ),
        compare_stated("oc/fig4/earliest", float(min(data.first_failures)), above(RATED)),
        compare_printed(
            "oc/fig4/tenth", float(np.mean(data.share_reached)), wider=ONE_BLOCK,
            what=f"a tenth of the reads fails, mean of {FULL_SEEDS} seeds",
        ),
        compare_stated("oc/fig4/erase_steps", float(times), between(2, 99)),
        compare_stated("oc/fig4/erase_growth", float(erase[-1] / erase[0]), above(1)),
        compare_stated("oc/fig4/write_time", float(drift), below(0.01)),
        compare_stated("oc/fig4/failed_writes", float(sum(data.failed_writes)), between(0, 0)),
    ]  # fmt: skip


def draw_figure_4(data: BlockWearOut) -> "Figure":
    """Draw the first block."""
    return figure_of(figures.wear(data.worn(), simulated=True))


OC_FIGURE_4 = Reproduction(
    id="oc-fig4",
    title="wear of a block: times and failing reads over erases",
    source="uFLIP-OC (2017) Figure 4, §5.1.3",
    steps=len(SEEDS),
    measure=measure_figure_4,
    rows=rows_figure_4,
    draw=draw_figure_4,
)
