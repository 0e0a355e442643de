"""The order of runs: what tells first, then what hardly disturbs the state, then what does.

    stage 0   all that reads, then random writes over the whole target
    stage 1   random writes within a part of it
    stage 2   sequential writes, mixes with them first
    behind    what deallocates, in turn: once, and in the order in which it was laid out

**Source**: uFLIP (CIDR 2009) §4.2: experiments with sequential writes are delayed; §4.1: "only
sequential writes disturb the state significantly". R. A. Fisher (1935): complete blocks, each in an
order drawn by chance.
**Faithful**: what writes sequentially comes last.
**Simplified**: what only reads, or writes all over, keeps its order.
**Ambiguous**: (1) random writes within a part of the target. In the paper they disturb nobody; on a
device that collects garbage in turn, some thousand of them within a few MiB make those that follow
over the whole target two or three times as slow, and sequential reads of these MiB a tenth quicker.
With any method but the paper's they come after these, and where runs end when their mean is known,
all that disturbs comes in another order in each repetition. Reads come first of all: otherwise
they meet what earlier writes left to be done in the background. On sim:tlc-nvme reads with a stride
of one took 1.3 ms behind random writes, and 0.1 ms before. (2) The long run of sequential writes is
among what is made first (§4.2), yet disturbs what random patterns over the whole device would then
touch: it comes first of those that disturb. (3) Mixes with sequential writes follow it: their other
pattern needs half of the device, undisturbed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from uflip.experiment import PlannedRun, run_seed
from uflip.methodology.refresh import writes_within_a_part
from uflip.methodology.target_spaces import OwnPlaces, elsewhere
from uflip.microbench import in_turn
from uflip.spec import Basic, Mix, Spec

BASELINE = "baseline"
# What runs do to the state: hardly anything; random writes that keep to a part of the target;
# sequential writes.
STAGES = UNDISTURBING, WITHIN_A_PART, SEQUENTIAL = 0, 1, 2


def in_order(
    runs: Sequence[PlannedRun],
    lingering: Sequence[PlannedRun],
    repetitions: int,
    seed: int,
    *,
    capacity: int,
    staged: bool,
    shuffled: bool,
) -> list[PlannedRun]:
    """Put runs in order, and number them.

    First what tells about the device and hardly disturbs its state (uFLIP §4.2, §4.3), then all
    else that hardly does, then what does: what tells, what needs undisturbed space beside its own,
    and the rest. `staged`: what reads comes first, and what writes within a part after what hardly
    disturbs.
    `shuffled`: what disturbs has another order each time. What is made in turn comes last, once.
    """
    last = sorted((run for run in runs if in_turn(run)), key=lambda run: run.value)
    runs = [run for run in runs if not in_turn(run)]
    every = _repeated(runs, repetitions, seed, capacity)
    telling = [run for run in every if run.micro_benchmark == BASELINE and run.repetition == 1]
    again = [run for run in every if run not in telling]
    if shuffled:
        once = [[run for run in again if run.repetition == n] for n in range(1, repetitions + 1)]
        again = [run for each in once for run in by_chance(each, seed, capacity)]
    if staged:
        again.sort(key=lambda run: (stage_of(run.spec, capacity), run.spec.writes))
    disturbing = [run for run in again if run.spec.writes_sequentially]
    ordered = [
        *(run for run in telling if not run.spec.writes_sequentially),
        *lingering,
        *(run for run in again if not run.spec.writes_sequentially),
        *(run for run in telling if run.spec.writes_sequentially),
        *(run for run in disturbing if isinstance(run.spec, Mix)),
        *(run for run in disturbing if not isinstance(run.spec, Mix)),
        *last,
    ]
    return [
        replace(run, id=f"{number:04d}-{run.id}") for number, run in enumerate(ordered, start=1)
    ]


def by_chance(runs: Iterable[PlannedRun], seed: int, capacity: int) -> list[PlannedRun]:
    """Put those runs of a repetition that disturb the state into an order of its own.

    What a run leaves then meets another experiment each time: it is scatter, which repetitions
    show, and no bias, which they would repeat. What is wide comes last.
    """

    def place(run: PlannedRun) -> tuple[int, ...]:
        stage = stage_of(run.spec, capacity)
        if stage == UNDISTURBING:
            return (stage,)
        wide = is_wide(run.spec, capacity)
        return (stage, wide, run_seed(seed, "order", run.id, run.repetition))

    return sorted(runs, key=place)


def ends_of_stages(runs: Iterable[PlannedRun], capacity: int) -> list[int]:
    """Return how many runs are over when a stage is, of runs in order: a number for each.

    What is made in turn belongs to none, and comes behind all of them.
    """
    staged = [stage_of(run.spec, capacity) for run in runs if not in_turn(run)]
    each = np.maximum.accumulate(np.array(staged, dtype=np.int64))
    return [int(np.searchsorted(each, stage, side="right")) for stage in STAGES]


def stage_of(spec: Spec, capacity: int) -> int:
    """How much a run disturbs the state: `UNDISTURBING`, `WITHIN_A_PART` or `SEQUENTIAL`."""
    if spec.writes_sequentially:
        return SEQUENTIAL
    return WITHIN_A_PART if writes_within_a_part(spec, capacity) else UNDISTURBING


def is_wide(spec: Spec, capacity: int) -> bool:
    """Whether sequential writes span half of the device: beside them is room for little else."""
    if not (isinstance(spec, Basic) and spec.writes_sequentially):
        return False
    return spec.target_bytes >= capacity // 2


def _repeated(
    runs: Iterable[PlannedRun], repetitions: int, seed: int, capacity: int
) -> list[PlannedRun]:
    """All runs, then all of them again with other seeds, each run at a place of its own."""
    first, places = list(runs), OwnPlaces(capacity)
    every = [_at_own_place(run, places, seed, capacity) for run in first]
    for number in range(2, repetitions + 1):
        every += [repeat(run, number, seed, capacity, places) for run in first]
    return every


def _at_own_place(run: PlannedRun, places: OwnPlaces, seed: int, capacity: int) -> PlannedRun:
    """Move the first repetition away from offset 0; a baseline is the first run and stays there."""
    if run.micro_benchmark == BASELINE:
        return run
    own = run_seed(seed, run.micro_benchmark, run.pattern, run.value)
    return replace(run, spec=elsewhere(run.spec, capacity, own, places))


def repeat(
    run: PlannedRun, number: int, seed: int, capacity: int, places: OwnPlaces | None = None
) -> PlannedRun:
    """Return another repetition of a run: another seed, another place."""
    own = run_seed(seed, run.micro_benchmark, run.pattern, run.value, number)
    spec = elsewhere(run.spec, capacity, own, places).but(seed=own)
    return replace(run, id=f"{run.id}-r{number}", spec=spec, repetition=number)
