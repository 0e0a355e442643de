"""Write rate: random reads at one rate, random writes at increasing ones, in an open loop.

::

    arrivals    r w w r w w w r ...     Poisson; each I/O drawn: a write with a chance of p %
    reads       r per second, for every p
    writes      w = r × p / (100 − p) per second

**Source**: ours; B. Schroeder, A. Wierman, M. Harchol-Balter (*Open versus closed: a cautionary
tale*, NSDI 2006): if a slow I/O delays the next ones, the tail that users see is not measured. Read
under write (`read_under_write`) is such a closed loop, and its write rate is a result.
**Faithful**: arrivals of a Poisson process; response times from the arrival.
**Simplified**: `READS_PER_S` is one rate for all devices, low enough for most, so that only the
writes change. Each pattern uses half of the device, as in read under write.
**Ambiguous**: a rate above the capacity of the device: its queue grows as long as the run lasts,
and so do response times. Such a run has the warning `falling_behind`, and no further finding.
"""

from uflip.microbench.experiment import Context, Experiment
from uflip.microbench.finding import Experiments, Means, Ratios, Run
from uflip.microbench.layout import Varying, lay_out
from uflip.microbench.micro_benchmark import MicroBenchmark
from uflip.microbench.today.loaded import loaded_mix, tail, too_small
from uflip.spec import Mix
from uflip.units import format_duration_ns, format_size

VARYING = Varying("write_rate", "write_rate", "bytes/s")
PATTERN = "RW/RR"
READS_PER_S = 200
# Chance of a write [%]: from two writes a second to twenty thousand.
STANDARD = (1, 20, 50, 80, 90, 95, 97, 98, 99)
QUICK = (1, 50, 90, 98)
# Number of reads in a run: a tail of one in a hundred has ten of them, or four.
READS, QUICK_READS = 1000, 400
# Queue limit of the device, or of the host.
MAX_DEPTH = 1024
# A device that lags by this factor at the end does not keep up; chance alone is a few per cent.
LATE_FACTOR = 1.2
_NS_PER_S = 1_000_000_000
_PERCENT = 100


def experiments(context: Context) -> list[Experiment]:
    """Lay out reads at one rate, concurrent with writes at several rates."""
    percents = {
        rate_of(each) * context.io_size: each for each in (QUICK if context.quick else STANDARD)
    }

    def describe(context: Context, _pattern: str, rate_bytes_per_s: int) -> Mix:
        return _describe(context, percents[rate_bytes_per_s])

    return [lay_out(context, VARYING, PATTERN, percents, describe, why_not=too_small)]


def rate_of(percent: int) -> int:
    """Return the rate of writes per second for a chance of a write, rounded.

    >>> rate_of(50), rate_of(99)
    (200, 19800)
    """
    return round(READS_PER_S * percent / (_PERCENT - percent))


def _describe(context: Context, percent: int) -> Mix:
    closed = loaded_mix(context, PATTERN, (context.io_size, context.io_size), percent)
    reads = QUICK_READS if context.quick else READS
    ios = reads * _PERCENT // (_PERCENT - percent)
    return closed.but(
        time="poisson",
        interval=_NS_PER_S * (_PERCENT - percent) // (READS_PER_S * _PERCENT),
        queue_depth=MAX_DEPTH,
        io_count=ios,
        io_ignore=ios // 8,
    )


def finding(measured: Experiments, _baselines: Means, ratios: Ratios) -> str:
    """Return the sentence on the tail of the reads at the lowest and highest sustained rate."""
    measured_runs = [
        (run, reads)
        for run in measured.get(PATTERN, ())
        if (reads := run["components"]["second"]["statistics"]) is not None
    ]
    if len(measured_runs) < 2:
        return ""
    sustained = [one for one in measured_runs if keeps_up(one[0])]
    beyond = next(
        (f"; {_written(run)} are too many" for run, _ in measured_runs if not keeps_up(run)), ""
    )
    if len(sustained) < 2:
        return f"The device sustains none of these rates{beyond}."
    (first, few), (last, many) = sustained[0], sustained[-1]
    name, before, after = tail(few, many)
    ratio = ratios.factor(after / before, "RR")
    return (
        f"At {READS_PER_S} reads per second, their {name} is {format_duration_ns(before)} during "
        f"{_written(first)}, and {format_duration_ns(after)} during {_written(last)} "
        f"({ratio}){beyond}."
    )


def keeps_up(run: Run) -> bool:
    """Return whether a run took no longer than its arrivals, within chance."""
    return bool(run["elapsed_ns"] < LATE_FACTOR * int(run["spec"]["interval"]) * run["io_count"])


def _written(run: Run) -> str:
    return f"{format_size(int(run['value']))}/s of writes"


MICRO_BENCHMARK = MicroBenchmark(
    name=VARYING.micro_benchmark,
    title="Write rate",
    experiments=experiments,
    question="How slow are reads while writes arrive at a given rate?",
    how_to_read=(
        "The faint lines show reads and writes separately, timed from arrival. The read rate is "
        "constant, so a rising read line shows reads that wait for writes. Where both rise by "
        "orders of magnitude, the device does not sustain the write rate."
    ),
    finding=finding,
    figure="mix",
    suites=("today",),
    own_length=True,
)
