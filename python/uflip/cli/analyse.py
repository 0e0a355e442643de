"""`uflip analyse`: phases, period, mean with its interval, and doubts about a series in a file."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from uflip.cli.options import ANY_PATH, json_option, number_option, response_time_options
from uflip.cli.terminal import echo, echo_json, echo_pairs
from uflip.units import format_count, format_duration_ns

if TYPE_CHECKING:
    from uflip.analysis import Analysis
    from uflip.analysis.files import SeriesSource

EPILOG = """\b
Examples:
  uflip analyse results/demo/runs/0001-baseline-SR.parquet
  uflip analyse trace.csv --column took_us
  uflip analyse job_clat.1.log --json

\b
FILE is a run of a result folder, a CSV or Parquet table, a latency log of fio
(--write_lat_log), or a trace with response times (MSR Cambridge, SYSTOR '17,
blkparse, biosnoop, ...: docs/reference/formats.md). The first lines of the
output show how it was read. The unit of a column is in its name (LAT(ms),
lat_usec), or given by --unit. For a run with several processes, I/Os with the
same number are averaged.

\b
Limits: an event rarer than once in a third of the I/Os may be missing, and a
device whose level wanders at all time scales has intervals that are too narrow
(docs/reference/analysis.md, "What an analysis cannot see").
"""


@click.command("analyse", epilog=EPILOG)
@click.argument("file", type=ANY_PATH)
@response_time_options
@number_option("--confidence", metavar="P", help="Confidence of the intervals.  [default: 0.95]")
@number_option(
    "--half-width",
    metavar="SHARE",
    help="Required half-width of the interval, relative to the mean.  [default: 0.05]",
)
@json_option
def command(
    *,
    file: Path,
    column: str | None,
    unit: str | None,
    file_format: str | None,
    columns: str | None,
    confidence: float | None,
    half_width: float | None,
    as_json: bool,
) -> None:
    """Analyse the response times in FILE: start-up, period, levels, the mean and its interval."""
    from msgspec.structs import replace

    from uflip.analysis import analyse
    from uflip.analysis.files import ReadOptions, read_series
    from uflip.errors import UsageError

    options = ReadOptions(column=column, unit=unit, format=file_format, columns=columns)
    series = read_series(file, options)
    try:
        analysis = analyse(series.times, confidence=confidence, half_width=half_width)
    except UsageError as error:
        error.where = f"{file}, {error.where}" if error.where else str(file)
        raise
    if series.source.averaged_ns is not None:
        # Only single I/Os have a tail.
        analysis = replace(analysis, levels=(), percentiles=(), slow_bound_ns=None, slow_episodes=0)
    if as_json:
        import msgspec

        echo_json({**msgspec.to_builtins(analysis), "read_as": series.source})
    else:
        _print(file, analysis, series.source)


def _print(file: Path, analysis: "Analysis", source: "SeriesSource") -> None:
    from uflip.analysis import PHASES, REASONS

    is_averaged = source.averaged_ns is not None
    unit = "averages" if is_averaged else "I/Os"
    echo(f"{file.name}, {format_count(analysis.ios)} {unit}", bold=True)
    width = analysis.half_width_ns
    interval = (
        "" if width is None else f" ± {format_duration_ns(width)} ({width / analysis.mean_ns:.1%})"
    )
    no = "; ".join(REASONS[name] for name in analysis.reasons)
    pairs = [
        ("read as", source.describe()),
        ("phase", f"{analysis.phase}: {PHASES[analysis.phase]}"),
        ("start-up", f"{format_count(analysis.startup_ios)} I/Os" if analysis.startup_ios else ""),
        ("period", f"{format_count(analysis.period_ios)} I/Os" if analysis.period_ios > 1 else ""),
        ("levels", _levels(analysis)),
        (
            "mean of averages" if is_averaged else "mean",
            f"{format_duration_ns(analysis.mean_ns)}{interval}, "
            f"{analysis.confidence:.0%} confidence{_mean_ios(analysis)}",
        ),
        ("converged", "yes" if analysis.converged else f"no: {no}"),
        ("slow episodes", _slow(analysis)),
        ("percentiles", _percentiles(analysis)),
        ("level changes", _changes(analysis)),
        ("not excluded", "" if is_averaged else _not_excluded(analysis)),
    ]
    echo_pairs(pairs, "  ")


def _mean_ios(analysis: "Analysis") -> str:
    """Return the number of I/Os of the mean, if it differs from that of the running phase."""
    if analysis.mean_ios == analysis.ios - analysis.startup_ios:
        return ""
    return f", of the last {format_count(analysis.mean_ios)}"


def _levels(analysis: "Analysis") -> str:
    return ", ".join(
        f"{format_duration_ns(level.mean_ns)} ({level.share:.1%})" for level in analysis.levels
    )


def _slow(analysis: "Analysis") -> str:
    if analysis.slow_bound_ns is None:
        return ""
    bound = format_duration_ns(analysis.slow_bound_ns)
    return f"{format_count(analysis.slow_episodes)}, from {bound} on"


def _percentiles(analysis: "Analysis") -> str:
    return "  ".join(
        f"p{each.share * 100:g} {format_duration_ns(each.value_ns)} "
        f"[{format_duration_ns(each.low_ns)}, {format_duration_ns(each.high_ns)}]"
        for each in analysis.percentiles
    )


def _not_excluded(analysis: "Analysis") -> str:
    """Return how rare an unseen I/O may be: none in n has a chance of 5 % at a rate of 3/n."""
    rarest = max(1, (analysis.ios - analysis.startup_ios) // 3)
    return f"an I/O that comes less than once in {format_count(rarest)}, and memory beyond the run"


def _changes(analysis: "Analysis") -> str:
    """Return the positions of the first level changes."""
    positions = [format_count(at) for at in analysis.change_points[:8]]
    more = len(analysis.change_points) - len(positions)
    return (
        "at I/O " + ", ".join(positions) + (f" and {more} more" if more > 0 else "")
        if positions
        else ""
    )
