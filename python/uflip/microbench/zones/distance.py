"""Zone distance: one zone is written, and another is read at increasing distance.

::

    1    |▓▓▓> written |  read  |        |        |        |        |        |        |
    4    |▓▓▓> written |        |        |        |  read  |        |        |        |

**Source**: uFLIP-OC (2017) §5.4, reads during writes to the same LUN and to others; the mapping of
zones to dies is not published for drives: H. Bae et al. (*What You Can't Forget: Exploiting
Parallelism for Zoned Namespaces*, HotStorage 2022) find it by such interference.
**Faithful**: a write, then a read, in turn; random reads of a full zone.
**Simplified**: powers of two: a device with another step between zones shows it less clearly.
**Ambiguous**: a read that is no slower may have met no write. A program lasts longer than a read,
so that the two meet if both are on one die.
"""

from uflip.microbench.experiment import Context, Experiment
from uflip.microbench.finding import Experiments, Means, Ratios, second_mean_ns
from uflip.microbench.layout import Varying, lay_out
from uflip.microbench.micro_benchmark import MicroBenchmark
from uflip.microbench.zones import (
    capacity_of,
    counts_within,
    powers_up_to,
    why_not,
    zones_of,
)
from uflip.spec import Spec, baseline, mix
from uflip.units import format_duration_ns

VARYING = Varying("zone_distance", "zone_distance", "")
PATTERN = "SW/RR"
MAX_DISTANCE = 1024
# Reads that take this many times as long as the quickest wait for the writes.
SLOW_FACTOR = 1.5


def experiments(context: Context) -> list[Experiment]:
    """Lay out writes to the first zone, in turn with reads of another."""
    values = powers_up_to(min(zones_of(context).zone_count - 1, MAX_DISTANCE))
    if context.quick:
        values = values[::2]
    return [lay_out(context, VARYING, PATTERN, values, _describe, why_not=why_not())]


def _describe(context: Context, pattern: str, distance: int) -> Spec:
    writes, reads = pattern.split("/")
    zone, capacity = zones_of(context).zone_bytes, capacity_of(context)
    whole = max(capacity // context.io_size, 1) * context.io_size
    counts = counts_within(context, writes, capacity)
    return mix(
        baseline(writes, io_size=context.io_size, target_offset=0, target_size=whole),
        baseline(reads, io_size=context.io_size, target_offset=distance * zone, target_size=whole),
        1,
        io_count=counts.io_count,
        io_ignore=counts.io_ignore,
    )


def finding(measured: Experiments, _baselines: Means, ratios: Ratios) -> str:
    """Return the sentence on the quickest reads, and the distances with waits for writes."""
    runs = [
        run
        for run in measured.get(PATTERN, ())
        if run["components"]["second"]["statistics"] is not None
    ]
    if len(runs) < 2:
        return ""
    quick, slow = min(runs, key=second_mean_ns), max(runs, key=second_mean_ns)
    least_ns, most_ns = second_mean_ns(quick), second_mean_ns(slow)
    waiting = [str(run["value"]) for run in runs if second_mean_ns(run) > SLOW_FACTOR * least_ns]
    sentence = (
        f"Reads take {format_duration_ns(least_ns)} where they are quickest, "
        f"at a distance of {quick['value']}"
    )
    if not waiting:
        return f"{sentence}; at no distance do they wait for the writes."
    factor = ratios.factor(most_ns / least_ns, "RR")
    return (
        f"{sentence}, and {format_duration_ns(most_ns)} where they are slowest ({factor}): they "
        f"wait for the writes at a distance of {', '.join(waiting)} from the zone that is written."
    )


MICRO_BENCHMARK = MicroBenchmark(
    name=VARYING.micro_benchmark,
    title="Zone distance",
    experiments=experiments,
    question="Which zones share dies with each other?",
    how_to_read=(
        "The faint lines are writes and reads apart. Reads that are slow at some distances and not "
        "at others wait for programs there: zones so far apart are on the same dies. Where all are "
        "slow, every zone is on all dies."
    ),
    finding=finding,
    figure="mix",
    levels=False,
    suites=("zones",),
    own_length=True,
    fixed_order=True,
)
