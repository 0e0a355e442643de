"""Files of other tools, printed: traces, logs and outputs of fio, results of other programs."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import astuple

from uflip.analysis.files import ReadOptions, SeriesSource, statistics_of
from uflip.analysis.fio_output import is_fio_output, read_fio_output
from uflip.analysis.rate_logs import COLUMNS, RateLog, RateRow, read_rate_logs
from uflip.analysis.tool_results import (
    ToolResult,
    read_smart_difference,
    read_tool_result,
    tool_of,
)
from uflip.benchmark.replay import read_recordings
from uflip.cli.terminal import echo, echo_json, echo_pairs, echo_table
from uflip.cli.time_rows import RowOptions, echo_csv, echo_time_rows
from uflip.errors import UsageError
from uflip.units import format_count, format_duration_ns, format_size

if TYPE_CHECKING:
    from uflip import _native
    from uflip.analysis.fio_output import FioOutput
    from uflip.analysis.tool_results import SmartDifference

COMPUTED = "These numbers were computed by {}: there are no I/Os, no intervals and no start-up."


def show_files(paths: Sequence[Path], options: RowOptions) -> None:
    """Print the files of one run of another tool."""
    first = paths[0]
    tool = tool_of(first)
    if is_fio_output(first):
        _check_no_rows(first, options, "an output of fio")
        _check_single(paths)
        _show_fio_output(read_fio_output(first), first, as_json=options.as_json)
    elif tool == "smart":
        _check_no_rows(first, options, "a SMART log")
        _show_smart(paths, as_json=options.as_json)
    elif tool is not None:
        _check_no_rows(first, options, f"a result of {tool}")
        _check_single(paths)
        _show_tool_result(read_tool_result(first), first, as_json=options.as_json)
    elif (log := read_rate_logs(paths)) is not None:
        _show_rates(log, paths, options)
    else:
        _show_recording(paths, options)


def _check_single(paths: Sequence[Path]) -> None:
    if len(paths) > 1:
        raise UsageError(
            "Only one result can be shown at a time",
            where=str(paths[1]),
            got=f"{len(paths)} files",
            allowed="one file, several logs of one run, or two SMART logs",
            action="show one after the other",
        )


def _check_no_rows(path: Path, options: RowOptions, name: str) -> None:
    if options.every is not None or options.as_csv:
        raise UsageError(
            "The file contains no values over time",
            where=f"{path}, --every or --csv",
            got=name,
            allowed="a log or trace, or results of uflip",
            action="omit --every and --csv",
        )


def _show_rates(log: RateLog, paths: Sequence[Path], options: RowOptions) -> None:
    """Print a log of rates or histograms."""
    over_time = options.every is not None or options.as_csv
    rows = log.rows(options.interval() if over_time else None)
    if options.as_json:
        echo_json(
            {
                "quantity": log.quantity,
                "read_as": log.form,
                "odd_lines": log.odd_lines,
                "every_ns": options.every,
                "rows": rows,
            }
        )
        return
    if options.as_csv:
        echo_csv(COLUMNS, (astuple(row) for row in rows))
        return
    echo(", ".join(path.name for path in paths), bold=True)
    jobs = f"{len(paths)} jobs added; " if len(paths) > 1 else ""
    odd = f"; left out: {format_count(log.odd_lines)} odd lines" if log.odd_lines else ""
    echo_pairs([("read as", f"fio-log {log.quantity}; {jobs}{log.form}{odd}")], "  ")
    head = ("from", "length", "", "IOPS", "MB/s", "p50", "p99", "p99.9")
    echo_table(head, [_rate_cells(row) for row in rows], left=3)


def _rate_cells(row: RateRow) -> tuple[str, ...]:
    times = (row.p50_ns, row.p99_ns, row.p999_ns)
    return (
        format_duration_ns(row.start_ns),
        format_duration_ns(row.length_ns),
        row.direction,
        "" if row.ios_per_s is None else f"{row.ios_per_s:,.1f}",
        "" if row.bytes_per_s is None else f"{row.bytes_per_s / 1e6:,.2f}",
        *("" if each is None else format_duration_ns(each) for each in times),
    )


def _show_recording(paths: Sequence[Path], options: RowOptions) -> None:
    """Print how traces or logs are read, and their numbers, each alone and all together."""
    if options.every is not None or options.as_csv:
        options.interval()
    recording = read_recordings(paths, ReadOptions())
    source = SeriesSource.parse(recording.summary_json())
    if options.every is not None or options.as_csv:
        _show_recording_rows(recording, source, paths, options)
        return
    document = json.loads(recording.summary_json())
    if options.as_json:
        echo_json(document | {"response_time_ns": statistics_of(recording.response_times())})
        return
    if len(paths) > 1:
        for path in paths:
            echo(path.name, bold=True)
            _echo_recording(read_recordings([path], ReadOptions()))
    echo(paths[0].name if len(paths) == 1 else f"all {len(paths)} files", bold=True)
    _echo_recording(recording)


def _show_recording_rows(
    recording: "_native.Recording",
    source: SeriesSource,
    paths: Sequence[Path],
    options: RowOptions,
) -> None:
    from uflip.errors import native_errors
    from uflip.results.time_rows import time_rows

    if source.averaged_ns is not None:
        raise UsageError(
            "Averages have no rows over time",
            where=str(paths[0]),
            got=f"averages of {format_duration_ns(source.averaged_ns)}",
            allowed="a log of each I/O",
            action="log each I/O: omit log_avg_msec",
        )
    with native_errors():
        trace, _ = recording.measured()
    name = ", ".join(path.name for path in paths)
    echo_time_rows({name: time_rows(trace, options.interval())}, options)


def _echo_recording(recording: "_native.Recording") -> None:
    document = json.loads(recording.summary_json())
    source = SeriesSource.parse(recording.summary_json())
    size = format_size(document["bytes_read"]), format_size(document["bytes_written"])
    span = document["span_ns"]
    averaged = source.averaged_ns is not None
    count = f"{format_count(document['ios'])}, of which {format_count(document['reads'])} read"
    pairs = [
        ("read as", source.describe()),
        ("averages" if averaged else "I/Os", count),
        ("bytes", "" if averaged else f"{size[0]} read, {size[1]} written"),
        ("time", "" if span is None else f"{format_duration_ns(span)} from first to last"),
        ("response times", "" if averaged else describe_times(recording.response_times())),
        ("of these D2C", describe_times(recording.device_times())),
    ]
    echo_pairs(pairs, "  ")


def describe_times(times: "_native.Column") -> str:
    """Return the mean and percentiles of response times (float64 [ns]) in words."""
    statistics = statistics_of(times)
    if statistics is None:
        return ""
    return ", ".join(f"{name} {format_duration_ns(each)}" for name, each in statistics.items())


def _show_fio_output(output: "FioOutput", path: Path, *, as_json: bool) -> None:
    """Print the numbers that fio computed."""
    if as_json:
        echo_json(output)
        return
    shares = ("50", "90", "99", "99.9")
    head = ("job", "", "IOPS", "MB/s", "mean", *(f"p{share}" for share in shares))
    rows = [
        (
            each.job,
            each.direction,
            f"{each.iops:,.0f}",
            f"{each.bytes_per_s / 1e6:,.1f}",
            "" if each.mean_ns is None else format_duration_ns(each.mean_ns),
            *(_percentile(each.percentiles, share) for share in shares),
        )
        for each in output.summaries
    ]
    echo(f"{path.name}: {output.format} of {output.version or 'fio'}", bold=True)
    echo_table(head, rows)
    for job, error in output.errors.items():
        echo(f"{job}: ended with error {error} ({os.strerror(error)}); its numbers are of a part")
    latencies = " and ".join(sorted({each.percentiles_of for each in output.summaries}))
    echo(f"Means are of lat, percentiles of {latencies or 'clat'}.")
    echo(COMPUTED.format("fio"))


def _show_tool_result(result: ToolResult, path: Path, *, as_json: bool) -> None:
    """Print the numbers that another program computed."""
    if as_json:
        echo_json(result)
        return
    shares = ("50", "90", "99", "99.9")
    head = ("", "", "IOPS", "MB/s", "mean", *(f"p{share}" for share in shares), "in flight")
    rows = [
        (
            row.name,
            row.direction,
            "" if row.ios_per_s is None else f"{row.ios_per_s:,.1f}",
            "" if row.bytes_per_s is None else f"{row.bytes_per_s / 1e6:,.2f}",
            "" if row.mean_ns is None else format_duration_ns(row.mean_ns),
            *(_percentile(row.percentiles, share) for share in shares),
            "" if row.in_flight is None else f"{row.in_flight:.2f}",
        )
        for row in result.rows
    ]
    echo(f"{path.name}: {'; '.join((result.tool, *result.notes))}", bold=True)
    echo_table(head, rows, left=2)
    echo(COMPUTED.format(result.tool.split()[0]))


def _show_smart(paths: Sequence[Path], *, as_json: bool) -> None:
    """Print the differences of the counters of a drive."""
    if len(paths) < 2:
        raise UsageError(
            "One SMART log has only totals of the life of the drive",
            where=str(paths[0]),
            got="1 file",
            allowed="the logs before and after a test",
            action=f"name both: uflip show BEFORE {paths[0]}",
        )
    difference = read_smart_difference(paths)
    if as_json:
        echo_json(difference)
        return
    echo(" to ".join((paths[0].name, paths[-1].name)), bold=True)
    echo_pairs(_smart_pairs(difference), "  ")


def _smart_pairs(difference: "SmartDifference") -> list[tuple[str, str]]:
    def size(value: int | None) -> str:
        return "" if value is None else format_size(value)

    def count(value: int | None) -> str:
        return "" if value is None else format_count(value)

    bounds = difference.write_amplification
    amplification = "unknown: these logs do not count the bytes written to flash"
    if bounds is not None:
        low, high = bounds
        amplification = f"{low:.3f}" if high - low < 0.0005 else f"{low:.3f} to {high:.3f}"
    elif difference.media_bytes_written is not None:
        amplification = "unknown: the host wrote less than two units, or its log is missing"
    return [
        ("host read", size(difference.host_bytes_read)),
        ("host wrote", size(difference.host_bytes_written)),
        ("flash written", size(difference.media_bytes_written)),
        ("read commands", count(difference.read_commands)),
        ("write commands", count(difference.write_commands)),
        ("power-on hours", count(difference.power_on_hours)),
        ("write amplification", amplification),
    ]


def _percentile(values: Mapping[str, float], share: str) -> str:
    return format_duration_ns(values[share]) if share in values else ""
