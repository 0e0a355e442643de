"""Target spaces for sequential writes: no run touches data that an earlier one wrote in sequence.

    blocks     |0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 ...
    SW         |██ ██ ██
    Incr = 4   |         ▐           ▐           ▐            spans nine blocks, hits three
    Incr = 4   |            ▐           ▐           ▐         fits between them

**Source**: uFLIP (CIDR 2009) §4.1: only sequential writes disturb a random state significantly, "we
must limit the portion of flash impacted by each experiment"; §4.2: experiments with sequential
writes are delayed and grouped so "that their allocated target space does not overlap", and the
state is reset "only when the size of the accumulated target space involved in sequential write
patterns is larger than the size of the flash device"; "for the large flash devices (32 GB) the
state is in fact never reset".
**Faithful**: the blocks of a run are separate from those that any earlier run wrote sequentially
since the last reset, in whole flash blocks; a reset only before a run without free space.
**Simplified**: a space without gaps takes the first free offset, one with gaps the last; no run is
moved to make room for another.
**Ambiguous**: (1) what a target space is. Here the blocks that the I/Os of a run hit, not the span
between the first and the last: with Incr = 256 that span is 256 times as large, three repetitions
of Order alone would span 48 GiB of a device that is "never reset". (2) How large a block is. The
paper names 128 KB (§4.1), and its devices map in units of up to some MB. Spaces keep a distance of
`SPACING` if that needs no reset, else of `BLOCK` (`plan`). (3) Where a space begins: at a multiple
of `SPACING`, except where I/Os with gaps interleave with those of others. (4) Where the repetitions
of other runs go: to random spaces of their own (`draw_target`). The cost of a read depends on the
dies of its pages, so three visits to one space agree perfectly about that space and do not describe
the device. The first repetition of all but the baselines is random as well: runs that all begin at
offset 0 find the preceding run's part of the map in the memory of the device. Draws avoid the
spaces of earlier runs (`SpaceDrawer`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self, TypeVar

import numpy as np
from msgspec import structs

from uflip.benchmark.run_lengths import at_shortest_length
from uflip.footprint import (
    NO_EXTENTS,
    Extents,
    all_but_written_sequentially,
    union,
    written_sequentially,
)
from uflip.microbench import has_fixed_order, is_reset_before
from uflip.microbench.experiment import PlannedRun, run_seed
from uflip.microbench.mix import half_size
from uflip.spec import Basic, Mix, MixPart, Spec
from uflip.units import format_size

P = TypeVar("P", Basic, MixPart)

BLOCK = 128 << 10
"""No two runs share such a block [bytes]: "the flash block size, 128 KB" (uFLIP §4.1)."""
SPACING = 1 << 20
"""Distance of runs, where there is room [bytes]: blocks of several chips written as one."""

OFFSETS_AT_A_TIME = 4096
SPREAD = 32
# A target larger than this part of the device overlaps others wherever it lies.
WIDE = 64
# Number of draws: where 60 % of a device is used, one in a hundred runs finds none.
DRAWS = 9
END = np.iinfo(np.int64).max


class PlacedSpec(NamedTuple):
    """A specification with its space, and the reason for a reset before it, or None."""

    spec: Spec
    reset: str | None


class SpaceAllocator:
    """Allocates spaces on a device, and tracks the spaces touched since the last reset.

    `capacity`: size of the device [bytes]. `used`: end of the space that earlier plans have written
    sequentially [bytes]. `block`: runs share no block of this size [bytes]: `SPACING` or `BLOCK`.
    `disturbed`: sequential writes of earlier runs of the plan: nothing may touch them. `reserved`:
    further space to keep free of sequential writes.
    """

    def __init__(
        self,
        capacity: int,
        used: int = 0,
        block: int = SPACING,
        *,
        disturbed: Extents = NO_EXTENTS,
        reserved: Extents = NO_EXTENTS,
    ) -> None:
        self.capacity = capacity
        self.block = block
        self.resets = 0
        """Number of times that no space was left."""
        self.allocated_bytes = 0
        """Sum of the blocks that all runs touch [bytes]."""
        earlier = Extents(np.array([0]), np.array([used])) if used else NO_EXTENTS
        self._used = union([earlier, disturbed, reserved]).in_blocks(block)
        self._disturbed = disturbed.in_blocks(BLOCK)

    def move(self, spec: Spec) -> PlacedSpec:
        """Return the specification moved to a space that was not touched before."""
        own = _with_offset(spec, 0)
        shape = written_sequentially(own).in_blocks(self.block)
        moved, reason = self._find(spec, shape), None
        if moved is None:
            reason = self._describe_shortage(own)
            self.resets += 1
            self._used = self._disturbed = NO_EXTENTS
            moved = self._find(spec, shape)
        assert moved is not None, "an empty device has room for whatever fits on it"
        written = written_sequentially(moved).in_blocks(BLOCK)
        self._disturbed = union([self._disturbed, written])
        self._used = union([self._used, written.in_blocks(self.block)])
        self.allocated_bytes += written.size
        return PlacedSpec(moved, reason)

    def _find(self, spec: Spec, shape: Extents) -> Spec | None:
        if not isinstance(spec, Mix):
            offset = self._find_offset(shape, _span(spec), 0, self.capacity)
            return None if offset is None else _with_offset(spec, offset)
        return self._find_for_mix(spec, shape)

    def _find_for_mix(self, spec: Mix, shape: Extents) -> Spec | None:
        """Put the sequential writes of a mix into one half, the other pattern into the other."""
        half = half_size(self.capacity, _writer(spec).io_bytes)
        for begin, other in ((0, half), (half, 0)):
            offset = self._find_offset(shape, _span(spec), begin, begin + half)
            if offset is None:
                continue
            for drawn in (other + _reader(spec).begin % half, other):
                moved = _with_offset(spec, offset, drawn)
                if (
                    not all_but_written_sequentially(moved)
                    .in_blocks(BLOCK)
                    .overlaps(self._disturbed)
                ):
                    return moved
        return None

    def _find_offset(self, shape: Extents, span: int, begin: int, end: int) -> int | None:
        """Return an offset at which a shape is free and its target within bounds, or None.

        Searches upwards, but single blocks with gaps downwards from the end: these interleave, and
        longer stretches between them would leave no room for either.
        """
        if len(shape) == 1:
            return self._first_gap(shape.size, span, begin, end)
        if shape.size == len(shape) * self.block:
            return self._last(shape, span, begin, end)
        return self._first(shape, span, begin, end)

    def _first_gap(self, size: int, span: int, begin: int, end: int) -> int | None:
        """Return the first offset, at the begin or after a taken part, with enough free space."""
        used = self._used
        starts = np.concatenate([[begin], used.ends[used.ends > begin]])
        offsets = -(-starts // SPACING) * SPACING
        next_used = np.searchsorted(used.ends, offsets, side="right")
        free_until = np.append(used.begins, END)[next_used]
        fitting = offsets[(offsets + size <= free_until) & (offsets + span <= end)]
        return int(fitting[0]) if len(fitting) else None

    def _first(self, shape: Extents, span: int, begin: int, end: int) -> int | None:
        """Search upwards; on an overlap, continue above the taken part."""
        used, step = self._used, self.block
        offset = -(-begin // step) * step
        while offset + span <= end:
            candidate = shape.shifted(offset)
            last = np.searchsorted(used.begins, candidate.ends, side="left")
            below = np.concatenate([[0], used.ends])[last]
            overlaps = below > candidate.begins
            if not overlaps.any():
                return offset
            offset += -(-int((below - candidate.begins)[overlaps].max()) // step) * step
        return None

    def _last(self, shape: Extents, span: int, begin: int, end: int) -> int | None:
        """Search downwards for a shape of single blocks, many offsets at a time."""
        block, used = self.block, self._used
        change = np.zeros(-(-self.capacity // block) + 2, dtype=np.int8)
        change[used.begins // block] += 1
        change[used.ends // block] -= 1
        is_used = np.cumsum(change, dtype=np.int8).astype(bool)
        blocks, lowest = shape.begins // block, -(-begin // block)
        # Distant blocks first: a shape that does not fit is ruled out after a few of them.
        spread = np.concatenate([blocks[n::SPREAD] for n in range(SPREAD)])
        for top in range((end - span) // block, lowest - 1, -OFFSETS_AT_A_TIME):
            free = np.arange(top, max(top - OFFSETS_AT_A_TIME, lowest - 1), -1)
            for each in spread:
                free = free[~is_used[each + free]]
                if not len(free):
                    break
            else:
                return int(free[0]) * block
        return None

    def _describe_shortage(self, spec: Spec) -> str:
        free = self.capacity - self._used.size
        return (
            f"it writes sequentially to {format_size(written_sequentially(spec).size)} within "
            f"{format_size(_span(spec))}, {format_size(free)} of the device were not yet touched, "
            "and no gap is large enough"
        )


def _writer(spec: Spec) -> MixPart:
    """Return the part that writes sequentially."""
    return next(part for part in spec.parts if part.is_sequential_write)


def _reader(spec: Mix) -> MixPart:
    """Return the other part of a mix."""
    return spec.second if spec.first.is_sequential_write else spec.first


def _span(spec: Spec) -> int:
    """Return the size of the target of the sequential writes [bytes]."""
    return _writer(spec).target_bytes


def _with_offset(spec: Spec, offset: int, other: int | None = None) -> Spec:
    """Return the specification with its target at `offset`, and a mix's other target at `other`."""
    if not isinstance(spec, Mix):
        return spec.but(target_offset=offset)
    writes_first = spec.first.is_sequential_write
    writer, reader = (spec.first, spec.second) if writes_first else (spec.second, spec.first)
    writer = structs.replace(writer, target_offset=offset)
    if other is not None:
        reader = structs.replace(reader, target_offset=other)
    first, second = (writer, reader) if writes_first else (reader, writer)
    return spec.but(first=first, second=second)


class SpaceDrawer:
    """Draws target spaces that no earlier run of the plan used, while there is room.

    A second run in the same space finds its part of the map in the memory of the device, and its
    pages on the same dies as the first run.

    `capacity`: size of the device [bytes].
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._used = NO_EXTENTS

    def draw(self, part: P, begin: int, size: int, seed: int) -> P:
        """Move a target within a part of the device, to an unused space."""
        if part.target_bytes > self._capacity // WIDE:
            return _move_randomly(part, begin, size, seed)
        for attempt in range(DRAWS):
            attempt_seed = seed if attempt == 0 else run_seed(seed, "place", "", attempt)
            moved = _move_randomly(part, begin, size, attempt_seed)
            target = Extents(np.array([moved.begin]), np.array([moved.end])).in_blocks(SPACING)
            if not target.overlaps(self._used):
                break
        self._used = union([self._used, target])
        return moved


def draw_target(spec: Spec, capacity: int, seed: int, drawer: SpaceDrawer | None = None) -> Spec:
    """Return the specification with randomly drawn target spaces, where there is room.

    `spec`: a basic pattern or a mix; each component of a mix stays in its half. `capacity`: size of
    the device [bytes]. `seed`: the same seed gives the same spaces. `drawer`: the spaces of earlier
    runs, which are avoided.
    """
    draw = _move_randomly if drawer is None else drawer.draw
    if isinstance(spec, Basic):
        return draw(spec, 0, capacity, seed)
    assert isinstance(spec, Mix), "a plan has basic patterns and mixes"
    moved = {}
    for name, part in (("first", spec.first), ("second", spec.second)):
        half = half_size(capacity, part.io_bytes)
        begin = half if part.begin >= half else 0
        moved[name] = draw(part, begin, half, run_seed(seed, name, "", 0))
    return spec.but(**moved)


def _move_randomly(part: P, begin: int, size: int, seed: int) -> P:
    """Move a target within a part of the device, where there is a choice."""
    choices = (size - part.target_bytes) // SPACING + 1
    return (
        part
        if choices < 2
        else structs.replace(part, target_offset=begin + seed % choices * SPACING)
    )


@dataclass(frozen=True)
class PlacedRuns:
    """Runs with allocated spaces, and the resets needed for them."""

    runs: tuple[PlannedRun, ...]
    why_reset: Mapping[str, str]
    allocator: SpaceAllocator

    def without_resets(self) -> Self:
        """Return the same without resets: for a device that is measured as-is."""
        return replace(
            self, runs=tuple(replace(run, reset_before=False) for run in self.runs), why_reset={}
        )


def place_after(
    target_size: int, done: Sequence[PlannedRun], more: Iterable[PlannedRun]
) -> tuple[PlannedRun, ...]:
    """Allocate spaces after those of finished runs, with a reset before the first without space.

    `target_size`: the used part of the device [bytes]. `done`, `more`: runs with spaces, in order,
    and runs that need some.
    """
    resets = [index for index, run in enumerate(done) if run.reset_before]
    since = done[resets[-1] if resets else 0 :]
    disturbed = union([written_sequentially(run.spec) for run in since])
    # Earlier plans may have used the space before the first of them.
    used = 0 if resets or not len(disturbed) else int(disturbed.begins[0])
    return _placed_in(more, SpaceAllocator(target_size, used, BLOCK, disturbed=disturbed)).runs


def allocate_spaces(
    runs: Sequence[PlannedRun],
    capacity: int,
    used_bytes: int,
    longest: Callable[[PlannedRun], Spec] = lambda run: run.spec,
) -> PlacedRuns:
    """Allocate separate spaces to sequential writes: far apart if that needs no more resets.

    `longest` returns the specification with the largest space that a run may need.
    """
    spaced = _placed_in(runs, SpaceAllocator(capacity, used_bytes, SPACING), longest)
    if not spaced.why_reset:
        return spaced
    dense = _placed_in(runs, SpaceAllocator(capacity, used_bytes, BLOCK), longest)
    return min(spaced, dense, key=lambda placed: len(placed.why_reset))


def _placed_in(
    runs: Iterable[PlannedRun],
    allocator: SpaceAllocator,
    longest: Callable[[PlannedRun], Spec] = lambda run: run.spec,
) -> PlacedRuns:
    placed: list[PlannedRun] = []
    why: dict[str, str] = {}
    for run in runs:
        if has_fixed_order(run):
            # It keeps its space; the first of them finds the device in its state.
            if is_reset_before(run) and placed and not has_fixed_order(placed[-1]):
                why[run.id] = "what was written before it is no part of the state"
            placed.append(replace(run, reset_before=run.id in why))
            continue
        if not run.spec.writes_sequentially:
            placed.append(run)
            continue
        spec, reset = allocator.move(longest(run))
        if isinstance(run.spec, Basic) and isinstance(spec, Basic):
            spec = run.spec.but(target_offset=spec.target_offset)
        if reset is not None:
            why[run.id] = reset
        placed.append(replace(run, spec=spec, reset_before=reset is not None))
    return PlacedRuns(tuple(placed), why, allocator)


def fewest_resets(runs: Sequence[PlannedRun], placed: PlacedRuns, used_bytes: int) -> int:
    """Count the resets needed if every run were as short as allowed."""
    if not placed.why_reset or not any(run.spec.stop for run in runs):
        return len(placed.why_reset)
    short = [replace(run, spec=at_shortest_length(run.spec)) for run in runs]
    return len(allocate_spaces(short, placed.allocator.capacity, used_bytes).why_reset)
