"""Runs get their places on the device, with a reset before the first that finds no room.

Far apart if that needs no reset (`places.APART`), else closer (`places.BLOCK`): places that are
further apart than a flash block of the paper are safer, and a reset writes several times the
device.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from uflip.experiment import PlannedRun
from uflip.footprint import together, written_sequentially
from uflip.methodology.run_lengths import shortest
from uflip.methodology.target_spaces import APART, BLOCK, Places
from uflip.microbench import in_turn
from uflip.spec import Basic, Spec


@dataclass(frozen=True)
class PlacedRuns:
    """Runs at their places, and what had to be done for it."""

    runs: tuple[PlannedRun, ...]
    why_reset: Mapping[str, str]
    places: Places

    def without_resets(self) -> "PlacedRuns":
        """Return the same without resets: for a device that is measured as it is."""
        return replace(
            self, runs=tuple(replace(run, reset_before=False) for run in self.runs), why_reset={}
        )


def behind(
    target_size: int, done: Sequence[PlannedRun], more: Iterable[PlannedRun]
) -> tuple[PlannedRun, ...]:
    """Give runs places behind others, with a reset before the first that finds no room.

    Parameters
    ----------
    target_size : int
        The part of the device that is used [bytes].
    done, more : runs
        Those that have their places, in order, and those that need some.
    """
    resets = [index for index, run in enumerate(done) if run.reset_before]
    since = done[resets[-1] if resets else 0 :]
    disturbed = together([written_sequentially(run.spec) for run in since])
    # What lies before the first of them may have been used up by earlier plans.
    used = 0 if resets or not len(disturbed) else int(disturbed.begins[0])
    return _placed_in(more, Places(target_size, used, BLOCK, disturbed=disturbed)).runs


def as_laid_out(run: PlannedRun) -> Spec:
    """Return the specification of a run: it takes no more room than that."""
    return run.spec


def placed_runs(
    runs: Sequence[PlannedRun],
    capacity: int,
    used_bytes: int,
    longest: Callable[[PlannedRun], Spec] = as_laid_out,
) -> PlacedRuns:
    """Give sequential writes places of their own: far apart if that needs no more resets.

    `longest` returns the specification of a run that takes the most room for it.
    """
    far = _placed_in(runs, Places(capacity, used_bytes, APART), longest)
    if not far.why_reset:
        return far
    close = _placed_in(runs, Places(capacity, used_bytes, BLOCK), longest)
    return min(far, close, key=lambda placed: len(placed.why_reset))


def _placed_in(
    runs: Iterable[PlannedRun],
    places: Places,
    longest: Callable[[PlannedRun], Spec] = as_laid_out,
) -> PlacedRuns:
    placed: list[PlannedRun] = []
    why: dict[str, str] = {}
    for run in runs:
        if in_turn(run):
            # It stays where it is; the first of them finds the device in its state.
            if placed and not in_turn(placed[-1]):
                why[run.id] = "what was written before it is no part of the state"
            placed.append(replace(run, reset_before=run.id in why))
            continue
        if not run.spec.writes_sequentially:
            placed.append(run)
            continue
        spec, reset = places.move(longest(run))
        if isinstance(run.spec, Basic) and isinstance(spec, Basic):
            spec = run.spec.but(target_offset=spec.target_offset)
        if reset is not None:
            why[run.id] = reset
        placed.append(replace(run, spec=spec, reset_before=reset is not None))
    return PlacedRuns(tuple(placed), why, places)


def fewest_resets(runs: Sequence[PlannedRun], placed: PlacedRuns, used_bytes: int) -> int:
    """Count the resets that would do if every run ended as soon as it may."""
    if not placed.why_reset or not any(run.spec.stop for run in runs):
        return len(placed.why_reset)
    short = [replace(run, spec=shortest(run.spec)) for run in runs]
    return len(placed_runs(short, placed.places.capacity, used_bytes).why_reset)
