"""Steady state: random writes over the whole device until rate, p99, amplification are flat.

**Source**: SNIA, *Solid state storage performance test specification* (v2.0.2, 2020): IOPS of
random writes, by block size, in steady state.
**Faithful**: random writes over the whole target, by block size; rounds, and a verdict by the
largest excursion of a round and of the line through the rounds (`uflip.results.steady_state`).
**Simplified**: rounds are of bytes, not of a minute; writes only: read under write covers SNIA's
other mixes.
**Ambiguous**: the amount to write. The rate is flat as well while the device absorbs writes (write
cache, SLC cache, spare space). So a verdict needs a fourth of the device to be written for each
size; on a device that was not overwritten at random, twice the device
(`uflip.startup.steady_bytes`). A large or slow device may exceed the time limit of a run
(`MAX_TIME_NS`), and quick writes little: then there is no verdict, and the result states how much a
verdict needs.
"""

from uflip.microbench.experiment import Context
from uflip.microbench.finding import Experiments, Means, Ratios, Run, mean_ns
from uflip.microbench.layout import Varying, baseline_spec, by_scale
from uflip.microbench.micro_benchmark import MicroBenchmark
from uflip.spec import Spec, until_converged
from uflip.startup import steady_bytes
from uflip.units import format_count, format_duration_ns, format_size

VARYING = Varying("steady_state", "io_size", "bytes")
PATTERN = "RW"
STANDARD = (4 << 10, 16 << 10, 64 << 10, 256 << 10)
QUICK = (4 << 10, 64 << 10)
# Limit of a quick run.
QUICK_BYTES = 256 << 20
# Time limits of a run: five minutes as for any other run, or ten seconds.
MAX_TIME_NS, QUICK_TIME_NS = 300_000_000_000, 10_000_000_000
MIN_IOS = 512
REASONS = {
    "too_little_written": "too little was written",
    "rate_changes": "the rate still changes",
    "write_amplification_changes": "write amplification still changes",
    "p99_changes": "p99 still changes",
    "repetitions_differ": "the repetitions differ",
}


def _describe(context: Context, pattern: str, io_size: int) -> Spec:
    size = steady_bytes(context.capacity)
    size = max(min(size, QUICK_BYTES) if context.quick else size, 2 * MIN_IOS * io_size)
    ios = -(-size // io_size)
    return until_converged(
        baseline_spec(context, pattern, io_size=io_size),
        min_ios=ios,
        max_ios=ios,
        max_time_ns=QUICK_TIME_NS if context.quick else MAX_TIME_NS,
    )


def finding(measured: Experiments, _baselines: Means, _ratios: Ratios) -> str:
    """Return the sentence with the verdict on each size: the steady rate, or the missing writes."""
    parts = [_verdict(run) for run in measured.get(PATTERN, ())]
    return "; ".join(parts) + "." if parts else ""


def _verdict(run: Run) -> str:
    size, verdict = format_size(int(run["value"])), run.get("steadiness")
    if verdict is None:
        rate = format_count(round(1e9 / mean_ns(run)))
        return f"{size}: {rate} IOPS, no verdict: the run has no rounds"
    rate = format_count(round(verdict["ios_per_s"]))
    written = format_size(verdict["written_bytes"])
    if not verdict["steady"]:
        why = " and ".join(REASONS[reason] for reason in verdict["reasons"])
        needed = format_size(verdict["needed_bytes"])
        if verdict["needed_ns"] is not None:
            needed += f", about {format_duration_ns(verdict['needed_ns'])}"
        return (
            f"{size}: not steady after {written} ({why}): {rate} IOPS in the last half; a verdict "
            f"takes {needed} of writes{_first_minute(run)}"
        )
    text = f"{size}: {rate} IOPS, {format_duration_ns(1e9 / verdict['ios_per_s'])} each"
    if verdict["p99_ns"] is not None:
        text += f", p99 {format_duration_ns(verdict['p99_ns'])}"
    if verdict["write_amplification"] is not None:
        text += f", write amplification {verdict['write_amplification']:.2f}"
    return f"{text}, steady over the last half of {written}{_first_minute(run)}"


def _first_minute(run: Run) -> str:
    """Return the rate that a test of one minute would have reported, in words."""
    rate = run["steadiness"]["first_minute_ios_per_s"]
    return "" if rate is None else f" (the first minute: {format_count(round(rate))} IOPS)"


MICRO_BENCHMARK = MicroBenchmark(
    name=VARYING.micro_benchmark,
    title="Steady state",
    experiments=by_scale(VARYING, [PATTERN], STANDARD, QUICK, _describe),
    question="What do random writes cost when the device does not change any more?",
    how_to_read=(
        "Rate, write amplification (of simulated devices) and p99 over the bytes written, in "
        "rounds of equal size; thin lines are further repetitions. The shaded half decides: the "
        "device is steady where all three are flat in it, enough was written, and all repetitions "
        "agree. A curve that is flat only before it shows a cache or spare space that fills up."
    ),
    finding=finding,
    figure="rounds",
    levels=False,
    suites=("today",),
    own_length=True,
    rounds=(PATTERN,),
)
