"""Has a folder that somebody sent looked at; what it says is checked against what a site keeps.

The process that looks (`examiner`) starts in half the time without what checks the fields of a row.
"""

import json
import subprocess
import sys
from pathlib import Path

from pydantic import ValidationError

from uflip.data.document import Table
from uflip.errors import ResultsError
from uflip.site.examiner import MEMORY_BYTES, SECONDS
from uflip.site.result_summary import ExaminedFolder


def examine(folder: Path) -> ExaminedFolder:
    """Hold a folder against itself, and compute what it says.

    Parameters
    ----------
    folder : Path
        With the files that were sent.

    Returns
    -------
    Examined
        Computed from the traces.

    Raises
    ------
    ResultsError
        If it does not hold, or takes more memory or time than any result does.
    """
    command = [sys.executable, "-m", "uflip.site.examiner", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
        said = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError) as error:
        raise ResultsError(
            "The results cannot be checked",
            where=folder.name,
            got="they take more memory or time than there is for it",
            allowed=f"{MEMORY_BYTES >> 20} MiB, {SECONDS} s",
            action="submit what `uflip verify` finds nothing wrong with",
        ) from error
    if "error" in said:
        raise ResultsError(**said["error"])
    return examined(said)


def examined(said: Table) -> ExaminedFolder:
    """Hold what a folder says of itself against what a site keeps.

    Parameters
    ----------
    said : Table
        As `examiner.look` computes it.

    Returns
    -------
    Examined
        The same, checked.

    Raises
    ------
    ResultsError
        If a text is longer than a column, or none for a database.
    """
    try:
        return ExaminedFolder.model_validate(said)
    except ValidationError as error:
        wrong = error.errors()[0]
        raise ResultsError(
            "The site cannot store the description of these results",
            where=f"manifest.json, {wrong['loc'][-1]}",
            got=str(wrong["input"])[:200],
            allowed=wrong["msg"],
            action="submit the folder as `uflip run` wrote it",
        ) from error
