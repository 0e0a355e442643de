"""uflip from Python: a function for what each verb of the command line does.

>>> import uflip
>>> result = uflip.run("sim:demo?blocks_per_die=64", "demo", scale="quick", only=["order"])
>>> result.frame().num_rows
10
>>> uflip.load("demo").status
'complete'
"""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypedDict, Unpack, overload

from uflip._native import Trace
from uflip.device.opening import open_device
from uflip.errors import unknown_name
from uflip.methodology import Plan
from uflip.result import Comparison, Result
from uflip.session import OnEvent, Request, begin, ignore
from uflip.session import resume as go_on
from uflip.spec import Spec, baseline
from uflip.units import parse_duration, parse_size

Size = str | int
"""Bytes, or a text with a unit: "4k", "1GiB"."""
Duration = str | int
"""Nanoseconds, or a text with a unit: "100ms"."""

SIZES = ("io_size", "target_size", "max_bytes_written", "size")
DURATIONS = {"pause": "pause_ns", "max_time": "max_time_ns", "io_timeout": "io_timeout_ns"}
PATHS = ("plan_file", "record")


class Options(TypedDict, total=False):
    """What `run` and `plan` take by name; each as the option of `uflip run` of that name."""

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
    size: Size
    buffered: bool
    durability: str
    data: str
    destroy: str
    io_timeout: Duration


def request(device: str, **options: Unpack[Options]) -> Request:
    """Read options as the command line does."""
    given: dict[str, Any] = dict(options)
    for name in given:
        if name not in Options.__annotations__:
            raise unknown_name("option", name, Options.__annotations__, where="uflip.run")
    for name in SIZES:
        if given.get(name) is not None:
            given[name] = parse_size(given[name], where=name)
    for name, field in DURATIONS.items():
        if (value := given.pop(name, None)) is not None:
            given[field] = parse_duration(value, where=name)
    for name in PATHS:
        if given.get(name) is not None:
            given[name] = Path(given[name])
    return Request(device=device, **given)


def run(
    device: str,
    out: str | PathLike[str] | None = None,
    *,
    on_event: OnEvent = ignore,
    **options: Unpack[Options],
) -> Result:
    """Run the micro-benchmarks on a device, and keep the results in a new folder.

    Parameters
    ----------
    device : str
        As on the command line: "sim:demo", "file:PATH", "/dev/NAME", "null".
    out : path, optional
        The folder; without it one under `results/`, named by device and time.
    on_event : callable
        Told about everything that takes time, see `uflip.session.events`.
    **options
        See `Options`.

    Returns
    -------
    Result

    Raises
    ------
    UflipError
        As `uflip.session.begin`; finished runs are kept, and `resume` makes the others.
    """
    folder = begin(request(device, **options), None if out is None else Path(out), on_event)
    return Result.load(folder)


def resume(
    folder: str | PathLike[str],
    *,
    destroy: str | None = None,
    max_time: Duration | None = None,
    on_event: OnEvent = ignore,
) -> Result:
    """Make the runs that a benchmark which was cut short did not get to.

    Parameters
    ----------
    folder : path
        Its results.
    destroy : str, optional
        The token of its block device.
    max_time : str or int, optional
        No run begins after so much time [ns].
    on_event : callable
        Told about everything that takes time.

    Returns
    -------
    Result

    Raises
    ------
    UflipError
        As `uflip.session.resume`.
    """
    max_time_ns = None if max_time is None else parse_duration(max_time, where="max_time")
    go_on(Path(folder), destroy=destroy, max_time_ns=max_time_ns, on_event=on_event)
    return Result.load(folder)


def plan(device: str, **options: Unpack[Options]) -> Plan:
    """Plan what `run` would do; nothing is touched.

    Parameters
    ----------
    device : str
        As for `run`.
    **options
        See `Options`.

    Returns
    -------
    Plan
        Its `runs` in order, what was skipped, and the pause between runs.

    Examples
    --------
    >>> len(plan("sim:demo", scale="quick", only=["pause"]).runs)
    12
    """
    wanted = request(device, **options)
    return wanted.plan(wanted.inspect())


def load(path: str | PathLike[str]) -> Result:
    """Open a result folder, finished or not.

    Parameters
    ----------
    path : path
        As `run` or `uflip run` made it.

    Returns
    -------
    Result

    Raises
    ------
    ResultsError
        If it is none, or cannot be read.
    """
    return Result.load(path)


def pattern(device: str, pattern: str | Spec, /, **options: Any) -> Trace:
    """Run one pattern on a device that is opened for it.

    Parameters
    ----------
    device : str
        As for `run`; a block device and a file of others only by `uflip.open_device`.
    pattern : str or Spec
        SR, RR, SW or RW, or a specification made by `uflip.basic`, `uflip.mix`, `uflip.parallel`.
    **options
        Of the pattern, if it is a name: io_size, io_count, target_size, ...; see `uflip.baseline`.

    Returns
    -------
    Trace
        Every I/O; `numpy.asarray(trace.column("response_time_ns"))` is a view.

    Examples
    --------
    >>> len(pattern("null", "RR", io_size="4k", io_count=100))
    100
    """
    spec = baseline(pattern, **options) if isinstance(pattern, str) else pattern
    with open_device(device) as opened:
        return opened.run(spec)


@overload
def compare(first: Result | str | Path, second: Result | str | Path, /) -> Comparison: ...
@overload
def compare(
    first: Result | str | Path, second: Result | str | Path, /, *others: Result | str | Path
) -> Comparison | tuple[Comparison, ...]: ...
def compare(
    first: Result | str | Path, second: Result | str | Path, /, *others: Result | str | Path
) -> Comparison | tuple[Comparison, ...]:
    """Compare results experiment by experiment.

    Parameters
    ----------
    first, second, *others : Result or path
        All are compared with the first.

    Returns
    -------
    Comparison, or a tuple of them
        For more than two results one for each but the first.
    """
    base, *rest = (
        each if isinstance(each, Result) else Result.load(each) for each in (first, second, *others)
    )
    found = tuple(base.compare(each) for each in rest)
    return found if others else found[0]
