"""Rows over time, printed: as text, CSV or JSON."""

import csv
import io
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from uflip.cli.options import combine_options, duration_option
from uflip.cli.terminal import echo, echo_json, echo_table
from uflip.errors import UsageError
from uflip.units import format_count, format_duration_ns

if TYPE_CHECKING:
    from uflip.data.device import DeviceInfo
    from uflip.native_wait import LiveRows, OnLive
    from uflip.results.time_rows import TimeRow


live_options = combine_options(
    click.option(
        "--live",
        is_flag=True,
        help="Print a line for each second during a run; with --json, a line of JSON.",
    ),
    duration_option(
        "--every", help="Interval of the lines of --live, on the device's clock.  [default: 1s]"
    ),
)
HEAD = ("from", "I/Os", "IOPS", "MB/s", "in flight", "p50", "p99", "p99.9")


@dataclass(frozen=True)
class RowOptions:
    """The options of rows over time."""

    every: int | None
    as_csv: bool
    as_json: bool

    def interval(self) -> int:
        """Return the interval of the rows [ns]."""
        if self.every:
            return self.every
        raise UsageError(
            "The interval of the rows is missing",
            where="--every",
            got="0" if self.every == 0 else "--csv alone",
            allowed="a duration above 0, such as 1s",
            action="give --every 1s",
        )


def echo_time_rows(runs: "Mapping[str, list[TimeRow]]", options: RowOptions) -> None:
    """Print runs over time as text, CSV or JSON."""
    from msgspec.structs import astuple  # imported late, so that a refusal does not wait for it

    from uflip.results.time_rows import COLUMNS

    if options.as_json:
        rows_by_run = [{"run": run, "rows": rows} for run, rows in runs.items()]
        echo_json({"every_ns": options.every, "runs": rows_by_run})
        return
    if options.as_csv:
        echo_csv(("run", *COLUMNS), ((run, *astuple(row)) for run in runs for row in runs[run]))
        return
    for run, rows in runs.items():
        echo(run, bold=True)
        echo_table(HEAD, [_row_cells(row) for row in rows])


def live_interval(every: int | None, *, live: bool, **others: object) -> int | None:
    """Return the interval of --live [ns]; None without it. Other options exclude it."""
    other = next((f"--{name} {value}" for name, value in others.items() if value), None)
    if live and other is None and every != 0:
        return every or 10**9
    if not live and every is None:
        return None
    raise UsageError(
        "Lines during a run need runs of one device, and an interval",
        where="--live, --every",
        got="--every without --live" if not live else other or "0",
        allowed="--live, or --live --every DURATION above 0",
        action="give --live --every 1s" if other is None else f"omit --live or {other}",
    )


def live_printer(info: "DeviceInfo", *, as_json: bool, run: str | None = None) -> "OnLive":
    """Return a function that prints the rows of a run under way, as text or lines of JSON."""
    from uflip.results.time_rows import live_rows

    name = {} if run is None else {"run": run}
    if not as_json:
        if run is not None:
            echo(run, bold=True)
        clock = "simulated time" if info.simulated else "time"
        echo(_live_line(clock, *HEAD[1:], "write amp."), bold=True)

    def show(rows: "LiveRows") -> None:
        for row in live_rows(rows, info.page_bytes):
            if as_json:
                echo_json({**name, "clock": info.clock, "row": row}, in_one_line=True)
                continue
            amplification = row.write_amplification
            last = "" if amplification is None else f"{amplification:.2f}"
            echo(_live_line(*_row_cells(row), last))
        sys.stdout.flush()

    return show


def _live_line(*cells: str) -> str:
    return f"{cells[0]:<16}" + "".join(f"{cell:>11}" for cell in cells[1:])


def echo_csv(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    echo(text.getvalue(), newline=False)


def _row_cells(row: "TimeRow") -> tuple[str, ...]:
    times = (row.p50_ns, row.p99_ns, row.p999_ns)
    return (
        format_duration_ns(row.start_ns),
        format_count(row.ios),
        f"{row.ios_per_s:,.0f}",
        f"{row.bytes_per_s / 1e6:,.1f}",
        f"{row.in_flight:.2f}",
        *("" if each is None else format_duration_ns(each) for each in times),
    )
