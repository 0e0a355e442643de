"""The ledger: a line for everything that was committed to a result folder, each bound to the last.

::

    {"kind":"begin","format":"uflip-ledger","format_version":1,"folder_id":…,"plan":…,"link":…}
    {"kind":"manifest","bytes":…,"digest":…,"plan":…,"link":…}
    {"kind":"run","run":"0001-…","bytes":…,"digest":…,"spec":…,"link":…}

`digest` is that of the file, `spec` and `plan` are those of what was asked for, and `link` is the
digest of the previous link followed by the line up to its own. So a line proves its file, and the
links prove that the lines belong to one folder and one plan, in this order.

A line is written and synced before the file gets its name. A kill in between leaves a last line
without a file, which is a run that was never said to be there, and is cut off by who goes on; the
other way round would leave a file that nothing proves.

The chain finds accidents: bits that flip, files that are copied over each other, folders that are
put together from two. Whoever wants to can write a ledger of their own.

Version history
---------------
1   first version.
"""

import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from uflip import _native
from uflip.data.bounded_read import DocumentKind
from uflip.data.document import Count, DigestText, FolderId, Name

FORMAT_VERSION = 1
FILE_NAME = "ledger.jsonl"
KIND = DocumentKind(
    "ledger", 256 << 20, "restore it from a copy, or move it away to read runs unproven"
)

_LINE = re.compile(rb'(\{.*),"link":"([0-9a-f]{64})"\}', re.S)


class Begin(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="begin"):
    """The first line."""

    folder_id: FolderId
    plan: DigestText
    format: Literal["uflip-ledger"] = "uflip-ledger"
    format_version: Literal[1] = 1


class Document(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="manifest"):
    """The manifest is about to be this."""

    bytes: Count
    digest: DigestText
    plan: DigestText


class RunEntry(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="run"):
    """A run is about to get its name."""

    run: Name
    bytes: Count
    digest: DigestText
    spec: DigestText


Entry = Begin | Document | RunEntry


@dataclass(frozen=True)
class Ledger:
    """What a ledger says.

    Attributes
    ----------
    entries : list
        Of lines that are what was written.
    lines : int
        Complete ones, damaged ones too.
    damaged : list of int
        Which lines are not what was written, the first being 1.
    end : int
        Where the last complete line ends [bytes].
    torn : int
        What stands behind that [bytes]: what a kill left of a line, or lost bytes left of one.
    link : str
        Of the last complete line.
    last : Begin, Document, Run or None
        That line; None where it is damaged.
    without_last : tuple
        (lines, end, link) without it.
    """

    entries: list[Entry] = field(default_factory=list)
    lines: int = 0
    damaged: list[int] = field(default_factory=list)
    end: int = 0
    torn: int = 0
    link: str = ""
    last: Entry | None = None
    without_last: tuple[int, int, str] = (0, 0, "")

    @property
    def folder_id(self) -> str | None:
        """Which folder this is the ledger of; None where that cannot be read."""
        first = self.entries[0] if self.entries else None
        return first.folder_id if isinstance(first, Begin) else None

    @cached_property
    def runs(self) -> dict[str, RunEntry]:
        """The last line of each run."""
        return {entry.run: entry for entry in self.entries if isinstance(entry, RunEntry)}

    @property
    def manifests(self) -> list[Document]:
        """What the manifest may be: the last line of it, and where that ends the ledger the one
        before too, because a kill may have come between the line and the file.
        """
        found = [entry for entry in self.entries if isinstance(entry, Document)]
        return found[-2:] if isinstance(self.last, Document) else found[-1:]

    @property
    def last_run(self) -> str | None:
        """The run of the last line, whose file a kill may have kept from its name."""
        return self.last.run if isinstance(self.last, RunEntry) else None


def digest_of(content: Any) -> str:
    """Return the digest of plain data, however its keys are ordered."""
    return _native.digest(msgspec.json.encode(content, order="sorted"))


def line(entry: Entry, before: str) -> tuple[bytes, str]:
    """Return the line of an entry, and its link; `before` is the link of the line before."""
    body = msgspec.json.encode(entry)[:-1]
    link = _native.digest(before.encode() + body)
    return body + f',"link":"{link}"}}\n'.encode(), link


def parse(path: Path, content: bytes) -> Ledger:
    """Read a ledger; lines that were damaged are left out, and said to be.

    Raises
    ------
    ResultsError
        If a newer uflip has written it.
    """
    entries: list[Entry] = []
    damaged: list[int] = []
    stored = meant = before = ""
    entry: Entry | None = None
    *lines, torn = content.split(b"\n")
    for number, text in enumerate(lines, start=1):
        match = _LINE.fullmatch(text)
        links = {_native.digest(link.encode() + _body(match)) for link in (stored, meant)}
        entry = None
        if match is not None and match[2].decode() in links:
            entry = _entry(path, match[1] + b"}")
        if entry is not None and isinstance(entry, Begin) != (number == 1):
            entry = None
        if entry is None:
            damaged.append(number)
        else:
            entries.append(entry)
        # A flipped bit in a line, or in its link, is the fault of that line alone: the next may
        # follow from the link as it stands here, or as it must have been.
        meant = _native.digest(stored.encode() + _body(match))
        before, stored = stored, match[2].decode() if match else meant
    end = len(content) - len(torn)
    last_bytes = len(lines[-1]) + 1 if lines else 0
    return Ledger(
        entries=entries,
        lines=len(lines),
        damaged=damaged,
        end=end,
        torn=len(torn),
        link=stored,
        last=entry,
        without_last=(max(len(lines) - 1, 0), end - last_bytes, before),
    )


def _body(match: re.Match[bytes] | None) -> bytes:
    return b"" if match is None else match[1]


def _entry(path: Path, body: bytes) -> Entry | None:
    try:
        entry: Entry = msgspec.json.decode(body, type=Entry)
        return entry
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        _check_version(path, body)
        return None


class _Format(Struct):
    format_version: int = 0


def _check_version(path: Path, body: bytes) -> None:
    """Tell a line of a later version from one that was damaged: its link is right."""
    try:
        version = msgspec.json.decode(body, type=_Format).format_version
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return
    if version > FORMAT_VERSION:
        raise KIND.unreadable(
            path, f"format_version {version}", f"format_version up to {FORMAT_VERSION}"
        )
