"""The plan: its runs, their order, refreshes between them, target spaces and pauses.

**Source**: uFLIP (CIDR 2009) §4.2 and §4.3: experiments with sequential writes are delayed and
grouped so that their target spaces do not overlap; the state is reset when these are used up;
consecutive runs are kept apart by a pause of 1 s. §5.1: each experiment is run three times.
**Faithful**: the long baseline runs and the measurement of the pause come first; then runs without
sequential writes; the others get separate target spaces (`target_spaces`), so that no run reads or
writes what an earlier one has written sequentially; a reset before the first run without free
space; three repetitions, each in a space of its own; 1 s between runs, the paper's conservative
choice, or more if the device needs it.
**Simplified**: the quick scale makes one repetition, and on a real device pauses 0.1 s only.
**Ambiguous**: (1) what a sequential write is. Here ordered, partitioned and parallel sequential
writes count, and so do mixes with them; random writes do not. (2) The order of repetitions: all
runs of a group, then all of them again, so that slow changes show as disagreement (below).

**Order**: runs, and refreshes between them, find the device in about the same state.

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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from msgspec import structs

from uflip.benchmark import interference
from uflip.benchmark.run_lengths import longer_baseline, with_stop_rule
from uflip.benchmark.state import (
    FEWEST_OVERWRITES,
    OVERWRITES,
    Enforcement,
    default_state,
    plan_state,
)
from uflip.benchmark.target_spaces import (
    SpaceAllocator,
    SpaceDrawer,
    allocate_spaces,
    draw_target,
    fewest_resets,
)
from uflip.benchmark_options import MAX_REPETITIONS, METHODS, SCALES, SEED, SUITE
from uflip.data.device import DeviceInfo
from uflip.data.locations import DRAWN
from uflip.data.summary import WarningSummary
from uflip.durability import CACHED
from uflip.errors import UsageError, unknown_name
from uflip.footprint import NEARLY_ALL
from uflip.microbench import (
    BASELINE,
    MICRO_BENCHMARKS,
    check_names,
    has_fixed_order,
    has_own_length,
)
from uflip.microbench.experiment import (
    BASELINE_IO_SIZE,
    Context,
    IoCounts,
    PlannedRun,
    Skipped,
    run_seed,
)
from uflip.spec import Basic, Mix, MixPart, Spec, baseline
from uflip.units import format_size

PAUSE_NS = 1_000_000_000
# In quick, a second between a hundred runs of half a second would be most of the time.
QUICK_PAUSE_NS = 100_000_000
# uFLIP §5.1: "each experiment was run three times".
REPETITIONS = 3
QUICK_REPETITIONS = 1
ZONES, AS_IS = "zones", "as-is"
NO_STATE = "A device state cannot be enforced on a device with zones"
SINGLE_PATTERN = "pattern"
"""Micro-benchmark of single patterns in results."""
_CODES = {
    ("read", "sequential"): "SR", ("read", "random"): "RR",
    ("write", "sequential"): "SW", ("write", "random"): "RW",
}  # fmt: skip


@dataclass(frozen=True)
class Choices:
    """The user's choices about a plan; None selects the default of device and scale."""

    only: tuple[str, ...] | None = None  #: Names of micro-benchmarks; all without it.
    io_size: int = BASELINE_IO_SIZE  #: I/O size of the baseline patterns [bytes].
    pause_ns: int | None = None  #: Pause before each run [ns].
    target_size: int | None = None  #: The part of the device to use, from its beginning [bytes].
    state: str | None = None  #: One of `STATES`.
    repetitions: int | None = None  #: Number of repetitions of each run.
    #: Lengths of the ordinary runs of SR, RR, SW and RW; without it those of the scale.
    io_counts: Mapping[str, IoCounts] | None = None
    #: End of the space that earlier plans have written sequentially since the state was enforced
    #: [bytes].
    used_bytes: int = 0
    method: str | None = None  #: One of `METHODS`: the rule for the length of runs.
    durability: str = CACHED  #: Durability of writes, see `uflip.durability`.
    suite: str = SUITE  #: One of `SUITES`: the set of micro-benchmarks to choose from.


@dataclass(frozen=True)
class Plan:
    """Runs in the order in which they are made."""

    device: DeviceInfo  #: Properties of the device.
    #: As given to `make_plan`.
    scale: str
    seed: int
    runs: tuple[PlannedRun, ...]  #: In order; their ids begin with their number.
    #: Runs that the device does not support, or a limit excludes, with reasons.
    skipped: tuple[Skipped, ...]
    pause_ns: int  #: Idle time of the device before each run, on its own clock [ns].
    target_size: int  #: The part of the device that is used, from its beginning [bytes].
    #: The state that the plan begins in, and that resets enforce again; None for "as-is".
    state: Enforcement | None
    repetitions: int  #: Number of repetitions of each run.
    method: str  #: One of `METHODS`: the rule for the length of runs.
    durability: str  #: Durability of writes, see `uflip.durability`.
    #: Warnings about the plan: code, message, numbers, advice.
    warnings: tuple[WarningSummary, ...]
    #: Id of a run -> reason for the reset before it; empty for a plan from a file.
    why_reset: Mapping[str, str] = field(default_factory=dict)
    #: Resets needed if every run were as short as allowed; None for a plan from a file.
    fewest_resets: int | None = None
    #: No two runs with sequential writes share a block of this size; None for a plan from a file
    #: [bytes].
    block_bytes: int | None = None

    @property
    def resets(self) -> int:
        """Number of resets of the state."""
        return sum(run.reset_before for run in self.runs)

    def longer_baseline(self, run: PlannedRun) -> Basic | None:
        """Return the longest repeat of a baseline; None for a run without one."""
        info = structs.replace(self.device, capacity_bytes=self.target_size)
        return longer_baseline(run, info, self.scale, self.method)

    @property
    def refreshes(self) -> bool:
        """Whether the device is refreshed after disturbing runs."""
        is_random = self.state is not None and self.state.request["state"] == "random"
        return is_random and self.method == "auto"

    def refresh_bytes(self, run: PlannedRun, written: int) -> int:
        """Return the size of the refresh after a run [bytes]: at most that of the target."""
        if not self.refreshes or has_fixed_order(run):
            return 0
        spec = run.spec
        if not (spec.writes_sequentially or writes_within_a_part(spec, self.target_size)):
            return 0
        return min(REFRESH_TIMES * written, self.target_size) // REFRESH_IO_SIZE * REFRESH_IO_SIZE


def make_plan(info: DeviceInfo, scale: str, seed: int, choices: Choices | None = None) -> Plan:
    """Plan the micro-benchmarks for a device. The device is not touched.

    `info`: the device, from `inspect_device` or `Device.info`. `scale`: "quick" or "standard".
    `seed`: seed of all random patterns; each run gets its own from it. `choices`: the user's other
    choices.
    """
    chosen = Choices() if choices is None else choices
    if scale not in SCALES:
        raise unknown_name("scale", scale, SCALES, where="--scale")
    names = check_names(chosen.only, info.addresses, chosen.suite)
    _check_zones(info, chosen.suite, chosen.state)
    used = _check_target(info, chosen.target_size)
    method = method_for(scale, chosen.method, chosen_lengths=chosen.io_counts is not None)
    state_name = default_state(info) if chosen.state is None else chosen.state
    context = Context(
        structs.replace(info, capacity_bytes=used),
        scale,
        seed,
        chosen.io_size,
        chosen.io_counts,
        budgets=method == "auto",
        # The null device has no free blocks to use up.
        startup=method == "startup" and not info.null,
        overwritten=_is_overwritten(info, state_name),
    )
    _check_io_size(context)
    repetitions = _repetitions(context, chosen.repetitions)
    state = plan_state(info, state_name, chosen.target_size, overwrites=overwrites_for(method))
    experiments = [
        experiment for name in names for experiment in MICRO_BENCHMARKS[name].experiments(context)
    ]
    runs = [run for experiment in experiments for run in experiment.runs]
    if method == "auto":
        runs = [
            run if run.micro_benchmark == BASELINE or has_own_length(run) else with_stop_rule(run)
            for run in runs
        ]
    lingering = interference.lay_out(context) if _measures_pause(context, runs, chosen) else []
    ordered = order_runs(
        runs,
        lingering,
        repetitions,
        seed,
        capacity=context.capacity,
        staged=method != "paper",
        shuffled=method == "auto",
    )

    def longest(run: PlannedRun) -> Spec:
        return longer_baseline(run, context.info, scale, method) or run.spec

    placed = allocate_spaces(ordered, context.capacity, chosen.used_bytes, longest)
    if state is None:
        placed = placed.without_resets()
    return Plan(
        device=info,
        scale=scale,
        seed=seed,
        runs=placed.runs,
        skipped=tuple(skip for experiment in experiments for skip in experiment.skipped),
        pause_ns=_pause_ns(context) if chosen.pause_ns is None else chosen.pause_ns,
        target_size=used,
        state=state,
        repetitions=repetitions,
        method=method,
        durability=chosen.durability,
        warnings=tuple(_warnings(context, placed.allocator, resets=state is not None)),
        why_reset=placed.why_reset,
        fewest_resets=None if state is None else fewest_resets(ordered, placed, chosen.used_bytes),
        block_bytes=placed.allocator.block,
    )


def _is_overwritten(info: DeviceInfo, state: str) -> bool:
    """Return whether a device is overwritten at random, or was when it was made."""
    if state == AS_IS and info.simulated and info.details.snapshot is None:
        state = info.profile.state.state
    return state == "random"


def _measures_pause(context: Context, runs: Sequence[PlannedRun], chosen: Choices) -> bool:
    """Return whether the pause is measured: where writes of a run may linger in the next one."""
    if chosen.pause_ns is not None or context.info.zoned:
        return False
    whole = any(run.micro_benchmark == BASELINE for run in runs)
    return whole or (not context.info.null and any(run.spec.writes for run in runs))


def _warnings(context: Context, allocator: SpaceAllocator, *, resets: bool) -> list[WarningSummary]:
    if not allocator.resets or resets or context.info.null:
        return []
    return [
        {
            "code": "sequential_targets_reused",
            "message": (
                f"The sequential writes of this plan take {format_size(allocator.allocated_bytes)},"
                f" the device has {format_size(context.capacity)}, and its state is not reset: "
                "later runs wrote where earlier ones had"
            ),
            "numbers": {
                "wanted_bytes": allocator.allocated_bytes,
                "capacity_bytes": context.capacity,
                "rounds": allocator.resets,
            },
            "advice": "omit --state as-is, use a larger device, or fewer micro-benchmarks "
            "at a time (--only)",
        }
    ]


def plan_pattern(spec: Spec, info: DeviceInfo, *, label: str, durability: str) -> Plan:
    """Plan one run of a complete pattern, on a device in its current state."""
    size = spec.parts[0].io_bytes
    name = f"0001-{SINGLE_PATTERN}-{label.replace('/', '+')}-io_size-{size}"
    run = PlannedRun(name, SINGLE_PATTERN, label, "io_size", size, "bytes", spec)
    seed = SEED if spec.seed is None else spec.seed
    return plan_as_is([run], info, scale="quick", seed=seed, durability=durability)


def label_of(spec: Spec) -> str:
    """Return the name of a pattern in results: SR RR SW RW, two for a mix, or words."""
    return "/".join(dict.fromkeys(_label(part) for part in spec.parts))


def _label(part: MixPart) -> str:
    return _CODES.get((part.mode, part.location), f"{part.location}-{part.mode}")


def plan_as_is(
    runs: Iterable[PlannedRun],
    info: DeviceInfo,
    *,
    scale: str,
    durability: str,
    seed: int = SEED,
    warnings: tuple[WarningSummary, ...] = (),
) -> Plan:
    """Plan runs on a device in its current state, without pauses."""
    return Plan(
        device=info,
        scale=scale,
        seed=seed,
        runs=tuple(runs),
        skipped=(),
        pause_ns=0,
        target_size=info.capacity_bytes,
        state=None,
        repetitions=1,
        method="paper",
        durability=durability,
        warnings=warnings,
    )


def method_for(scale: str, method: str | None, *, chosen_lengths: bool = False) -> str:
    """Return the rule of run lengths: chosen lengths are fixed, and quick runs do not converge."""
    if method is None:
        if chosen_lengths:
            return "paper"
        return "startup" if scale == "quick" else "auto"
    if method in METHODS:
        return method
    raise unknown_name("method", method, METHODS, where="--method")


def overwrites_for(method: str) -> int:
    """Return how many times the target is overwritten at random, for a rule of run lengths."""
    return OVERWRITES if method != "paper" else FEWEST_OVERWRITES


def _repetitions(context: Context, chosen: int | None) -> int:
    if chosen is None:
        return QUICK_REPETITIONS if context.quick else REPETITIONS
    if 1 <= chosen <= MAX_REPETITIONS:
        return chosen
    raise UsageError(
        "Too many repetitions",
        where="--repetitions",
        got=str(chosen),
        allowed=f"1 to {MAX_REPETITIONS}",
        action="choose another number",
    )


def _pause_ns(context: Context) -> int:
    """Return the idle time before each run [ns]."""
    if context.info.null:
        return 0
    if context.info.simulated or not context.quick:
        return PAUSE_NS
    return QUICK_PAUSE_NS


def _check_target(info: DeviceInfo, target_size: int | None) -> int:
    """Return the size of the used part of the device [bytes]."""
    capacity, sector = info.capacity_bytes, info.sector_bytes
    if target_size is None:
        return capacity
    if 0 < target_size <= capacity and target_size % sector == 0:
        return target_size
    raise UsageError(
        "The device has no target of this size",
        where="--target-size",
        got=f"{target_size} bytes ({format_size(target_size)})",
        allowed=f"multiples of {sector} bytes, from {sector} to {capacity} "
        f"({format_size(capacity)})",
        action="omit --target-size, or choose another size",
    )


def _check_io_size(context: Context) -> None:
    io_size, sector = context.io_size, context.sector
    if 0 < io_size <= context.capacity and io_size % sector == 0:
        return
    raise UsageError(
        "The device cannot do I/Os of this size",
        where="--io-size",
        got=f"{io_size} bytes ({format_size(io_size)})",
        allowed=(
            f"multiples of {sector} bytes, from {sector} "
            f"to the device's {format_size(context.capacity)}"
        ),
        action="choose another --io-size, or a larger device",
    )


def _check_zones(info: DeviceInfo, suite: str, state: str | None) -> None:
    """Refuse micro-benchmarks and states that a zoned device does not support."""
    if not info.zoned:
        return
    if suite != ZONES:
        raise UsageError(
            "The device is written in zones, each in order: these micro-benchmarks write otherwise",
            where="--suite",
            got=suite,
            allowed=ZONES,
            action="give --suite zones, or name another device",
        )
    if state not in (None, AS_IS):
        raise UsageError(
            NO_STATE,
            where="--state",
            got=str(state),
            allowed=AS_IS,
            action="omit --state: zones are prepared before every run",
        )


def check_has_states(info: DeviceInfo) -> None:
    """Refuse to enforce a state on a zoned device."""
    if info.zoned:
        raise UsageError(
            NO_STATE,
            where=info.url,
            got="zones",
            allowed="a device without zones",
            action="measure it as it is: zones are prepared before every run",
        )


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
    others = [run for run in every if not _is_calibration(run)]
    if shuffled:
        by_repetition = [
            [run for run in others if run.repetition == n] for n in range(1, repetitions + 1)
        ]
        others = [run for each in by_repetition for run in shuffle_disturbing(each, seed, capacity)]
    if staged:
        others.sort(key=lambda run: (stage_of(run.spec, capacity), run.spec.writes))
    calibration = [run for run in every if _is_calibration(run)]
    ordered = sorted([*calibration, *others], key=_group_of)
    after = sum(_group_of(run) == 0 for run in ordered)
    ordered = [*ordered[:after], *lingering, *ordered[after:], *last]
    return [
        replace(run, id=f"{number:04d}-{run.id}") for number, run in enumerate(ordered, start=1)
    ]


def _is_calibration(run: PlannedRun) -> bool:
    return run.micro_benchmark == BASELINE and run.repetition == 1


def _group_of(run: PlannedRun) -> int:
    """Return the group of a run; the runs of a group precede those of the next one."""
    if not run.spec.writes_sequentially:
        return 0 if _is_calibration(run) else 1
    if _is_calibration(run):
        return 2
    return 3 if isinstance(run.spec, Mix) else 4


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
