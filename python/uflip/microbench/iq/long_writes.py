"""Writes of 4 KiB with a deep queue, long enough to show write amplification in steady state.

**Source**: Haas et al. (PVLDB 2025), §3: random writes of 4 KiB, 4 threads of depth 128, for 3 to
10 capacities; the last fifth counts.
**Faithful**: I/O size, a deep queue, write amplification and rate of the end of a run.
**Simplified**: one stream of `DEPTH` I/Os in flight, or fewer if the device takes fewer. The last
half counts, and has a verdict (`uflip.results.steady_state`).
**Ambiguous**: how much to write. A pattern that differs from the one that prepared the device moves
its data for several capacities: cold data must leave the blocks that it shares with hot data. A
verdict needs twice the device (`uflip.startup.steady_bytes`) and a flat last half; quick runs write
less, and have none.
"""

from collections.abc import Callable
from typing import Any

from uflip.microbench.experiment import Context
from uflip.microbench.finding import Experiments, Run
from uflip.microbench.layout import baseline_spec
from uflip.microbench.today.steady_state import MIN_IOS, QUICK_BYTES, QUICK_TIME_NS
from uflip.spec import Spec, until_converged
from uflip.startup import steady_bytes
from uflip.units import format_count

PATTERN = "RW"
IO_SIZE = 4 << 10
DEPTH = 256
# Time limit of a run: an hour. Quick runs have the limits of `steady_state`.
MAX_TIME_NS = 3_600_000_000_000


def long_writes(context: Context, **changes: Any) -> Spec:
    """Return random writes of `IO_SIZE`, with the changes of an experiment: see `baseline_spec`."""
    io_size = max(IO_SIZE, context.sector)
    size = steady_bytes(context.capacity, overwritten=False)
    size = max(min(size, QUICK_BYTES) if context.quick else size, MIN_IOS * io_size)
    ios = -(-size // io_size)
    depth = min(DEPTH, context.info.deepest_queue)
    return until_converged(
        baseline_spec(context, PATTERN, io_size=io_size, queue_depth=depth, **changes),
        min_ios=ios,
        max_ios=ios,
        max_time_ns=QUICK_TIME_NS if context.quick else MAX_TIME_NS,
    )


def describe_results(measured: Experiments, label: Callable[[int], str]) -> str:
    """Return the sentence with rate and write amplification of each value, after its label."""
    runs = measured.get(PATTERN, ())
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
