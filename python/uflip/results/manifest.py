"""The manifest: everything about a benchmark but the response times, as versioned JSON.

Version history
---------------
1   first version. Keys: see `REQUIRED`. `finished_utc` and `elapsed_s` are null until the end;
    `status` is "running" while the benchmark runs, then complete, interrupted or failed.
2   `state`: in which state the device was before the first run, with its `state_id` (null where it
    is not known); `target_size_bytes`: the part of the device that was used; `repetitions`;
    `method`, `phases`, `interference`: how lengths and pauses were found, null until they are;
    `resumed_utc`: when it was gone on with; and with a planned run `repetition`,
    `reset_before`.

A reader accepts every version up to its own and refuses a newer one: guessing at a format that it
does not know would present wrong numbers as right ones.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from uflip.errors import ResultsError
from uflip.results import atomic

FORMAT = "uflip-results"
FORMAT_VERSION = 2
FILE_NAME = "manifest.json"
RUNS = "runs"  # the folder of run files beside it
STATUSES = ("running", "complete", "interrupted", "failed")

# Key → what it must be; None may stand where a value is not known yet.
REQUIRED: dict[str, type | tuple[type, ...]] = {
    "format": str,
    "format_version": int,
    "uflip_version": str,
    "created_utc": str,
    "finished_utc": (str, type(None)),
    "status": str,
    "device": dict,
    "host": dict,
    "harness": dict,
    "scale": str,
    "seed": int,
    "pause_ns": int,
    "plan": list,
    "skipped": list,
    "warnings": list,
    "elapsed_s": (int, float, type(None)),
}
# The state of a device of which nothing is known.
UNKNOWN_STATE: dict[str, Any] = {
    "state": "unknown",
    "state_id": None,
    "known_from": None,
    "request": None,
}
# Keys that came with a later version: (version, what it must be, what it is in older folders).
SINCE: dict[str, tuple[int, type | tuple[type, ...], Any]] = {
    "state": (2, dict, UNKNOWN_STATE),
    "target_size_bytes": (2, (int, type(None)), None),
    "repetitions": (2, int, 1),
    "resumed_utc": (2, list, []),
    "method": (2, str, "paper"),
    "phases": (2, (dict, type(None)), None),
    "interference": (2, (dict, type(None)), None),
}
PLANNED_RUN = ("id", "micro_benchmark", "pattern", "parameter", "value", "unit", "spec")


def write(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write the manifest of a folder atomically.

    Raises
    ------
    ResultsError
        If the operating system does not let us.
    """
    text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        atomic.write_file(folder / FILE_NAME, text.encode())
    except OSError as error:
        raise ResultsError(
            what="The manifest could not be written",
            where=str(folder / FILE_NAME),
            got=error.strerror or str(error),
            allowed="a writable folder with free space",
            action="free some space or choose another --out; finished runs are kept",
        ) from error


def read(folder: Path) -> dict[str, Any]:
    """Read and check the manifest of a folder.

    Raises
    ------
    ResultsError
        If there is none, if it is not JSON, not ours, of a newer version, or lacks something.
    """
    path = folder / FILE_NAME
    manifest = _parse(path, _text(folder, path))
    _check_format(path, manifest)
    for key, kind in REQUIRED.items():
        _check_key(path, manifest, key, kind)
    for key, (since, kind, missing) in SINCE.items():
        if manifest["format_version"] < since:
            manifest[key] = missing
        _check_key(path, manifest, key, kind)
    for entry in manifest["plan"]:
        _check_planned_run(path, entry)
        entry.setdefault("repetition", 1)
        entry.setdefault("reset_before", False)
    _check_status(path, manifest["status"])
    return manifest


def _text(folder: Path, path: Path) -> str:
    if not folder.is_dir():
        raise ResultsError(
            what="There are no results here",
            where=str(folder),
            got="a file" if folder.exists() else "nothing of this name",
            allowed=f"a folder made by `uflip run`, with a {FILE_NAME} in it",
            action="give the folder that was passed to `uflip run --out`",
        )
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ResultsError(
            what="This folder holds no results",
            where=str(folder),
            got=f"a folder without {FILE_NAME}",
            allowed=f"a folder made by `uflip run`, with a {FILE_NAME} in it",
            action="give the folder that was passed to `uflip run --out`",
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, str(error)) from error


def _parse(path: Path, text: str) -> dict[str, Any]:
    try:
        manifest = json.loads(text)
    except json.JSONDecodeError as error:
        raise _unreadable(path, f"not JSON: {error}") from error
    if not isinstance(manifest, dict):
        raise _unreadable(path, f"JSON, but a {type(manifest).__name__}")
    return manifest


def _check_format(path: Path, manifest: dict[str, Any]) -> None:
    """Who wrote this, and can we know what it means? Asked before any other key is looked at."""
    if manifest.get("format") != FORMAT:
        raise _unreadable(path, f"format {manifest.get('format')!r}, not {FORMAT!r}")
    version = manifest.get("format_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise _unreadable(path, f"format_version {version!r}")
    if version > FORMAT_VERSION:
        raise ResultsError(
            what="These results are from a newer uflip",
            where=str(path),
            got=f"format_version {version}, written by uflip {manifest.get('uflip_version', '?')}",
            allowed=f"format_version up to {FORMAT_VERSION}",
            action="read them with that version of uflip or a later one",
        )


def _check_key(
    path: Path, manifest: dict[str, Any], key: str, kind: type | tuple[type, ...]
) -> None:
    if key not in manifest:
        raise _unreadable(path, f"no key {key!r}")
    if not isinstance(manifest[key], kind):
        raise _unreadable(path, f"{key!r} is a {type(manifest[key]).__name__}")


def _check_planned_run(path: Path, entry: object) -> None:
    if not isinstance(entry, dict):
        raise _unreadable(path, f"a planned run that is a {type(entry).__name__}")
    missing = [key for key in PLANNED_RUN if key not in entry]
    if missing:
        raise _unreadable(path, f"planned run {entry.get('id', '?')!r} without {missing[0]!r}")
    if Path(str(entry["id"])).name != entry["id"]:
        # The id becomes a file name: nobody's manifest may lead a reader out of its folder.
        raise _unreadable(path, f"run id {entry['id']!r}, which is not a file name")


def _check_status(path: Path, status: str) -> None:
    if status not in STATUSES:
        raise _unreadable(path, f"status {status!r}, not one of {', '.join(STATUSES)}")


def _unreadable(path: Path, got: str) -> ResultsError:
    return ResultsError(
        what="The manifest cannot be read",
        where=str(path),
        got=got,
        allowed=f"the JSON that `uflip run` wrote, format_version up to {FORMAT_VERSION}",
        action="restore the file from a copy; the runs/*.parquet files can be read without it",
    )
