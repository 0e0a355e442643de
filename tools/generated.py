"""What all generators of files do at their end: write what they made, or check that it is there."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path


def write_or_check(wanted: Mapping[Path, str], there: Iterable[Path] = ()) -> int:
    """Write files; with `--check`, only say which of them are not what they should be.

    Parameters
    ----------
    wanted : mapping of Path to str
        What each file should hold.
    there : iterable of Path
        What is there; a check fails for those that are not wanted.

    Returns
    -------
    int
        The exit code: 1 if a check fails.
    """
    if "--check" not in sys.argv[1:]:
        for path, text in wanted.items():
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return 0
    old = [path for path, text in wanted.items() if not _holds(path, text)]
    old += [path for path in there if path not in wanted]
    for path in old:
        print(f"{path.name} is not current: run `make docs`", file=sys.stderr)
    return int(bool(old))


def _holds(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text
