"""`uflip export`: results as tidy tables for other programs."""

from pathlib import Path

import click

from uflip.cli.common import echo_json, json_option, quiet_option


@click.command("export")
@click.argument("results", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "file_format",
    metavar="csv|parquet",
    default="csv",
    show_default=True,
    help="Of the table of I/Os: one CSV file, or a Parquet file per run.",
)
@click.option(
    "-o",
    "--out",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="A folder that does not exist yet.  [default: RESULTS-csv or RESULTS-parquet]",
)
@quiet_option
@json_option
def command(results: Path, file_format: str, out: Path | None, quiet: bool, as_json: bool) -> None:
    """Export the results in the folder RESULTS: a row per I/O, a row per run, and the meanings."""
    from uflip.results import Results
    from uflip.results.export import export

    loaded = Results.load(results)
    folder = out or results.resolve().with_name(f"{results.resolve().name}-{file_format}")
    made = export(loaded, folder, file_format)
    if as_json:
        echo_json({"folder": str(folder), "files": [path.name for path in made]})
    elif not quiet:
        click.echo(f"{folder}: {', '.join(path.name for path in made)}")
