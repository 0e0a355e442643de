"""The nouns between one run and a plan: planned run, experiment, and the context they are made in.

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
    """One run to be made.

    Attributes
    ----------
    id : str
        Names the run in a plan, and its file: "0007-granularity-RW-io_size-32768". Before the plan
        has put the runs in order, the part without the number.
    micro_benchmark, pattern, parameter : str
        Where it belongs: "granularity", "RW" (or "SR/RW" for a mix), "io_size".
    value : int
        Value of the varying parameter.
    unit : str
        "bytes", "ns", "ios", or "" for a bare number.
    spec : Spec
        What the engine is to do.
    repetition : int
        Which of several equal runs, from 1; they differ in their seeds.
    reset_before : bool
        Whether the state of the device is enforced again before it.
    """

    id: str
    micro_benchmark: str
    pattern: str
    parameter: str
    value: int
    unit: str
    spec: Spec
    repetition: int = 1
    reset_before: bool = False


@dataclass(frozen=True)
class Skipped:
    """A run that is left out, and why: the device cannot make it, or a limit has no room for it."""

    micro_benchmark: str
    pattern: str
    parameter: str
    value: int
    reason: str


@dataclass(frozen=True)
class Experiment:
    """Runs of one reference pattern with one varying parameter; and those that are impossible."""

    micro_benchmark: str
    pattern: str
    parameter: str
    unit: str
    runs: tuple[PlannedRun, ...]
    skipped: tuple[Skipped, ...]


@dataclass(frozen=True)
class IoCounts:
    """How many I/Os a run makes, and how many at its start are left out of the statistics."""

    io_count: int
    io_ignore: int


# uFLIP §5.1: 1,024 I/Os for SR, RR and SW, 5,120 for RW; 128 ignored (the larger of the paper's two
# start-ups) where random writes are involved. A start-up does not get shorter with the run, so the
# quick counts ignore as much of an ordinary RW run, and keep as many I/Os as of the others; only
# runs that are shorter still ignore a third.
_STANDARD = {"SR": (1024, 0), "RR": (1024, 0), "SW": (1024, 0), "RW": (5120, 128)}
_STANDARD_LONG = 10_240
_QUICK = {"SR": (256, 0), "RR": (256, 0), "SW": (256, 0), "RW": (384, 128)}
_QUICK_LONG = 1024
# What a run may take that ends when its mean is known: four to eight times what the paper takes.
# Sequential writes use up places of their own, so more would mean more resets of the state.
_BUDGETS = {"SR": (8192, 0), "RR": (8192, 0), "SW": (2048, 0), "RW": (20_480, 0)}
_QUICK_BUDGETS = {"SR": (1024, 0), "RR": (1024, 0), "SW": (1024, 0), "RW": (4096, 0)}
# In quick, the part of a shortened random-write run that counts as its start-up.
_QUICK_IGNORED_PART = 3
# What a run has room for that leaves the start-up behind which a baseline shows: twice the longest
# of the paper, 128 I/Os of 32 KB [bytes]; but no fewer I/Os than that, and no more than so many.
_STARTUP_BYTES = 8 << 20
_STARTUP_IOS = (128, 8192)


@dataclass(frozen=True)
class Context:
    """What micro-benchmarks need to know in order to lay out their runs.

    Attributes
    ----------
    info : DeviceInfo
        What is known about the device.
    scale : str
        One of `SCALES`.
    seed : int
        The seed of the plan.
    io_size : int
        I/O size of the baseline patterns [bytes].
    io_counts : mapping of str to Counts, optional
        Lengths of the ordinary runs of SR, RR, SW and RW; without it those of the scale.
    budgets : bool
        Whether counts are budgets of runs that end when their mean is known; else what is made.
    startup : bool
        Whether counts of writes have room for the start-up that baselines will show: `io_ignore` is
        then the most that a run can leave out.
    """

    info: DeviceInfo
    scale: str
    seed: int
    io_size: int = BASELINE_IO_SIZE
    io_counts: Mapping[str, IoCounts] | None = None
    budgets: bool = False
    startup: bool = False

    @property
    def capacity(self) -> int:
        """Addressable size of the device [bytes]."""
        return self.info.capacity_bytes

    @property
    def sector(self) -> int:
        """What offsets and sizes are multiples of [bytes]."""
        return self.info.sector_bytes

    @property
    def quick(self) -> bool:
        """Whether ranges and counts are thinned."""
        return self.scale == "quick"

    def counts(self, pattern: str, io_size: int | None = None) -> IoCounts:
        """Return the counts of an ordinary run of a baseline pattern, with I/Os of a size."""
        plain, room = self.plain_counts(pattern), self._room(io_size)
        if self.budgets and "W" in pattern:
            # What must have made twice the start-up must be able to.
            return IoCounts(max(plain.io_count, 2 * room), plain.io_ignore)
        return self._after_startup(pattern, plain, room)

    def _room(self, io_size: int | None) -> int:
        """Return the longest start-up that a run has room for [I/Os]."""
        size = self.io_size if io_size is None else io_size
        fewest, most = _STARTUP_IOS
        return min(max(_STARTUP_BYTES // size, fewest), most)

    def _after_startup(self, pattern: str, counts: IoCounts, room: int) -> IoCounts:
        if not self.startup or "W" not in pattern:
            return counts
        room = max(room, counts.io_ignore)
        return IoCounts(counts.io_count - counts.io_ignore + room, room)

    def plain_counts(self, pattern: str) -> IoCounts:
        """Return the same without room for a start-up."""
        if self.io_counts is not None:
            return self.io_counts[pattern]
        if self.budgets:
            return IoCounts(*(_QUICK_BUDGETS if self.quick else _BUDGETS)[pattern])
        if self.quick:
            return IoCounts(*_QUICK[pattern])
        return IoCounts(*_STANDARD[pattern])

    def long_counts(self, pattern: str) -> IoCounts:
        """Return the counts of the long runs that show start-up and running phase."""
        if self.quick:
            # Of a thousand I/Os a single slow one at the beginning can be a twentieth of the mean.
            ignored = _QUICK["RW"][1] if "W" in pattern else 0
            return IoCounts(_QUICK_LONG + ignored, ignored)
        return IoCounts(_STANDARD_LONG, self.plain_counts(pattern).io_ignore)

    def shortened(self, pattern: str, io_count: int, writes: int = 1) -> IoCounts:
        """Return quick counts of another length, with the start-up in proportion.

        Parameters
        ----------
        pattern : str
            SR, RR, SW or RW.
        io_count : int
            How many I/Os, without room for a start-up.
        writes : int
            How many writes `io_count` counts as one: of several processes.
        """
        ignored = io_count // _QUICK_IGNORED_PART if pattern == "RW" else 0
        room = -(-self._room(None) // writes)
        return self._after_startup(pattern, IoCounts(io_count, ignored), room)


def run_seed(seed: int, micro_benchmark: str, pattern: str, value: int, repetition: int = 1) -> int:
    """Derive the seed of a run from what it is, so that it does not depend on the order of runs.

    Returns
    -------
    int
        53 bits: JSON numbers hold no more exactly.
    """
    text = f"{seed}/{micro_benchmark}/{pattern}/{value}"
    if repetition > 1:
        text += f"/{repetition}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 11
