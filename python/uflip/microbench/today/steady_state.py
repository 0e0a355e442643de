"""Steady state: random writes over the whole device until their mean does not change any more.

**Source**: SNIA, *Solid state storage performance test specification* (v2.0.2, 2020): IOPS of
random writes, by block size, in steady state. Ours is when it is reached.
**Faithful**: random writes over the whole target, by block size.
**Simplified**: no rounds of a minute, and writes only: SNIA's other mixes are read under write.
**Ambiguous**: when a state is steady. SNIA's rule, five rounds within 20 % of their mean and a
slope of 10 %, is met by a device that still falls; here a run ends when its mean is known to a part
of itself and its start-up is over (`crates/method`), and a run that its budget ends says so.
"""

from uflip.experiment import Context, Experiment
from uflip.microbench.finding import Experiments, Means, Ratios, Run, mean_ns
from uflip.microbench.layout import Varying, baseline_spec, lay_out
from uflip.microbench.micro_benchmark import MicroBenchmark
from uflip.spec import Spec, until_converged
from uflip.units import format_count, format_duration_ns, format_size

VARYING = Varying("steady_state", "io_size", "bytes")
PATTERN = "RW"
STANDARD = (4 << 10, 16 << 10, 64 << 10, 256 << 10)
QUICK = (4 << 10, 64 << 10)
# The device twice over, in all sizes together, is what SNIA takes to precondition one; a run in
# quick is short.
OVERWRITES = 2
QUICK_BYTES = 256 << 20
# A run is no longer, however small its I/Os: five minutes as of any other run, or ten seconds.
MAX_TIME_NS, QUICK_TIME_NS = 300_000_000_000, 10_000_000_000
FEWEST = 1024


def experiments(context: Context) -> list[Experiment]:
    """Lay out random writes, by their size."""
    values = QUICK if context.quick else STANDARD
    return [lay_out(context, VARYING, PATTERN, values, _describe)]


def _describe(context: Context, pattern: str, io_size: int) -> Spec:
    size = OVERWRITES * context.capacity // len(QUICK if context.quick else STANDARD)
    most = max(min(size, QUICK_BYTES) if context.quick else size, 2 * FEWEST * io_size) // io_size
    return until_converged(
        baseline_spec(context, pattern, io_size=io_size),
        min_ios=FEWEST,
        max_ios=most,
        max_time_ns=QUICK_TIME_NS if context.quick else MAX_TIME_NS,
    )


def finding(measured: Experiments, _baselines: Means, _ratios: Ratios) -> str:
    """The steady rate of each size, how well it is known, and what came before."""
    parts = [_told(run) for run in measured.get(PATTERN, ())]
    return "; ".join(parts) + "." if parts else ""


def _told(run: Run) -> str:
    first, steady = run["repetitions"][0], mean_ns(run)
    size = format_size(int(run["value"]))
    text = f"{size}: {format_count(round(1e9 / steady))} IOPS, {format_duration_ns(steady)} each"
    if width := first["half_width_ns"]:
        text += f" (± {100 * width / steady:.1f} %)"
    if not first["converged"]:
        return f"{text}, not steady yet after {format_count(first['io_count'])} I/Os"
    started = first["startup_ios"] or 0
    return f"{text}, steady after {format_count(started)} I/Os" if started else f"{text}, steady"


MICRO_BENCHMARK = MicroBenchmark(
    name=VARYING.micro_benchmark,
    title="Steady state",
    experiments=experiments,
    question="What do random writes cost when the device does not change any more?",
    how_to_read=(
        "Each mean is that of a run which ended when it was known, start-up left out. A run that "
        "was not steady when its budget ended says so below."
    ),
    finding=finding,
    levels=False,
    suites=("today",),
    own_length=True,
)
