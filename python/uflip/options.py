"""What `uflip.run`, `plan` and `pattern` take by name, read as the command line reads options."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, TypedDict, Unpack

from uflip.data.document import Table
from uflip.errors import UsageError, unknown_name
from uflip.session import BenchmarkRequest
from uflip.units import parse_count, parse_duration, parse_path, parse_size

Size = str | int
"""Bytes, or a text with a unit: "4k", "1GiB"."""
Duration = str | int
"""Nanoseconds, or a text with a unit."""

SIZES = ("io_size", "target_size", "max_bytes_written", "size")
DURATIONS = {"pause": "pause_ns", "max_time": "max_time_ns", "io_timeout": "io_timeout_ns"}
PATHS = ("plan_file", "record")
COUNTS = ("seed", "repetitions")
SWITCHES = ("buffered", "inside")


class DeviceOptions(TypedDict, total=False):
    """How a device is opened: what `run`, `plan` and `pattern` take by name.

    Attributes
    ----------
    size : str or int
        For a file: create it, or grow it, to this size; for the null device its size [bytes].
    buffered : bool
        Accept I/O through the page cache.
    durability, data : str
        What a write waits for: "cached", "fua" or "flush:N"; what it is: "random" or "zeros".
    destroy : str
        The token of a block device, or the path of a file of others, that may be overwritten.
    io_timeout : str or int
        How long an I/O on a real device may take [ns]; 0: for ever.
    completion : str
        How the end of an I/O in a queue is learned of: "auto", "interrupt" or "polled".
    """

    size: Size
    buffered: bool
    durability: str
    data: str
    destroy: str
    io_timeout: Duration
    completion: str


class Options(DeviceOptions, total=False):
    """What `run` and `plan` take by name; each as the option of `uflip run` of that name.

    Those of `DeviceOptions` are among them. Sizes are bytes, or texts such as "4k"; durations
    nanoseconds, or texts such as "100ms".

    Attributes
    ----------
    suite : str
        "uflip" (the micro-benchmarks of the papers), "today" (later questions) or "zones".
    scale : str
        "standard" (the ranges and counts of uFLIP §5.1) or "quick".
    only : sequence of str
        Names of micro-benchmarks; all that the device can do without it.
    seed, repetitions : int
        Of all random patterns; how often each run is made: three as in the paper, one in quick.
    io_size : str or int
        Size of the I/Os of the baselines [bytes]; 32 KiB as in the paper without it.
    pause : str or int
        Before each run [ns]; without it what the device needs, measured (uFLIP §4.3).
    method : str
        How long runs are: "auto" until their mean is known, "startup", or "paper".
    state : str
        That the device is brought into first (uFLIP §4.1): "random", "sequential" or "as-is".
    target_size, max_bytes_written : str or int
        Use only so much of the device, from its beginning; leave out runs beyond so much that is
        written [bytes]: what was left out is told, and a result of the rest is complete.
    max_time : str or int
        Leave out runs beyond so much time [ns].
    plan_file, record : path
        A plan that `uflip plan --out` wrote; the file in which the device's state is noted.
    inside : bool
        Record what happens inside a simulated device with each run.
    """

    suite: str
    scale: str
    only: Sequence[str]
    seed: int
    io_size: Size
    pause: Duration
    repetitions: int
    method: str
    state: str
    target_size: Size
    max_bytes_written: Size
    max_time: Duration
    plan_file: str | PathLike[str]
    record: str | PathLike[str]
    inside: bool


def request(device: str, **options: Unpack[Options]) -> BenchmarkRequest:
    """Read options as the command line does."""
    for name in options:
        if name not in Options.__annotations__:
            raise unknown_name("option", name, Options.__annotations__, where="options of a run")
    return BenchmarkRequest(device=device, **read_options(options))


def read_options(options: Mapping[str, object]) -> Table:
    """Read options whose names are known: sizes in bytes, durations in nanoseconds.

    Raises
    ------
    UsageError
        For a value that cannot be read, or is of another type.
    """
    return {
        DURATIONS.get(name, name): _read(name, value)
        for name, value in options.items()
        if value is not None
    }


def _read(name: str, value: Any) -> object:
    """Read the value of an option."""
    if name in SIZES:
        return parse_size(value, where=name)
    if name in DURATIONS:
        return parse_duration(value, where=name)
    if name in PATHS:
        return parse_path(value, name)
    if name in COUNTS:
        return parse_count(value, name, most=2**63 - 1)
    if name == "only":
        return [value] if isinstance(value, str) else value
    kind = bool if name in SWITCHES else str
    if isinstance(value, kind):
        return value
    raise UsageError(
        "Wrong type of an option",
        where=name,
        got=repr(value),
        allowed="True or False" if kind is bool else "a text",
        action="see uflip.options.Options",
    )
