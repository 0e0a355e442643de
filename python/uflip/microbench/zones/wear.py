"""Zone wear: one zone is written and reset repeatedly. How do its resets and reads change?

::

    20    SW/ZR  |▓ reset ▓ reset ▓ reset ... |     the last zone, until it was reset 20 times
          RR     |          ? ?  ?            |     then it is filled up, and read at random
    100   SW/ZR  |▓ reset ▓ reset ▓ reset ... |     until it was reset 100 times

**Source**: uFLIP-OC (2017) §5.5, which erases a block until it wears out and measures its commands.
On most drives a zone keeps its blocks, so that wear is visible to the host: which zones are reset,
and how often.
**Faithful**: at the end of a run the zone was reset as often as the value states, preparation
included. Each write and each reset is timed: the trace has response times against resets.
**Simplified**: a cycle writes only one I/O: the erased blocks wear as if they were full.
**Ambiguous**: the number of resets. Flash with three bits per cell is rated for a few thousand
erases: a real device gets at most `MAX_RESETS_REAL`, of one zone, the last. A device that levels
wear among zones shows no effect.
"""

from uflip.microbench.experiment import Context, Experiment
from uflip.microbench.finding import Experiments, Means, Ratios, mean_ns, second_mean_ns
from uflip.microbench.layout import Varying, baseline_spec, lay_out
from uflip.microbench.micro_benchmark import MicroBenchmark
from uflip.microbench.zones import capacity_of, counts_within, why_not, zones_of
from uflip.spec import Spec, baseline, basic, mix
from uflip.units import format_duration_ns

VARYING = Varying("zone_wear", "resets", "")
CYCLES, READS = "SW/ZR", "RR"
STANDARD = (20, 100, 1000)
QUICK = (20, 100)
MAX_RESETS_REAL = 100


def experiments(context: Context) -> list[Experiment]:
    """Lay out cycles of a zone up to a number of resets, and reads of it after them."""
    values = QUICK if context.quick else STANDARD
    before = dict(zip(values, (0, *values[:-1]), strict=True))

    def describe(context: Context, pattern: str, resets: int) -> Spec:
        zone, size = zones_of(context).zone_count - 1, zones_of(context).zone_bytes
        zone_capacity = max(capacity_of(context) // context.io_size, 1) * context.io_size
        if pattern == READS:
            counts = counts_within(context, READS, zone_capacity)
            return baseline_spec(
                context, READS, counts=counts, target_offset=zone * size, target_size=zone_capacity
            )
        # The zone of the previous reads is reset first: one reset more.
        cycles = resets - before[resets] - (before[resets] > 0)
        return mix(
            baseline(
                "SW", io_size=context.io_size, target_offset=zone * size,
                target_size=context.io_size,
            ),
            basic(
                "reset", "sequential", io_size=size, target_offset=zone * size, target_size=size
            ),
            1,
            io_count=cycles,
            io_ignore=0,
        )  # fmt: skip

    def reason(context: Context, spec: Spec) -> str | None:
        if context.info.real and spec.writes and spec.ios > 2 * MAX_RESETS_REAL:
            return f"it would wear a zone: a real device is given {MAX_RESETS_REAL} resets at most"
        return None

    # Reads follow the resets that are actually made.
    after = [value for value in values if not context.info.real or value <= MAX_RESETS_REAL]
    return [
        lay_out(context, VARYING, pattern, pattern_values, describe, why_not=why_not(reason))
        for pattern, pattern_values in ((CYCLES, values), (READS, after))
    ]


def finding(measured: Experiments, _baselines: Means, ratios: Ratios) -> str:
    """Return the sentence on a reset and a read after the fewest and the most resets."""
    cycles, reads = (list(measured.get(pattern, ())) for pattern in (CYCLES, READS))
    if len(cycles) < 2:
        return ""
    first, last = cycles[0], cycles[-1]
    early_ns, late_ns = second_mean_ns(first), second_mean_ns(last)
    sentence = (
        f"A reset takes {format_duration_ns(early_ns)} up to the {first['value']}th of a "
        f"zone, {format_duration_ns(late_ns)} up to the {last['value']}th "
        f"({ratios.factor(late_ns / early_ns, CYCLES)})"
    )
    if len(reads) < 2:
        return f"{sentence}."
    fresh, worn = mean_ns(reads[0]), mean_ns(reads[-1])
    return (
        f"{sentence}; a read of what was written then {format_duration_ns(fresh)} and "
        f"{format_duration_ns(worn)} ({ratios.factor(worn / fresh, READS)})."
    )


MICRO_BENCHMARK = MicroBenchmark(
    name=VARYING.micro_benchmark,
    title="Zone wear",
    experiments=experiments,
    question="What do resets do to a zone?",
    how_to_read=(
        "SW/ZR write to the last zone and reset it, in turn, up to the reset count on the x axis; "
        "RR then read its data. A flat line is flash that is young, or a device that gives "
        "its zones other blocks. Resets that grow are erases that need more steps, reads that "
        "grow are read again."
    ),
    finding=finding,
    figure="mix",
    levels=False,
    suites=("zones",),
    own_length=True,
    fixed_order=True,
)
