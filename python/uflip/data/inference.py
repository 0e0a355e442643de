"""A stored inference: the properties of a device as `uflip infer` found them in a result folder.

It is a cache like the summaries beside it (`uflip.data.run_summary`): derived from the run files,
whose lengths and digests it contains, and used for no others.
"""

from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from uflip.data.document import Count, DocumentKind, Name, Text, read_if_exists
from uflip.data.run_summary import FOLDER, SummarySource
from uflip.errors import UflipError

FILE = f"{FOLDER}/inference.json"
KIND = DocumentKind("inference", 16 << 20, "remove it, and run `uflip infer` on the folder again")


class Property(Struct, frozen=True, forbid_unknown_fields=True):
    """A property: its value and interval, or the reason why it is not identified."""

    key: Name
    value: float | int | Text | None
    low: float | None
    high: float | None
    probe: Name
    reason: Text


class TwinError(Struct, frozen=True, forbid_unknown_fields=True):
    """Error of the twin on a run of a probe: simulated over measured mean, less one."""

    probe: Name
    pattern: Name
    value: int
    error: float


class StoredInference(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of the file."""

    uflip_version: Name
    sources: tuple[SummarySource, ...]
    properties: tuple[Property, ...]
    bytes_written: Count
    why_no_twin: Text
    errors: tuple[TwinError, ...]
    format: Literal["uflip-inference"] = "uflip-inference"
    format_version: Literal[1] = 1


def read(path: Path) -> StoredInference | None:
    """Read a stored inference; return None without a usable one."""
    try:
        content = read_if_exists(path, KIND)
        return None if content is None else msgspec.json.decode(content, type=StoredInference)
    except (UflipError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
