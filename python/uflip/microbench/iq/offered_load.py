"""Offered load: random reads and writes that arrive at a given rate. Where is the knee?

::

    arrivals    w w w r w w w w w ...     Poisson; each I/O drawn: a write with a chance of 90 %

**Source**: Haas et al. (PVLDB 2025): Poisson arrivals of writes at a rate, a few reads beside them,
percentiles of both; the rate is swept to the knee.
**Faithful**: open loop, I/Os of 4 KiB, response times from the arrival.
**Simplified**: a tenth of the I/Os are reads, not a constant number a second. Each kind uses half
of the device. The rates are powers of two, the same for all devices; then a bisection finds the
knee within 10 % (`uflip.benchmark.rounds`).
**Ambiguous**: the length of a run: `OFFERED_NS` of arrivals. A device below the knee collects
garbage between arrivals, and stays in that state. Beyond the knee the queue grows as long as the
run lasts, and response times with it: such a run has the warning `falling_behind`, and no further
finding.
"""

from uflip.microbench.experiment import Context
from uflip.microbench.finding import Experiments, Means, Ratios, Run
from uflip.microbench.iq.long_writes import IO_SIZE
from uflip.microbench.layout import Varying, by_scale
from uflip.microbench.micro_benchmark import MicroBenchmark
from uflip.microbench.today.loaded import loaded_mix, tail, too_small
from uflip.microbench.today.write_rate import MAX_DEPTH
from uflip.spec import Mix
from uflip.units import format_count, format_duration_ns

VARYING = Varying("offered_load", "ios_per_s", "")
PATTERN = "RW/RR"
STANDARD = tuple(1000 * 2**k for k in range(10))
QUICK = (1000, 8000, 64_000)
WRITES_PERCENT = 90
# Time in which the I/Os of a run arrive, and limits of their number.
OFFERED_NS, QUICK_OFFERED_NS = 30_000_000_000, 1_000_000_000
MIN_IOS, MAX_IOS = 8192, 1 << 21
# A run that takes longer than its arrivals by this factor is too fast for the device. The number of
# arrivals of `MIN_IOS` scatters by 1.1 %.
LATE_FACTOR = 1.05
# The bisection ends when a sustained rate and the next one differ by less than this factor.
RESOLUTION = 1.1
_NS_PER_S = 1_000_000_000


def _describe(context: Context, _pattern: str, ios_per_s: int) -> Mix:
    return load_mix(context, ios_per_s)


def load_mix(context: Context, ios_per_s: int) -> Mix:
    """Return writes and reads that arrive at a rate."""
    io_size = max(IO_SIZE, context.sector)
    closed = loaded_mix(context, PATTERN, (io_size, io_size), WRITES_PERCENT)
    spec = closed.but(time="poisson", queue_depth=MAX_DEPTH)
    return with_rate(spec, ios_per_s, quick=context.quick)


def with_rate(spec: Mix, ios_per_s: int, *, quick: bool) -> Mix:
    """Return a mix with another rate, and as many I/Os as arrive in the time of a run."""
    offered_ns = QUICK_OFFERED_NS if quick else OFFERED_NS
    ios = min(max(ios_per_s * offered_ns // _NS_PER_S, MIN_IOS), MAX_IOS)
    return spec.but(interval=_NS_PER_S // ios_per_s, io_count=ios, io_ignore=ios // 2)


def is_sustained(elapsed_ns: int, interval_ns: int, ios: int) -> bool:
    """Return whether a device keeps up with arrivals.

    >>> is_sustained(8_000_000_000, 1_000_000, 8192)
    True
    >>> is_sustained(8_800_000_000, 1_000_000, 8192)
    False
    """
    return elapsed_ns < LATE_FACTOR * interval_ns * ios


def keeps_up(run: Run) -> bool:
    """Return whether the device sustained the rate of a run."""
    return is_sustained(run["elapsed_ns"], int(run["spec"]["interval"]), run["io_count"])


def finding(measured: Experiments, _baselines: Means, ratios: Ratios) -> str:
    """Return the sentence on the highest sustained rate, and on reads and writes up to it."""
    runs = list(measured.get(PATTERN, ()))
    if not runs:
        return ""
    sustained = [run for run in runs if keeps_up(run)]
    beyond = next((_format_rate(run) for run in runs if not keeps_up(run)), None)
    if not sustained:
        return f"The device does not sustain {beyond}."
    text = f"The device sustains {_format_rate(sustained[-1])}"
    if beyond is not None:
        text += f", but not {beyond}"
    parts = [text]
    for noun, component, label in (("reads", "second", "RR"), ("writes", "first", "RW")):
        measured_runs = [
            (run, statistics)
            for run in sustained
            if (statistics := run["components"][component]["statistics"]) is not None
        ]
        if len(measured_runs) < 2:
            continue
        (first, few), (last, many) = measured_runs[0], measured_runs[-1]
        name, before, after = tail(few, many)
        parts.append(
            f"{name} of the {noun} is {format_duration_ns(before)} at {_format_rate(first)} and "
            f"{format_duration_ns(after)} at {_format_rate(last)} "
            f"({ratios.factor(after / before, label)})"
        )
    return "; ".join(parts) + "."


def _format_rate(run: Run) -> str:
    return f"{format_count(int(run['value']))} I/Os per second"


MICRO_BENCHMARK = MicroBenchmark(
    name=VARYING.micro_benchmark,
    title="Offered load",
    experiments=by_scale(VARYING, [PATTERN], STANDARD, QUICK, _describe, why_not=too_small),
    question="How long do reads and writes take at a given load, and which load is too much?",
    how_to_read=(
        "The faint lines show reads and writes separately, timed from arrival. The knee is where "
        "both rise by orders of magnitude: the device does not sustain that rate."
    ),
    finding=finding,
    figure="mix",
    levels=False,
    suites=("iq",),
    own_length=True,
)
