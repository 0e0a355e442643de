"""`uflip replay`: replay the I/Os of a trace on any device."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from uflip._native import Column
from uflip.analysis.files import statistics_of
from uflip.cli.completion import propose_devices
from uflip.cli.options import (
    ANY_PATH,
    add_options,
    check_resume_options,
    json_option,
    no_cache_option,
    no_device,
    path_option,
    quiet_option,
)
from uflip.cli.show import show_results
from uflip.cli.terminal import echo, echo_table
from uflip.cli.time_rows import live_interval, live_options
from uflip.device.url import is_device
from uflip.errors import UsageError
from uflip.options import FIT, REPLAY
from uflip.units import format_duration_ns

EPILOG = """\b
Examples:
  uflip replay trace.iolog sim:demo --fit wrap
  uflip replay results/disk/runs/0001-baseline-SR.parquet sim:demo
  uflip replay msr/usr_0.csv sim:demo --fit scale --speed 10 --out results/usr
  uflip replay trace.txt file:scratch.bin --size 1GiB --fit wrap --out results/t
  uflip replay trace.txt --fit wrap --resume results/t    after a kill, or a power cut

\b
Traces of fio, blktrace, blkparse, the SNIA (MSR Cambridge, SYSTOR '17, FIU, ...) and others are
recognised, also packed by gzip or zstd: docs/reference/formats.md. A folder stands for the files of
one trace. Without --speed each I/O follows the one before; with it I/Os arrive at
their recorded times, and response times count from the arrival.
"""


@click.command("replay", epilog=EPILOG)
@click.argument("trace", type=ANY_PATH)
@click.argument("device", required=False, shell_complete=propose_devices)
@path_option("--out", help="New folder for the results.  [default: results/DEVICE-TIME]")
@path_option(
    "--resume",
    metavar="FOLDER",
    help="Resume the interrupted replay in this folder, with the same TRACE, --fit, --speed and "
    "--queue-depth.",
)
@add_options(*REPLAY)
@live_options
@no_cache_option
@quiet_option
@json_option
def command(
    *,
    trace: Path,
    device: str | None,
    out: Path | None,
    resume: Path | None,
    live: bool,
    every: int | None,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Replay the I/Os of TRACE on DEVICE and store the results.

    The writes of the trace overwrite the data of a block device or file. A trace that only reads
    opens the device for reading only.
    """
    from uflip.benchmark import BenchmarkRequest, replay
    from uflip.benchmark.events import BenchmarkEvent, TraceRead
    from uflip.cli.benchmark_progress import BenchmarkProgress

    live_ns = live_interval(every, live=live, resume=resume)
    fit = {option.field: options.pop(option.field) for option in FIT}
    replay_request = replay.ReplayRequest(trace=trace, **fit)
    if resume is not None:
        destroy, io_timeout_ns = options.pop("destroy"), options.pop("io_timeout_ns")
        options.pop("data")  # its default looks like a given value; it follows from the results
        check_resume_options(
            {"out": out} | options,
            "--resume FOLDER, with DEVICE, --format, --fit, --address-scale, --address-offset, "
            "--speed, --queue-depth, --destroy, --io-timeout, --quiet, --json",
        )
        with BenchmarkProgress(quiet=quiet or as_json) as progress:
            replay.resume(
                resume,
                replay_request,
                device=device,
                destroy=destroy,
                io_timeout_ns=io_timeout_ns,
                on_event=progress,
            )
        show_results(resume, quiet=quiet, as_json=as_json, hints=False)
        return
    if device is None:
        raise no_device("replay")
    if is_device(str(trace)) and not trace.exists():
        raise UsageError(
            "The trace comes before the device",
            where="TRACE",
            got=str(trace),
            allowed="a trace or log",
            action=f"uflip replay {device} {trace}",
        )
    request = BenchmarkRequest(device=device, live_ns=live_ns, **options)
    recorded: dict[str, Column] = {}
    with BenchmarkProgress(quiet=quiet or as_json or live, as_json=as_json) as progress:

        def on_event(event: BenchmarkEvent) -> None:
            if isinstance(event, TraceRead):
                recorded.update(event.recorded)
            progress(event)

        folder = replay.replay(request, replay_request, out, on_event)
    statistics = {name: found for name, each in recorded.items() if (found := statistics_of(each))}
    show_results(
        folder,
        quiet=quiet,
        as_json=as_json,
        hints=False,
        more={"recorded_ns": statistics},
        in_one_line=live,
    )
    if statistics and not as_json:
        _echo_recorded(statistics, folder)


def _echo_recorded(recorded: Mapping[str, Mapping[str, float]], folder: Path) -> None:
    """Print the response times in the trace beside the measured ones."""
    from uflip.results import Results

    rows: dict[str, Mapping[str, float | None]] = {
        f"trace, {name}": each for name, each in recorded.items()
    }
    results = Results.load(folder)
    measured = results.summary_of(results.runs).statistics
    if measured:
        rows["measured here"] = {
            "mean": measured["mean_ns"],
            "p50": measured["p50_ns"],
            "p99": measured["p99_ns"],
        }
    columns = ("mean", "p50", "p99")
    echo("")
    echo_table(
        ("response times", *columns),
        [
            (
                name,
                *(
                    "" if (ns := each[column]) is None else format_duration_ns(ns)
                    for column in columns
                ),
            )
            for name, each in rows.items()
        ],
    )
