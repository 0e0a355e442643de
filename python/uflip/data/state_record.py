"""In which state a device was left: a small JSON file beside the results.

It says which state was enforced, how far that got, and what was written since; `written` is how a
write by somebody else is noticed. What keeps it and when it is believed stands in
`uflip.results.state_record`.

Version history
---------------
1   first version.
2   `device` also says which medium it was: `brand`, `diskseq`, `boot_id`, each where it is known.
"""

import json
from pathlib import Path
from typing import Literal, TypedDict

import msgspec
from msgspec import Struct

from uflip.data.bounded_read import DocumentKind, read_if_there
from uflip.data.document import Count, Instant, Name, Positive, Table, Text, decode

FORMAT_VERSION = 2
KIND = DocumentKind(
    "record of the device's state",
    1 << 20,
    "name another file with --record, or move this one away",
)


class Written(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the system says about the last write: of a file, or of a block device."""

    mtime_ns: int | None = None
    boot_id: Text | None = None
    sectors_written: Count | None = None


class StateRequest(TypedDict):
    """A state that was asked for, complete; sizes and offsets in bytes."""

    state: Name
    seed: Count
    target_offset: Count
    target_size: Positive
    io_size_max: Positive
    random_bytes: Count


class StateDocument(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
    written : Written
        What the system says about the last write.
    """

    format: Literal["uflip-state"] = "uflip-state"
    format_version: Literal[1, 2] = 2
    uflip_version: Name
    updated_utc: Instant
    device: Table
    request: StateRequest
    total_ios: Count
    done_ios: Count = 0
    state_id: Name | None = None
    runs_since: Count = 0
    bytes_written_since: Count = 0
    used_bytes: Count = 0
    written: Written = Written()

    def __post_init__(self) -> None:
        if self.done_ios > self.total_ios:
            raise ValueError("more writes made than there are")


class _Format(Struct):
    format: Text = ""
    format_version: int = 0


def encode(record: StateDocument) -> bytes:
    """Turn a record into the bytes of its file."""
    content = msgspec.to_builtins(record)
    return (json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def read(path: Path) -> StateDocument | None:
    """Read a record; None where there is no file.

    Raises
    ------
    ResultsError
        If the file is something else, or from a newer uflip, or anything in it is not what it must
        be.
    """
    content = read_if_there(path, KIND)
    if content is None:
        return None
    said = decode(path, KIND, content, _Format)
    allowed = f"a file that `uflip prepare` wrote, format_version up to {FORMAT_VERSION}"
    if said.format != "uflip-state":
        raise KIND.unreadable(path, "a file of another kind", allowed)
    if not 1 <= said.format_version <= FORMAT_VERSION:
        raise KIND.unreadable(path, f"format_version {said.format_version}", allowed)
    return decode(path, KIND, content, StateDocument)
