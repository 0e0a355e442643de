"""Final output of `uflip serve`: statistics, gaps of the recording, failures."""

from pathlib import Path

import click

from uflip.cli.terminal import echo, echo_error, echo_json, error_document
from uflip.data.device_reports import ServedDocument, ServedExport
from uflip.errors import UflipError
from uflip.escape import plain
from uflip.table import Table
from uflip.units import format_count, format_duration_ns


def print_served(
    document: ServedDocument,
    errors: list[UflipError],
    record: Path | None,
    *,
    quiet: bool,
    as_json: bool,
    err: bool,
) -> None:
    """Print the statistics and the failures; exit with the code of the first failure."""
    if as_json:
        error = {"error": error_document(errors[0])} if errors else {}
        echo_json({**document, **error})
    elif not quiet:
        _print(document, err=err)
        if record is not None:
            _print_unrecorded(document, record, err=err)
    for each in errors[1:]:
        echo_error(each)
    if errors and as_json:  # the first error is in the document already
        click.get_current_context().exit(errors[0].exit_code)
    if errors:
        raise errors[0]


def _print(document: ServedDocument, *, err: bool) -> None:
    head = ["export", "reads", "writes", "flushes", "failed", "p50", "p99", "lag p50", "lag p99"]
    rows = [_row(export) for export in document["exports"]]
    for line in Table([*head, "lag max"], plain(rows), "l" + "r").lines():
        echo(line, err=err)


def _print_unrecorded(document: ServedDocument, record: Path, *, err: bool) -> None:
    """Print how many flushes and trims the recording does not contain."""
    flushes, trims = (
        sum(export[name] for export in document["exports"]) for name in ("flushes", "trims")
    )
    if flushes or trims:
        unrecorded = f"{format_count(flushes)} flushes, {format_count(trims)} trims"
        echo(f"not in {plain(str(record))}, whose format lacks them: {unrecorded}", err=err)


def _row(export: ServedExport) -> list[str]:
    response, lag = export["response_time"], export["lag"]
    counts = (export["reads"], export["writes"], export["flushes"], export["failed"])
    times = [response["p50_ns"], response["p99_ns"], lag["p50_ns"], lag["p99_ns"], lag["max_ns"]]
    count_cells = [f"{count:,}" for count in counts]
    time_cells = ("–" if each is None else format_duration_ns(each) for each in times)
    return [export["name"], *count_cells, *time_cells]
