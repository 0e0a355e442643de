"""In which state a device is: a small JSON file beside the results, read before the next benchmark.

It says which state was enforced, how far that got, and what was written since. It is believed only
while nobody else has written to the device, as far as that can be known: a file tells when it was
last written, a block device how many sectors were since the machine was started.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from uflip import _native
from uflip.errors import ResultsError
from uflip.identity import identity
from uflip.results import atomic

FORMAT = "uflip-state"
FORMAT_VERSION = 1
FOLDER = Path("results") / "states"


@dataclass(frozen=True)
class State:
    """What a record says.

    Attributes
    ----------
    device : dict
        What identifies the device.
    request : dict
        The state that was asked for, complete.
    total_ios, done_ios : int
        Writes of the enforcement: in all, and made.
    state_id : str or None
        The state that the device is in; None until the enforcement is over.
    runs_since, bytes_written_since : int
        What was done since.
    used_bytes : int
        Up to here sequential writes have taken target spaces since [bytes].
    written : dict
        What the system says about the last write; see `last_write`.
    """

    device: dict[str, Any]
    request: dict[str, Any]
    total_ios: int
    done_ios: int = 0
    state_id: str | None = None
    runs_since: int = 0
    bytes_written_since: int = 0
    used_bytes: int = 0
    written: dict[str, Any] = field(default_factory=dict)


class StateRecord:
    """A record on disk. Made by `open_record`."""

    def __init__(self, path: Path, info: Mapping[str, Any], state: State | None) -> None:
        self.path = path
        self._info = info
        self.state = state
        """What is known; None where nothing is, or where it is not to be believed any more."""

    def begin(self, request: Mapping[str, Any], total_ios: int) -> int:
        """Note that a state is to be enforced; returns how many of its writes were made already."""
        known = self.state
        if known and known.state_id is None and known.request == dict(request):
            return known.done_ios
        self.state = State(identity(self._info), dict(request), total_ios)
        self._save()
        return 0

    def reached(self, done_ios: int) -> None:
        """Note that so many writes of the enforcement were made."""
        assert self.state is not None, "begin comes first"
        self.state = replace(self.state, done_ios=done_ios)
        self._save()

    def enforced(self, state_id: str) -> None:
        """Note that the enforcement is over."""
        assert self.state is not None, "begin comes first"
        self.state = replace(self.state, state_id=state_id)
        self._save()

    def after_run(self, state_id: str | None, written_bytes: int, used_bytes: int) -> None:
        """Note what a run has left behind; nothing where the state was not known before it."""
        if self.state is None:
            return
        self.state = replace(
            self.state,
            state_id=state_id,
            runs_since=self.state.runs_since + 1,
            bytes_written_since=self.state.bytes_written_since + written_bytes,
            used_bytes=max(self.state.used_bytes, used_bytes),
        )
        self._save()

    def _save(self) -> None:
        assert self.state is not None, "there is something to save"
        self.state = replace(self.state, written=last_write(self._info))
        content = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "uflip_version": _native.__version__,
            "updated_utc": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            **asdict(self.state),
        }
        text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            atomic.write_file(self.path, text.encode())
        except OSError as error:
            raise ResultsError(
                what="The record of the device's state could not be written",
                where=str(self.path),
                got=error.strerror or str(error),
                allowed="a writable folder with free space",
                action="name another place with --record",
            ) from error


def default_path(url: str) -> Path:
    """Where the record of a device is kept if nobody says where."""
    slug = re.sub(r"[^A-Za-z0-9.]+", "-", url).strip("-.")
    return FOLDER / f"{slug[-80:]}.json"


def open_record(path: Path, info: Mapping[str, Any], *, ours_is_last: bool = False) -> StateRecord:
    """Open the record of a device, or begin one.

    Parameters
    ----------
    path : Path
        The file; it may not exist yet.
    info : mapping
        The device, as it is now.
    ours_is_last : bool
        Whether the last write to the device is known to be a run of ours that was cut short, after
        which nothing could be noted.

    Returns
    -------
    StateRecord
        Its `state` is None where the file is missing, tells of another device of this name, or of
        a device that somebody else has written to since.

    Raises
    ------
    ResultsError
        If the file is something else, or from a newer uflip.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return StateRecord(path, info, None)
    except (OSError, ValueError) as error:
        raise _unreadable(path, str(error)) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise _unreadable(path, "a file of another kind")
    if content.get("format_version") != FORMAT_VERSION:
        raise _unreadable(path, f"format_version {content.get('format_version')!r}")
    try:
        state = State(**{name: content[name] for name in State.__dataclass_fields__})
    except KeyError as error:
        raise _unreadable(path, f"no key {error}") from error
    undisturbed = ours_is_last or _undisturbed(state.written, last_write(info))
    trusted = state.device == identity(info) and undisturbed
    return StateRecord(path, info, state if trusted else None)


def last_write(info: Mapping[str, Any]) -> dict[str, Any]:
    """What the system says about the last write to a device; empty where it says nothing.

    Returns
    -------
    dict
        mtime_ns of a file; boot_id and sectors_written of a block device.
    """
    url = str(info.get("url", ""))
    try:
        if info.get("kind") == "file":
            return {"mtime_ns": Path(url.removeprefix("file:")).stat().st_mtime_ns}
        if info.get("kind") == "block":
            name = Path(url.removeprefix("block:")).resolve().name
            counted = Path(f"/sys/class/block/{name}/stat").read_text().split()
            boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
            # Fields of Documentation/block/stat.rst: the seventh counts sectors written.
            return {"boot_id": boot_id, "sectors_written": int(counted[6])}
    except (OSError, ValueError, IndexError):
        pass  # what cannot be known cannot be held against the record
    return {}


def _undisturbed(then: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    if then.get("boot_id") != now.get("boot_id"):
        return True  # counters began anew with the system: nothing is known against it
    return dict(then) == dict(now)


def _unreadable(path: Path, got: str) -> ResultsError:
    return ResultsError(
        what="The record of the device's state cannot be read",
        where=str(path),
        got=got,
        allowed=f"a file that `uflip prepare` wrote, format_version {FORMAT_VERSION}",
        action="name another file with --record, or move this one away",
    )
