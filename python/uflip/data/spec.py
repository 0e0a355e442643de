"""Specifications: the request for one run, one frozen document from builder to trace.

    Spec ◁── Basic      one function for each of time, size, location and mode
         ◁── Mix        I/Os of two basic patterns in turn, or drawn
         ◁── Parallel   several of these in parallel
         ◁── Replay     I/Os of a list, identified by its digest
         ◁── Job        for an open-channel device: pages of physical addresses

The parameters are those of uFLIP §3.1 (Table 1) and of uFLIP-OC, sizes in bytes, times in
nanoseconds. A field that is None was not given, and is not written: the native part owns every
default (`crates/engine/src/spec.rs`), and its resolved specification has them filled in. The native
part also checks the values against each other, and against a device. This module defines the shape
of the document, and properties derived from it.

A specification has no version of its own: it is part of manifests, plan files, ledgers and traces.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, get_args

import msgspec
from msgspec import Meta, Struct

from uflip import _native
from uflip.data.document import MAX_DEPTH, Table, Text, nesting_depth
from uflip.data.locations import DRAWN, Location
from uflip.errors import UsageError, native_errors, unknown_name

Mode = Literal["read", "write", "trim", "append", "reset", "finish", "open", "close"]
Time = Literal["consecutive", "pause", "burst", "fixed", "poisson"]
MODES: tuple[str, ...] = get_args(Mode)
PLURALS = {mode: "finishes" if mode == "finish" else f"{mode}s" for mode in MODES}
"""Plural of a mode."""
DATA_MODES = ("read", "write", "append")
"""Modes that transfer data."""
ZONE_MODES = ("append", "reset", "finish", "open", "close")
"""Modes that only zoned devices support."""
LOCATIONS: tuple[str, ...] = get_args(Location)
TIMES: tuple[str, ...] = get_args(Time)
OPEN_TIMES = ("fixed", "poisson")
"""Times of an open loop."""

Whole = Annotated[int, Meta(ge=0)]
"""An unsigned 64-bit integer of the native part."""


class SpecBase(
    Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, repr_omit_defaults=True
):
    """Base of specifications: no unknown keys, and no keys that were not given."""


class Stop(SpecBase, frozen=True):
    """The stop rule of a run without a given length: converged mean, or exhausted budget.

    Attributes
    ----------
    confidence, half_width : float or None
        Required precision of the mean: probability, and half width relative to the mean.
    min_ios, max_ios : int or None
        Least and most I/Os of each process.
    max_time_ns : int or None
        Time limit [ns].
    max_bytes_written : int or None
        Limit of written bytes [bytes].
    """

    confidence: float | None = None
    half_width: float | None = None
    min_ios: Whole | None = None
    max_ios: Whole | None = None
    max_time_ns: Whole | None = None
    max_bytes_written: Whole | None = None

    @property
    def fewest(self) -> int:
        """Least number of I/Os; an error if the rule lacks it."""
        return require(self.min_ios, "stop.min_ios")

    @property
    def most(self) -> int:
        """Largest number of I/Os; an error if the rule lacks it."""
        return require(self.max_ios, "stop.max_ios")


class MixPart(SpecBase, frozen=True):
    """A basic pattern within a mix, without the fields that belong to the mix.

    Attributes
    ----------
    mode, location, time, io_size, io_shift, target_offset, target_size : as of a `Basic`
        The same.
    partitions, incr, skew_percent, hot_space_percent, hot_io_percent : as of a `Basic`
        The same.
    zone_ios, open_zones, zone_capacity_ios, random_turns : as of a `Basic`
        The same.
    write_stream, hot_write_stream, compress_percent, duplicate_percent : as of a `Basic`
        The same.
    pause, burst, interval : as of a `Basic`
        The same.
    """

    mode: Mode
    location: Location
    time: Time | None = None
    io_size: Whole | None = None
    io_shift: Whole | None = None
    target_offset: Whole | None = None
    target_size: Whole | None = None
    partitions: Whole | None = None
    incr: int | None = None
    skew_percent: Whole | None = None
    hot_space_percent: Whole | None = None
    hot_io_percent: Whole | None = None
    zone_ios: Whole | None = None
    open_zones: Whole | None = None
    zone_capacity_ios: Whole | None = None
    random_turns: Whole | None = None
    write_stream: Whole | None = None
    hot_write_stream: Whole | None = None
    compress_percent: Whole | None = None
    duplicate_percent: Whole | None = None
    pause: Whole | None = None
    burst: Whole | None = None
    interval: Whole | None = None

    @property
    def is_write(self) -> bool:
        """Whether its I/Os are writes, or appends to zones."""
        return self.mode in ("write", "append")

    @property
    def is_trim(self) -> bool:
        """Whether they deallocate data."""
        return self.mode == "trim"

    @property
    def moves_data(self) -> bool:
        """Whether they read or write: neither trims nor zone commands."""
        return self.mode in DATA_MODES

    @property
    def is_sequential_write(self) -> bool:
        """Whether they change data at addresses that are not random: includes trims."""
        return self.mode != "read" and self.location not in DRAWN

    @property
    def io_bytes(self) -> int:
        """Size of an I/O [bytes]; an error if the pattern lacks it."""
        return require(self.io_size, "io_size")

    @property
    def target_bytes(self) -> int:
        """Size of the target space [bytes]; an error if the pattern lacks it."""
        return require(self.target_size, "target_size")

    @property
    def shift(self) -> int:
        """Distance of its I/Os from multiples of their size [bytes]."""
        return self.io_shift or 0

    @property
    def begin(self) -> int:
        """Begin of the target space [bytes]."""
        return self.target_offset or 0

    @property
    def end(self) -> int:
        """End of the target space [bytes]."""
        return self.begin + self.target_bytes

    @property
    def processes(self) -> int:
        """Number of processes."""
        return 1


class Spec:
    """The request for one run: a `Basic`, `Mix`, `Parallel`, `Replay` or `Job`.

    Equal specifications request the same run; `but` returns a changed copy.
    """

    __slots__ = ()

    def but(self, **changes: Any) -> Self:
        """Return a copy with other values of some fields.

        Parameters
        ----------
        **changes
            Field -> its value; None: not given.

        Examples
        --------
        >>> from uflip.spec import basic
        >>> basic("read", "random", io_size=512).but(io_size=None, seed=7)
        Basic(mode='read', location='random', seed=7)
        """
        names: tuple[str, ...] = self.__struct_fields__  # type: ignore[attr-defined]
        for name in changes:
            if name not in names:
                raise unknown_name("parameter", name, names, where="but")
        return msgspec.structs.replace(self, **changes)  # type: ignore[type-var]

    @property
    def parts(self) -> tuple[MixPart, ...]:
        """Its basic patterns, in order; empty for a replay or a job."""
        return ()

    @property
    def stop(self) -> Stop | None:
        """The stop rule, if the length is not given."""
        return None

    @property
    def depth(self) -> int:
        """Number of I/Os in flight per process."""
        return getattr(self, "queue_depth", None) or 1

    @property
    def io_count(self) -> int | None:
        """I/Os of each process, ignored ones included; for a mix those of its rarer pattern."""
        return None

    @property
    def io_ignore(self) -> int | None:
        """Number of them, at the start, that the statistics leave out."""
        return None

    @property
    def seed(self) -> int | None:
        """Seed of random addresses."""
        return None

    @property
    def ios(self) -> int:
        """`io_count`; an error if the specification lacks it."""
        return require(self.io_count, "io_count")

    @property
    def ignored_ios(self) -> int:
        """`io_ignore`; an error if the specification lacks it."""
        return require(self.io_ignore, "io_ignore")

    @property
    def most_ios(self) -> int:
        """Like `ios`; with a stop rule, its largest number of I/Os."""
        return self.ios if self.stop is None else self.stop.most

    @property
    def time_limit_ns(self) -> int | None:
        """Time after which it begins no I/O [ns]; None without a limit."""
        time: int | None = getattr(self, "run_time", None)
        return None if time is None else time + (getattr(self, "ramp_time", None) or 0)

    @property
    def writes(self) -> bool:
        """Whether any I/O changes data: a write, or a trim."""
        return any(part.mode != "read" for part in self.parts)

    @property
    def writes_sequentially(self) -> bool:
        """Whether it contains sequential, ordered or partitioned writes.

        These disturb the state of a device most, so that a plan keeps their targets apart
        (uFLIP §4.1).
        """
        return any(part.is_sequential_write for part in self.parts)

    @property
    def is_open(self) -> bool:
        """Whether I/Os have arrival times, independent of earlier completions."""
        return False

    @property
    def sequential_targets(self) -> list[tuple[int, int]]:
        """Targets of sequential writes: (begin, end) of each [bytes].

        Examples
        --------
        >>> from uflip.spec import baseline
        >>> baseline("SW", target_offset=4096, target_size=8192).sequential_targets
        [(4096, 12288)]
        """
        return [(part.begin, part.end) for part in self.parts if part.is_sequential_write]


def require(value: int | None, name: str) -> int:
    """Return a given value; raise an error with its name if it is missing."""
    if value is None:
        raise UsageError(
            f"The pattern lacks {name}",
            where=name,
            action=f"write {name} into its specification",
        )
    return value


# Patterns of I/Os over sectors (uFLIP §3.1, Table 1).


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
    zone_ios, open_zones, zone_capacity_ios, random_turns : int or None
        For zones: the I/Os of one, the number written in turn, the I/Os after which one is full,
        and 1 for turns in random order.
    write_stream, hot_write_stream : int or None
        The stream of its writes, and that of writes to the hot area.
    compress_percent, duplicate_percent : int or None
        Content of its writes: share that compression removes, share of duplicate blocks [%].
    pause, burst : int or None
        Pause between I/Os [ns]; I/Os between two pauses.
    interval : int or None
        Open loop: mean time from one arrival to the next [ns].
    parallel_degree, queue_depth : int or None
        Processes; I/Os in flight of each.
    io_count, io_ignore : int or None
        I/Os of each process, and the number at the start that the statistics leave out.
    run_time, ramp_time : int or None
        Time of the run, and before it the time that the statistics leave out [ns].
    seed : int or None
        Seed of random addresses.
    stop : Stop or None
        The stop rule, in place of the two counts.
    """

    parallel_degree: Whole | None = None
    queue_depth: Whole | None = None
    io_count: Whole | None = None
    io_ignore: Whole | None = None
    run_time: Whole | None = None
    ramp_time: Whole | None = None
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
    """I/Os of two or more basic patterns: in turn, by weights, or drawn at random.

    Attributes
    ----------
    first, second : MixPart
        The two patterns.
    ratio : int or None
        Number of I/Os of the first for each one of the second.
    first_percent : int or None
        Or: the chance of the first for each I/O [%].
    others : tuple of MixPart
        The third and later patterns, of a mix with weights.
    weights : tuple of int or None
        Or: I/Os of each pattern, in order, for each Σ weights I/Os.
    drawn : bool or None
        Whether each I/O is drawn by the weights; by default they are exact, and evenly spread.
    time, interval : str, int or None
        Open loop: "fixed" or "poisson", as in `Basic`.
    queue_depth, io_count, io_ignore, run_time, ramp_time, seed, stop
        As in `Basic`; the counts are I/Os of the second, rarer pattern, and of all where they are
        drawn or have weights.
    """

    first: MixPart
    second: MixPart
    ratio: Whole | None = None
    first_percent: Whole | None = None
    others: tuple[MixPart, ...] = ()
    weights: tuple[Whole, ...] | None = None
    drawn: bool | None = None
    time: Time | None = None
    interval: Whole | None = None
    queue_depth: Whole | None = None
    io_count: Whole | None = None
    io_ignore: Whole | None = None
    run_time: Whole | None = None
    ramp_time: Whole | None = None
    seed: Whole | None = None
    stop: Stop | None = None

    @property
    def parts(self) -> tuple[MixPart, ...]:
        """The first, the second, and the others."""
        return (self.first, self.second, *self.others)

    @property
    def part_names(self) -> tuple[str, ...]:
        """The names of its patterns in results.

        Examples
        --------
        >>> from uflip.spec import baseline, mix
        >>> a, b, c = baseline("SR"), baseline("RW"), baseline("RR")
        >>> mix(a, b, others=[c], weights=[2, 1, 1]).part_names
        ('first', 'second', 'pattern_3')
        """
        return ("first", "second", *(f"pattern_{n + 3}" for n in range(len(self.others))))

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

    @property
    def time_limit_ns(self) -> int | None:
        """Time after which none of the patterns begins an I/O [ns]."""
        limits = [each.time_limit_ns for each in self.patterns]
        return None if None in limits else max(each for each in limits if each is not None)


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
    """The totals of a specification on a device; with a stop rule, the most."""

    total_ios: Whole  #: I/Os, ignored ones included.
    #: Bytes that they transfer, or deallocate [bytes].
    bytes_read: Whole = 0
    bytes_written: Whole = 0
    bytes_trimmed: Whole = 0
    pause_ns: Whole = 0  #: Sum of the pauses of the process that pauses longest [ns].


# Jobs over physical addresses (uFLIP-OC).


class Job(SpecBase, Spec, frozen=True):
    """Commands to pages of an open-channel device; `docs/reference/open-channel.md`."""

    #: "pages" (None is the same), or "wear": cycles of one block until it fails.
    kind: Literal["pages", "wear"] | None = None
    #: The range of pages.
    first_channel: Whole | None = None
    channels: Whole | None = None
    first_lun: Whole | None = None
    luns: Whole | None = None
    first_block: Whole | None = None
    blocks: Whole | None = None
    first_page: Whole | None = None
    pages: Whole | None = None
    mix: Text | None = None  #: Letters W and R, repeated without end.
    #: Threads; pages of all planes per command.
    threads: Whole | None = None
    vector: Whole | None = None
    sleep: Whole | None = None  #: Time between commands [ns].
    iteration: Text | None = None  #: "sequential", "round_robin" or "isolated".
    repeat: Whole | None = None  #: Number of repetitions of the whole job.

    @property
    def wears_out(self) -> bool:
        """Whether it sacrifices a block."""
        return self.kind == "wear"


class JobTotals(Struct, frozen=True):
    """The size of a job: commands, pages of all planes, blocks, and bytes."""

    total_ios: Whole
    pages_read: Whole
    pages_written: Whole
    blocks_erased: Whole
    bytes_read: Whole
    bytes_written: Whole


def text_of(spec: Spec) -> str:
    """Return a specification as JSON for the native part."""
    return msgspec.json.encode(spec).decode()


def table_of(spec: Spec) -> Table:
    """Return a specification as plain data: the given fields by name."""
    content: Table = msgspec.to_builtins(spec)
    return content


def typed_spec(content: object) -> Spec:
    """Convert plain data to a specification."""
    if isinstance(content, Spec):
        return content
    kinds = ("basic", "mix", "parallel", "replay")
    named = isinstance(content, Mapping) and content.get("kind") in kinds
    return msgspec.convert(content, Pattern if named else Job)


def spec_hook(kind: type, content: object) -> Spec:
    """Read the fields of documents that are specifications: a `dec_hook` of msgspec."""
    if kind is Spec:
        return typed_spec(content)
    raise NotImplementedError(f"a field of type {kind}")


def read_spec(content: str | bytes | Mapping[str, object]) -> Pattern:
    """Read a specification over sectors from an external source.

    Parameters
    ----------
    content : str, bytes or mapping
        JSON, or decoded JSON.

    Returns
    -------
    Basic, Mix, Parallel or Replay

    Raises
    ------
    UsageError
        With the fault as reported by the native part.

    Examples
    --------
    >>> read_spec('{"kind": "basic", "mode": "read", "location": "random", "io_size": 4096}')
    Basic(mode='read', location='random', io_size=4096)
    """
    text = msgspec.json.encode(content) if isinstance(content, Mapping) else content
    data = text.encode() if isinstance(text, str) else text
    try:
        if nesting_depth(data) <= MAX_DEPTH:
            spec: Pattern = msgspec.json.decode(data, type=Pattern)
            return spec
        reason = f"more than {MAX_DEPTH} levels"
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        reason = str(error)
    _raise_native_error(data)
    raise UsageError(
        "The pattern specification is not valid",
        where="pattern specification",
        got=reason,
        action="see `uflip pattern --help` for the parameters of each pattern",
    )


# Larger than any device, with the smallest sectors: a specification refused here never fits.
_ANY_CAPACITY, _ANY_SECTOR = 1 << 62, 512


def _raise_native_error(data: bytes) -> None:
    """Raise the native error for a specification; it lists the valid names."""
    with native_errors():
        text = data.decode("utf-8", "replace")
        _native.resolve_pattern(text, _ANY_CAPACITY, _ANY_SECTOR, "sim")
