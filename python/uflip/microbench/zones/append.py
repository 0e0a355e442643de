"""Zone append: an increasing number of appends in flight to one zone, against single writes.

**Source**: uFLIP-OC (2017) §5.3, parallelism inside a LUN; the command Zone Append of NVMe's Zoned
Namespace Command Set, which allows several writes to a zone in flight; K. Doekemeijer et al. (IEEE
CLUSTER 2023) call it intra-zone scalability.
**Faithful**: a write must begin at the write pointer, so a host whose commands may overtake each
other has one in flight per zone; an append begins wherever the pointer is, so it has any number.
**Simplified**: appends follow each other in one zone and then in the next.
**Ambiguous**: hosts that keep more writes in order by themselves; the reference is one at a time.
"""

from uflip.microbench.experiment import Context, Experiment, IoCounts
from uflip.microbench.finding import Experiments, Means, Ratios, mean_ns
from uflip.microbench.layout import Varying, baseline_spec, lay_out
from uflip.microbench.micro_benchmark import MicroBenchmark
from uflip.microbench.today.queue_depth import knee, rate, smallest_best_depth
from uflip.microbench.zones import capacity_of, counts_within, why_not, zones_of
from uflip.spec import Spec
from uflip.units import format_count, format_duration_ns

VARYING = Varying("zone_append", "queue_depth", "")
WRITES, APPENDS = "SW", "SA"
STANDARD = tuple(2**k for k in range(7))
QUICK = (1, 4, 16, 64)
# Half of the value for other queues (`uflip.microbench.layout.ROUNDS`): a zone has no more space.
ROUNDS = 8


def experiments(context: Context) -> list[Experiment]:
    """Lay out writes one at a time, and appends with an increasing number in flight."""
    values = QUICK if context.quick else STANDARD
    experiment_values = (WRITES, (1,)), (APPENDS, values)
    return [
        lay_out(context, VARYING, pattern, pattern_values, _describe, why_not=why_not(_why_not))
        for pattern, pattern_values in experiment_values
    ]


def _describe(context: Context, pattern: str, depth: int) -> Spec:
    return baseline_spec(
        context,
        WRITES,
        counts=_counts(context, depth),
        mode="append" if pattern == APPENDS else "write",
        queue_depth=depth,
        target_offset=0,
        target_size=zones_of(context).zone_bytes,
    )


def _counts(context: Context, depth: int) -> IoCounts:
    """Return a length that ignores the filling of the queue, and makes its emptying negligible."""
    plain = counts_within(context, WRITES, capacity_of(context))
    ios_that_fit = max(capacity_of(context) // context.io_size, 1)
    ios = min(max(plain.io_count, ROUNDS * depth), ios_that_fit)
    return IoCounts(ios, min(plain.io_ignore + depth - 1, ios - 1))


def _why_not(context: Context, spec: Spec) -> str | None:
    if spec.depth > 1 and spec.ios < ROUNDS * spec.depth:
        return f"a zone has room for {spec.ios} I/Os only: {ROUNDS} are needed for each under way"
    if not context.info.appends and any(part.mode == "append" for part in spec.parts):
        return "Linux supports no zone append on block devices: name the drive as nvme:/dev/NAME"
    return None


def finding(measured: Experiments, _baselines: Means, ratios: Ratios) -> str:
    """Return the sentence on a single write and append, and on more appends in flight."""
    appends = list(measured.get(APPENDS, ()))
    knee_depth = knee(appends)
    if knee_depth is None:
        return ""
    highest = smallest_best_depth(appends)
    sentence = f"An append takes {format_duration_ns(mean_ns(appends[0]))}"
    for write in measured.get(WRITES, ()):
        sentence += f", a write {format_duration_ns(mean_ns(write))}"
    factor = ratios.factor(rate(highest) / rate(appends[0]), APPENDS)
    return (
        f"{sentence}. One zone takes {format_count(round(rate(appends[0])))} appends a second one "
        f"at a time, {format_count(round(rate(highest)))} with {highest['value']} under way "
        f"({factor}); the knee is at {knee_depth:.1f}."
    )


MICRO_BENCHMARK = MicroBenchmark(
    name=VARYING.micro_benchmark,
    title="Zone append",
    experiments=experiments,
    question="Do concurrent appends to one zone overlap?",
    how_to_read=(
        "SW writes one I/O at a time, like a host that preserves order. While SA is flat, appends "
        "overlap: the zone spans several dies, or has a buffer. Where SA doubles with the depth, "
        "appends wait for each other."
    ),
    finding=finding,
    levels=False,
    suites=("zones",),
    own_length=True,
    fixed_order=True,
)
