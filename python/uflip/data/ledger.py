"""The ledger: a line for every committed file of a result folder, linked to the line before.

::

    {"kind":"begin","format":"uflip-ledger","format_version":1,"folder_id":…,"plan":…,"link":…}
    {"kind":"manifest","bytes":…,"digest":…,"plan":…,"link":…}
    {"kind":"run","run":"0001-…","bytes":…,"digest":…,"spec":…,"link":…}

`digest` is that of the file, `spec` and `plan` are those of the request, and `link` is the digest
of the previous link followed by the line up to its own. So a line verifies its file, and the links
verify that the lines belong to one folder and one plan, in this order.

A line is written and synced before the file gets its name. A kill in between leaves a last line
without a file: a run that was never reported as finished. The next writer cuts the line off. In the
other order, a kill would leave a file without a digest.

The chain detects accidents: bits that flip, files that are copied over each other, folders that are
merged from two. It does not protect against forgery: anyone can write a new ledger.
"""

import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from uflip import _native
from uflip.data.document import Count, DigestText, DocumentKind, FolderId, Name

FILE_NAME = "ledger.jsonl"
KIND = DocumentKind(
    "ledger",
    256 << 20,
    "restore it from a copy, or move it away to read the runs without verification",
    format="uflip-ledger",
)

_LINE = re.compile(rb'(\{.*),"link":"([0-9a-f]{64})"\}', re.S)


class BeginEntry(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="begin"):
    """The first line."""

    folder_id: FolderId
    plan: DigestText
    format: Literal["uflip-ledger"] = "uflip-ledger"
    format_version: Literal[1] = 1


class ManifestEntry(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="manifest"
):
    """The digest of the next manifest."""

    bytes: Count
    digest: DigestText
    plan: DigestText


class RunEntry(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="run"):
    """The digest of a run file, before it gets its name."""

    run: Name
    bytes: Count
    digest: DigestText
    spec: DigestText


Entry = BeginEntry | ManifestEntry | RunEntry


@dataclass(frozen=True)
class Ledger:
    """The content of a ledger."""

    entries: list[Entry] = field(default_factory=list)  #: Entries of the undamaged lines.
    lines: int = 0  #: Number of complete lines, including damaged ones.
    #: Numbers of the damaged lines, the first being 1.
    damaged: list[int] = field(default_factory=list)
    end: int = 0  #: End of the last complete line [bytes].
    torn: int = 0  #: Length of the incomplete rest [bytes], left by a kill or by lost bytes.
    link: str = ""  #: Link of the last complete line.
    last: Entry | None = None  #: That line; None if it is damaged.
    without_last: tuple[int, int, str] = (0, 0, "")  #: (lines, end, link) without it.

    @property
    def folder_id(self) -> str | None:
        """Id of the folder of this ledger; None if it cannot be read."""
        first = self.entries[0] if self.entries else None
        return first.folder_id if isinstance(first, BeginEntry) else None

    @cached_property
    def runs(self) -> dict[str, RunEntry]:
        """The last line of each run."""
        return {entry.run: entry for entry in self.entries if isinstance(entry, RunEntry)}

    @property
    def manifests(self) -> list[ManifestEntry]:
        """Possible manifests: the last line of one; if it ends the ledger, also the one before it,
        because a kill may have come between the line and the file.
        """
        documents = [entry for entry in self.entries if isinstance(entry, ManifestEntry)]
        return documents[-2:] if isinstance(self.last, ManifestEntry) else documents[-1:]

    @property
    def last_run(self) -> str | None:
        """The run of the last line, whose file may lack its name after a kill."""
        return self.last.run if isinstance(self.last, RunEntry) else None


def digest_of(content: Any) -> str:
    """Return the digest of plain data, independent of the order of its keys."""
    return _native.digest(msgspec.json.encode(content, order="sorted"))


def line(entry: Entry, previous_link: str) -> tuple[bytes, str]:
    """Return the line of an entry, and its link; `previous_link` is that of the line before."""
    body = msgspec.json.encode(entry)[:-1]
    link = _native.digest(previous_link.encode() + body)
    return body + f',"link":"{link}"}}\n'.encode(), link


def parse(path: Path, content: bytes) -> Ledger:
    """Read a ledger; omit damaged lines, and list their numbers."""
    entries: list[Entry] = []
    damaged: list[int] = []
    stored = computed = before = ""
    entry: Entry | None = None
    *lines, torn = content.split(b"\n")
    for number, text in enumerate(lines, start=1):
        match = _LINE.fullmatch(text)
        links = {_native.digest(link.encode() + _body(match)) for link in (stored, computed)}
        entry = None
        if match is not None and match[2].decode() in links:
            entry = _entry(path, match[1] + b"}")
        if entry is not None and isinstance(entry, BeginEntry) != (number == 1):
            entry = None
        if entry is None:
            damaged.append(number)
        else:
            entries.append(entry)
        # A flipped bit in a line, or in its link, damages that line alone: the next may follow from
        # the link as stored here, or from the computed one.
        computed = _native.digest(stored.encode() + _body(match))
        before, stored = stored, match[2].decode() if match else computed
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


class _BeginHead(Struct, tag_field="kind", tag="begin"):
    format: str
    format_version: int


def _check_version(path: Path, body: bytes) -> None:
    """Distinguish the first line of another version from a damaged one: its link is right."""
    try:
        head = msgspec.json.decode(body, type=_BeginHead)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return
    KIND.check_format(path, head.format, head.format_version)
