"""Keyword options of `uflip.run`, `plan` and `pattern`, parsed as the command line parses them."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, TypedDict, Unpack

from uflip.benchmark import BenchmarkRequest
from uflip.data.document import Table
from uflip.errors import UsageError, unknown_name
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
    """Options for opening a device: keywords of `run`, `plan` and `pattern`.

    Attributes
    ----------
    size : str or int
        For a file: create it, or grow it, to this size; for the null device its size [bytes].
    buffered : bool
        Accept I/O through the page cache.
    durability, data : str
        When a write is complete: "cached", "fua" or "flush:N"; its data: "random" or "zeros".
    destroy : str
        Token of a block device, or path of a file of another owner, that may be overwritten.
    io_timeout : str or int
        Maximum time of an I/O on a real device [ns]; 0: no limit.
    completion : str
        How completions of queued I/Os are detected: "auto", "interrupt" or "polled".
    """

    size: Size
    buffered: bool
    durability: str
    data: str
    destroy: str
    io_timeout: Duration
    completion: str


class Options(DeviceOptions, total=False):
    """Keyword options of `run` and `plan`; each is the option of `uflip run` of that name.

    Those of `DeviceOptions` are included. Sizes are bytes, or texts such as "4k"; durations are
    nanoseconds, or texts such as "100ms".

    Attributes
    ----------
    suite : str
        "uflip" (the micro-benchmarks of the papers), "today" (later questions) or "zones".
    scale : str
        "standard" (the ranges and counts of uFLIP §5.1) or "quick".
    only : sequence of str
        Names of micro-benchmarks; by default all that the device supports.
    seed, repetitions : int
        Seed of all random patterns; repetitions of each run: three as in the paper, one in quick.
    io_size : str or int
        Size of the I/Os of the baselines [bytes]; by default 32 KiB as in the paper.
    pause : str or int
        Pause before each run [ns]; by default as long as the device needs, measured (uFLIP §4.3).
    method : str
        How long runs are: "auto" until their mean is known, "startup", or "paper".
    state : str
        State of the device before the runs (uFLIP §4.1): "random", "sequential" or "as-is".
    target_size, max_bytes_written : str or int
        Use only this much of the device, from its beginning; skip runs beyond this amount of
        written data [bytes]. Skipped runs are reported; a result of the others is complete.
    max_time : str or int
        Skip runs beyond this time [ns].
    plan_file, record : path
        A plan that `uflip plan --out` wrote; the file that records the device's state.
    inside : bool
        Record internal events of a simulated device with each run.
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
    """Parse options as the command line does."""
    for name in options:
        if name not in Options.__annotations__:
            raise unknown_name("option", name, Options.__annotations__, where="options of a run")
    return BenchmarkRequest(device=device, **read_options(options))


def read_options(options: Mapping[str, object]) -> Table:
    """Parse options with valid names: sizes to bytes, durations to nanoseconds.

    Raises
    ------
    UsageError
        For a value that cannot be parsed, or has another type.
    """
    return {
        DURATIONS.get(name, name): _read(name, value)
        for name, value in options.items()
        if value is not None
    }


def _read(name: str, value: Any) -> object:
    """Parse the value of an option."""
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
