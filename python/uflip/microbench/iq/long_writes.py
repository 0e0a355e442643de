"""Writes of 4 KiB with a deep queue, long enough to show write amplification in steady state.

**Source**: Haas et al. (PVLDB 2025), §3: random writes of 4 KiB, 4 threads of depth 128, for 3 to
10 capacities; the last fifth counts.
**Faithful**: I/O size, a deep queue, write amplification and rate of the end of a run.
**Simplified**: one stream of `DEPTH` I/Os in flight, or fewer if the device takes fewer. The last
half counts, and has a verdict (`uflip.results.steady_state`).
**Ambiguous**: how much to write. A pattern that differs from the one that prepared the device moves
its data: cold data must leave the blocks that it shares with hot data. A run writes the device once
(`uflip.startup.steady_bytes`) and continues until its mean has converged, or until it has written
the device twice; from another state than random it writes it twice. Its last half must be flat, or
the run is marked as not converged. Each run is made once, because its rounds show what changes:
three repetitions would write three times as much. Quick runs write less, and have no verdict.
"""

from collections.abc import Callable
from typing import Any

from uflip.microbench.experiment import Context
from uflip.microbench.finding import Experiments, Run
from uflip.microbench.layout import baseline_spec
from uflip.microbench.today.steady_state import MIN_IOS, QUICK_BYTES, QUICK_TIME_NS
from uflip.spec import P, Spec, until_converged
from uflip.startup import steady_bytes
from uflip.units import format_count

PATTERN = "RW"
IO_SIZE = 4 << 10
DEPTH = 256
# Time limit of a run: half a day, in which a slow drive (Haas et al.: 279 MiB/s) writes 12 TB.
# Quick runs have the limits of `steady_state`.
MAX_TIME_NS = 43_200_000_000_000


def long_writes(context: Context, *, after_trims: bool = False, **changes: Any) -> Spec:
    """Return random writes of `IO_SIZE`, with the changes of an experiment: see `baseline_spec`.

    `after_trims`: the device has free blocks, and is fast until they are used up.
    """
    io_size = max(IO_SIZE, context.sector)
    depth = min(DEPTH, context.info.deepest_queue)
    spec = baseline_spec(context, PATTERN, io_size=io_size, queue_depth=depth, **changes)
    overwritten = context.overwritten and not after_trims
    return long_enough(context, spec, io_size, io_size, overwritten=overwritten)


def long_enough(context: Context, spec: P, io_size: int, row_bytes: int, *, overwritten: bool) -> P:
    """Return a pattern that runs until it has written enough for a verdict.

    Parameters
    ----------
    context : Context
        The device and the scale.
    spec : Basic or Mix
        The pattern.
    io_size : int
        Size of its writes [bytes].
    row_bytes : int
        Written bytes for each I/O that `io_count` counts.
    overwritten : bool
        Whether the device was overwritten at random before.
    """
    fewest, most = (
        -(-max(min(size, QUICK_BYTES) if context.quick else size, MIN_IOS * io_size) // row_bytes)
        for size in (
            steady_bytes(context.capacity, overwritten=overwritten, uniform=False),
            steady_bytes(context.capacity, overwritten=False),
        )
    )
    return until_converged(
        spec,
        min_ios=fewest,
        max_ios=most,
        max_time_ns=QUICK_TIME_NS if context.quick else MAX_TIME_NS,
    )


def describe_results(
    measured: Experiments, label: Callable[[int], str], pattern: str = PATTERN
) -> str:
    """Return the sentence with rate and write amplification of each value, after its label."""
    runs = measured.get(pattern, ())
    parts = [f"{label(int(run['value']))}: {_describe_result(run)}" for run in runs]
    return "; ".join(parts) + "." if parts else ""


def _describe_result(run: Run) -> str:
    """Return rate and write amplification of the last half of a run, in words."""
    verdict = run.get("steadiness")
    if verdict is None:
        return f"{format_count(round(run['ios_per_s'] or 0.0))} IOPS"
    text = f"{format_count(round(verdict['ios_per_s']))} IOPS"
    if verdict["write_amplification"] is not None:
        text += f", write amplification {verdict['write_amplification']:.2f}"
    return text if verdict["steady"] else f"{text}, not steady"
