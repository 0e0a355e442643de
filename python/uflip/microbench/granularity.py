"""Granularity: the baseline patterns with varying IOSize. Which I/O sizes does a device favour?

**Source**: uFLIP (CIDR 2009) §3.2 (1) and Table 1: IOSize in [2^0, ..., 2^9] × 512 B "(plus some
non-powers of 2)"; Figures 6 and 7.
**Faithful**: the whole range of powers of two, all four baselines, aligned to IOSize.
**Simplified**: IOCount stays the same for all sizes, so that large I/Os touch more of the device.
**Ambiguous**: the non-powers are not named. Taken are 3 × 2^k × 512 B for every other k: half-way
between two powers, where a device that maps in powers of two shows it.
"""

from uflip.experiment import Context, Experiment
from uflip.microbench.layout import LABELS, Varying, baseline_spec, lay_out
from uflip.spec import Spec

VARYING = Varying("granularity", "io_size", "bytes")
POWERS = tuple(2**k * 512 for k in range(10))
NON_POWERS = tuple(3 * 2**k * 512 for k in (0, 2, 4, 6))
STANDARD = tuple(sorted(POWERS + NON_POWERS))
QUICK = (512, 4096, 16384, 32768, 262144)


def experiments(context: Context) -> list[Experiment]:
    """Lay out one experiment for each baseline pattern."""
    values = QUICK if context.quick else STANDARD
    return [lay_out(context, VARYING, pattern, values, _describe) for pattern in LABELS]


def _describe(context: Context, pattern: str, io_size: int) -> Spec:
    counts = context.counts(pattern, io_size)
    return baseline_spec(context, pattern, io_size=io_size, counts=counts)
