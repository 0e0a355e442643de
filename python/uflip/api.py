"""uflip from Python: a function for what each verb of the command line does.

>>> import uflip
>>> result = uflip.run("sim:demo?blocks_per_die=64", "demo", scale="quick", only=["order"])
>>> uflip.load("demo").frame().num_rows
10
"""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypedDict, Unpack, overload

from uflip._native import Trace
from uflip.data.document import Table
from uflip.device.opening import open_device
from uflip.errors import unknown_name
from uflip.methodology import Plan
from uflip.result import Comparison, Result
from uflip.session import OnEvent, Request, begin, ignore
from uflip.session import resume as go_on
from uflip.spec import Pattern, baseline
from uflip.units import parse_duration, parse_size

Size = str | int
"""Bytes, or a text with a unit: "4k", "1GiB"."""
Duration = str | int
"""Nanoseconds, or a text with a unit."""

SIZES = ("io_size", "target_size", "max_bytes_written", "size")
DURATIONS = {"pause": "pause_ns", "max_time": "max_time_ns", "io_timeout": "io_timeout_ns"}
PATHS = ("plan_file", "record")


class Options(TypedDict, total=False):
    """What `run` and `plan` take by name; each as the option of `uflip run` of that name.

    Sizes are bytes, or texts such as "4k"; durations nanoseconds, or texts such as "100ms".

    Attributes
    ----------
    suite : str
        "uflip" (the micro-benchmarks of the papers) or "today" (extensions).
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
        Use only so much of the device, from its beginning; refuse a plan that writes more [bytes].
    max_time : str or int
        No run begins after so much time [ns].
    plan_file, record : path
        A plan that `uflip plan --out` wrote; the file in which the device's state is noted.
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
    size: Size
    buffered: bool
    durability: str
    data: str
    destroy: str
    io_timeout: Duration
    completion: str
    inside: bool


def request(device: str, **options: Unpack[Options]) -> Request:
    """Read options as the command line does."""
    given: Table = dict(options)
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
        What was found; `Result.frame` has a row for each experiment, times in nanoseconds.

    Raises
    ------
    UsageError
        An option that is unknown, out of range, or does not fit the device.
    RefusedError
        A block device or file that nobody gave up, or that is in use; or a plan that writes more,
        or takes longer, than it may.
    DeviceError
        The device fails, or does not answer in time. Finished runs are kept.
    ResultsError
        The folder is there already, or cannot be written.
    InterruptedRun
        After Ctrl-C. Finished runs are kept, and `resume` makes the others.

    Examples
    --------
    >>> result = run("sim:demo?blocks_per_die=64", "demo", scale="quick", only=["order"])
    >>> len(result.runs), result.device.simulated
    (13, True)
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
        The whole: what was there, and what was made now.

    Raises
    ------
    ResultsError
        If it is no result folder, is complete, is being written, or was damaged.
    DeviceError
        If the device is another one than was measured, or fails.
    RefusedError
        If another medium is in it, or nobody gives it up.
    InterruptedRun
        After Ctrl-C; once more goes on from there.
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
        Its `runs` in order, each with its `spec`; what was `skipped`, with reasons; the pause
        between runs `pause_ns`.

    Raises
    ------
    UsageError
        An option that is unknown, out of range, or does not fit the device.
    DeviceError
        If the device is not there, or cannot be inspected.

    Examples
    --------
    >>> len(plan("sim:demo", scale="quick", only=["pause"]).runs)
    15
    """
    wanted = request(device, **options)
    return wanted.plan(wanted.inspect())


def load(path: str | PathLike[str]) -> Result:
    """Open a result folder, finished or not, or a result of a results site.

    Parameters
    ----------
    path : path or str
        As `run` or `uflip run` made it; or its address on a results site, fetched until the end.

    Returns
    -------
    Result
        Nothing but the manifest is read until it is asked for.

    Raises
    ------
    ResultsError
        If it is none, is of a newer version of uflip, or cannot be read.
    UnavailableError
        If a site does not answer.

    Examples
    --------
    >>> _ = run("sim:demo?blocks_per_die=64", "demo", scale="quick", only=["order"])
    >>> load("demo").status
    'complete'
    """
    return Result.load(path)


def pattern(device: str, pattern: str | Pattern, /, **options: Any) -> Trace:
    """Run one pattern on a device that is opened for it.

    Parameters
    ----------
    device : str
        As for `run`; a block device and a file of others only by `uflip.open_device`.
    pattern : str, Basic, Mix or Parallel
        SR, RR, SW or RW (uFLIP Table 1), or a specification made by `uflip.basic`, `uflip.mix`,
        `uflip.parallel`.
    **options
        Of the pattern, if it is a name: io_size, io_count, target_size, ...; see `uflip.baseline`.

    Returns
    -------
    Trace
        Every I/O, in the order of submission; `numpy.asarray(trace.column("response_time_ns"))`
        (n,) [ns] is a view.

    Raises
    ------
    UsageError
        A name or value that is unknown, or does not fit the device.
    DeviceError
        If the device cannot be opened, or an I/O fails.
    RefusedError
        If the device is one that nobody gave up.
    InterruptedRun
        After Ctrl-C; no part of the trace is kept.

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
        For more than two results one for each but the first. `rows` has an experiment each, with
        the ratio of the means, second over first, and its interval; `conditions` what else differs.

    Raises
    ------
    ResultsError
        If one of them is none, cannot be read, or they have nothing in common.

    Examples
    --------
    >>> options = {"scale": "quick", "only": ["order"]}
    >>> slow = run("sim:demo?blocks_per_die=64", "slow", **options)
    >>> fast = run("sim:demo?blocks_per_die=64&channels=8", "fast", **options)
    >>> len(compare(slow, "fast").rows)
    10
    """
    base, *rest = (
        each if isinstance(each, Result) else Result.load(each) for each in (first, second, *others)
    )
    found = tuple(base.compare(each) for each in rest)
    return found if others else found[0]
