"""The order of runs, and refreshes between them: each run finds the device in about the same state.

    stage 0   all reads, then random writes over the whole target
    stage 1   random writes within a part of it
    stage 2   sequential writes, mixes with them first
    at end    deallocating runs: once, in the order in which they were laid out

A run that writes in sequence, or at random within a part of the target, leaves a device that is no
longer randomly written throughout. The effect shows long after the run, when the garbage collector
reaches its data: during another experiment, whose result is then wrong. A reset removes it, but
writes several times the device. A refresh removes it in part: more random writes of the kind that
made the state, in proportion to the run. The run is then a fifth of the recent writes, wherever the
collector is.

    SW run     |████|                            its data stays contiguous until it is overwritten
    refresh    |▒ ▒  ▒    ▒   ▒ ▒    ▒  ▒   ▒|   more than that, at random over the whole target
    next run           |████|                    finds the device in about the same state

**Source**: uFLIP (CIDR 2009) §4.2: experiments with sequential writes are delayed; §4.1: they begin
in a well-defined state, "only sequential writes disturb the state significantly". R. A. Fisher
(1935): complete blocks, each in an order drawn by chance.
**Faithful**: runs with sequential writes come last. A refresh writes over the whole target, with
the largest I/O size of the state's own writes.
**Simplified**: reads, and writes over the whole target, keep their order. The size of the writes of
a refresh does not vary. They are not measured, but take their time, on a simulated device, too: in
functional mode a benchmark of the demo takes half as long, and 256, 247 and 252 of its 310
experiments converge for three seeds, where 266 and 261 do for the first two.
**Ambiguous**: (1) random writes within a part of the target. In the paper they disturb nothing. On
a device that collects garbage in turn, some thousand of them within a few MiB make later ones over
the whole target two or three times as slow, and sequential reads of these MiB a tenth quicker. With
any method but the paper's they come after these. Where runs end when their mean has converged, all
disturbing runs have another order in each repetition. Reads come first of all: otherwise they are
slowed by background work of earlier writes. On sim:tlc-nvme reads with a stride of one took 1.3 ms
after random writes, and 0.1 ms before. (2) The long run of sequential writes is among the first
runs (§4.2), yet disturbs what random patterns over the whole device would then touch: it is the
first of the disturbing runs. (3) Mixes with sequential writes follow it: their other pattern needs
half of the device, undisturbed. (4) The amount of a refresh. Nothing follows from the paper;
`REFRESH_TIMES` bounds the share of a single run in the recent writes. (5) What is refreshed: runs
that write sequentially, and those that use less than `NEARLY_ALL` of the target. Refreshes apply
only where runs end when their mean has converged, on devices in a random state; a device measured
as-is is never refreshed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from uflip.benchmark.target_spaces import SpaceDrawer, draw_target
from uflip.data.locations import DRAWN
from uflip.footprint import NEARLY_ALL
from uflip.microbench import BASELINE, has_fixed_order
from uflip.microbench.experiment import PlannedRun, run_seed
from uflip.spec import Basic, Mix, Spec, baseline

# Writes of a refresh, in multiples of those of the run: the run is then a fifth of the recent ones.
REFRESH_TIMES = 4
# uFLIP §4.1: the largest size of the state's own, "the flash block size, 128 KB" [bytes].
REFRESH_IO_SIZE = 128 << 10
# Disturbance of the state by a run: hardly any; random writes within a part of the target;
# sequential writes.
STAGES = UNDISTURBING, WITHIN_A_PART, SEQUENTIAL = 0, 1, 2


def order_runs(
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

    First the calibration runs that hardly disturb the state (uFLIP §4.2, §4.3), then all others
    that hardly do. Then the disturbing ones: calibration, mixes, which need undisturbed space
    beside their own, and the rest. `staged`: reads come first, and writes within a part after runs
    that hardly disturb. `shuffled`: disturbing runs have another order in each repetition. Runs
    with a fixed order come last, once.
    """
    names = list(dict.fromkeys(run.micro_benchmark for run in runs))
    last = sorted(
        (run for run in runs if has_fixed_order(run)),
        key=lambda run: (names.index(run.micro_benchmark), run.value),
    )
    runs = [run for run in runs if not has_fixed_order(run)]
    every = _repeated(runs, repetitions, seed, capacity)
    first_baselines = [
        run for run in every if run.micro_benchmark == BASELINE and run.repetition == 1
    ]
    others = [run for run in every if run not in first_baselines]
    if shuffled:
        by_repetition = [
            [run for run in others if run.repetition == n] for n in range(1, repetitions + 1)
        ]
        others = [run for each in by_repetition for run in shuffle_disturbing(each, seed, capacity)]
    if staged:
        others.sort(key=lambda run: (stage_of(run.spec, capacity), run.spec.writes))
    disturbing = [run for run in others if run.spec.writes_sequentially]
    ordered = [
        *(run for run in first_baselines if not run.spec.writes_sequentially),
        *lingering,
        *(run for run in others if not run.spec.writes_sequentially),
        *(run for run in first_baselines if run.spec.writes_sequentially),
        *(run for run in disturbing if isinstance(run.spec, Mix)),
        *(run for run in disturbing if not isinstance(run.spec, Mix)),
        *last,
    ]
    return [
        replace(run, id=f"{number:04d}-{run.id}") for number, run in enumerate(ordered, start=1)
    ]


def _repeated(
    runs: Iterable[PlannedRun], repetitions: int, seed: int, capacity: int
) -> list[PlannedRun]:
    """Return all runs, then all of them again with other seeds and target spaces."""
    first, drawer = list(runs), SpaceDrawer(capacity)
    every = [_move_to_own_space(run, drawer, seed, capacity) for run in first]
    for number in range(2, repetitions + 1):
        every += [repeat(run, number, seed, capacity, drawer) for run in first]
    return every


def _move_to_own_space(
    run: PlannedRun, drawer: SpaceDrawer, seed: int, capacity: int
) -> PlannedRun:
    """Move the first repetition away from offset 0; a baseline is the first run and stays there."""
    if run.micro_benchmark == BASELINE:
        return run
    own = run_seed(seed, run.micro_benchmark, run.pattern, run.value)
    return replace(run, spec=draw_target(run.spec, capacity, own, drawer))


def repeat(
    run: PlannedRun, number: int, seed: int, capacity: int, drawer: SpaceDrawer | None = None
) -> PlannedRun:
    """Return another repetition of a run: another seed, another target space."""
    own = run_seed(seed, run.micro_benchmark, run.pattern, run.value, number)
    spec = draw_target(run.spec, capacity, own, drawer).but(seed=own)
    return replace(run, id=f"{run.id}-r{number}", spec=spec, repetition=number)


def shuffle_disturbing(runs: Iterable[PlannedRun], seed: int, capacity: int) -> list[PlannedRun]:
    """Shuffle those runs of a repetition that disturb the state.

    The disturbance by a run then affects another experiment in each repetition: it becomes scatter,
    which repetitions show, and not bias, which they would repeat. Wide runs come last.
    """

    def rank(run: PlannedRun) -> tuple[int, ...]:
        stage = stage_of(run.spec, capacity)
        if stage == UNDISTURBING:
            return (stage,)
        wide = is_wide(run.spec, capacity)
        return (stage, wide, run_seed(seed, "order", run.id, run.repetition))

    return sorted(runs, key=rank)


def is_wide(spec: Spec, capacity: int) -> bool:
    """Return whether sequential writes span half of the device, with little space beside them."""
    if not (isinstance(spec, Basic) and spec.writes_sequentially):
        return False
    return spec.target_bytes >= capacity // 2


def ends_of_stages(runs: Iterable[PlannedRun], capacity: int) -> list[int]:
    """Return for each stage the number of runs up to its end, given runs in order.

    Runs with a fixed order belong to no stage, and come after all of them.
    """
    staged = [stage_of(run.spec, capacity) for run in runs if not has_fixed_order(run)]
    each = np.maximum.accumulate(np.array(staged, dtype=np.int64))
    return [int(np.searchsorted(each, stage, side="right")) for stage in STAGES]


def stage_of(spec: Spec, capacity: int) -> int:
    """Return how much a run disturbs the state: `UNDISTURBING`, `WITHIN_A_PART`, `SEQUENTIAL`."""
    if spec.writes_sequentially:
        return SEQUENTIAL
    return WITHIN_A_PART if writes_within_a_part(spec, capacity) else UNDISTURBING


def writes_within_a_part(spec: Spec, target_size: int) -> bool:
    """Return whether random writes are confined to a part of the target, or mostly are.

    Examples
    --------
    >>> writes_within_a_part(baseline("RW", target_size=1 << 20), 1 << 30)
    True
    >>> writes_within_a_part(baseline("RR", target_size=1 << 20), 1 << 30)
    False
    """
    return any(
        part.is_write
        and part.location in DRAWN
        and (part.location != "random" or part.target_bytes < NEARLY_ALL * target_size)
        for part in spec.parts
    )


def refresh_spec(target_size: int, size_bytes: int, seed: int) -> Spec:
    """Return the specification of the writes of a refresh."""
    return baseline(
        "RW",
        io_size=REFRESH_IO_SIZE,
        target_size=target_size // REFRESH_IO_SIZE * REFRESH_IO_SIZE,
        io_count=size_bytes // REFRESH_IO_SIZE,
        io_ignore=0,
        seed=seed,
    )
