"""Patterns of I/Os over sectors (uFLIP §3.1, Table 1), as documents: see `uflip.data.spec`."""

from msgspec import Struct

from uflip.data.spec_base import OPEN_TIMES, MixPart, Spec, SpecBase, Stop, Time, Whole


class Basic(MixPart, Spec, frozen=True, tag_field="kind", tag="basic"):
    """A basic pattern (uFLIP §3.1): one function for each of time, size, location and mode.

    Attributes
    ----------
    mode, location : str
        One of `MODES`, one of `LOCATIONS`.
    time : str or None
        One of `TIMES`.
    io_size, io_shift, target_offset, target_size : int or None
        Size of an I/O, its shift, begin and size of the target space [bytes].
    partitions, incr : int or None
        For a partitioned, for an ordered location.
    skew_percent, hot_space_percent, hot_io_percent : int or None
        θ of Zipf's law in hundredths; for a hot and a cold area, the shares of the hot one [%].
    write_stream, hot_write_stream : int or None
        The stream of its writes, and that of writes to the hot area.
    pause, burst : int or None
        Pause between I/Os [ns]; I/Os between two pauses.
    interval : int or None
        Open loop: mean time from one arrival to the next [ns].
    parallel_degree, queue_depth : int or None
        Processes; I/Os in flight of each.
    io_count, io_ignore : int or None
        I/Os of each process, and the number at the start that the statistics leave out.
    seed : int or None
        Seed of random addresses.
    stop : Stop or None
        The stop rule, in place of the two counts.
    """

    parallel_degree: Whole | None = None
    queue_depth: Whole | None = None
    io_count: Whole | None = None
    io_ignore: Whole | None = None
    seed: Whole | None = None
    stop: Stop | None = None

    @property
    def parts(self) -> tuple[MixPart, ...]:
        """The pattern itself."""
        return (self,)

    @property
    def is_open(self) -> bool:
        """Whether its I/Os have arrival times."""
        return self.time in OPEN_TIMES

    @property
    def processes(self) -> int:
        """Number of processes."""
        return 1 if self.parallel_degree is None else self.parallel_degree


class Mix(SpecBase, Spec, frozen=True, tag_field="kind", tag="mix"):
    """I/Os of two basic patterns: in turn, or drawn at random.

    Attributes
    ----------
    first, second : MixPart
        The two patterns.
    ratio : int or None
        Number of I/Os of the first for each one of the second.
    first_percent : int or None
        Or: the chance of the first for each I/O [%].
    time, interval : str, int or None
        Open loop: "fixed" or "poisson", as in `Basic`.
    queue_depth, io_count, io_ignore, seed, stop
        As in `Basic`; the counts are I/Os of the second, rarer pattern, and of both where they are
        drawn.
    """

    first: MixPart
    second: MixPart
    ratio: Whole | None = None
    first_percent: Whole | None = None
    time: Time | None = None
    interval: Whole | None = None
    queue_depth: Whole | None = None
    io_count: Whole | None = None
    io_ignore: Whole | None = None
    seed: Whole | None = None
    stop: Stop | None = None

    @property
    def parts(self) -> tuple[MixPart, ...]:
        """The first and the second."""
        return (self.first, self.second)

    @property
    def is_open(self) -> bool:
        """Whether its I/Os have arrival times."""
        return self.time in OPEN_TIMES

    @property
    def turns(self) -> int:
        """I/Os of the first pattern for each counted one, at most."""
        return 1 if self.ratio is None else self.ratio


class Parallel(SpecBase, Spec, frozen=True, tag_field="kind", tag="parallel"):
    """Patterns that run in parallel, with a process each.

    Attributes
    ----------
    patterns : tuple of Basic or Mix
        The patterns; each has its own counts.
    seed, stop
        As in `Basic`.
    """

    patterns: tuple[Basic | Mix, ...]
    seed: Whole | None = None
    stop: Stop | None = None

    @property
    def parts(self) -> tuple[MixPart, ...]:
        """The parts of all patterns."""
        return tuple(part for pattern in self.patterns for part in pattern.parts)

    @property
    def is_open(self) -> bool:
        """Whether I/Os of any of the patterns have arrival times."""
        return any(pattern.is_open for pattern in self.patterns)


class ListSummary(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The summary of a list of I/Os.

    Attributes
    ----------
    ios : str
        Digest of every I/O.
    io_count, bytes_read, bytes_written, bytes_trimmed : int
        Their number, and the bytes that they transfer, or deallocate [bytes].
    end, align, io_size_max : int
        End of the last, common divisor of all offsets and sizes, the longest [bytes].
    span : int or None
        Open loop: arrival of the last one [ns].
    """

    ios: str
    io_count: Whole
    bytes_read: Whole
    bytes_written: Whole
    end: Whole
    align: Whole
    io_size_max: Whole
    span: Whole | None = None
    bytes_trimmed: Whole = 0


class Replay(SpecBase, Spec, frozen=True, tag_field="kind", tag="replay"):
    """The I/Os of a list, identified by its digest: those of a trace.

    Attributes
    ----------
    list : ListSummary
        Its summary.
    queue_depth, io_count, io_ignore
        As in `Basic`; the count is that of the list.
    """

    list: ListSummary
    queue_depth: Whole | None = None
    io_count: Whole | None = None
    io_ignore: Whole | None = None

    @property
    def is_open(self) -> bool:
        """Whether the I/Os of the list have arrival times."""
        return self.list.span is not None

    @property
    def writes(self) -> bool:
        """Whether any I/O of the list changes data: a write, or a trim."""
        return self.list.bytes_written + self.list.bytes_trimmed > 0


Functions = Basic | Mix | Parallel
"""A specification whose I/Os are computed by functions (uFLIP Table 1)."""

Pattern = Functions | Replay
"""A specification of I/Os over sectors."""


class Totals(Struct, frozen=True):
    """The totals of a specification on a device; with a stop rule, the most.

    Attributes
    ----------
    total_ios : int
        I/Os, ignored ones included.
    bytes_read, bytes_written, bytes_trimmed : int
        Bytes that they transfer, or deallocate [bytes].
    pause_ns : int
        Sum of the pauses of the process that pauses longest [ns].
    """

    total_ios: Whole
    bytes_read: Whole = 0
    bytes_written: Whole = 0
    bytes_trimmed: Whole = 0
    pause_ns: Whole = 0
