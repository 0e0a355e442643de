"""The plan: which runs, in which order, at which place on the device, with which pauses.

**Source**: uFLIP (CIDR 2009) §4.2 and §4.3: experiments with sequential writes are delayed and
grouped so that their target spaces do not overlap; the state is reset when these are used up;
consecutive runs are kept apart by a pause. §5.1: each experiment is run three times.
**Faithful**: the long baseline runs and the measurement of the pause come first; then runs without
sequential writes; the others get places of their own (`places`), so that no run reads or writes
what an earlier one has written sequentially; a reset before the first run that finds no place;
three repetitions, each at places of its own; 1 s between runs, the paper's conservative choice, or
more if the device needs it.
**Simplified**: the quick scale makes one repetition, and on a real device pauses 0.1 s only.
**Ambiguous**: (1) what a sequential write is. Here ordered, partitioned and parallel sequential
writes count, and so do mixes with them; random writes do not. (2) How repetitions are ordered: all
runs of a group, then all of them again, so that what changes slowly shows as disagreement
(`order`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import structs

from uflip.choices import METHODS, SCALES
from uflip.data.device import DeviceInfo
from uflip.durability import CACHED
from uflip.errors import UsageError, unknown_name
from uflip.experiment import (
    BASELINE_IO_SIZE,
    Context,
    Counts,
    PlannedRun,
    Skipped,
)
from uflip.footprint import together, written_sequentially
from uflip.methodology import interference
from uflip.methodology.lengths import self_timed, shortest
from uflip.methodology.order import BASELINE, in_order
from uflip.methodology.places import APART, BLOCK, Places
from uflip.methodology.state import (
    FEWEST_OVERWRITES,
    OVERWRITES,
    Enforcement,
    default_state,
    plan_state,
)
from uflip.microbench import MICRO_BENCHMARKS, check_names
from uflip.units import format_size

PAUSE_NS = 1_000_000_000
# In quick a second between a hundred runs of half a second would be most of the time.
QUICK_PAUSE_NS = 100_000_000
# uFLIP §5.1: "each experiment was run three times".
REPETITIONS = 3
QUICK_REPETITIONS = 1
MOST_REPETITIONS = 100


@dataclass(frozen=True)
class Choices:
    """What a user may choose about a plan; what is None suits the device and the scale.

    Attributes
    ----------
    only : tuple of str or None
        Names of micro-benchmarks; all without it.
    io_size : int
        I/O size of the baseline patterns [bytes].
    pause_ns : int or None
        Pause before each run [ns].
    target_size : int or None
        Use only so much of the device, from its beginning [bytes].
    state : str or None
        One of `STATES`.
    repetitions : int or None
        How often each run is made.
    io_counts : mapping of str to Counts or None
        Lengths of the ordinary runs of SR, RR, SW and RW; without it those of the scale.
    used_bytes : int
        Up to here earlier plans have written sequentially since the state was enforced [bytes].
    method : str or None
        One of `METHODS`: how long runs are.
    durability : str
        What writes wait for, see `uflip.durability`.
    """

    only: tuple[str, ...] | None = None
    io_size: int = BASELINE_IO_SIZE
    pause_ns: int | None = None
    target_size: int | None = None
    state: str | None = None
    repetitions: int | None = None
    io_counts: Mapping[str, Counts] | None = None
    used_bytes: int = 0
    method: str | None = None
    durability: str = CACHED


@dataclass(frozen=True)
class Plan:
    """Runs in the order in which they are made.

    Attributes
    ----------
    device : dict
        What is known about the device.
    scale, seed
        As given to `make_plan`.
    runs : tuple of PlannedRun
        In order; their ids begin with their number.
    skipped : tuple of Skipped
        What the device cannot do, with reasons.
    pause_ns : int
        Time the device is left alone before each run, on its own clock [ns].
    target_size : int
        The part of the device that is used, from its beginning [bytes].
    state : Enforcement or None
        The state that the plan begins in, and that resets enforce again; None for "as-is".
    repetitions : int
        How often each run is made.
    method : str
        One of `METHODS`: how long runs are.
    durability : str
        What writes wait for, see `uflip.durability`.
    warnings : tuple of dict
        Doubts about the plan: code, message, numbers, advice.
    why_reset : mapping of str to str
        Id of a run -> why the state is reset before it; empty for a plan that was read.
    fewest_resets : int or None
        How many resets would do if every run ended as soon as it may; None where it was read.
    block_bytes : int or None
        No two runs with sequential writes share a block of this size; None where it was read
        [bytes].
    """

    device: DeviceInfo
    scale: str
    seed: int
    runs: tuple[PlannedRun, ...]
    skipped: tuple[Skipped, ...]
    pause_ns: int
    target_size: int
    state: Enforcement | None
    repetitions: int
    method: str
    durability: str
    warnings: tuple[dict[str, Any], ...]
    why_reset: Mapping[str, str] = field(default_factory=dict)
    fewest_resets: int | None = None
    block_bytes: int | None = None

    @property
    def resets(self) -> int:
        """How often the state is enforced again."""
        return sum(run.reset_before for run in self.runs)


def make_plan(info: DeviceInfo, scale: str, seed: int, choices: Choices | None = None) -> Plan:
    """Plan the micro-benchmarks for a device. Nothing is touched.

    Parameters
    ----------
    info : dict
        The device, from `inspect_device` or `Device.info`.
    scale : str
        "quick" or "standard".
    seed : int
        Seed of all random patterns; each run gets its own from it.
    choices : Choices, optional
        What else the user chose.

    Returns
    -------
    Plan

    Raises
    ------
    UsageError
        For an unknown scale, micro-benchmark or state, sizes that the device cannot do.
    """
    chosen = Choices() if choices is None else choices
    if scale not in SCALES:
        raise unknown_name("scale", scale, SCALES, where="--scale")
    names = check_names(chosen.only, info.addresses)
    used = _check_target(info, chosen.target_size)
    method = method_for(scale, chosen.method, chosen_lengths=chosen.io_counts is not None)
    context = Context(
        structs.replace(info, capacity_bytes=used),
        scale,
        seed,
        chosen.io_size,
        chosen.io_counts,
        budgets=method == "auto",
        # What does nothing has no free blocks to use up.
        startup=method == "startup" and not info.null,
    )
    _check_io_size(context)
    repetitions = _repetitions(context, chosen.repetitions)
    state_name = default_state(info) if chosen.state is None else chosen.state
    state = plan_state(info, state_name, chosen.target_size, overwrites=overwrites_for(method))
    experiments = [
        experiment for name in names for experiment in MICRO_BENCHMARKS[name].experiments(context)
    ]
    runs = [_timed(run, method) for experiment in experiments for run in experiment.runs]
    lingering = interference.lay_out(context) if _finds_its_pause(context, runs, chosen) else []
    ordered = in_order(
        runs,
        lingering,
        repetitions,
        seed,
        capacity=context.capacity,
        shuffled=method == "auto",
    )
    placed = _placed(ordered, context.capacity, chosen.used_bytes)
    if state is None:
        placed = placed.without_resets()
    return Plan(
        device=info,
        scale=scale,
        seed=seed,
        runs=placed.runs,
        skipped=tuple(skip for experiment in experiments for skip in experiment.skipped),
        pause_ns=_default_pause_ns(context) if chosen.pause_ns is None else chosen.pause_ns,
        target_size=used,
        state=state,
        repetitions=repetitions,
        method=method,
        durability=chosen.durability,
        warnings=tuple(_warnings(context, placed.places, resets=state is not None)),
        why_reset=placed.why_reset,
        fewest_resets=None if state is None else _fewest_resets(ordered, placed, chosen.used_bytes),
        block_bytes=placed.places.block,
    )


def _check_target(info: DeviceInfo, target_size: int | None) -> int:
    """Return how much of the device is used [bytes]."""
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
        action="choose another --target-size, or leave it out",
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


def _repetitions(context: Context, chosen: int | None) -> int:
    if chosen is None:
        return QUICK_REPETITIONS if context.quick else REPETITIONS
    if 1 <= chosen <= MOST_REPETITIONS:
        return chosen
    raise UsageError(
        "A plan cannot be repeated so often",
        where="--repetitions",
        got=str(chosen),
        allowed=f"1 to {MOST_REPETITIONS}",
        action="choose another number",
    )


def overwrites_for(method: str) -> int:
    """How often the target is overwritten at random where runs are that long."""
    return OVERWRITES if method == "auto" else FEWEST_OVERWRITES


def method_for(scale: str, method: str | None, *, chosen_lengths: bool = False) -> str:
    """Return how long runs are: lengths that somebody chose are fixed, quick knows no mean well."""
    if method is None:
        if chosen_lengths:
            return "paper"
        return "startup" if scale == "quick" else "auto"
    if method in METHODS:
        return method
    raise unknown_name("method", method, METHODS, where="--method")


def _timed(run: PlannedRun, method: str) -> PlannedRun:
    """The long baseline runs show the phases, which no rule may cut short."""
    fixed = method != "auto" or run.micro_benchmark == BASELINE
    return run if fixed else self_timed(run)


def _finds_its_pause(context: Context, runs: Sequence[PlannedRun], chosen: Choices) -> bool:
    """Whether the pause is measured: where writes of a run may linger in the next one."""
    if chosen.pause_ns is not None:
        return False
    whole = any(run.micro_benchmark == BASELINE for run in runs)
    return whole or (not context.info.null and any(run.spec.writes for run in runs))


@dataclass(frozen=True)
class _Placed:
    """Runs at their places, and what had to be done for it."""

    runs: tuple[PlannedRun, ...]
    why_reset: Mapping[str, str]
    places: Places

    def without_resets(self) -> "_Placed":
        """Return the same without resets: for a device that is measured as it is."""
        return replace(
            self, runs=tuple(replace(run, reset_before=False) for run in self.runs), why_reset={}
        )


def behind(
    plan: Plan, done: Sequence[PlannedRun], more: Iterable[PlannedRun]
) -> tuple[PlannedRun, ...]:
    """Give runs places behind others, with a reset before the first that finds no room."""
    resets = [index for index, run in enumerate(done) if run.reset_before]
    since = done[resets[-1] if resets else 0 :]
    disturbed = together([written_sequentially(run.spec) for run in since])
    # What lies before the first of them may have been used up by earlier plans.
    used = 0 if resets or not len(disturbed) else int(disturbed.begins[0])
    return _placed_in(more, Places(plan.target_size, used, BLOCK, disturbed=disturbed)).runs


def _placed(runs: Sequence[PlannedRun], capacity: int, used_bytes: int) -> _Placed:
    """Give sequential writes places of their own: far apart if that needs no more resets."""
    far = _placed_in(runs, Places(capacity, used_bytes, APART))
    if not far.why_reset:
        return far
    return min(
        far, _placed_in(runs, Places(capacity, used_bytes, BLOCK)), key=lambda p: len(p.why_reset)
    )


def _placed_in(runs: Iterable[PlannedRun], places: Places) -> _Placed:
    placed, why = [], {}
    for run in runs:
        if not run.spec.writes_sequentially:
            placed.append(run)
            continue
        spec, reset = places.move(run.spec)
        if reset is not None:
            why[run.id] = reset
        placed.append(replace(run, spec=spec, reset_before=reset is not None))
    return _Placed(tuple(placed), why, places)


def _fewest_resets(runs: Sequence[PlannedRun], placed: _Placed, used_bytes: int) -> int:
    """Count the resets that would do if every run ended as soon as it may."""
    if not placed.why_reset or not any(run.spec.stop for run in runs):
        return len(placed.why_reset)
    short = [replace(run, spec=shortest(run.spec)) for run in runs]
    return len(_placed(short, placed.places.capacity, used_bytes).why_reset)


def _default_pause_ns(context: Context) -> int:
    if context.info.null:
        return 0
    if context.info.simulated or not context.quick:
        return PAUSE_NS
    return QUICK_PAUSE_NS


def _warnings(context: Context, places: Places, *, resets: bool) -> list[dict[str, Any]]:
    if not places.resets or resets or context.info.null:
        return []
    return [
        {
            "code": "sequential_targets_reused",
            "message": (
                f"The sequential writes of this plan take {format_size(places.handed_out)}, the "
                f"device has {format_size(context.capacity)}, and its state is not reset: later "
                "runs wrote where earlier ones had"
            ),
            "numbers": {
                "wanted_bytes": places.handed_out,
                "capacity_bytes": context.capacity,
                "rounds": places.resets,
            },
            "advice": "leave --state as-is away, use a larger device, or fewer micro-benchmarks "
            "at a time (--only)",
        }
    ]
