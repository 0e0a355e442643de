"""`uflip run`: the micro-benchmarks on a device, into a new result folder."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import click

from uflip.cli.completion import propose_devices
from uflip.cli.options import (
    add_options,
    check_resume_options,
    check_target,
    click_option,
    executor_options,
    json_option,
    no_cache_option,
    no_device,
    on_executor,
    path_option,
    quiet_option,
)
from uflip.cli.progress import Sink, display, with_time_left
from uflip.cli.show import show_results
from uflip.cli.terminal import echo, echo_json, echo_table
from uflip.cli.time_rows import live_interval, live_options
from uflip.errors import InterruptedRun, UsageError
from uflip.options import DESTROY, RESUME, RUN

if TYPE_CHECKING:
    from uflip.benchmark import BenchmarkRequest
    from uflip.benchmark.multi_device import DeviceOutcome

EPILOG = """\b
Examples:
  uflip run sim:demo --out results/demo
  uflip run file:scratch.bin --size 1GiB --out results/disk --scale quick
  uflip run file:scratch.bin --only granularity,order
  uflip run --resume results/disk
  uflip run /dev/nvme1n1 --destroy "TOKEN"      (see `uflip devices`)
  uflip run sim:demo sim:mtron file:scratch.bin --out results/three
  uflip run rack3@/dev/sdb rack4@/dev/sdb --scheduler tls://rack:8786   (drives of other machines)

\b
With several devices, or with --jobs, --workers, --scheduler or --together, FOLDER contains a
result folder for each device. Real devices are measured one after the other, then simulated ones on
all cores. A failed device does not stop the others; the exit code is that of the first failure.

\b
Ctrl-C ends the current run; finished runs are stored, and --resume continues with the rest. Without
a terminal, progress is a line every 5 seconds, later every minute; UFLIP_PROGRESS changes the 5,
and 0 disables the lines.
"""

# A line has space for this number of names.
MAX_NAMES = 4
RESUME_FIELDS = tuple(option.field for option in RESUME)


@click.command("run", epilog=EPILOG)
@click.argument("devices", metavar="[DEVICE]...", nargs=-1, shell_complete=propose_devices)
@path_option("--out", help="New folder for the results.  [default: results/DEVICE-TIME]")
@click.option(
    "--together",
    is_flag=True,
    help="Measure several real devices at the same time; they must not disturb each other.",
)
@path_option("--resume", metavar="FOLDER", help="Resume the interrupted benchmark in this folder.")
@executor_options
@add_options(*(option for option in RUN if option is not DESTROY))
@click_option(
    DESTROY,
    multiple=True,
    callback=None,
    help=f"{DESTROY.help} Repeat it for each device that needs it.",
)
@live_options
@no_cache_option
@quiet_option
@json_option
def command(
    *,
    devices: tuple[str, ...],
    out: Path | None,
    resume: Path | None,
    destroy: tuple[str, ...],
    together: bool,
    jobs: int | None,
    workers: int | None,
    scheduler: str | None,
    live: bool,
    every: int | None,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Run the micro-benchmarks on DEVICE, or on each of several, and store the results.

    Without --only, run all micro-benchmarks of uFLIP and the long baseline runs. A device whose
    state is unknown is brought into a well-defined state first (see `uflip prepare`). All data on a
    block device, and in a file, is overwritten.
    """
    executor_chosen = jobs or workers or scheduler
    several = together or executor_chosen or len(devices) > 1 or _has_several_devices(resume)
    live_ns = live_interval(
        every, live=live, resume=resume, together=several and "or several devices"
    )
    if several:
        from uflip.benchmark import BenchmarkRequest

        if resume is not None:
            _check_options_of_resume(out=out, device=devices, **options)
        _run_several(
            devices,
            out,
            resume=resume,
            request=BenchmarkRequest(device=devices[0] if devices else "", **options),
            tokens=destroy,
            together=together,
            executor=on_executor(jobs, workers, scheduler, wait_on_cancel=True),
            quiet=quiet,
            as_json=as_json,
        )
        return
    if len(destroy) > 1:
        raise UsageError(
            "One device needs only one --destroy",
            where="--destroy",
            got=" ".join(destroy),
            allowed="one",
            action="omit the others",
        )
    options["destroy"] = destroy[0] if destroy else None
    device, silent = devices[0] if devices else None, quiet or as_json or live
    if resume is None:
        folder = _begin_one(device, out, quiet=silent, as_json=as_json, live_ns=live_ns, **options)
    else:
        _check_options_of_resume(out=out, **options)
        _resume_one(resume, device, quiet=silent, **options)
        folder = resume
    _conclude(folder, quiet, as_json, in_one_line=live)


def _has_several_devices(folder: Path | None) -> bool:
    if folder is None:
        return False
    from uflip.benchmark.multi_device import is_multi_device

    return is_multi_device(folder)


def _resume_one(folder: Path, device: str | None, *, quiet: bool, **options: Any) -> None:
    from uflip.benchmark import resume as resume_benchmark
    from uflip.cli.benchmark_progress import BenchmarkProgress

    values = {name: options[name] for name in RESUME_FIELDS}
    with BenchmarkProgress(quiet=quiet) as progress:
        resume_benchmark(folder, device=device, on_event=progress, **values)


def _begin_one(
    device: str | None, out: Path | None, *, quiet: bool, as_json: bool, **options: Any
) -> Path:
    if device is None:
        raise no_device("run")
    check_target(device, options)
    from uflip.benchmark import BenchmarkRequest, begin
    from uflip.cli.benchmark_progress import BenchmarkProgress

    request = BenchmarkRequest(device=device, **options)
    with BenchmarkProgress(quiet=quiet, as_json=as_json) as progress:
        return begin(request, out, progress)


def _check_options_of_resume(**options: Any) -> None:
    """Reject options that cannot be changed on --resume."""
    # The data follow from the results, but --data has a default that looks like a given value.
    allowed = (*RESUME_FIELDS, "data")
    check_resume_options(
        {name: value for name, value in options.items() if name not in allowed},
        "--resume FOLDER, with --max-time, --destroy, --record, --io-timeout, --quiet, --json; "
        "of several devices with --together, --jobs, --workers, --scheduler",
    )


def _conclude(out: Path, quiet: bool, as_json: bool, *, in_one_line: bool) -> None:
    """Show the results; an interruption here loses nothing."""
    try:
        show_results(out, quiet=quiet, as_json=as_json, in_one_line=in_one_line)
    except KeyboardInterrupt:
        raise InterruptedRun(
            "Interrupted while the results were shown",
            where=str(out),
            action=f"nothing is lost: see `uflip show {out}`",
        ) from None


def _run_several(
    devices: Sequence[str],
    out: Path | None,
    *,
    resume: Path | None,
    request: "BenchmarkRequest",
    tokens: Sequence[str],
    together: bool,
    executor: AbstractContextManager[None],
    quiet: bool,
    as_json: bool,
) -> None:
    """Start or resume benchmarks of several devices: a progress display, and a line for each."""
    from uflip.benchmark.multi_device import begin_all, resume_all
    from uflip.data import multi_device

    _refuse_option("--plan", request.plan_file)
    _refuse_option("--record", request.record)
    total = len(devices if resume is None else multi_device.read(resume).devices)
    with executor, display(total, quiet=quiet or as_json) as sink:
        progress = DevicesProgress(sink, total, devices)
        if resume is None:
            folder, outcomes = begin_all(
                request, devices, out, tokens=tokens, together=together, on_progress=progress
            )
        else:
            folder = resume
            outcomes = resume_all(
                resume,
                tokens=tokens,
                together=together,
                max_time_ns=request.max_time_ns,
                on_progress=progress,
            )
    _conclude_several(folder, outcomes, quiet=quiet, as_json=as_json)


def _refuse_option(option: str, value: Path | None) -> None:
    if value is not None:
        raise UsageError(
            "The option cannot be used with several devices",
            where=option,
            got=f"{option} {value} with several devices",
            allowed="options that apply to each device",
            action="omit it, or run one command per device",
        )


class DevicesProgress:
    """Combined progress of several devices, and the devices at work; callable on any thread.

    >>> class Paper(list):
    ...     def draw(self, done, text):
    ...         self.append((done, text))
    >>> paper = Paper()
    >>> progress = DevicesProgress(paper, 2, ["sim:demo", "null"])
    >>> progress(0, 0.25, "25%")
    >>> progress(1, 1.0, "")
    >>> [(done, text.partition("left  ")[2]) for done, text in paper]
    [(0.25, 'sim:demo 25%'), (1.25, 'sim:demo 25%')]
    """

    def __init__(self, sink: Sink, total: int, names: Sequence[str] = ()) -> None:
        self._draw = with_time_left(sink, total)
        self._names = names or [f"device {index + 1}" for index in range(total)]
        self._shares: dict[int, float] = {}
        self._texts: dict[int, str] = {}
        self._lock = Lock()

    def __call__(self, index: int, share: float, text: str) -> None:
        """Record the progress of a device."""
        with self._lock:
            self._shares[index] = share
            self._texts[index] = text
            at_work = [index for index, status in self._texts.items() if status]
            words = [f"{self._names[index]} {self._texts[index]}" for index in at_work]
            done = sum(self._shares.values())
            more = f", and {len(words) - MAX_NAMES} more" if len(words) > MAX_NAMES else ""
            self._draw(done, ", ".join(words[:MAX_NAMES]) + more)


def _conclude_several(
    folder: Path, outcomes: "Sequence[DeviceOutcome]", *, quiet: bool, as_json: bool
) -> None:
    """Print the status of each device; exit with the code of the first failure."""
    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    code = errors[0].exit_code if errors else 0
    if as_json:
        devices = [
            {
                "device": outcome.device,
                "results": outcome.results,
                "status": outcome.status,
                "error": outcome.error and outcome.error.parts(),
            }
            for outcome in outcomes
        ]
        echo_json({"results": str(folder), "devices": devices, "exit_code": code})
    else:
        rows = [(each.device, each.status, each.results) for each in outcomes]
        echo_table(("device", "status", "results"), rows, left=3)
        for outcome in outcomes:
            if outcome.error is not None:
                echo(f"error: {outcome.device}: ", err=True, newline=False, fg="red", bold=True)
                echo(outcome.error, err=True)
        if not quiet:
            _echo_next(folder, outcomes)
    if code:
        click.get_current_context().exit(code)


def _echo_next(folder: Path, outcomes: "Sequence[DeviceOutcome]") -> None:
    if any(outcome.status != "complete" for outcome in outcomes):
        echo(f"\nTo resume the incomplete ones: uflip run --resume {folder}")
    complete = [outcome.results for outcome in outcomes if outcome.status == "complete"]
    if complete:
        echo(f"\nNext:\n  uflip explore {folder}")
    if len(complete) > 1:
        echo(f"  uflip compare {' '.join(complete[:2])}")
