"""The last step of all generators of files: write the files, or check that they are current."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path


def write_or_check(contents: Mapping[Path, str], existing: Iterable[Path] = ()) -> int:
    """Write files; with `--check`, only print which of them are not current.

    Parameters
    ----------
    contents : mapping of Path to str
        The content of each file.
    existing : iterable of Path
        Existing files; a check fails for those without a content.

    Returns
    -------
    int
        The exit code: 1 if a check fails.
    """
    if "--check" not in sys.argv[1:]:
        for path, text in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return 0
    old = [path for path, text in contents.items() if not _holds(path, text)]
    old += [path for path in existing if path not in contents]
    for path in old:
        print(f"{path.name} is not current: run `make generate`", file=sys.stderr)
    return int(bool(old))


def _holds(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text
