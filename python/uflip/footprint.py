"""The footprint of a pattern: the bytes of a device that its I/Os touch, without gaps.

    target space   |--------------------------------------------------|
    Incr = 16      ▌      ▌      ▌      ▌      ▌      ▌      ▌      ▌
    footprint      ▌      ▌      ▌      ▌      ▌      ▌      ▌      ▌    the rest stays as it was

An ordered pattern with large gaps, or one with many partitions, spans gigabytes and touches
megabytes of them (uFLIP §3.1, Table 1). Other runs may use the gaps.

Footprints follow from a specification in closed form, without enumerating its I/Os. A test compares
them with the I/Os that the engine makes.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uflip.data.locations import DRAWN
from uflip.data.spec import Basic, Mix, MixPart, Parallel, Replay, Spec

Offsets = NDArray[np.int64]

# I/Os: one of 35 addresses of the demo takes 213 to 339 µs to read; means of 16 lie within 6 %.
FEW_ADDRESSES = 8
# At a single place: means of 16 addresses scatter by 5 to 9 % on drives with a page map, of 128 by
# 2 to 4 %.
FEW_AT_ONE_PLACE = 128
# A mix is confined to its half; an area that is shifted a little counts as the whole target.
NEARLY_ALL = 0.9
# With more extents than these, the whole target space is used instead.
MAX_EXTENTS = 1 << 20


@dataclass(frozen=True)
class Extents:
    """Disjoint extents of a device in ascending order: `begins` and `ends` (n,) [bytes]."""

    begins: Offsets
    ends: Offsets

    def __len__(self) -> int:
        """Return the number of extents."""
        return len(self.begins)

    @property
    def size(self) -> int:
        """Sum of all extents [bytes]."""
        return int((self.ends - self.begins).sum())

    @property
    def end(self) -> int:
        """End of the last extent [bytes]; 0 without extents."""
        return int(self.ends[-1]) if len(self) else 0

    def shifted(self, distance: int) -> "Extents":
        """Return all extents moved by a distance [bytes]."""
        return Extents(self.begins + distance, self.ends + distance)

    def in_blocks(self, block: int) -> "Extents":
        """Return the extents rounded outwards to whole blocks."""
        return merge_extents(self.begins // block * block, -(-self.ends // block) * block)

    def overlaps(self, other: "Extents") -> bool:
        """Return whether the two overlap."""
        return bool(len(self._overlapping(other)))

    def first_overlap(self, other: "Extents") -> tuple[int, int]:
        """Return the first overlap, (begin, end) [bytes]."""
        first = self._overlapping(other)[0]
        overlapped = np.searchsorted(other.ends, self.begins[first], side="right")
        begin = max(self.begins[first], other.begins[overlapped])
        return int(begin), int(min(self.ends[first], other.ends[overlapped]))

    def _overlapping(self, other: "Extents") -> NDArray[np.intp]:
        """Return the indices of the extents that overlap an extent of the other."""
        following = np.searchsorted(other.ends, self.begins, side="right")
        begins = np.append(other.begins, np.iinfo(np.int64).max)[following]
        return np.flatnonzero(begins < self.ends)


NO_EXTENTS = Extents(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


def merge_extents(begins: Offsets, ends: Offsets) -> Extents:
    """Sort extents, and merge those that overlap or touch."""
    order = np.argsort(begins, kind="stable")
    begins, ends = begins[order], np.maximum.accumulate(ends[order])
    if not len(begins):
        return Extents(begins, ends)
    first = np.concatenate([[True], begins[1:] > ends[:-1]])
    last = np.concatenate([first[1:], [True]])
    return Extents(begins[first], ends[last])


def union(parts: Iterable[Extents]) -> Extents:
    """Return the union of several footprints."""
    several = [NO_EXTENTS, *parts]
    return merge_extents(
        np.concatenate([each.begins for each in several]),
        np.concatenate([each.ends for each in several]),
    )


def written_sequentially(spec: Spec) -> Extents:
    """Return the footprint of the sequential, ordered and partitioned writes of a pattern.

    `spec`: with target and length: as a plan has it, or as the engine fills it in. For a run that
    ends when its mean is known, the footprint is an upper bound.

    >>> from uflip.spec import basic
    >>> ordered = basic("write", "ordered", incr=4, io_size=512, target_size=8192, io_count=3)
    >>> found = written_sequentially(ordered)
    >>> found.begins.tolist(), found.ends.tolist()
    ([0, 2048, 4096], [512, 2560, 4608])
    """
    if isinstance(spec, Replay):
        # The order of its writes is unknown.
        return _run(0, spec.list.end) if spec.writes else NO_EXTENTS
    return union(_of_part(part, count) for part, count in _parts(spec) if part.is_sequential_write)


def all_but_written_sequentially(spec: Spec) -> Extents:
    """Return the footprint of the reads and random writes of a pattern."""
    return union(
        _of_part(part, count) for part, count in _parts(spec) if not part.is_sequential_write
    )


def reads_few_addresses(spec: Spec, few: int = FEW_ADDRESSES) -> bool:
    """Return whether a pattern only reads, at so few addresses that their dies decide the cost.

    >>> from uflip.spec import basic
    >>> sizes = {"io_size": 4096, "io_count": 99, "target_size": "1MiB"}
    >>> [reads_few_addresses(basic("read", "ordered", incr=by, **sizes)) for by in (0, 1)]
    [True, False]
    """
    if not isinstance(spec, Basic) or spec.writes:
        return False
    return all_but_written_sequentially(spec).size <= few * spec.io_bytes


def _parts(spec: Spec) -> list[tuple[MixPart, int]]:
    """Return the basic patterns of a specification, with the maximum I/Os of each process."""
    if isinstance(spec, Parallel):
        return [pair for pattern in spec.patterns for pair in _parts(pattern)]
    if isinstance(spec, Mix):
        return [(spec.first, spec.most_ios * spec.turns), (spec.second, spec.most_ios)]
    return [(part, spec.most_ios) for part in spec.parts]


def _of_part(part: MixPart, count: int) -> Extents:
    """Return the footprint of `count` I/Os of each process of a basic pattern."""
    io_size, size, degree = part.io_bytes, part.target_bytes, part.processes
    share = size if degree == 1 else size // degree // io_size * io_size
    slots = max(share - part.shift, 0) // io_size // _partitions(part)
    one = _slots(part, slots, count)
    first = part.begin + part.shift
    return union(
        Extents(one.begins * io_size, one.ends * io_size).shifted(first + process * share)
        for process in range(degree)
    )


def _slots(part: MixPart, slots: int, count: int) -> Extents:
    """Return the slots that one process touches, of `slots` in a partition or in its target."""
    if part.location in DRAWN:
        return _run(0, slots)
    if part.location == "partitioned":
        each = np.arange(_partitions(part), dtype=np.int64)
        used = np.minimum(slots, -(-(count - each) // len(each)))
        return merge_extents((each * slots)[used > 0], (each * slots + used)[used > 0])
    incr = part.incr if part.location == "ordered" and part.incr is not None else 1
    step = incr % slots
    distinct = min(count, slots // math.gcd(step, slots))
    if step <= 1:
        return _run(0, distinct)
    if distinct > MAX_EXTENTS:
        return _run(0, slots)
    begins = np.arange(distinct, dtype=np.int64) * step % slots
    return merge_extents(begins, begins + 1)


def _partitions(part: MixPart) -> int:
    return 1 if part.partitions is None else part.partitions


def _run(begin: int, end: int) -> Extents:
    return Extents(np.array([begin], dtype=np.int64), np.array([end], dtype=np.int64))
