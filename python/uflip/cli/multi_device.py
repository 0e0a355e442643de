"""`uflip run` with several devices: one progress display, and a line per device at the end."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Lock

import click

from uflip.benchmark.multi_device import DeviceOutcome, begin_all, resume_all
from uflip.benchmark.request import BenchmarkRequest
from uflip.cli.progress import Sink, display, with_time_left
from uflip.cli.terminal import echo, echo_json, echo_table
from uflip.errors import UsageError

# A line has space for this number of names.
MAX_NAMES = 4


def run(
    devices: Sequence[str],
    out: Path | None,
    *,
    resume: Path | None,
    request: BenchmarkRequest,
    tokens: Sequence[str],
    together: bool,
    executor: AbstractContextManager[None],
    quiet: bool,
    as_json: bool,
) -> None:
    """Start or resume benchmarks of several devices; the options are those of `run`."""
    _refuse_option("--plan", request.plan_file)
    _refuse_option("--record", request.record)
    total = len(devices) if resume is None else _devices_in(resume)
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
    _conclude(folder, outcomes, quiet=quiet, as_json=as_json)


def _refuse_option(option: str, value: Path | None) -> None:
    if value is not None:
        raise UsageError(
            "The option cannot be used with several devices",
            where=option,
            got=f"{option} {value} with several devices",
            allowed="options that apply to each device",
            action="omit it, or run one command per device",
        )


def _devices_in(folder: Path) -> int:
    from uflip.data.multi_device import read

    return len(read(folder).devices)


class DevicesProgress:
    """Combined progress of several devices, and the devices at work; callable on any thread.

    Parameters
    ----------
    sink : Sink
        The progress display.
    total : int
        Number of devices.
    names : sequence of str
        Their names, if known.

    Examples
    --------
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


def _conclude(
    folder: Path, outcomes: Sequence[DeviceOutcome], *, quiet: bool, as_json: bool
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
            _next(folder, outcomes)
    if code:
        click.get_current_context().exit(code)


def _next(folder: Path, outcomes: Sequence[DeviceOutcome]) -> None:
    if any(outcome.status != "complete" for outcome in outcomes):
        echo(f"\nTo resume the incomplete ones: uflip run --resume {folder}")
    complete = [outcome.results for outcome in outcomes if outcome.status == "complete"]
    if complete:
        echo(f"\nNext:\n  uflip explore {folder}")
    if len(complete) > 1:
        echo(f"  uflip compare {' '.join(complete[:2])}")
