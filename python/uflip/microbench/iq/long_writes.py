"""Writes of 4 KiB with a deep queue, long enough to show write amplification in steady state.

**Source**: Haas et al. (PVLDB 2025), §3: random writes of 4 KiB, 4 threads of depth 128, for 3 to
10 capacities; the last fifth counts.
**Faithful**: I/O size, a deep queue, write amplification and rate of the end of a run.
**Simplified**: one stream of `DEPTH` I/Os in flight. The last
half counts, and has a verdict (`uflip.results.steady_state`).
**Ambiguous**: how much to write. A pattern that differs from the one before it moves its data: cold
data must leave the blocks that it shares with hot data. A run writes the device once, from another
state than random twice (`uflip.startup.steady_bytes`). Each run reuses the state that the one
before it left. The last half must be flat, or the run is marked as not converged. Each run is made
once, because its rounds show what changes: three repetitions would write three times as much. Quick
runs write less, and have no verdict.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from uflip.microbench.experiment import Context, IoCounts
from uflip.microbench.finding import Experiments, Means, Ratios, Rule, Run
from uflip.microbench.layout import baseline_spec
from uflip.microbench.micro_benchmark import MicroBenchmark
from uflip.microbench.today.steady_state import MIN_IOS, QUICK_BYTES, QUICK_TIME_NS
from uflip.spec import Basic, P, until_converged
from uflip.startup import steady_bytes
from uflip.units import format_count

PATTERN, PASS = "RW", "SW"
IO_SIZE = 4 << 10
# Of a pass over the device.
PASS_IO_SIZE = 1 << 20
DEPTH = 256
# Time limit of a run: half a day, in which a slow drive (Haas et al.: 279 MiB/s) writes 12 TB.
# Quick runs have the limits of `steady_state`.
MAX_TIME_NS = 43_200_000_000_000

LongWrites = partial(
    MicroBenchmark,
    figure="rounds",
    levels=False,
    suites=("iq",),
    own_length=True,
    fixed_order=True,
    overwrites=True,
    rounds=(PATTERN,),
)
"""A micro-benchmark of these writes: its figure shows them in rounds, over the bytes written."""


def long_writes(
    context: Context, *, uniform: bool = False, size_bytes: int | None = None, **changes: Any
) -> Basic:
    """Return random writes of `IO_SIZE`, with the changes of an experiment: see `baseline_spec`.

    `uniform`: the pattern is that of the state. `size_bytes`: as of `long_enough`.
    """
    io_size = max(IO_SIZE, context.sector)
    spec = baseline_spec(context, PATTERN, io_size=io_size, queue_depth=DEPTH, **changes)
    return long_enough(context, spec, io_size, io_size, uniform=uniform, size_bytes=size_bytes)


def sequential_pass(context: Context) -> Basic:
    """Return writes of the whole device in sequence, which prepare it for the next run."""
    io_size = max(min(PASS_IO_SIZE, context.capacity), context.sector)
    counts = IoCounts(context.capacity // io_size, 0)
    return baseline_spec(context, PASS, io_size=io_size, counts=counts)


def long_enough(
    context: Context,
    spec: P,
    io_size: int,
    row_bytes: int,
    *,
    uniform: bool = False,
    size_bytes: int | None = None,
) -> P:
    """Return a pattern that runs until it has written enough for a verdict.

    `io_size`: size of its writes [bytes]. `row_bytes`: written bytes for each I/O that `io_count`
    counts. `uniform`: whether the pattern writes as the random state was made, and moves no data.
    `size_bytes`: the amount to write; without it that of a verdict, less at quick.
    """
    if size_bytes is None:
        size_bytes = steady_bytes(
            context.capacity, overwritten=context.overwritten, uniform=uniform
        )
        size_bytes = min(size_bytes, QUICK_BYTES) if context.quick else size_bytes
    ios = -(-max(size_bytes, MIN_IOS * io_size) // row_bytes)
    return until_converged(
        spec,
        min_ios=ios,
        max_ios=ios,
        max_time_ns=QUICK_TIME_NS if context.quick else MAX_TIME_NS,
    )


def result_of_each(label: Callable[[int], str], pattern: str = PATTERN) -> Rule:
    """Return the rule whose sentence has rate and write amplification of each value, by a label."""

    def finding(measured: Experiments, _baselines: Means, _ratios: Ratios) -> str:
        runs = measured.get(pattern, ())
        parts = [f"{label(int(run['value']))}: {_describe_result(run)}" for run in runs]
        return "; ".join(parts) + "." if parts else ""

    return finding


def _describe_result(run: Run) -> str:
    """Return rate and write amplification of the last half of a run, in words."""
    verdict = run.get("steadiness")
    if verdict is None:
        return f"{format_count(round(run['ios_per_s'] or 0.0))} IOPS"
    text = f"{format_count(round(verdict['ios_per_s']))} IOPS"
    if verdict["write_amplification"] is not None:
        text += f", write amplification {verdict['write_amplification']:.2f}"
    return text if verdict["steady"] else f"{text}, not steady"
