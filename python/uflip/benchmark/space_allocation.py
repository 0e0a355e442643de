"""Allocation of target spaces to runs, with a reset before the first run without free space.

Spaces lie far apart if that needs no reset (`target_spaces.SPACING`), else closer
(`target_spaces.BLOCK`): a distance of more than a flash block of the paper is safer, but a reset
writes several times the device.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from uflip.benchmark.run_lengths import shortest
from uflip.benchmark.target_spaces import BLOCK, SPACING, SpaceAllocator
from uflip.experiment import PlannedRun
from uflip.footprint import union, written_sequentially
from uflip.microbench import has_fixed_order
from uflip.spec import Basic, Spec


@dataclass(frozen=True)
class PlacedRuns:
    """Runs with allocated spaces, and the resets needed for them."""

    runs: tuple[PlannedRun, ...]
    why_reset: Mapping[str, str]
    allocator: SpaceAllocator

    def without_resets(self) -> "PlacedRuns":
        """Return the same without resets: for a device that is measured as-is."""
        return replace(
            self, runs=tuple(replace(run, reset_before=False) for run in self.runs), why_reset={}
        )


def place_after(
    target_size: int, done: Sequence[PlannedRun], more: Iterable[PlannedRun]
) -> tuple[PlannedRun, ...]:
    """Allocate spaces after those of finished runs, with a reset before the first without space.

    Parameters
    ----------
    target_size : int
        The used part of the device [bytes].
    done, more : runs
        Runs with spaces, in order, and runs that need some.
    """
    resets = [index for index, run in enumerate(done) if run.reset_before]
    since = done[resets[-1] if resets else 0 :]
    disturbed = union([written_sequentially(run.spec) for run in since])
    # Earlier plans may have used the space before the first of them.
    used = 0 if resets or not len(disturbed) else int(disturbed.begins[0])
    return _placed_in(more, SpaceAllocator(target_size, used, BLOCK, disturbed=disturbed)).runs


def planned_spec(run: PlannedRun) -> Spec:
    """Return the specification of a run: it needs no more space than that."""
    return run.spec


def allocate_spaces(
    runs: Sequence[PlannedRun],
    capacity: int,
    used_bytes: int,
    longest: Callable[[PlannedRun], Spec] = planned_spec,
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
    longest: Callable[[PlannedRun], Spec] = planned_spec,
) -> PlacedRuns:
    placed: list[PlannedRun] = []
    why: dict[str, str] = {}
    for run in runs:
        if has_fixed_order(run):
            # It keeps its space; the first of them finds the device in its state.
            if placed and not has_fixed_order(placed[-1]):
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
    short = [replace(run, spec=shortest(run.spec)) for run in runs]
    return len(allocate_spaces(short, placed.allocator.capacity, used_bytes).why_reset)
