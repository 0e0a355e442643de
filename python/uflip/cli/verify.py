"""`uflip verify`: check that result folders contain what was measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from uflip.cli.options import ANY_PATH, json_option, quiet_option
from uflip.cli.terminal import echo, echo_error, echo_json, error_document
from uflip.errors import ResultsError, UflipError
from uflip.escape import escape_line
from uflip.units import format_size

if TYPE_CHECKING:
    from uflip.results.integrity import FileStatus

EPILOG = """\b
Examples:
  uflip verify results/demo
  uflip verify results/* --json

\b
A file is
  proven      unchanged: its digest is in the folder's ledger
  unproven    readable and plausible, but without a digest
  impossible  unchanged, but physically impossible
  damaged     changed since it was written
  foreign     of another run, of another folder, or of no run of the plan
  missing     written, but no longer there
"""


NOT_RESULTS = "not results: a file or folder that uflip keeps next to them"


@dataclass(frozen=True)
class VerifiedFolder:
    """A folder, and the integrity of each of its files."""

    folder: Path
    verdicts: "Sequence[FileStatus]"

    @property
    def lost(self) -> int:
        """Number of files that are not as written, or cannot have been measured."""
        return sum(not verdict.usable for verdict in self.verdicts)

    @property
    def bytes(self) -> int:
        """Total length of all files [bytes]."""
        return sum(verdict.bytes for verdict in self.verdicts)

    def count(self, state: str) -> int:
        """Return the number of files in a state."""
        return sum(verdict.state == state for verdict in self.verdicts)

    def document(self) -> Mapping[str, object]:
        """Return the `--json` document."""
        return {
            "results": str(self.folder),
            **{state: self.count(state) for state in ("proven", "unproven")},
            "lost": self.lost,
            "bytes": self.bytes,
            "files": self.verdicts,
        }


@click.command("verify", epilog=EPILOG)
@click.argument("results", nargs=-1, required=True, type=ANY_PATH)
@quiet_option
@json_option
def command(results: tuple[Path, ...], quiet: bool, as_json: bool) -> None:
    """Check every file of the folders RESULTS against the digests that were written with it.

    Every run must also be physically plausible. The exit code is 5 if any file is impossible,
    damaged, foreign or missing, or if a folder has no readable results, and 0 if all files are
    proven or unproven. Other files of uflip, states and lists of devices, are skipped. Nothing is
    changed.
    """
    from uflip.results.integrity import verify

    documents: list[Mapping[str, object]] = []
    lost, worst = 0, 0
    for folder in results:
        if _is_not_results(folder):
            documents.append({"results": str(folder), "skipped": NOT_RESULTS})
            if not (as_json or quiet):
                echo(f"{escape_line(str(folder))}: {NOT_RESULTS}")
            continue
        try:
            verified = VerifiedFolder(folder, verify(folder))
        except UflipError as error:
            if len(results) == 1:
                raise
            documents.append({"results": str(folder), "error": error_document(error)})
            worst = max(worst, error.exit_code)
            if not as_json:
                echo_error(error)
            continue
        documents.append(verified.document())
        lost += verified.lost
        if not as_json:
            _print(verified, quiet=quiet)
    if as_json:
        echo_json({"folders": documents, "lost": lost})
    if lost or worst:
        raise click.exceptions.Exit(max(worst, ResultsError.exit_code if lost else 0))


def _is_not_results(path: Path) -> bool:
    """Return whether the path is kept by uflip next to results, but is not a result."""
    from uflip.data import multi_device
    from uflip.results import state_record

    if path.name == multi_device.FILE_NAME:
        return path.is_file()
    is_ours = path.name == state_record.FOLDER.name and path.is_dir()
    return is_ours and all(each.suffix == ".json" and each.is_file() for each in path.iterdir())


def _print(verified: VerifiedFolder, *, quiet: bool) -> None:
    """Print a line for each file that is not proven, and one for the folder."""
    name = str(verified.folder)
    for file in verified.verdicts:
        if file.state == "proven":
            continue
        costs = f"; lost: {file.costs}" if file.costs else ""
        echo(escape_line(f"{file.state:<9} {name}/{file.file}: {file.reason}{costs}"))
    lost = f", {verified.lost} lost" if verified.lost else ""
    unproven = f", {verified.count('unproven')} unproven" if verified.count("unproven") else ""
    proven = f"{verified.count('proven')} of {len(verified.verdicts)} files proven"
    echo(escape_line(f"{name}: {proven}{unproven}{lost}, {format_size(verified.bytes)}"))
    if not quiet and any(each.run is not None for each in verified.verdicts if not each.usable):
        echo("`uflip run --resume FOLDER` measures lost runs of a benchmark again")
