"""Cache refill: bursts of sequential writes with increasing idle time between them.

**Source**: ours; the pause between bursts is uFLIP's (CIDR 2009) §3.2 (9), which varies the bursts.
**Faithful**: the time function `burst`: a number of I/Os, then a pause.
**Simplified**: three bursts; the first, which meets the cache after the pause before the run, is
ignored.
**Ambiguous**: the length of a burst. One that fits into the cache shows nothing about its refill:
`BURST` exceeds most DRAM caches, and is less than the SLC cache of a large disk; cache cliff shows
whether it was long enough. On a small device all three are a quarter of it.
"""

from uflip.microbench.experiment import Context, IoCounts
from uflip.microbench.finding import Experiments, Means, Ratios, mean_ns
from uflip.microbench.layout import Varying, baseline_spec, by_scale
from uflip.microbench.micro_benchmark import MicroBenchmark
from uflip.microbench.today.cache_cliff import CLIFF, IO_SIZE, SHARE
from uflip.spec import Spec
from uflip.units import format_duration_ns, format_size

VARYING = Varying("cache_refill", "pause", "ns")
PATTERN = "SW"
MILLISECOND = 1_000_000
STANDARD = tuple(4**k * MILLISECOND for k in range(9))
QUICK = tuple(4**k * MILLISECOND for k in (0, 2, 4, 5))
BURST, QUICK_BURST = 1 << 30, 64 << 20
BURSTS = 3
# Share of the whole gain of idle time that counts as refilled.
REFILLED = 0.9


def _describe(context: Context, pattern: str, pause_ns: int) -> Spec:
    io_size = max(context.io_size, IO_SIZE)
    burst_bytes = QUICK_BURST if context.quick else BURST
    burst = max(min(burst_bytes, context.capacity // (SHARE * BURSTS)) // io_size, 1)
    counts = IoCounts(BURSTS * burst, burst)
    return baseline_spec(
        context,
        pattern,
        io_size=io_size,
        counts=counts,
        target_size=counts.io_count * io_size,
        time="burst",
        burst=burst,
        pause=pause_ns,
    )


def finding(measured: Experiments, _baselines: Means, ratios: Ratios) -> str:
    """Return the sentence on the shortest pause with nearly the gain of the longest."""
    runs = measured.get(PATTERN, ())
    if len(runs) < 2:
        return ""
    first, last = mean_ns(runs[0]), mean_ns(runs[-1])
    spec = runs[0]["spec"]
    size = format_size(int(spec["burst"]) * int(spec["io_size"]))
    shortest, longest = (format_duration_ns(float(run["value"])) for run in (runs[0], runs[-1]))
    if first < CLIFF * last:
        return (
            f"Bursts of {size} cost as much after {shortest} of idle as after {longest}: either "
            "all of each fits into the cache, or nothing does."
        )
    shortest_full = next(run for run in runs if first - mean_ns(run) >= REFILLED * (first - last))
    return (
        f"After {shortest} of idle an I/O of a burst of {size} takes {format_duration_ns(first)}, "
        f"after {longest} {format_duration_ns(last)} "
        f"({ratios.factor(last / first, PATTERN)}); "
        f"{format_duration_ns(float(shortest_full['value']))} bring nearly all of that."
    )


MICRO_BENCHMARK = MicroBenchmark(
    name=VARYING.micro_benchmark,
    title="Cache refill",
    experiments=by_scale(VARYING, [PATTERN], STANDARD, QUICK, _describe),
    question="How much idle time does the cache need to absorb a burst again?",
    how_to_read=(
        "A line that falls as the pause grows shows a cache that is emptied in idle time; where it "
        "becomes flat all of it is free again, or all of the burst fits."
    ),
    finding=finding,
    levels=False,
    suites=("today",),
    own_length=True,
)
