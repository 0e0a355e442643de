"""Deallocate: an increasing part of the device is deallocated. How does that change I/O cost?

::

    0 %     |  RW, RR: all of it                              |
    25 %    |  RW: the rest              | trims: this → RR   |
    50 %    |  RW               | trims  | deallocated   → RR |
    100 %   | trims  | deallocated                       → RR |    then RW all over: a new device?

**Source**: ours; ATA's TRIM and NVMe's Deallocate; T. Frankie, G. Hughes, K. Kreutz-Delgado (*A
mathematical model of the trim command in NAND-flash SSDs*, ACM SE 2012): deallocated space is spare
space, so that random writes cost as much as on a device with that much more of it.
**Faithful**: the patterns RR and RW; trims are I/Os like any other, and timed.
**Simplified**: each run is made once, in this order, after everything else, because a partly
deallocated device is in no state for other runs: `fixed_order`. A trim is a 256th of the device,
128 MiB at most; the remainder at its end stays.
**Ambiguous**: the length of the writes. A device has free blocks after a trim, and random writes
are cheap until these are used up: `SHARE` of the written space, and no more than other runs write.
"""

from uflip.microbench.experiment import Context, Experiment, IoCounts
from uflip.microbench.finding import Experiments, Means, Ratios, Run, mean_ns
from uflip.microbench.layout import Varying, baseline_spec, lay_out
from uflip.microbench.micro_benchmark import MicroBenchmark
from uflip.microbench.today.loaded import IOS, QUICK_IOS
from uflip.spec import Spec, basic
from uflip.units import format_duration_ns, format_size

VARYING = Varying("deallocate", "deallocated_percent", "")
TRIMS, READS, WRITES = "ST", "RR", "RW"
STANDARD = (0, 25, 50, 75, 100)
QUICK = (0, 50, 100)
PARTS = 256
# Length limit of an I/O [bytes].
MAX_TRIM_BYTES = 128 << 20
PERCENT = 100
# The writes are this fraction of the written space.
SHARE = 2


def experiments(context: Context) -> list[Experiment]:
    """Lay out trims, reads of the deallocated part, and writes to the rest."""
    values = QUICK if context.quick else STANDARD
    experiment_values = (TRIMS, values[1:]), (READS, values), (WRITES, values)
    return [
        lay_out(context, VARYING, pattern, pattern_values, _describe, why_not=without_trims)
        for pattern, pattern_values in experiment_values
    ]


def trim_bytes(context: Context) -> int:
    """Return the size of a trim [bytes]."""
    size = min(context.capacity // PARTS, MAX_TRIM_BYTES)
    for unit in (1 << 20, context.io_size):
        if size >= unit:
            return size // unit * unit
    return max(context.io_size, context.sector)


def deallocated_begin(context: Context, percent: int) -> int:
    """Return the offset of the deallocated part [bytes]: whole trims follow, to the last one."""
    size = trim_bytes(context)
    return context.capacity // size * (PERCENT - percent) // PERCENT * size


def further_trims(context: Context, before: int, percent: int) -> Spec:
    """Return the trims that raise the deallocated part from `before` to `percent`."""
    begin, end = deallocated_begin(context, percent), deallocated_begin(context, before)
    size = trim_bytes(context)
    return basic(
        "trim",
        "sequential",
        io_size=size,
        target_offset=begin,
        target_size=max(end - begin, size),
        io_count=max((end - begin) // size, 1),
        io_ignore=0,
    )


def _describe(context: Context, pattern: str, percent: int) -> Spec:
    begin, end = deallocated_begin(context, percent), deallocated_begin(context, 0)
    if pattern == TRIMS:
        values = QUICK if context.quick else STANDARD
        return further_trims(context, values[values.index(percent) - 1], percent)
    if pattern == READS:
        offset, size = (begin, end - begin) if percent else (0, end)
    else:
        offset, size = 0, begin or end
    ios = QUICK_IOS if context.quick else IOS
    if pattern == WRITES:
        ios = max(min(ios, size // SHARE // context.io_size), 1)
    size = max(size // context.io_size, 1) * context.io_size
    counts = IoCounts(ios, ios // 8)
    return baseline_spec(context, pattern, counts=counts, target_offset=offset, target_size=size)


def without_trims(context: Context, _spec: Spec) -> str | None:
    """Return why a device cannot deallocate; None if it can."""
    if context.info.details.deallocates:
        return None
    return "the device has no command to deallocate (discard)"


def finding(measured: Experiments, _baselines: Means, ratios: Ratios) -> str:
    """Return the sentence on the cost of each of the three at the beginning and at the end."""
    parts = []
    if trims := measured.get(TRIMS, ()):
        each, size = mean_ns(trims[-1]), int(trims[-1]["spec"]["io_size"])
        parts.append(f"A trim of {format_size(size)} takes {format_duration_ns(each)}")
    for pattern, operation in ((READS, "reads of the deallocated part"), (WRITES, "random writes")):
        runs = measured.get(pattern, ())
        if len(runs) > 1 and runs[0]["value"] == 0:
            parts.append(
                f"{operation} take {_format_mean(runs[-1])}, {_format_mean(runs[0])} before"
            )
            before, after = mean_ns(runs[0]), mean_ns(runs[-1])
            parts[-1] += f" ({ratios.factor(after / before, pattern)})"
    return "; ".join(parts) + "." if parts else ""


def _format_mean(run: Run) -> str:
    percent = int(run["value"])
    after = f" with {percent} % deallocated" if percent else ""
    return f"{format_duration_ns(mean_ns(run))}{after}"


MICRO_BENCHMARK = MicroBenchmark(
    name=VARYING.micro_benchmark,
    title="Deallocate",
    experiments=experiments,
    question="What do reads and writes cost after a trim, and what does the trim itself?",
    how_to_read=(
        "RW falls as more is deallocated if the device collects garbage: deallocated space acts as "
        "spare space. At 100 % RW writes to a device as empty as a new one. RR reads the "
        "deallocated range: a device that has no data there answers without flash. "
        "ST are the trims."
    ),
    finding=finding,
    levels=False,
    suites=("today",),
    own_length=True,
    fixed_order=True,
)
