"""The state of a device after its last run: a small JSON file beside the results.

It contains the enforced state, the progress of the enforcement, and the writes since. `written`
serves to detect writes by other processes. `uflip.results.state_record` stores and validates it.
"""

import json
from pathlib import Path
from typing import Literal, TypedDict

import msgspec
from msgspec import Struct

from uflip.data.document import (
    Count,
    DocumentKind,
    Instant,
    Name,
    Positive,
    Table,
    Text,
    decode,
    read_if_exists,
)

KIND = DocumentKind(
    "record of the device's state",
    1 << 20,
    "name another file with --record, or move this one away",
    format="uflip-state",
)


class Written(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the system records about the last write: to a file, or to a block device."""

    mtime_ns: int | None = None
    boot_id: Text | None = None
    sectors_written: Count | None = None


class StateRequest(TypedDict):
    """A complete requested state; sizes and offsets in bytes."""

    state: Name
    seed: Count
    target_offset: Count
    target_size: Positive
    io_size_max: Positive
    random_bytes: Count


class StateDocument(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a state record."""

    format: Literal["uflip-state"] = "uflip-state"
    format_version: Literal[1] = 1
    uflip_version: Name
    updated_utc: Instant
    device: Table  #: The identity of the device.
    request: StateRequest  #: The complete requested state.
    #: Writes of the enforcement: in total, and made so far.
    total_ios: Count
    done_ios: Count = 0
    #: The current state of the device; None until the enforcement is over.
    state_id: Name | None = None
    #: Runs and writes since.
    runs_since: Count = 0
    bytes_written_since: Count = 0
    #: End of the target spaces that sequential writes have used since [bytes].
    used_bytes: Count = 0
    written: Written = Written()  #: What the system records about the last write.

    def __post_init__(self) -> None:
        if self.done_ios > self.total_ios:
            raise ValueError("more writes made than planned")


def encode(record: StateDocument) -> bytes:
    """Convert a record to the bytes of its file."""
    content = msgspec.to_builtins(record)
    return (json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def read(path: Path) -> StateDocument | None:
    """Read a record; return None if the file is missing."""
    content = read_if_exists(path, KIND)
    if content is None:
        return None
    return decode(path, KIND, content, StateDocument)
