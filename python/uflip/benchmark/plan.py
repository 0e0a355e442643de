"""The plan: its runs, their order, their target spaces, and the pauses between them.

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
runs of a group, then all of them again, so that slow changes show as disagreement (`order`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import structs

from uflip.benchmark import interference
from uflip.benchmark.order import REFRESH_IO_SIZE, REFRESH_TIMES, order_runs, writes_within_a_part
from uflip.benchmark.run_lengths import longer_baseline, with_stop_rule
from uflip.benchmark.state import (
    FEWEST_OVERWRITES,
    OVERWRITES,
    Enforcement,
    default_state,
    plan_state,
)
from uflip.benchmark.target_spaces import SpaceAllocator, allocate_spaces, fewest_resets
from uflip.benchmark_options import MAX_REPETITIONS, METHODS, SCALES, SEED, SUITE
from uflip.data.device import DeviceInfo
from uflip.data.summary import WarningSummary
from uflip.durability import CACHED
from uflip.errors import UsageError, unknown_name
from uflip.microbench import (
    BASELINE,
    MICRO_BENCHMARKS,
    check_names,
    has_fixed_order,
    has_own_length,
)
from uflip.microbench.experiment import BASELINE_IO_SIZE, Context, IoCounts, PlannedRun, Skipped
from uflip.spec import Basic, MixPart, Spec
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
        """Whether the device is refreshed after disturbing runs (`order`)."""
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
    return plan_single_run(run, info, scale="quick", seed=seed, durability=durability)


def label_of(spec: Spec) -> str:
    """Return the name of a pattern in results: SR RR SW RW, two for a mix, or words."""
    return "/".join(dict.fromkeys(_label(part) for part in spec.parts))


def _label(part: MixPart) -> str:
    return _CODES.get((part.mode, part.location), f"{part.location}-{part.mode}")


def plan_single_run(
    run: PlannedRun,
    info: DeviceInfo,
    *,
    scale: str,
    durability: str,
    seed: int = SEED,
    warnings: tuple[WarningSummary, ...] = (),
) -> Plan:
    """Plan a single run, on a device in its current state."""
    return Plan(
        device=info,
        scale=scale,
        seed=seed,
        runs=(run,),
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
