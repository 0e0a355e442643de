"""`uflip verify`: is what lies in result folders what was measured?"""

from collections import Counter
from pathlib import Path
from typing import Any

import click

from uflip.cli.common import json_option, quiet_option
from uflip.cli.terminal import echo, echo_json, plain
from uflip.errors import ResultsError
from uflip.units import format_size

EPILOG = """\b
Examples:
  uflip verify results/demo
  uflip verify results/* --json

\b
A file is
  proven    it is what was written: its digest is in the folder's ledger
  unproven  it can be read and makes sense, but nothing says that it is what was written
  damaged   it is not what was written
  foreign   it is another run's, or another folder's
  missing   it was written, and is not there
"""


@click.command("verify", epilog=EPILOG)
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path))
@quiet_option
@json_option
def command(results: tuple[Path, ...], quiet: bool, as_json: bool) -> None:
    """Hold every file of the folders RESULTS against the digests that were written with it.

    The exit code is 5 if any file is damaged, foreign or missing, and 0 if all are proven or
    unproven. Nothing is changed.
    """
    from uflip.results.proof import verify

    documents, lost = [], 0
    for folder in results:
        verdicts = verify(folder)
        counted = Counter(verdict.state for verdict in verdicts)
        gone = sum(not verdict.usable for verdict in verdicts)
        lost += gone
        documents.append(
            {
                "results": str(folder),
                **{state: counted[state] for state in ("proven", "unproven")},
                "lost": gone,
                "bytes": sum(verdict.bytes for verdict in verdicts),
                "files": [verdict.as_dict() for verdict in verdicts],
            }
        )
    if as_json:
        echo_json({"folders": documents, "lost": lost})
    else:
        for document in documents:
            _print(plain(document), quiet=quiet)
    if lost:
        raise click.exceptions.Exit(ResultsError.exit_code)


def _print(document: dict[str, Any], *, quiet: bool) -> None:
    """Print a line a file that is not proven, and one for the folder."""
    for file in document["files"]:
        if file["state"] == "proven":
            continue
        costs = f"; costs {file['costs']}" if file["costs"] else ""
        echo(f"{file['state']:<9} {document['results']}/{file['file']}: {file['reason']}{costs}")
    total = len(document["files"])
    lost = f", {document['lost']} lost" if document["lost"] else ""
    unproven = f", {document['unproven']} unproven" if document["unproven"] else ""
    echo(
        f"{document['results']}: {document['proven']} of {total} files proven{unproven}{lost}, "
        f"{format_size(document['bytes'])}"
    )
    if document["lost"] and not quiet:
        echo("`uflip run --resume FOLDER` measures lost runs of a benchmark again")
