"""Mixed sizes: small random reads among I/Os of increasing length. Do short ones wait?

**Source**: ours, in the style of uFLIP (CIDR 2009) §3.2 (1) and (7): granularity and mix at once.
**Faithful**: the baselines RR and RW, each on a half of the device.
**Simplified**: as many small I/Os as others, drawn; one depth (`loaded.DEPTH`).
**Ambiguous**: the constant. It is the number of I/Os, not their bytes: with their length the amount
of data grows, and the small reads show how much of that they wait for.
"""

from uflip.microbench.experiment import Context
from uflip.microbench.finding import Experiments, Means, Ratios
from uflip.microbench.layout import Varying, by_scale
from uflip.microbench.micro_benchmark import MicroBenchmark
from uflip.microbench.today.loaded import loaded_mix, too_small
from uflip.spec import Spec
from uflip.units import format_duration_ns, format_size

VARYING = Varying("mixed_sizes", "io_size", "bytes")
PAIRS = ("RR/RR", "RR/RW")
SMALL = 4 << 10
STANDARD = tuple(2**k for k in range(12, 21))
QUICK = (4 << 10, 64 << 10, 1 << 20)
HALF_PERCENT = 50


def _describe(context: Context, pattern: str, size: int) -> Spec:
    return loaded_mix(context, pattern, (max(SMALL, context.sector), size), HALF_PERCENT)


def finding(measured: Experiments, _baselines: Means, ratios: Ratios) -> str:
    """Return the sentence on small reads among the shortest and among the longest of the others."""
    parts = []
    for pattern, runs in measured.items():
        measured_runs = [
            (run, small)
            for run in runs
            if (small := run["components"]["first"]["statistics"]) is not None
        ]
        if len(measured_runs) < 2:
            continue
        (first, few), (last, many) = measured_runs[0], measured_runs[-1]
        others = "reads" if pattern.endswith("RR") else "writes"
        ratio = ratios.factor(many["mean_ns"] / few["mean_ns"], *pattern.split("/"))
        parts.append(
            f"among {others} of {format_size(int(first['value']))} a small read takes "
            f"{format_duration_ns(few['mean_ns'])}, of {format_size(int(last['value']))} "
            f"{format_duration_ns(many['mean_ns'])} ({ratio})"
        )
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


MICRO_BENCHMARK = MicroBenchmark(
    name=VARYING.micro_benchmark,
    title="Mixed sizes",
    experiments=by_scale(VARYING, PAIRS, STANDARD, QUICK, _describe, why_not=too_small),
    question="Do small reads wait for long I/Os?",
    how_to_read=(
        "The faint lines are the small reads and the others apart. Where that of the small reads "
        "rises, they wait behind long I/Os; where it is flat, the device serves them first."
    ),
    finding=finding,
    figure="mix",
    levels=False,
    suites=("today",),
)
