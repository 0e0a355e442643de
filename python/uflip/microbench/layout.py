"""Shared layout of micro-benchmarks: target spaces, and an experiment value by value.

Target spaces, where Table 1 leaves them open:

    random                  the whole device
    sequential              io_count × io_size: each I/O has an address of its own
    (both cut to the device, and to whole I/Os)

The position of a target on the device is decided elsewhere: the plan moves runs with sequential
writes to separate spaces (`uflip.benchmark.plan`), all others start at offset 0.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from uflip.microbench.experiment import Context, Experiment, IoCounts, PlannedRun, Skipped, run_seed
from uflip.spec import BASELINES, Basic, MixPart, Spec, basic
from uflip.units import format_size

LABELS = tuple(BASELINES)
ROUNDS = 16
"""I/Os of a run per I/O in flight: filling the queue and emptying it are a sixteenth each, and
so are the I/Os that are half done when counting begins (`results.run_statistics`)."""
SEQUENTIAL_LABELS = tuple(
    label for label, (_, location) in BASELINES.items() if location == "sequential"
)


def target_size(context: Context, pattern: str, io_count: int, io_size: int) -> int:
    """Return the size of the target space of a baseline pattern [bytes], whole I/Os."""
    whole = context.capacity // io_size * io_size
    if pattern not in SEQUENTIAL_LABELS:
        return whole
    return min(whole, io_count * io_size)


def baseline_spec(
    context: Context,
    pattern: str,
    *,
    io_size: int | None = None,
    counts: IoCounts | None = None,
    **changes: str | int,
) -> Basic:
    """Return the specification of a baseline pattern, with the changes of an experiment.

    `context`: the device and the scale. `pattern`: SR, RR, SW or RW. `io_size`: I/O size [bytes];
    without it the baseline's. `counts`: length of the run; without it the ordinary length of the
    pattern. `**changes`: parameters beyond those of the baseline, or other values for them.
    """
    io_size = context.io_size if io_size is None else io_size
    counts = context.counts(pattern) if counts is None else counts
    parameters: dict[str, str | int] = {
        "io_size": io_size,
        "target_size": target_size(context, pattern, counts.io_count, io_size),
        "io_count": counts.io_count,
        "io_ignore": counts.io_ignore,
    }
    mode, location = BASELINES[pattern]
    whole = {"mode": mode, "location": location} | parameters | changes
    return basic(str(whole.pop("mode")), str(whole.pop("location")), **whole)


class Varying(NamedTuple):
    """The varied parameter of a micro-benchmark: its own name, the parameter, and the unit."""

    micro_benchmark: str
    parameter: str
    unit: str


Describe = Callable[[Context, str, int], Spec]
"""(context, pattern, value of the varying parameter) -> specification without seed."""


WhyNot = Callable[[Context, Spec], str | None]
"""(context, specification) -> reason not to run it on the device, or None."""


def lay_out(
    context: Context,
    varying: Varying,
    pattern: str,
    values: Iterable[int],
    describe: Describe,
    *,
    why_not: WhyNot | None = None,
) -> Experiment:
    """Lay out one experiment: a run for each supported value, a reason for the others.

    `context`: the device and the scale. `varying`: the micro-benchmark and its parameter.
    `pattern`: label of the reference pattern: "RW", or "SR/RW" for a mix. `values`: the values of
    the varying parameter. `describe`: makes the specification of one run. `why_not`: returns
    further reasons to skip a run.
    """
    micro_benchmark, parameter, unit = varying
    runs: list[PlannedRun] = []
    skipped: list[Skipped] = []
    for value in values:
        spec = describe(context, pattern, value)
        reason = next(filter(None, (_why_impossible(context, part) for part in spec.parts)), None)
        if reason is None and why_not is not None:
            reason = why_not(context, spec)
        if reason is not None:
            skipped.append(Skipped(micro_benchmark, pattern, parameter, value, reason))
            continue
        spec = spec.but(seed=run_seed(context.seed, micro_benchmark, pattern, value))
        # "+" for "/": the name of a run is also the name of its file.
        name = f"{micro_benchmark}-{pattern.replace('/', '+')}-{parameter}-{value}"
        runs.append(PlannedRun(name, micro_benchmark, pattern, parameter, value, unit, spec))
    return Experiment(micro_benchmark, pattern, parameter, unit, tuple(runs), tuple(skipped))


def by_scale(
    varying: Varying,
    patterns: Sequence[str],
    standard: Sequence[int],
    quick: Sequence[int],
    describe: Describe,
    *,
    why_not: WhyNot | None = None,
) -> Callable[[Context], list[Experiment]]:
    """Return a function that lays out one experiment for each pattern, with the scale's values."""

    def experiments(context: Context) -> list[Experiment]:
        values = quick if context.quick else standard
        return [
            lay_out(context, varying, pattern, values, describe, why_not=why_not)
            for pattern in patterns
        ]

    return experiments


def _why_impossible(context: Context, part: MixPart) -> str | None:
    io_size, size, shift = part.io_bytes, part.target_bytes, part.shift
    for name, value in (("io_size", io_size), ("io_shift", shift)):
        if value % context.sector:
            return (
                f"{name} {format_size(value)} is not a multiple of "
                f"the sector of {format_size(context.sector)}"
            )
    if max(size, io_size) > context.capacity:
        return (
            f"the target of {format_size(max(size, io_size))} is larger than "
            f"the {format_size(context.capacity)} that are measured"
        )
    if part.end > context.capacity:
        return (
            f"the target ends at {format_size(part.end)}, beyond the "
            f"{format_size(context.capacity)} that are measured"
        )
    slots = (part.partitions or 1) * part.processes
    if size < slots * io_size + shift:
        return (
            f"{slots} × {format_size(io_size)} shifted by {format_size(shift)} do not fit into "
            f"the target of {format_size(size)}"
        )
    return None
