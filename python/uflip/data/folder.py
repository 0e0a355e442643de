"""Recognises result folders, and refuses to write other files into them."""

import os
from pathlib import Path

from uflip.errors import RefusedError

# A folder with this and `runs` beside it holds results.
MANIFEST = "manifest.json"
RUNS = "runs"


def refuse_results(path: Path, kind: str, where: str) -> None:
    """Refuse a name inside a result folder, also through links.

    Raises
    ------
    RefusedError
    """
    # `Path.resolve` raises something other than OSError for a link that leads to itself.
    parent = Path(os.path.realpath(path.absolute().parent))
    for folder in (parent, *parent.parents):
        if (folder / RUNS).is_dir() and (folder / MANIFEST).exists():
            raise RefusedError(
                "Files cannot be written into a result folder",
                where=where,
                got=f"a name in the results {folder}",
                allowed="any other folder",
                action=f"write the {kind} beside the folder",
            )
