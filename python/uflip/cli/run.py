"""`uflip run`: the micro-benchmarks on a device, into a new result folder."""

import textwrap
from pathlib import Path
from typing import Any

import click

from uflip.cli.common import durability_option, json_option, open_options, quiet_option
from uflip.cli.planning import plan_options
from uflip.cli.state import state_option, target_options
from uflip.cli.terminal import echo, echo_json, plain
from uflip.device.guard import check_before_all
from uflip.device.url import URL_FORMS
from uflip.errors import InterruptedRun, UsageError

EPILOG = """\b
Examples:
  uflip run sim:demo --out results/demo
  uflip run file:scratch.bin --size 1GiB --out results/disk --scale quick
  uflip run file:scratch.bin --only granularity,order
  uflip run --resume results/disk
  uflip run /dev/nvme1n1 --destroy "TOKEN"      (see `uflip devices`)

\b
Ctrl-C ends the run at hand; all runs finished before are kept, and --resume makes the others.
Without a terminal, progress is a line every 5 seconds; UFLIP_PROGRESS names others, 0 is none.
"""

OF_THE_TARGET = ("size", "buffered", "data", "destroy")


@click.command("run", epilog=EPILOG)
@click.argument("device", required=False)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="New folder for the results.  [default: results/DEVICE-TIME]",
)
@plan_options
@click.option(
    "--plan",
    "plan_file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Execute the plan in this file, see `uflip plan --out`.",
)
@click.option(
    "--resume",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Go on with the benchmark in this folder, which was cut short.",
)
@click.option(
    "--inside",
    is_flag=True,
    help="Record what happens inside a simulated device, for the explorer.",
)
@state_option
@target_options
@durability_option
@open_options
@quiet_option
@json_option
def command(
    *,
    device: str | None,
    out: Path | None,
    resume: Path | None,
    io_timeout: int,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Run the micro-benchmarks on DEVICE and keep the results.

    Without --only, all micro-benchmarks of uFLIP and the long baseline runs. A device that is not
    known to be in a well-defined state is brought into one first (see `uflip prepare`).
    Everything that is stored on a block device, and in a file, is overwritten.
    """
    quiet = quiet or as_json
    if resume is not None:
        said = {name: options.pop(name) for name in ("destroy", "record", "max_time_ns")}
        # What is written follows from the results; the option has a default that cannot be told.
        options.pop("data")
        _check_alone({"out": out} | options)
        from uflip.cli.watching import Watching
        from uflip.session import resume as go_on

        with Watching(quiet=quiet) as watch:
            go_on(resume, device=device, io_timeout_ns=io_timeout, on_event=watch, **said)
        _conclude(resume, quiet, as_json)
        return
    if device is None:
        raise UsageError(
            "No device was named",
            where="DEVICE",
            allowed=URL_FORMS,
            action="name a device, or a folder with --resume; see `uflip run --help`",
        )
    # A target that must not be written to is refused before plans and numbers are loaded.
    check_before_all(device, **{name: options[name] for name in OF_THE_TARGET})
    from uflip.cli.watching import Watching
    from uflip.session import Request, begin

    request = Request(device=device, io_timeout_ns=io_timeout, **options)
    with Watching(quiet=quiet) as watch:
        folder = begin(request, out, watch)
    _conclude(folder, quiet, as_json)


def _check_alone(given: dict[str, Any]) -> None:
    """Refuse options that a benchmark which goes on has had already."""
    for name, value in given.items():
        if value:
            option = f"--{name.removesuffix('_ns').removesuffix('_file').replace('_', '-')}"
            raise UsageError(
                "A benchmark goes on as it began",
                where=option,
                got=f"{option} with --resume",
                allowed="--resume FOLDER, with --max-time, --destroy, --record, --io-timeout, "
                "--quiet, --json",
                action=f"leave {option} out, or start another benchmark",
            )


def _conclude(out: Path, quiet: bool, as_json: bool) -> None:
    """Show what was found; whatever stops that, the results are there."""
    try:
        _show(out, quiet, as_json)
    except KeyboardInterrupt:
        raise InterruptedRun(
            "Interrupted while the results were shown",
            where=str(out),
            action=f"nothing is lost: see `uflip show {out}`",
        ) from None


def _show(out: Path, quiet: bool, as_json: bool) -> None:
    from uflip.benchmarks import summary, text
    from uflip.results import Results

    results = Results.load(out)
    document = summary(results)
    if as_json:
        echo_json({"results": str(out)} | document)
        return
    from uflip.report.text import next_commands

    echo(text(results, plain(document)))
    if quiet:
        return
    echo(f"\nResults are in {out}. Next:")
    echo(textwrap.indent(next_commands(str(out)), "  "))
