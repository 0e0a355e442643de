"""Alignment: the baseline patterns with varying IOShift. What is the cost of unaligned I/Os?

**Source**: uFLIP (CIDR 2009) §3.2 (2) and Table 1: IOShift in [2^0, ..., IOSize/512] × 512 B; the
shift is added to every address.
**Faithful**: all powers of two from 512 B to IOSize, all four baselines, fixed IOSize.
**Simplified**: nothing.
**Ambiguous**: the text varies the shift "from 0 to IOSize", the table starts at 512 B; 0 is
included as the aligned reference. The shift reduces the target space, which does not move; room for
one more I/O keeps sequential patterns from wrapping at any shift.
"""

from uflip.microbench.experiment import Context, Experiment
from uflip.microbench.layout import LABELS, Varying, baseline_spec, lay_out, target_size
from uflip.microbench.micro_benchmark import MicroBenchmark
from uflip.spec import Spec

VARYING = Varying("alignment", "io_shift", "bytes")
SHIFT_UNIT = 512


def standard(io_size: int) -> tuple[int, ...]:
    """Return the shifts of Table 1 for an I/O size, and 0 [bytes]."""
    powers = []
    shift = SHIFT_UNIT
    while shift <= io_size:
        powers.append(shift)
        shift *= 2
    return (0, *powers)


def quick(io_size: int) -> tuple[int, ...]:
    """Return both ends of the range, a page of 4 KiB, and the middle of an I/O [bytes]."""
    chosen = (0, SHIFT_UNIT, 4096, io_size // 2, io_size)
    return tuple(shift for shift in standard(io_size) if shift in chosen)


def experiments(context: Context) -> list[Experiment]:
    """Lay out one experiment for each baseline pattern."""
    values = (quick if context.quick else standard)(context.io_size)
    return [lay_out(context, VARYING, pattern, values, _describe) for pattern in LABELS]


def _describe(context: Context, pattern: str, io_shift: int) -> Spec:
    ios = context.counts(pattern).io_count + 1
    target = target_size(context, pattern, ios, context.io_size)
    return baseline_spec(context, pattern, io_shift=io_shift, target_size=target)


MICRO_BENCHMARK = MicroBenchmark(
    name=VARYING.micro_benchmark,
    title="Alignment",
    experiments=experiments,
    question="What does it cost to shift I/Os off their natural boundaries?",
    how_to_read=(
        "A level that drops at some shift shows the unit in which the device works: shifts that "
        "are not multiples of it touch one unit more."
    ),
)
