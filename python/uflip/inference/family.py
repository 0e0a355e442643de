"""FTL family: which small writes copy a whole block, on a device that is full.

    writes               block_map   bast                   fast      superblock
    a block's first page all         1 in a block           all       few
    another page         all         1 in a block           few       few
    far apart            all         all beyond the logs    few       all beyond the logs

A merge copies 32 pages or more, so it takes many times as long as a write without one; an erase
alone takes a few times as long. Writes of a page map collect blocks, too, but never most of them.
So a page map has no family here: a twin has to confirm it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uflip.inference.observations import Floats, Observations
from uflip.inference.page_types import corrected, page_types_of
from uflip.inference.structure import structure_of, structure_of_blocks
from uflip.microbench.inside.rewrite import FIRST, IN_PLACE, LATER, SCATTERED

PROBE = "rewrite"
BLOCK_MAP, BAST, FAST, SUPERBLOCK = "block_map", "bast", "fast", "superblock"
EVIDENCE = {
    BLOCK_MAP: "every write to a full block copies it",
    BAST: "a block is copied whenever writes in place fill its log",
    FAST: "of writes in place, only those of a block's first page copy it",
    SUPERBLOCK: "writes in place copy no block, but each one far from the others does",
}
"""Family -> the writes that show it."""
# A merge takes as long as this many other writes, at least.
LEAST_PAGES = 30
# Shares of writes that merge.
MOST, FEW = 0.6, 0.1
# The last part of the scattered writes finds all logs in use.
LAST = 1 / 3
# All writes to full blocks of a block map take about as long, and longer than large ones to erased
# blocks by this factor. A merge of BAST takes as long wherever it is.
EQUAL, COPIES = 1.25, 1.5
# Large writes at the beginning of a fill, which is the window: its blocks are full.
FILL_WRITES = 64
# A log of BAST has this many pages or more; a merge copies as many, each in about a write.
LEAST_LOG, COPY = 32, (0.5, 2.5)
# Data in order is on all dies, and not in blocks of one, if that explains reads better than blocks
# do, and more than this share.
STRIPED = 0.75


@dataclass(frozen=True)
class Rewrites:
    """Response times of small writes [ns]: at a block's start, elsewhere in place, far apart."""

    first: Floats
    later: Floats
    scattered: Floats

    @property
    def usual_ns(self) -> float:
        """Median of a write in place [ns]."""
        return float(np.median(self.later))

    def merges(self, times: Floats) -> NDArray[np.intp]:
        """Return the indices of merging writes."""
        return np.flatnonzero(times > LEAST_PAGES * self.usual_ns)

    def share(self, times: Floats) -> float:
        """Return the share of merging writes."""
        return len(self.merges(times)) / len(times)

    @property
    def last(self) -> Floats:
        """Scattered writes that find all logs in use."""
        return self.scattered[-round(len(self.scattered) * LAST) :]


def rewrites_of(observations: Observations) -> Rewrites | None:
    """Return the writes of the probe; None if it was not made."""
    in_place = observations.by_value(PROBE, IN_PLACE)
    scattered = observations.last(PROBE, SCATTERED)
    if scattered is None or not {FIRST, LATER} <= in_place.keys():
        return None
    first, later = (in_place[place].response_ns for place in (FIRST, LATER))
    return Rewrites(first, later, scattered.response_ns)


def merging_family(observations: Observations) -> str | None:
    """Return the family of a device whose writes merge blocks; None without a known one.

    Reads of a device with merge units of several blocks meet as those of a page map do.
    """
    writes = rewrites_of(observations)
    family = None if writes is None else _family_of_writes(observations, writes)
    if family is None:
        return None
    reads = corrected(observations, page_types_of(observations))
    found, blocks = structure_of(reads), structure_of_blocks(reads)
    is_striped = found.dies not in (None, 1)
    return None if is_striped and found.explained > max(STRIPED, blocks.explained) else family


def _family_of_writes(observations: Observations, writes: Rewrites) -> str | None:
    if _always_copies(observations, writes):
        return BLOCK_MAP
    if _merges_full_logs(writes):
        return BAST
    first, later, last = map(writes.share, (writes.first, writes.later, writes.last))
    if later > FEW:
        return None
    if first > MOST:
        return FAST if last < MOST else None
    return SUPERBLOCK if first <= FEW and last > MOST else None


def _always_copies(observations: Observations, writes: Rewrites) -> bool:
    """Return whether each write to a full block takes as long, and more than a program."""
    erased, fill = (observations.last(probe, "SW") for probe in ("clear", "fill"))
    if erased is None or fill is None or writes.usual_ns < COPIES * erased.median_ns:
        return False
    others = [writes.first, writes.scattered, fill.response_ns[:FILL_WRITES]]
    medians = np.array([writes.usual_ns, *map(np.median, others)])
    return bool(medians.max() < EQUAL * medians.min())


def _merges_full_logs(writes: Rewrites) -> bool:
    """Return whether writes in place fill the log of their block, which then merges."""
    merges = writes.merges(writes.later)
    gaps = np.diff(merges)
    if not len(gaps) or gaps.max() < LEAST_LOG or gaps.max() - gaps.min() > 1:
        return False
    cost = float(np.median(writes.later[merges]))
    if not COPY[0] < cost / (gaps.max() * writes.usual_ns) < COPY[1]:
        return False
    share = writes.share(writes.last)
    if share > MOST:
        return 1 / EQUAL < float(np.median(writes.last)) / cost < EQUAL
    # With a log for every block no scattered write merges, while collection would go on.
    return len(gaps) > 1 and not share
