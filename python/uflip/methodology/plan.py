"""The plan: which runs, in which order, at which place on the device, with which pauses.

**Source**: uFLIP (CIDR 2009) §4.2 and §4.3: experiments with sequential writes are delayed and
grouped so that their target spaces do not overlap; consecutive runs are kept apart by a pause.
**Faithful**: runs without sequential writes come first; the others get places of their own
(`places`); 1 s between runs, the paper's conservative choice.
**Simplified**: on a real device the quick scale pauses 0.1 s only.
**Ambiguous**: what a sequential write is. Here ordered, partitioned and parallel sequential writes
count, and so do mixes with them; random writes do not.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from uflip.errors import UsageError, unknown_name
from uflip.experiment import (
    BASELINE_IO_SIZE,
    SCALES,
    Context,
    Experiment,
    Info,
    PlannedRun,
    Skipped,
)
from uflip.methodology.places import Places
from uflip.microbench import MICRO_BENCHMARKS, check_names
from uflip.spec import writes_sequentially
from uflip.units import format_size

PAUSE_NS = 1_000_000_000
# In quick a second between a hundred runs of half a second would be most of the time.
QUICK_PAUSE_NS = 100_000_000


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
    warnings : tuple of dict
        Doubts about the plan: code, message, numbers, advice.
    """

    device: Info
    scale: str
    seed: int
    runs: tuple[PlannedRun, ...]
    skipped: tuple[Skipped, ...]
    pause_ns: int
    target_size: int
    warnings: tuple[dict[str, Any], ...]


def make_plan(
    info: Info,
    scale: str,
    seed: int,
    only: Sequence[str] | None = None,
    *,
    io_size: int = BASELINE_IO_SIZE,
    pause_ns: int | None = None,
    target_size: int | None = None,
) -> Plan:
    """Plan the micro-benchmarks for a device. Nothing is touched.

    Parameters
    ----------
    info : dict
        The device, from `inspect_device` or `Device.info`.
    scale : str
        "quick" or "standard".
    seed : int
        Seed of all random patterns; each run gets its own from it.
    only : sequence of str, optional
        Names of micro-benchmarks; all without it.
    io_size : int
        I/O size of the baseline patterns [bytes].
    pause_ns : int, optional
        Pause before each run [ns]; without it what suits the device and the scale.
    target_size : int, optional
        Use only so much of the device, from its beginning [bytes].

    Returns
    -------
    Plan

    Raises
    ------
    UsageError
        For an unknown scale or micro-benchmark, or an I/O size that the device cannot do.
    """
    if scale not in SCALES:
        raise unknown_name("scale", scale, SCALES, where="--scale")
    names = check_names(list(MICRO_BENCHMARKS if only is None else only))
    used = _check_target(info, target_size)
    context = Context(info | {"capacity_bytes": used}, scale, seed, io_size)
    _check_io_size(context)
    experiments = [experiment for name in names for experiment in MICRO_BENCHMARKS[name](context)]
    places = Places(context.capacity)
    return Plan(
        device=info,
        scale=scale,
        seed=seed,
        runs=tuple(_in_order(experiments, places)),
        skipped=tuple(skip for experiment in experiments for skip in experiment.skipped),
        pause_ns=_default_pause_ns(context) if pause_ns is None else pause_ns,
        target_size=used,
        warnings=tuple(_warnings(context, places)),
    )


def _check_target(info: Info, target_size: int | None) -> int:
    """Return how much of the device is used [bytes]."""
    capacity, sector = int(info["capacity_bytes"]), int(info["sector_bytes"])
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


def _in_order(experiments: Iterable[Experiment], places: Places) -> list[PlannedRun]:
    """Put runs with sequential writes last, on places of their own, and number all of them."""
    runs = [run for experiment in experiments for run in experiment.runs]
    gentle = [run for run in runs if not writes_sequentially(run.spec)]
    disturbing = [
        replace(run, spec=places.move(run.spec)) for run in runs if writes_sequentially(run.spec)
    ]
    return [
        replace(run, id=f"{number:04d}-{run.id}")
        for number, run in enumerate(gentle + disturbing, start=1)
    ]


def _default_pause_ns(context: Context) -> int:
    if context.info["kind"] == "null":
        return 0
    if context.info["simulated"] or not context.quick:
        return PAUSE_NS
    return QUICK_PAUSE_NS


def _warnings(context: Context, places: Places) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if places.rounds:
        found.append(
            {
                "code": "sequential_targets_reused",
                "message": (
                    f"The sequential writes of this plan take "
                    f"{format_size(places.handed_out)}, the device has "
                    f"{format_size(context.capacity)}: later runs wrote where earlier ones had"
                ),
                "numbers": {
                    "wanted_bytes": places.handed_out,
                    "capacity_bytes": context.capacity,
                    "rounds": places.rounds,
                },
                "advice": "use a larger device, or fewer micro-benchmarks at a time (--only)",
            }
        )
    return found
