"""What specifications are made of, and what every one of them has: see `uflip.data.spec`."""

from typing import Annotated, Any, Literal, Self, get_args

import msgspec
from msgspec import Meta, Struct

from uflip.errors import UsageError, unknown_name

Mode = Literal["read", "write", "trim", "append", "reset", "finish", "open", "close"]
Location = Literal["sequential", "random", "ordered", "partitioned", "zipf", "hotcold"]
Time = Literal["consecutive", "pause", "burst", "fixed", "poisson"]
MODES: tuple[str, ...] = get_args(Mode)
PLURALS = {mode: "finishes" if mode == "finish" else f"{mode}s" for mode in MODES}
"""What I/Os of a mode are called together."""
DATA_MODES = ("read", "write", "append")
"""Those that move data."""
ZONE_MODES = ("append", "reset", "finish", "open", "close")
"""Those that only devices with zones know."""
LOCATIONS: tuple[str, ...] = get_args(Location)
TIMES: tuple[str, ...] = get_args(Time)
DRAWN = ("random", "zipf", "hotcold")
"""Locations that chance decides."""
OPEN_TIMES = ("fixed", "poisson")
"""Times of an open loop."""

Whole = Annotated[int, Meta(ge=0)]
"""What the native part reads as 64 bits without a sign."""


class SpecBase(
    Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, repr_omit_defaults=True
):
    """How specifications are read and written: no other keys, and none that was not given."""


class Stop(SpecBase, frozen=True):
    """When a run ends whose length is not given: its mean is known, or its budget is used up.

    Attributes
    ----------
    confidence, half_width : float or None
        The mean must be known that well: probability, and part of the mean.
    min_ios, max_ios : int or None
        Fewest and most I/Os of each process.
    max_time_ns : int or None
        Longest time [ns].
    max_bytes_written : int or None
        Most that is written [bytes].
    """

    confidence: float | None = None
    half_width: float | None = None
    min_ios: Whole | None = None
    max_ios: Whole | None = None
    max_time_ns: Whole | None = None
    max_bytes_written: Whole | None = None

    @property
    def fewest(self) -> int:
        """Fewest I/Os, of a rule that says it."""
        return given(self.min_ios, "stop.min_ios")

    @property
    def most(self) -> int:
        """Most I/Os, of a rule that says it."""
        return given(self.max_ios, "stop.max_ios")


class MixPart(SpecBase, frozen=True):
    """A basic pattern within a mix: what both have is with the mix.

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
        """Whether they say that what is there is not needed any more."""
        return self.mode == "trim"

    @property
    def moves_data(self) -> bool:
        """Whether they read or write: no trims, nor commands to zones."""
        return self.mode in DATA_MODES

    @property
    def is_sequential_write(self) -> bool:
        """Whether they change what is stored, at places that no chance decides: trims as well."""
        return self.mode != "read" and self.location not in DRAWN

    @property
    def io_bytes(self) -> int:
        """Size of an I/O [bytes], of a pattern that says it."""
        return given(self.io_size, "io_size")

    @property
    def target_bytes(self) -> int:
        """Size of the target space [bytes], of a pattern that says it."""
        return given(self.target_size, "target_size")

    @property
    def shift(self) -> int:
        """Distance of its I/Os from multiples of their size [bytes]."""
        return self.io_shift or 0

    @property
    def begin(self) -> int:
        """Where the target space begins [bytes]."""
        return self.target_offset or 0

    @property
    def end(self) -> int:
        """Where it ends [bytes]."""
        return self.begin + self.target_bytes

    @property
    def processes(self) -> int:
        """How many processes make it."""
        return 1


class Spec:
    """What one run asks of the engine: a `Basic`, `Mix`, `Parallel`, `Replay` or `Job`.

    Two are equal if they ask for the same; `but` makes one that differs.
    """

    __slots__ = ()

    def but(self, **changes: Any) -> Self:
        """Return the same with other values of some fields.

        Parameters
        ----------
        **changes
            Field -> its value; None: not given.

        Raises
        ------
        UsageError
            For a name that it does not have.

        Examples
        --------
        >>> from uflip.spec import basic
        >>> basic("read", "random", io_size=512).but(io_size=None, seed=7)
        Basic(mode='read', location='random', seed=7)
        """
        known: tuple[str, ...] = self.__struct_fields__  # type: ignore[attr-defined]
        for name in changes:
            if name not in known:
                raise unknown_name("parameter", name, known, where="but")
        return msgspec.structs.replace(self, **changes)  # type: ignore[type-var]

    @property
    def parts(self) -> tuple[MixPart, ...]:
        """The basic patterns that it is made of, in order; none of a replay or a job."""
        return ()

    @property
    def stop(self) -> Stop | None:
        """When it ends, where its length is not given."""
        return None

    @property
    def depth(self) -> int:
        """How many I/Os of a process are under way at a time."""
        return getattr(self, "queue_depth", None) or 1

    @property
    def io_count(self) -> int | None:
        """I/Os of each process, ignored ones included; of a mix those of its rarer pattern."""
        return None

    @property
    def io_ignore(self) -> int | None:
        """How many of them, at the start, are left out of the statistics."""
        return None

    @property
    def seed(self) -> int | None:
        """Of random addresses."""
        return None

    @property
    def ios(self) -> int:
        """`io_count`, of a specification that says it."""
        return given(self.io_count, "io_count")

    @property
    def ignored_ios(self) -> int:
        """`io_ignore`, of a specification that says it."""
        return given(self.io_ignore, "io_ignore")

    @property
    def most_ios(self) -> int:
        """As `ios`; of a run that finds its own length the most that it may make."""
        return self.ios if self.stop is None else self.stop.most

    @property
    def writes(self) -> bool:
        """Whether any I/O changes what is stored: a write, or a trim."""
        return any(part.mode != "read" for part in self.parts)

    @property
    def writes_sequentially(self) -> bool:
        """Whether it holds sequential, ordered or partitioned writes.

        These disturb the state of a device most, so that a plan keeps their targets apart
        (uFLIP §4.1).
        """
        return any(part.is_sequential_write for part in self.parts)

    @property
    def is_open(self) -> bool:
        """Whether I/Os arrive at instants of their own, whatever became of those before."""
        return False

    @property
    def sequential_targets(self) -> list[tuple[int, int]]:
        """Where it writes sequentially: (begin, end) of each target [bytes].

        Examples
        --------
        >>> from uflip.spec import baseline
        >>> baseline("SW", target_offset=4096, target_size=8192).sequential_targets
        [(4096, 12288)]
        """
        return [(part.begin, part.end) for part in self.parts if part.is_sequential_write]


def given(value: int | None, name: str) -> int:
    """Return a value that a specification says; its name is for the error where it does not."""
    if value is None:
        raise UsageError(
            f"The pattern does not say its {name}",
            where=name,
            action=f"write {name} into its specification",
        )
    return value
