"""`uflip show`: print the results of a run, as text or as JSON."""

import textwrap
from pathlib import Path

import click

from uflip.cli.options import ANY_PATH, json_option
from uflip.cli.terminal import echo, echo_json
from uflip.escape import plain


@click.command("show")
@click.argument("results", type=ANY_PATH)
@click.option("--full", is_flag=True, help="Print a row per run, not per experiment.")
@json_option
def command(results: Path, full: bool, as_json: bool) -> None:
    """Print the results in the folder RESULTS, finished or not."""
    from uflip.result_views import summary, text
    from uflip.results import Results

    loaded = Results.load(results)
    document = summary(loaded)
    if as_json:
        echo_json(document)
        return
    echo(text(loaded, plain(document), full=full))


def show_results(folder: Path, *, quiet: bool, as_json: bool, hints: bool = True) -> None:
    """Show a result folder that was just written, and the next commands."""
    from uflip.result_views import summary, text
    from uflip.results import Results

    results = Results.load(folder)
    document = summary(results)
    if as_json:
        echo_json({"results": str(folder)} | document)
        return
    echo(text(results, plain(document)))
    if not quiet:
        from uflip.report.text import next_commands

        echo(f"\nResults are in {folder}. Next:")
        echo(textwrap.indent(next_commands(str(folder), hints=hints), "  "))
