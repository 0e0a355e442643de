"""Base classes and fields of specifications: see `uflip.data.spec`."""

from typing import Annotated, Any, Literal, Self, get_args

import msgspec
from msgspec import Meta, Struct

from uflip.errors import UsageError, unknown_name

Mode = Literal["read", "write", "trim", "append", "reset", "finish", "open", "close"]
Location = Literal["sequential", "random", "ordered", "partitioned", "zipf", "hotcold"]
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
DRAWN = ("random", "zipf", "hotcold")
"""Random locations."""
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
    write_stream, hot_write_stream, pause, burst, interval : as of a `Basic`
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
    write_stream: Whole | None = None
    hot_write_stream: Whole | None = None
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

        Raises
        ------
        UsageError
            For an unknown field.

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
