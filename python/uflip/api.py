"""The Python interface: a function for each verb of the command line, with the same options.

>>> import uflip
>>> result = uflip.run("sim:demo?blocks_per_die=64", "demo", scale="quick", only=["order"])
>>> uflip.load("demo").frame().num_rows
10

Sizes are bytes or texts such as "4k"; durations are nanoseconds or texts such as "100ms".
"""

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar, overload

from uflip import options
from uflip.benchmark import BenchmarkRequest, OnEvent, Plan, begin, ignore
from uflip.benchmark import replay as replays
from uflip.benchmark import resume as resume_session
from uflip.benchmark.session import plan_jobs
from uflip.data.document import Table
from uflip.device.catalogue import inspect_device, verifiable
from uflip.device.opener import open_device
from uflip.device.resolve import resolve, with_resets
from uflip.errors import UsageError, unknown_name
from uflip.options import (
    Duration,
    PathName,
    Size,
    command_line,
    parse_options,
)
from uflip.pattern_options import OPENED, PATTERN, STOPPING, only_given, parse_pattern
from uflip.result import Comparison, Result
from uflip.spec import Pattern, Replay
from uflip.trace import Trace
from uflip.units import parse_path

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")


def known_keywords(function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """Let an unknown keyword raise a `UsageError` that names the nearest one."""
    known = inspect.signature(function).parameters

    @wraps(function)
    def call(*arguments: Parameters.args, **keywords: Parameters.kwargs) -> Returned:
        for name in keywords.keys() - known.keys():
            raise unknown_name("option", name, known, where=f"uflip.{function.__name__}")
        return function(*arguments, **keywords)

    return call


@known_keywords
def run(
    device: str,
    out: PathName | None = None,
    *,
    suite: str | None = None,
    scale: str | None = None,
    only: str | Sequence[str] | None = None,
    seed: int | None = None,
    io_size: Size | None = None,
    pause: Duration | None = None,
    repetitions: int | None = None,
    method: str | None = None,
    max_bytes_written: Size | None = None,
    max_time: Duration | None = None,
    budget: Duration | None = None,
    plan: PathName | None = None,
    inside: bool = False,
    state: str | None = None,
    target_size: Size | None = None,
    record: PathName | None = None,
    durability: str | None = None,
    completion: str | None = None,
    power: str | None = None,
    size: Size | None = None,
    buffered: bool = False,
    data: str = "random",
    destroy: str | None = None,
    io_timeout: Duration = "60s",
    on_event: OnEvent = ignore,
) -> Result:
    """Run the micro-benchmarks on a device and store the results in a new folder.

    Parameters
    ----------
    device : str
        As on the command line: "sim:demo", "file:PATH", "/dev/NAME", "null".
    out : path, optional
        The folder; by default one under `results/`, named by device and time.
    suite : str, optional
        "uflip" (the micro-benchmarks of the papers), the default; "today" (later questions), "iq"
        (write amplification), "zones" or "streams" (placement handles).
    scale : str, optional
        "standard" (the ranges and counts of uFLIP §5.1), the default; or "quick".
    only : str or sequence of str, optional
        Names of micro-benchmarks; by default all that the device supports.
    seed : int, optional
        Seed of all random patterns; by default 1.
    io_size : str or int, optional
        Size of the I/Os of the baselines [bytes]; by default 32 KiB as in the paper.
    pause : str or int, optional
        Pause before each run [ns]; by default 1 s, and 100 ms for quick on real devices.
    repetitions : int, optional
        Minimum number of repetitions of each run; by default three as in the paper, one in quick.
    method : str, optional
        How long runs are: "auto", until their mean has converged; "startup" or "paper".
    max_bytes_written : str or int, optional
        Skip runs beyond this amount of written data [bytes]. The result reports skipped runs.
    max_time : str or int, optional
        Skip runs beyond this time [ns].
    budget : str or int, optional
        Time for the state and all runs [ns]: reduces the plan as far as needed, with a warning for
        each reduction.
    plan : path, optional
        A plan that `uflip plan --out` wrote; it replaces the options of a plan.
    inside : bool
        Record internal events of a simulated device with each run.
    state : str, optional
        State of the device before the runs (uFLIP §4.1): "random", "sequential", "empty" or
        "as-is".
    target_size : str or int, optional
        Use only this much of the device, from its beginning [bytes].
    record : path, optional
        The file that records the state of the device.
    durability : str, optional
        When a write is complete: "cached", the default; "fua", the default with `buffered`; or
        "flush:N".
    completion : str, optional
        How completions of queued I/Os are detected: "auto", the default; "interrupt" or "polled".
    power : str, optional
        Power meter that is sampled during each run: "rapl", "hwmon:CHIP/CHANNEL" or "csv:FILE"; not
        for a simulated device.
    size : str or int, optional
        For a file: create it, or enlarge it, to this size; for the null device its size [bytes].
    buffered : bool
        Accept I/O through the page cache.
    data : str
        The written data: "random" or "zeros".
    destroy : str, optional
        Token of a block device, or path of a file of another owner, that may be overwritten.
    io_timeout : str or int
        Maximum time of an I/O on a real device [ns]; 0: no limit.
    on_event : callable
        Called with every event, see `uflip.benchmark.events`.

    Returns
    -------
    Result
        The result; `Result.frame` has a row for each experiment, times in nanoseconds.

    Raises
    ------
    UsageError
        A value that is unknown, out of range, or does not fit the device.
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
    given = locals()
    request = BenchmarkRequest(device=device, **parse_options(options.RUN, given))
    folder = None if out is None else parse_path(out, "out")
    command = command_line("run", [device, *_typed_out(folder)], options.RUN, given)
    return Result.load(begin(request, folder, on_event, command=command))


def _typed_out(folder: Path | None) -> list[str]:
    return [] if folder is None else ["--out", str(folder)]


@known_keywords
def resume(
    folder: PathName,
    *,
    device: str | None = None,
    destroy: str | None = None,
    record: PathName | None = None,
    max_time: Duration | None = None,
    power: str | None = None,
    io_timeout: Duration = "60s",
    on_event: OnEvent = ignore,
) -> Result:
    """Make the remaining runs of an interrupted benchmark.

    Parameters
    ----------
    folder : path
        The result folder.
    device : str, optional
        The device, as a check: the results contain its name.
    destroy : str, optional
        The token of its block device.
    record : path, optional
        The file that records the state of the device.
    max_time : str or int, optional
        Start no run after this time [ns].
    power : str, optional
        Power meter for the remaining runs, as for `run`.
    io_timeout : str or int
        Maximum time of an I/O on a real device [ns]; 0: no limit.
    on_event : callable
        Called with every event.

    Returns
    -------
    Result
        All runs, the old ones and the new ones.

    Raises
    ------
    UsageError
        For a value that cannot be parsed.
    ResultsError
        If the folder is not a result, is complete, is being written, or was damaged.
    DeviceError
        If the device is not the one that was measured, or fails.
    RefusedError
        If another medium is in the device, or the device was not released for writing.
    InterruptedRun
        After Ctrl-C; `resume` continues from there.
    """
    parsed = parse_options(options.RESUME, locals())
    path = parse_path(folder, "folder")
    resume_session(path, device=device, on_event=on_event, **parsed)
    return Result.load(folder)


@known_keywords
def plan(
    device: str,
    *,
    suite: str | None = None,
    scale: str | None = None,
    only: str | Sequence[str] | None = None,
    seed: int | None = None,
    io_size: Size | None = None,
    pause: Duration | None = None,
    repetitions: int | None = None,
    method: str | None = None,
    max_bytes_written: Size | None = None,
    max_time: Duration | None = None,
    budget: Duration | None = None,
    state: str | None = None,
    target_size: Size | None = None,
    record: PathName | None = None,
    size: Size | None = None,
    buffered: bool = False,
    durability: str | None = None,
    plan: PathName | None = None,
) -> Plan:
    """Return the plan that `run` would carry out; the device is not written to.

    Parameters
    ----------
    device, suite, scale, only, seed, io_size, pause, repetitions, method
        As for `run`.
    max_bytes_written, max_time, budget, state, target_size, record
        As for `run`.
    size, buffered, durability, plan
        As for `run`.

    Returns
    -------
    Plan
        Its `runs` in order, each with its `spec`; the `skipped` runs with reasons; the pause
        between runs `pause_ns`. For an open-channel device each `spec` is a job.

    Raises
    ------
    UsageError
        A value that is unknown, out of range, or does not fit the device.
    DeviceError
        If the device does not exist, or cannot be inspected.

    Examples
    --------
    >>> len(plan("sim:demo", scale="quick", only=["pause"]).runs)
    15
    """
    request = BenchmarkRequest(device=device, **parse_options(options.PLAN, locals()))
    return plan_jobs(request)[1] if request.is_open_channel else request.plan(request.inspect())


@known_keywords
def replay(
    trace: PathName,
    device: str,
    out: PathName | None = None,
    *,
    format: str | None = None,  # noqa: A002 - the name of the option
    columns: str | None = None,
    fit: str = "refuse",
    address_scale: float = 1.0,
    address_offset: Size = "0",
    speed: float | None = None,
    queue_depth: int | None = None,
    durability: str | None = None,
    completion: str | None = None,
    power: str | None = None,
    size: Size | None = None,
    buffered: bool = False,
    data: str = "random",
    destroy: str | None = None,
    io_timeout: Duration = "60s",
    on_event: OnEvent = ignore,
) -> Result:
    r"""Replay the I/Os of a trace on a device and store the results in a new folder.

    Parameters
    ----------
    trace : path
        A trace of fio, blkparse, the SNIA and others (docs/reference/formats.md), or a run of a
        result.
    device : str
        As for `run`.
    out : path, optional
        The folder; by default one under `results/`, named by device and time.
    format : str, optional
        "fio", "blkparse", "msr", "uflip", ...; by default recognised.
    columns : str, optional
        Columns of another table, as "time_us=5,offset=3,size=4,op=2".
    fit : str
        Treatment of I/Os beyond the end of the device: "refuse" the trace, "wrap" to the
        beginning, or "scale" all offsets in proportion.
    address_scale : float
        Factor of all offsets, before `address_offset` and `fit`.
    address_offset : int or str
        Bytes added to all offsets, as 4096 or "-1MiB".
    speed : float, optional
        Speed-up factor of an open loop: 1 submits I/Os at their recorded times. By default each
        I/O follows the one before.
    queue_depth : int, optional
        Maximum number of I/Os in flight; by default 1, in an open loop the limit of the device.
    durability, completion, power, size, buffered, data, destroy, io_timeout, on_event
        As for `run`.

    Returns
    -------
    Result
        One run, with a warning for each change of the trace.

    Raises
    ------
    UsageError
        A value that is unknown or out of range, or a trace that does not fit the device.
    RefusedError
        A block device or file that was not released for writing, or that is in use.
    DeviceError
        The device fails, or does not answer in time.
    ResultsError
        The trace cannot be read; or the folder exists already, or cannot be written.
    InterruptedRun
        After Ctrl-C.

    Examples
    --------
    >>> _ = Path("trace.csv").write_text("1,host,0,Write,0,4096,0\n20,host,0,Read,0,4096,0\n")
    >>> replay("trace.csv", "sim:demo?blocks_per_die=64", "replayed", format="msr").status
    'complete'
    """
    given = locals()
    fitted = parse_options(options.FIT, given)
    path = parse_path(trace, "trace")
    request = BenchmarkRequest(device=device, **parse_options(OPENED, given))
    folder = None if out is None else parse_path(out, "out")
    arguments = [path, device, *_typed_out(folder)]
    command = command_line("replay", arguments, options.REPLAY, given)
    replay_request = replays.ReplayRequest(trace=path, **fitted)
    return Result.load(replays.replay(request, replay_request, folder, on_event, command=command))


def load(path: PathName) -> Result:
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
        If the path is not a result, is of another version, or cannot be read.
    UnavailableError
        If a site does not answer.

    Examples
    --------
    >>> _ = run("sim:demo?blocks_per_die=64", "demo", scale="quick", only=["order"])
    >>> load("demo").status
    'complete'
    """
    return Result.load(path)


@known_keywords
def pattern(
    device: str,
    pattern: str | Pattern | None = None,
    *,
    mode: str | None = None,
    location: str | None = None,
    time: str | None = None,
    io_size: Size | None = None,
    io_shift: Size | None = None,
    target_offset: Size | None = None,
    target_size: Size | None = None,
    partitions: int | None = None,
    incr: int | None = None,
    skew_percent: int | None = None,
    hot_space_percent: int | None = None,
    hot_io_percent: int | None = None,
    zone_ios: int | None = None,
    open_zones: int | None = None,
    zone_capacity_ios: int | None = None,
    random_turns: int | None = None,
    write_stream: int | None = None,
    hot_write_stream: int | None = None,
    compress_percent: int | None = None,
    duplicate_percent: int | None = None,
    pause: Duration | None = None,
    burst: int | None = None,
    interval: Duration | None = None,
    parallel_degree: int | None = None,
    queue_depth: int | None = None,
    io_count: int | None = None,
    io_ignore: int | None = None,
    run_time: Duration | None = None,
    ramp_time: Duration | None = None,
    seed: int | None = None,
    mix: str | None = None,
    ratio: int | None = None,
    first_percent: int | None = None,
    bssplit: str | None = None,
    until_converged: bool = False,
    confidence: float | None = None,
    half_width: float | None = None,
    min_ios: int | None = None,
    max_ios: int | None = None,
    max_time: Duration | None = None,
    max_bytes_written: Size | None = None,
    verify: bool = False,
    durability: str | None = None,
    completion: str | None = None,
    power: str | None = None,
    size: Size | None = None,
    buffered: bool = False,
    data: str = "random",
    destroy: str | None = None,
    io_timeout: Duration = "60s",
) -> Trace:
    """Open a device, run one pattern on it, and close it.

    A pattern is a baseline (`pattern`), a mode and a location, or a specification. Parameters that
    are not given have the defaults of uFLIP Table 1.

    Parameters
    ----------
    device : str
        As for `run`.
    pattern : str, Basic, Mix or Parallel, optional
        SR, RR, SW or RW: mode and location in one; or a specification made by `uflip.basic`,
        `uflip.mix`, `uflip.parallel`, which excludes all parameters from `mode` to
        `max_bytes_written`.
    mode : str, optional
        Operation of the I/Os: "read", "write", "trim", ....
    location : str, optional
        Order of the addresses: one of `uflip.spec.LOCATIONS`, such as "sequential", "random".
    time : str, optional
        When I/Os are submitted: "consecutive", "pause", "burst", "fixed", "poisson".
    io_size, io_shift : str or int, optional
        Size of an I/O, and shift of every address against its multiples [bytes].
    target_offset, target_size : str or int, optional
        Start and size of the target space [bytes].
    partitions, incr : int, optional
        Partitions of the target ("partitioned"); increment in I/Os, also negative ("ordered").
    skew_percent, hot_space_percent, hot_io_percent : int, optional
        Zipf's θ in hundredths; hot share of the target, and of the I/Os [%].
    zone_ios, open_zones, zone_capacity_ios, random_turns : int, optional
        For "zones": I/Os of a zone, zones written in turn, I/Os after which a zone is full (0:
        all), and 1 for writes at the write pointers of random open zones.
    write_stream, hot_write_stream : int, optional
        Write stream of the I/Os, and of the hot area.
    compress_percent, duplicate_percent : int, optional
        Share of the written data that compression removes, and of its blocks that are duplicates
        [%].
    pause, interval : str or int, optional
        Length of a pause; mean time between arrivals [ns].
    burst : int, optional
        I/Os between two pauses.
    parallel_degree, queue_depth : int, optional
        Number of processes, each in its part of the target; I/Os of each in flight.
    io_count, io_ignore : int, optional
        I/Os of each process, and how many at the start the statistics ignore.
    run_time, ramp_time : str or int, optional
        Time of the run, and time before it that the statistics ignore [ns].
    seed : int, optional
        Seed of random addresses.
    mix : str, optional
        Mix in a second baseline, by `ratio` or `first_percent`.
    ratio, first_percent : int, optional
        I/Os of the first pattern for each of the second; or the probability of the first [%].
    bssplit : str, optional
        Sizes of random I/Os, drawn by weights, as in fio: "4k/60:64k/40".
    until_converged : bool
        Run until the mean has converged, instead of `io_count` I/Os.
    confidence, half_width : float, optional
        Confidence of the interval, and its required half-width relative to the mean.
    min_ios, max_ios : int, optional
        Minimum and maximum number of I/Os of a run until convergence.
    max_time, max_bytes_written : str or int, optional
        Maximum time [ns] and amount of written data [bytes] of a run until convergence.
    verify : bool
        Write data with a stamp in every sector, read all of it after the run, and compare.
    durability, completion, power, size, buffered, data, destroy, io_timeout
        As for `run`.

    Returns
    -------
    Trace
        Every I/O, in the order of submission; `numpy.asarray(trace.column("response_time_ns"))`
        (n,) [ns] is a view. `mean` and `percentiles([50, 99])` are in nanoseconds without the
        start-up; `plot()` draws it.

    Raises
    ------
    UsageError
        A value that is unknown, or does not fit the device; parameters of a pattern together with
        a specification. Nothing was touched.
    DeviceError
        If the device cannot be opened, or an I/O fails; with `verify`, if data differs.
    RefusedError
        If the device was not released for writing.
    InterruptedRun
        After Ctrl-C; the trace is lost.

    Examples
    --------
    >>> trace = pattern("sim:demo", pattern="RW", io_size="4k", io_count=100)
    >>> len(trace), bool(trace.mean > trace.percentiles([50])[0] > 0)
    (100, True)
    >>> trace = pattern("file:new.bin", "RW", size="1MiB", buffered=True, io_count=10)
    """
    given = locals()
    opening = parse_options(OPENED, given)
    spec = _specification(given)
    if verify:
        device = verifiable(device)
    # Check everything before anything is created or opened for writing.
    parsed_size = opening.get("size")
    info = inspect_device(device, size=parsed_size, buffered=buffered)
    if not isinstance(spec, Replay):
        spec = with_resets(spec, info)
    resolve(spec, info)
    with open_device(device, writable=spec.writes or parsed_size is not None, **opening) as opened:
        return opened.run(spec, verify=verify)


def _specification(given: Table) -> Pattern:
    """Return the specification that the arguments of `pattern` describe."""
    described, pattern = (*PATTERN, *STOPPING), given["pattern"]
    if not isinstance(pattern, Pattern):
        return parse_pattern(only_given(parse_options(described, given)))
    chosen = only_given({option.name: given[option.name] for option in described[1:]})
    if chosen:
        raise UsageError(
            "A specification cannot be combined with parameters of a pattern",
            where="uflip.pattern",
            got=", ".join(chosen),
            allowed=", ".join(option.name for option in OPENED),
            action="give them where the specification is made, or to its method `but`",
        )
    return pattern


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
