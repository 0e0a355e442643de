"""Runs the examiner on a submitted folder, and checks its output against the database columns.

The examiner process (`examiner`) starts in half the time without the models that check the fields.
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
    """Examine a folder in a process of its own.

    Parameters
    ----------
    folder : Path
        The folder with the submitted files.

    Returns
    -------
    ExaminedFolder
        Computed from the traces.

    Raises
    ------
    ResultsError
        If the check fails, or takes more memory or time than any result does.
    """
    command = [sys.executable, "-m", "uflip.site.examiner", str(folder)]
    try:
        process = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
        output = json.loads(process.stdout)
    except (subprocess.TimeoutExpired, ValueError) as error:
        raise ResultsError(
            "The results cannot be checked",
            where=folder.name,
            got="they exceed the limits of memory or time",
            allowed=f"{MEMORY_BYTES >> 20} MiB, {SECONDS} s",
            action="check the folder with `uflip verify`, and submit one without faults",
        ) from error
    if "error" in output:
        raise ResultsError(**output["error"])
    return parse_examination(output)


def parse_examination(output: Table) -> ExaminedFolder:
    """Check the output of the examiner against the database columns.

    Parameters
    ----------
    output : Table
        As `examiner.look` computes it.

    Returns
    -------
    ExaminedFolder
        The same, checked.

    Raises
    ------
    ResultsError
        If a text is longer than its column, or a database cannot store it.
    """
    try:
        return ExaminedFolder.model_validate(output)
    except ValidationError as error:
        wrong = error.errors()[0]
        raise ResultsError(
            "The site cannot store the description of these results",
            where=f"manifest.json, {wrong['loc'][-1]}",
            got=str(wrong["input"])[:200],
            allowed=wrong["msg"],
            action="submit the folder as `uflip run` wrote it",
        ) from error
