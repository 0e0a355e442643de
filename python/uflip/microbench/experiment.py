"""Planned runs, experiments, and the context in which micro-benchmarks define them.

    run  ⊂  experiment  ⊂  micro-benchmark  ⊂  plan

One execution of a pattern is a run; runs that differ in one parameter are an experiment; related
experiments are a micro-benchmark; all of them, in an order that keeps them from disturbing each
other, are a plan (uFLIP §3.2, §4.2). Everything here is plain frozen data.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from uflip.data.device import DeviceInfo
from uflip.spec import Spec

BASELINE_IO_SIZE = 32 * 1024
"""I/O size of the baseline patterns [bytes]: "32 KB in our experiments" (uFLIP Table 1)."""


@dataclass(frozen=True)
class PlannedRun:
    """One run of a plan."""

    #: Name of the run in a plan, and of its file: "0007-granularity-RW-io_size-32768". Without the
    #: number until the plan has ordered the runs.
    id: str
    #: Its place in the plan: "granularity", "RW" (or "SR/RW" for a mix), "io_size".
    micro_benchmark: str
    pattern: str
    parameter: str
    value: int  #: Value of the varying parameter.
    unit: str  #: "bytes", "ns", "ios", or "" for a bare number.
    spec: Spec  #: The specification for the engine.
    repetition: int = 1  #: Number of the repetition, from 1; repetitions differ in their seeds.
    reset_before: bool = False  #: Whether the state of the device is enforced again before the run.


@dataclass(frozen=True)
class Skipped:
    """A skipped run and the reason: the device cannot make it, or it exceeds a limit."""

    micro_benchmark: str
    pattern: str
    parameter: str
    value: int
    reason: str


@dataclass(frozen=True)
class Experiment:
    """Runs of one reference pattern with one varying parameter, and the impossible runs."""

    micro_benchmark: str
    pattern: str
    parameter: str
    unit: str
    runs: tuple[PlannedRun, ...]
    skipped: tuple[Skipped, ...]


@dataclass(frozen=True)
class IoCounts:
    """Number of I/Os of a run, and the number at its start that the statistics ignore."""

    io_count: int
    io_ignore: int


# uFLIP §5.1: 1,024 I/Os for SR, RR and SW, 5,120 for RW; 128 ignored (the larger of the paper's two
# start-ups) where random writes are involved. A start-up does not get shorter with the run, so the
# quick counts of RW also ignore 128, and measure as many I/Os as the others; only runs that are
# shorter still ignore a third.
_STANDARD = {"SR": (1024, 0), "RR": (1024, 0), "SW": (1024, 0), "RW": (5120, 128)}
_STANDARD_LONG = 10_240
_QUICK = {"SR": (256, 0), "RR": (256, 0), "SW": (256, 0), "RW": (384, 128)}
_QUICK_LONG = 1024
# Budgets of runs that end when their mean is known: four to eight times the counts of the paper.
# Sequential writes need target space of their own, so more would mean more state resets.
_BUDGETS = {"SR": (8192, 0), "RR": (8192, 0), "SW": (2048, 0), "RW": (20_480, 0)}
_QUICK_BUDGETS = {"SR": (1024, 0), "RR": (1024, 0), "SW": (1024, 0), "RW": (4096, 0)}
# In quick, the part (a third) of a shortened random-write run that counts as its start-up.
_QUICK_IGNORED_PART = 3
# Space for the start-up that a baseline shows: twice the longest of the paper, 128 I/Os of 32 KB
# [bytes]; and the minimum and maximum number of I/Os.
_STARTUP_BYTES = 8 << 20
_STARTUP_IOS = (128, 8192)


@dataclass(frozen=True)
class Context:
    """Input of micro-benchmarks for defining their runs."""

    info: DeviceInfo  #: Properties of the device.
    scale: str  #: One of `SCALES`.
    seed: int  #: The seed of the plan.
    io_size: int = BASELINE_IO_SIZE  #: I/O size of the baseline patterns [bytes].
    #: Lengths of the ordinary runs of SR, RR, SW and RW; by default those of the scale.
    io_counts: Mapping[str, IoCounts] | None = None
    #: Whether counts are budgets of runs that end when their mean is known, or exact numbers.
    budgets: bool = False
    #: Whether counts of writes include space for the start-up that baselines will show; `io_ignore`
    #: is then the maximum that a run can ignore.
    startup: bool = False
    #: Whether the plan begins with a device that was overwritten at random.
    overwritten: bool = True

    @property
    def capacity(self) -> int:
        """Addressable size of the device [bytes]."""
        return self.info.capacity_bytes

    @property
    def sector(self) -> int:
        """Alignment of offsets and sizes [bytes]."""
        return self.info.sector_bytes

    @property
    def quick(self) -> bool:
        """Whether ranges and counts are reduced."""
        return self.scale == "quick"

    def counts(self, pattern: str, io_size: int | None = None) -> IoCounts:
        """Return the counts of an ordinary run of a baseline pattern, with I/Os of a size."""
        plain, startup_ios = self.plain_counts(pattern), self._startup_space(io_size)
        if self.budgets and "W" in pattern:
            # A run that must be twice as long as the start-up needs the budget for it.
            return IoCounts(max(plain.io_count, 2 * startup_ios), plain.io_ignore)
        return self._after_startup(pattern, plain, startup_ios)

    def _startup_space(self, io_size: int | None) -> int:
        """Return the longest start-up that a run can hold [I/Os]."""
        size = self.io_size if io_size is None else io_size
        fewest, most = _STARTUP_IOS
        return min(max(_STARTUP_BYTES // size, fewest), most)

    def _after_startup(self, pattern: str, counts: IoCounts, startup_ios: int) -> IoCounts:
        if not self.startup or "W" not in pattern:
            return counts
        startup_ios = max(startup_ios, counts.io_ignore)
        return IoCounts(counts.io_count - counts.io_ignore + startup_ios, startup_ios)

    def plain_counts(self, pattern: str) -> IoCounts:
        """Return the counts without space for a start-up."""
        if self.io_counts is not None:
            return self.io_counts[pattern]
        if self.budgets:
            return IoCounts(*(_QUICK_BUDGETS if self.quick else _BUDGETS)[pattern])
        if self.quick:
            return IoCounts(*_QUICK[pattern])
        return IoCounts(*_STANDARD[pattern])

    def long_counts(self, pattern: str) -> IoCounts:
        """Return the counts of the long runs that show the start-up and the running phase."""
        if self.quick:
            # In a thousand I/Os one slow I/O at the start can be a twentieth of the mean.
            ignored = _QUICK["RW"][1] if "W" in pattern else 0
            return IoCounts(_QUICK_LONG + ignored, ignored)
        return IoCounts(_STANDARD_LONG, self.plain_counts(pattern).io_ignore)

    def shortened(self, pattern: str, io_count: int, writes: int = 1) -> IoCounts:
        """Return quick counts for another length, with the start-up in proportion.

        `pattern`: SR, RR, SW or RW. `io_count`: number of I/Os, without space for a start-up.
        `writes`: number of writes that `io_count` counts as one, for several processes.
        """
        ignored = io_count // _QUICK_IGNORED_PART if pattern == "RW" else 0
        startup_ios = -(-self._startup_space(None) // writes)
        return self._after_startup(pattern, IoCounts(io_count, ignored), startup_ios)


def run_seed(seed: int, micro_benchmark: str, pattern: str, value: int, repetition: int = 1) -> int:
    """Derive the seed of a run from its identity, so that it does not depend on the run order.

    The result has 53 bits, the most that JSON numbers represent exactly.
    """
    text = f"{seed}/{micro_benchmark}/{pattern}/{value}"
    if repetition > 1:
        text += f"/{repetition}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 11
