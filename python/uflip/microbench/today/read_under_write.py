"""Read under write: random reads during an increasing share of random writes.

**Source**: ours, in the style of uFLIP (CIDR 2009) §3.2 (7), whose mixes take turns with one I/O at
a time, so that a read never meets a write.
**Faithful**: the two baselines RW and RR, each on half of the device; the share of the writes
varies.
**Simplified**: one depth (`loaded.DEPTH`).
**Ambiguous**: the amount of writes. A fixed rate is too much for one device and little for another;
here writes are a share of a closed loop, and the resulting rate is measured and reported.
`write_rate` has given rates.
"""

from uflip.microbench.experiment import Context
from uflip.microbench.finding import Experiments, Means, Ratios, Run, mean_ns
from uflip.microbench.layout import Varying, by_scale
from uflip.microbench.micro_benchmark import MicroBenchmark
from uflip.microbench.today.loaded import DEPTH, loaded_mix, tail, too_small
from uflip.spec import Spec
from uflip.units import format_duration_ns, format_size

VARYING = Varying("read_under_write", "first_percent", "")
PATTERN = "RW/RR"
STANDARD = (1, 2, 5, 10, 20, 35, 50, 75, 90)
QUICK = (1, 10, 50)


def _describe(context: Context, pattern: str, percent: int) -> Spec:
    return loaded_mix(context, pattern, (context.io_size, context.io_size), percent)


def write_rate(run: Run) -> float:
    """Return the rate of the writes [bytes per second]: their share of depth / response time."""
    size = int(run["spec"]["first"]["io_size"])
    return DEPTH / mean_ns(run) * 1e9 * int(run["value"]) / 100 * size


def finding(measured: Experiments, _baselines: Means, ratios: Ratios) -> str:
    """Return the sentence on the tail of the reads with the fewest and with the most writes."""
    measured_runs = [
        (run, reads)
        for run in measured.get(PATTERN, ())
        if (reads := run["components"]["second"]["statistics"]) is not None
    ]
    if len(measured_runs) < 2:
        return ""
    (first, few), (last, many) = measured_runs[0], measured_runs[-1]
    name, before, after = tail(few, many)
    ratio = ratios.factor(after / before, "RR")
    return (
        f"The {name} of reads is {format_duration_ns(before)} during {_written(first)}, and "
        f"{format_duration_ns(after)} during {_written(last)} ({ratio})."
    )


def _written(run: Run) -> str:
    return f"{format_size(round(write_rate(run)))}/s of writes ({run['value']} %)"


MICRO_BENCHMARK = MicroBenchmark(
    name=VARYING.micro_benchmark,
    title="Read under write",
    experiments=by_scale(VARYING, [PATTERN], STANDARD, QUICK, _describe, why_not=too_small),
    question="How slow are reads while the device is written to?",
    how_to_read=(
        "The faint lines are reads and writes apart. Where that of the reads rises with the share "
        "of the writes, reads wait for programs, erases and collection; the whiskers show the tail."
    ),
    finding=finding,
    figure="mix",
    suites=("today",),
)
