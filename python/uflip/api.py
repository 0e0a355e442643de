"""The Python interface: one function for each verb of the command line.

>>> import uflip
>>> result = uflip.run("sim:demo?blocks_per_die=64", "demo", scale="quick", only=["order"])
>>> uflip.load("demo").frame().num_rows
10
"""

from os import PathLike
from pathlib import Path
from typing import Any, Unpack, overload

from uflip._native import Trace
from uflip.benchmark import OnEvent, Plan, begin, ignore
from uflip.benchmark import resume as resume_session
from uflip.benchmark.open_channel import plan_jobs
from uflip.data.document import Table
from uflip.device.catalogue import inspect_device
from uflip.device.opener import open_device
from uflip.device.resolve import resolve
from uflip.errors import UsageError, unknown_name
from uflip.options import DeviceOptions, Duration, Options, read_options, request
from uflip.pattern_options import NAMES, only_given, parse_pattern
from uflip.result import Comparison, Result
from uflip.spec import Pattern
from uflip.units import parse_duration, parse_path


def run(
    device: str,
    out: str | PathLike[str] | None = None,
    *,
    on_event: OnEvent = ignore,
    **options: Unpack[Options],
) -> Result:
    """Run the micro-benchmarks on a device and store the results in a new folder.

    Parameters
    ----------
    device : str
        As on the command line: "sim:demo", "file:PATH", "/dev/NAME", "null".
    out : path, optional
        The folder; by default one under `results/`, named by device and time.
    on_event : callable
        Called with every event, see `uflip.benchmark.events`.
    **options
        See `Options`.

    Returns
    -------
    Result
        The result; `Result.frame` has a row for each experiment, times in nanoseconds.

    Raises
    ------
    UsageError
        An option that is unknown, out of range, or does not fit the device.
    RefusedError
        A block device or file that was not released for writing, or that is in use.
    DeviceError
        The device fails, or does not answer in time. Finished runs are stored.
    ResultsError
        The folder exists already, or cannot be written.
    InterruptedRun
        After Ctrl-C. Finished runs are stored; `resume` makes the others.

    Examples
    --------
    >>> result = run("sim:demo?blocks_per_die=64", "demo", scale="quick", only=["order"])
    >>> len(result.runs), result.device.simulated
    (13, True)
    """
    new = None if out is None else parse_path(out, "out")
    folder = begin(request(device, **options), new, on_event)
    return Result.load(folder)


def resume(
    folder: str | PathLike[str],
    *,
    destroy: str | None = None,
    max_time: Duration | None = None,
    on_event: OnEvent = ignore,
) -> Result:
    """Make the remaining runs of an interrupted benchmark.

    Parameters
    ----------
    folder : path
        The result folder.
    destroy : str, optional
        The token of its block device.
    max_time : str or int, optional
        Start no run after this time [ns].
    on_event : callable
        Called with every event.

    Returns
    -------
    Result
        All runs, the old ones and the new ones.

    Raises
    ------
    ResultsError
        If the folder is not a result, is complete, is being written, or was damaged.
    DeviceError
        If the device is not the one that was measured, or fails.
    RefusedError
        If another medium is in the device, or the device was not released for writing.
    InterruptedRun
        After Ctrl-C; `resume` continues from there.
    """
    max_time_ns = None if max_time is None else parse_duration(max_time, where="max_time")
    path = parse_path(folder, "folder")
    resume_session(path, destroy=destroy, max_time_ns=max_time_ns, on_event=on_event)
    return Result.load(folder)


def plan(device: str, **options: Unpack[Options]) -> Plan:
    """Return the plan that `run` would carry out; the device is not written to.

    Parameters
    ----------
    device : str
        As for `run`.
    **options
        See `Options`.

    Returns
    -------
    Plan
        Its `runs` in order, each with its `spec`; the `skipped` runs with reasons; the pause
        between runs `pause_ns`. For an open-channel device each `spec` is a job.

    Raises
    ------
    UsageError
        An option that is unknown, out of range, or does not fit the device.
    DeviceError
        If the device does not exist, or cannot be inspected.

    Examples
    --------
    >>> len(plan("sim:demo", scale="quick", only=["pause"]).runs)
    15
    """
    benchmark = request(device, **options)
    if benchmark.is_open_channel:
        return plan_jobs(benchmark)[1]
    return benchmark.plan(benchmark.inspect())


def load(path: str | PathLike[str]) -> Result:
    """Open a result folder, finished or not, or a result on a results site.

    Parameters
    ----------
    path : path or str
        A folder that `run` or `uflip run` wrote; or a URL on a results site, which is downloaded.

    Returns
    -------
    Result
        Only the manifest is read at once; everything else on first use.

    Raises
    ------
    ResultsError
        If the path is not a result, is of a newer version of uflip, or cannot be read.
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
    """Open a device, run one pattern on it, and close it.

    Parameters
    ----------
    device : str
        As for `run`.
    pattern : str, Basic, Mix or Parallel
        SR, RR, SW or RW (uFLIP Table 1), or a specification made by `uflip.basic`, `uflip.mix`,
        `uflip.parallel`.
    **options
        Options of the device: size, durability, destroy, ..., see `uflip.options.DeviceOptions`.
        For a pattern given by name, also the options of `uflip pattern`: io_size, io_count,
        target_size, ...; mix and ratio or first_percent; until_converged with max_time, max_ios,
        ....

    Returns
    -------
    Trace
        Every I/O, in the order of submission; `numpy.asarray(trace.column("response_time_ns"))`
        (n,) [ns] is a view.

    Raises
    ------
    UsageError
        A name or value that is unknown, or does not fit the device; options of a pattern together
        with a specification. Nothing was touched.
    DeviceError
        If the device cannot be opened, or an I/O fails.
    RefusedError
        If the device was not released for writing.
    InterruptedRun
        After Ctrl-C; the trace is lost.

    Examples
    --------
    >>> len(pattern("null", "RR", io_size="4k", io_count=100))
    100
    >>> trace = pattern("file:new.bin", "RW", size="1MiB", buffered=True, io_count=10)
    """
    device_options = {name: options.pop(name) for name in [*options] if name in _DEVICE_OPTIONS}
    chosen = only_given(options)
    spec = _pattern_by_name(pattern, chosen) if not isinstance(pattern, Pattern) else pattern
    if chosen and spec is pattern:
        raise UsageError(
            "A specification cannot be combined with options of a pattern",
            where="uflip.pattern",
            got=", ".join(chosen),
            allowed=", ".join(_DEVICE_OPTIONS),
            action="give the options where the specification is made, or to its method `but`",
        )
    parsed = read_options(device_options)
    # Check everything before anything is created or opened for writing.
    size, buffered = parsed.get("size"), parsed.get("buffered", False)
    resolve(spec, inspect_device(device, size=size, buffered=buffered))
    with open_device(device, writable=spec.writes or size is not None, **parsed) as opened:
        return opened.run(spec)


_DEVICE_OPTIONS = tuple(DeviceOptions.__annotations__)


def _pattern_by_name(name: str, chosen: Table) -> Pattern:
    """Return the specification of a pattern that is given by name and options."""
    allowed = [each for each in NAMES if each not in ("pattern", "mode", "location")]
    for each in chosen:
        if each not in allowed:
            raise unknown_name("option", each, [*allowed, *_DEVICE_OPTIONS], where="uflip.pattern")
    return parse_pattern({"pattern": name, **chosen})


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
        One for each result but the first. `rows` has one entry per experiment, with the ratio of
        the means, second over first, and its interval; `conditions` lists the other differences.

    Raises
    ------
    ResultsError
        If one of them is not a result, cannot be read, or they have nothing in common.

    Examples
    --------
    >>> options = {"scale": "quick", "only": ["order"]}
    >>> slow = run("sim:demo?blocks_per_die=64", "slow", **options)
    >>> fast = run("sim:demo?blocks_per_die=64&channels=8", "fast", **options)
    >>> len(compare(slow, "fast").rows)
    10
    """
    base, *compared = (
        each if isinstance(each, Result) else Result.load(each) for each in (first, second, *others)
    )
    comparisons = tuple(base.compare(each) for each in compared)
    return comparisons if others else comparisons[0]
