"""Page types: groups of reads that differ by the kind of their page, and reads without that.

Cells of two or more bits hold pages of several kinds (LSB, CSB, MSB), each with its own read time.
Reads of every page, one at a time, show them as groups. All other estimators assume that all pages
take the same time: they get response times from which the difference of each page is subtracted.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from uflip.inference.estimate import Estimate, Interval, median_of
from uflip.inference.observations import Floats, Observation, Observations
from uflip.inference.structure import CONTRAST, command_ns

PROBE = "read_each"
# Groups hold at least this share of the reads, and together nearly all of them.
LEAST_SHARE, COVERED = 0.1, 0.95
# Shares of kinds differ from equal ones by less than this.
SHARE_TOLERANCE = 0.05
FIRST_MIDDLE_LAST = 3
# Kinds of pages differ by more than this share of the read time, in data sheets.
LEAST_DIFFERENCE = 0.15
CORRECTED = ("read_size", "read_beside_writes")
BURSTS = "read_bursts"


@dataclass(frozen=True)
class PageTypes:
    """Response times of the kinds of pages, from the quickest on, and the bits of a cell.

    Attributes
    ----------
    kinds : tuple of Interval
        Medians [ns]; one if all pages are equal.
    bits : int or None
        Pages that share cells: 1 if all pages are equal; None if no cell explains the shares.
    step_bytes : int
        Distance of the reads [bytes].
    each_ns : (n,) ndarray of float
        Response time of a read at each step [ns].
    """

    kinds: tuple[Interval, ...]
    bits: int | None
    step_bytes: int
    each_ns: Floats

    @property
    def base_ns(self) -> float:
        """Mean response time of the kinds, to which reads are corrected [ns]."""
        return float(np.median(self.each_ns)) if len(self.kinds) == 1 else self.kinds[0].value

    def excess_ns(self, offset_bytes: NDArray[np.int64]) -> Floats:
        """Return by how much reads of pages take longer than those of the quickest kind [ns]."""
        return self.each_ns[offset_bytes // self.step_bytes % len(self.each_ns)] - self.base_ns


def page_types_of(observations: Observations, start: int = 0) -> PageTypes | None:
    """Return the kinds of pages; None if the reads were not made, or have no clear groups.

    Reads before `start` [bytes] do not count.
    """
    run = observations.last(PROBE, "RR")
    if run is None or len(run.response_ns) < 1 / LEAST_SHARE:
        return None
    reads = run.response_ns[run.offset_bytes >= start]
    groups = _groups(reads)
    held = sum(len(each) for each in groups) / len(reads)
    if not groups or held < COVERED:
        return None
    fast, slow = np.percentile(groups[0], [5, 95])
    if len(groups) == 1 and slow > (1 + LEAST_DIFFERENCE) * fast:
        # Scatter of this size hides kinds.
        return None
    step = int(run.offset_bytes[1] - run.offset_bytes[0])
    shares = [len(each) / len(reads) for each in groups]
    kinds = tuple(median_of(each) for each in groups)
    return PageTypes(kinds, _bits(shares), step, run.response_ns)


def _groups(response_ns: Floats) -> list[Floats]:
    """Return response times in groups with gaps between them, without small groups."""
    ordered = np.sort(response_ns)
    wide = np.diff(ordered) > CONTRAST * ordered[:-1]
    parts = np.split(ordered, np.flatnonzero(wide) + 1)
    return [each for each in parts if len(each) >= LEAST_SHARE * len(ordered)]


def _bits(shares: list[float]) -> int | None:
    """Return the bits of a cell with these shares of pages: first, between, last."""
    patterns = {1: [1.0], 2: [0.5, 0.5], 3: [1 / 3] * 3, 4: [0.25, 0.5, 0.25]}
    for bits, pattern in patterns.items():
        if len(pattern) == len(shares) and np.allclose(shares, pattern, atol=SHARE_TOLERANCE):
            return bits
    return None


def corrected(observations: Observations, types: PageTypes | None) -> Observations:
    """Return observations of a device whose pages all take the time of the quickest kind.

    Larger bursts are missing, because the differences of pages decide which of them meet.
    """
    if types is None or len(types.kinds) == 1:
        return observations
    command = command_ns(observations)
    flash = math.nan if command is None else types.kinds[0].value - command.value

    def without(run: Observation) -> Observation:
        excess = np.where(run.is_write, 0.0, types.excess_ns(run.offset_bytes))
        return replace(run, response_ns=run.response_ns - excess)

    def same_kind(run: Observation) -> Observation:
        """Keep the pairs of pages of one kind: others are not ready at the same time."""
        excess = types.excess_ns(run.offset_bytes).reshape(-1, 2)
        times = run.response_ns.reshape(-1, 2).copy()
        # The second read of a die waits for a page of this kind.
        later = np.abs(times[:, 1] - times[:, 0]) - excess[:, 1]
        meets = np.flatnonzero(np.abs(later - flash) < CONTRAST * flash)
        times[meets, np.argmax(times[meets], axis=1)] -= excess[meets, 1]
        alike = np.abs(excess[:, 0] - excess[:, 1]) < CONTRAST * types.base_ns
        kept = np.repeat(alike, 2)
        return replace(
            run,
            offset_bytes=run.offset_bytes[kept],
            response_ns=times.reshape(-1)[kept],
            is_write=run.is_write[kept],
        )

    runs = {}
    for key, run in observations.runs.items():
        if key.probe in CORRECTED:
            runs[key] = without(run)
        elif key.probe != BURSTS:
            runs[key] = run
        elif key.value == 2:
            runs[key] = same_kind(run)
    return replace(observations, runs=runs)


def page_type_estimates(types: PageTypes | None, read: Estimate) -> Iterator[Estimate]:
    """Yield the number of kinds, and the read times of the slower ones."""
    if types is None or types.bits is None:
        why = "reads of single pages have no groups that cells of 1 to 4 bits explain"
        for key in ("page_kinds", "read_middle_ns", "read_high_ns"):
            yield Estimate.absent(key, PROBE, why)
        return
    count = len(types.kinds)
    yield Estimate("page_kinds", count, count, count, PROBE)
    slower: list[Interval | None] = [*types.kinds[1:]]
    if count != FIRST_MIDDLE_LAST:
        slower = [None, types.kinds[-1] if count > 1 else None]
    for key, kind in zip(("read_middle_ns", "read_high_ns"), slower, strict=True):
        if kind is None:
            kinds = (
                f"pages are of {count} kinds"
                if count > 1
                else "reads of all pages take equally long"
            )
            yield Estimate.absent(key, PROBE, kinds)
        elif not read.is_identified or read.low is None or read.high is None:
            yield Estimate.absent(key, PROBE, "read_ns is not identified")
        else:
            more = kind - types.kinds[0]
            low, high = read.low + more.value - more.half, read.high + more.value + more.half
            yield Estimate(key, read.number() + more.value, low, high, PROBE)
