"""`uflip replay`: replay the I/Os of a trace on any device."""

import textwrap
from pathlib import Path
from typing import Any

import click

from uflip._native import recording_formats
from uflip.cli.common import (
    ANY_PATH,
    check_resume_options,
    completion_option,
    durability_option,
    float_parser,
    int_parser,
    json_option,
    no_device,
    open_options,
    quiet_option,
)
from uflip.cli.terminal import echo, echo_json
from uflip.escape import plain

FITS = "refuse|wrap|scale"

EPILOG = """\b
Examples:
  uflip replay trace.iolog sim:demo --fit wrap
  uflip replay results/disk/runs/0001-baseline-SR.parquet sim:demo
  uflip replay msr/usr_0.csv sim:demo --fit scale --speed 10 --out results/usr
  uflip replay trace.txt file:scratch.bin --size 1GiB --fit wrap --out results/t
  uflip replay trace.txt --fit wrap --resume results/t    after a kill, or a power cut

\b
Formats: fio (write_iolog, version 2 and 3), blkparse (its text), msr (MSR Cambridge, CSV),
uflip (runs/*.parquet). Without --speed each I/O follows the one before; with it I/Os arrive at
their recorded times, and response times count from the arrival.
"""


@click.command("replay", epilog=EPILOG)
@click.argument("trace", type=ANY_PATH)
@click.argument("device", required=False)
@click.option(
    "--format",
    "trace_format",
    metavar="|".join(recording_formats()),
    help="Format of the trace.  [default: detected]",
)
@click.option(
    "--fit",
    metavar=FITS,
    default="refuse",
    show_default=True,
    help="I/Os beyond the end of the device: refuse the trace; wrap to the beginning; scale all "
    "offsets in proportion.",
)
@click.option(
    "--speed",
    metavar="FACTOR",
    callback=float_parser(0.0, 1e6),
    help="Speed-up factor of an open loop: 1 submits I/Os at their recorded times; 10 replays the "
    "trace in a tenth of its time.",
)
@click.option(
    "--queue-depth",
    metavar="N",
    callback=int_parser(1, 1024),
    help="Maximum I/Os in flight.  [default: 1; in an open loop the limit of the device]",
)
@click.option(
    "--out",
    type=ANY_PATH,
    help="New folder for the results.  [default: results/DEVICE-TIME]",
)
@click.option(
    "--resume",
    metavar="FOLDER",
    type=ANY_PATH,
    help="Resume the interrupted replay in this folder, with the same TRACE, --fit, --speed and "
    "--queue-depth.",
)
@durability_option
@completion_option
@open_options
@quiet_option
@json_option
def command(
    *,
    trace: Path,
    device: str | None,
    trace_format: str | None,
    fit: str,
    speed: float | None,
    queue_depth: int | None,
    out: Path | None,
    resume: Path | None,
    io_timeout: int,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Replay the I/Os of TRACE on DEVICE and store the results.

    The writes of the trace overwrite the data of a block device or file. A trace that only reads
    opens the device for reading only.
    """
    from uflip.benchmark import BenchmarkRequest, replay
    from uflip.cli.progress_events import Watching

    replay_request = replay.ReplayRequest(
        trace=trace, format=trace_format, fit=fit, speed=speed, queue_depth=queue_depth
    )
    if resume is not None:
        destroy = options.pop("destroy")
        options.pop("data")  # its default looks like a given value; it follows from the results
        check_resume_options(
            {"out": out} | options,
            "--resume FOLDER, with DEVICE, --format, --fit, --speed, "
            "--queue-depth, --destroy, --io-timeout, --quiet, --json",
        )
        with Watching(quiet=quiet or as_json) as watch:
            replay.resume(
                resume,
                replay_request,
                device=device,
                destroy=destroy,
                io_timeout_ns=io_timeout,
                on_event=watch,
            )
        show_results(resume, quiet=quiet, as_json=as_json)
        return
    if device is None:
        raise no_device("replay")
    request = BenchmarkRequest(device=device, io_timeout_ns=io_timeout, **options)
    with Watching(quiet=quiet or as_json) as watch:
        folder = replay.replay(request, replay_request, out, watch)
    show_results(folder, quiet=quiet, as_json=as_json)


def show_results(folder: Path, *, quiet: bool, as_json: bool) -> None:
    """Show the result folder of a replay or import, without a pointer to design hints."""
    from uflip.benchmarks import summary, text
    from uflip.results import Results

    results = Results.load(folder)
    document = summary(results)
    if as_json:
        echo_json({"results": str(folder)} | document)
        return
    from uflip.report.text import next_commands

    echo(text(results, plain(document)))
    if not quiet:
        echo(f"\nResults are in {folder}. Next:")
        echo(textwrap.indent(next_commands(str(folder), hints=False), "  "))
