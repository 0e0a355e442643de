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
        Size of an I/O, its shift, where the target space begins and how large it is [bytes].
    partitions, incr : int or None
        Of a partitioned, of an ordered location.
    skew_percent, hot_space_percent, hot_io_percent : int or None
        Of Zipf's law θ in hundredths; of a hot and a cold area the shares of the hot one [%].
    write_stream, hot_write_stream : int or None
        The stream of writes that they belong to, and that of writes to the hot area.
    pause, burst : int or None
        Between I/Os [ns]; I/Os between two pauses.
    interval : int or None
        Of an open loop: from one arrival to the next, on average [ns].
    parallel_degree, queue_depth : int or None
        Processes; I/Os of each that are under way at a time.
    io_count, io_ignore : int or None
        I/Os of each process, and how many at the start are left out of the statistics.
    seed : int or None
        Of random addresses.
    stop : Stop or None
        When it ends, in place of the two counts.
    """

    parallel_degree: Whole | None = None
    queue_depth: Whole | None = None
    io_count: Whole | None = None
    io_ignore: Whole | None = None
    seed: Whole | None = None
    stop: Stop | None = None

    @property
    def parts(self) -> tuple[MixPart, ...]:
        """Itself."""
        return (self,)

    @property
    def is_open(self) -> bool:
        """Whether its I/Os arrive at instants of their own."""
        return self.time in OPEN_TIMES

    @property
    def processes(self) -> int:
        """How many processes make it."""
        return 1 if self.parallel_degree is None else self.parallel_degree


class Mix(SpecBase, Spec, frozen=True, tag_field="kind", tag="mix"):
    """I/Os of two basic patterns: in turn, or each drawn at random.

    Attributes
    ----------
    first, second : Part
        The two.
    ratio : int or None
        So many I/Os of the first, then one of the second.
    first_percent : int or None
        Or: the chance of the first for each I/O [%].
    time, interval : str, int or None
        Of an open loop: "fixed" or "poisson", as of `Basic`.
    queue_depth, io_count, io_ignore, seed, stop
        As of `Basic`; the counts are I/Os of the second, rarer pattern, and of both where they are
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
        """Whether its I/Os arrive at instants of their own."""
        return self.time in OPEN_TIMES

    @property
    def turns(self) -> int:
        """I/Os of the first pattern to one that is counted, at most."""
        return 1 if self.ratio is None else self.ratio


class Parallel(SpecBase, Spec, frozen=True, tag_field="kind", tag="parallel"):
    """Patterns that run side by side, a process each.

    Attributes
    ----------
    patterns : tuple of Basic or Mix
        What runs; each has its own counts.
    seed, stop
        As of `Basic`.
    """

    patterns: tuple[Basic | Mix, ...]
    seed: Whole | None = None
    stop: Stop | None = None

    @property
    def parts(self) -> tuple[MixPart, ...]:
        """Those of all patterns."""
        return tuple(part for pattern in self.patterns for part in pattern.parts)

    @property
    def is_open(self) -> bool:
        """Whether I/Os of any of the patterns arrive at instants of their own."""
        return any(pattern.is_open for pattern in self.patterns)


class ListSummary(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is known of a list of I/Os without them.

    Attributes
    ----------
    ios : str
        Digest of every I/O.
    io_count, bytes_read, bytes_written, bytes_trimmed : int
        How many there are, and what they move, or deallocate [bytes].
    end, align, io_size_max : int
        Where the last ends, what all offsets and sizes are multiples of, the longest [bytes].
    span : int or None
        Of an open loop: when the last one arrives [ns].
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
    """The I/Os of a list, which is named by its digest: those of a trace.

    Attributes
    ----------
    list : Listed
        What is known of it.
    queue_depth, io_count, io_ignore
        As of `Basic`; the count is that of the list.
    """

    list: ListSummary
    queue_depth: Whole | None = None
    io_count: Whole | None = None
    io_ignore: Whole | None = None

    @property
    def is_open(self) -> bool:
        """Whether the I/Os of the list have instants."""
        return self.list.span is not None

    @property
    def writes(self) -> bool:
        """Whether any I/O of the list changes what is stored: a write, or a trim."""
        return self.list.bytes_written + self.list.bytes_trimmed > 0


Functions = Basic | Mix | Parallel
"""A specification whose I/Os follow from functions (uFLIP Table 1)."""

Pattern = Functions | Replay
"""A specification of I/Os over sectors."""


class Totals(Struct, frozen=True):
    """What a specification amounts to on a device; with a rule to stop at most.

    Attributes
    ----------
    total_ios : int
        I/Os, ignored ones included.
    bytes_read, bytes_written, bytes_trimmed : int
        What they move, or deallocate [bytes].
    pause_ns : int
        Sum of the pauses of the process that pauses longest [ns].
    """

    total_ios: Whole
    bytes_read: Whole = 0
    bytes_written: Whole = 0
    bytes_trimmed: Whole = 0
    pause_ns: Whole = 0
