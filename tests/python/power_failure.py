"""A simulated power failure: the writes of a process to a folder, and the states that may remain.

`Recording` reads what `tests/native/oplog.c` recorded. `Recording.crash` replays it up to some call
and then drops what was not synced:

- Of the data that was written to a file since its last sync any part may survive, in units of a
  sector; the file is as long as these parts make it, with zeroes in between.
- Names that were created, renamed or removed since the last sync of their folder may or may not
  have changed. A change needs the earlier ones of the same names. A rename is atomic.
- A sync of a file makes its data durable but not its name, a sync of a folder names but no data.

File systems of today keep more than that (ext4 and xfs keep the order of names); POSIX promises no
more. Which parts are kept is drawn: all, none, each with some probability, or of names the first
ones up to some point, as a journal does.
"""

import os
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

CREATE, FOLDER, LINK, RENAME, REMOVE, WRITE, TRUNCATE, SYNC, MARK = range(1, 10)
HEAD = struct.Struct("<IIIIQQQ")
SECTOR = 512


@dataclass(frozen=True)
class Call:
    """A call that changed something, synced something, or acknowledged something."""

    kind: int
    inode: int
    other: int
    offset: int
    name: str
    second: str
    data: bytes


@dataclass
class Content:
    """The content of a file: the written bytes, and zeroes up to its size."""

    data: bytearray = field(default_factory=bytearray)
    size: int = 0

    def do(self, call: Call) -> None:
        """Write, or change the size."""
        if call.kind == TRUNCATE:
            del self.data[call.offset :]
            self.size = call.offset
            return
        end = call.offset + len(call.data)
        self.data.extend(bytes(max(call.offset - len(self.data), 0)))
        self.data[call.offset : end] = call.data
        self.size = max(self.size, end)

    def make(self, path: Path) -> None:
        """Write the content to a file."""
        path.write_bytes(self.data)
        os.truncate(path, self.size)


@dataclass
class File:
    """A regular file: its durable content, and the calls since then."""

    durable: Content = field(default_factory=Content)
    pending: list[Call] = field(default_factory=list)


@dataclass(frozen=True)
class Change:
    """One name, or two at once, with the files that they lead to from now on; None: removed."""

    names: tuple[tuple[int, str], ...]
    leads: tuple[int | None, ...]


class Disk:
    """The durable state of a folder, and the changes that are not durable yet."""

    def __init__(self, root: int) -> None:
        self.root = root
        self.files: dict[int, File] = {}
        self.names: dict[tuple[int, str], int] = {}
        """As the process sees them: (folder, name) -> file."""
        self.durable: dict[tuple[int, str], int] = {}
        self.pending: list[Change] = []
        self.folders = {root}
        self.acknowledged: list[str] = []
        self._alive = {root: root}
        self._made = 1 << 64

    def do(self, call: Call) -> None:
        """Apply a call of a process."""
        if call.kind == MARK:
            self.acknowledged.append(call.name)
        elif call.kind == SYNC:
            self._sync(self._alive.get(call.inode, call.inode))
        elif call.kind in (WRITE, TRUNCATE):
            self.files.setdefault(self._file(call.inode), File()).pending.append(call)
        else:
            self._change(call)

    def _file(self, inode: int) -> int:
        return self._alive.get(inode, inode)

    def _change(self, call: Call) -> None:
        folder = self._file(call.inode)
        name = (folder, call.name)
        if call.kind in (CREATE, FOLDER):
            self._made += 1  # an inode number is used again
            self._alive[call.other] = self._made
            if call.kind == FOLDER:
                self.folders.add(self._made)
            else:
                self.files[self._made] = File()
            change = Change((name,), (self._made,))
        elif call.kind == LINK:
            change = Change((name,), (self._file(call.other),))
        elif call.kind == REMOVE:
            change = Change((name,), (None,))
        else:
            change = Change((name, (self._file(call.other), call.second)), (None, self.names[name]))
        _apply(change, self.names)
        self.pending.append(change)

    def _sync(self, file: int) -> None:
        if file not in self.folders:
            file_record = self.files.setdefault(file, File())
            for call in file_record.pending:
                file_record.durable.do(call)
            file_record.pending.clear()
            return
        # With the changes that these depend on, in their order.
        needed = {name for change in self.pending for name in change.names if name[0] == file}
        synced: set[int] = set()
        for change in reversed(self.pending):
            if needed.intersection(change.names):
                needed.update(change.names)
                synced.add(id(change))
        for change in self.pending:
            if id(change) in synced:
                _apply(change, self.durable)
        self.pending = [change for change in self.pending if id(change) not in synced]


def _apply(change: Change, names: dict[tuple[int, str], int]) -> None:
    for name, leads in zip(change.names, change.leads, strict=True):
        if leads is None:
            names.pop(name, None)
        else:
            names[name] = leads


@dataclass(frozen=True)
class Recording:
    """The changes of a process to a folder.

    Attributes
    ----------
    root : int
        The inode of the folder, which was empty.
    calls : list of Call
        In their order.
    """

    root: int
    calls: list[Call]

    @classmethod
    def read(cls, root: int, log: Path) -> "Recording":
        """Read a log of `tests/native/oplog.c`."""
        content, at, calls = log.read_bytes(), 0, []
        while at < len(content):
            kind, name, second, data, inode, other, offset = HEAD.unpack_from(content, at)
            at += HEAD.size
            texts = [content[at : at + name], content[at + name : at + name + second]]
            at += name + second
            calls.append(
                Call(kind, inode, other, offset, *map(os.fsdecode, texts), content[at : at + data])
            )
            at += data
        return cls(root, calls)

    def crash(self, rng: random.Random, into: Path) -> list[str]:
        """Restore the state after some call into a new folder; return what was acknowledged."""
        # More can be lost after an acknowledgement than between two writes.
        marks = [at for at, call in enumerate(self.calls) if call.kind == MARK]
        after = rng.choice(marks) + 1 if marks and rng.random() < 0.3 else None
        end = rng.randint(0, len(self.calls)) if after is None else after
        disk = Disk(self.root)
        for call in self.calls[:end]:
            disk.do(call)
        names = _survivors(disk, rng)
        _RemainingFiles(disk, names, _draw_keep(rng)).make(self.root, into)
        return disk.acknowledged


def _draw_keep(rng: random.Random) -> Callable[[], bool]:
    """Draw the share that survives: all, nothing, or each part with some probability."""
    share = rng.choice((0.0, 0.0, 0.1, 0.5, 0.9, 1.0))
    return lambda: rng.random() < share


def _survivors(disk: Disk, rng: random.Random) -> dict[tuple[int, str], int]:
    names = dict(disk.durable)
    if rng.random() < 0.4:  # a journal keeps their order
        for change in disk.pending[: rng.randint(0, len(disk.pending))]:
            _apply(change, names)
        return names
    keeps = _draw_keep(rng)
    lost: set[tuple[int, str]] = set()
    for change in disk.pending:
        if lost.isdisjoint(change.names) and keeps():
            _apply(change, names)
        else:
            lost.update(change.names)
    return names


def _content(file: File, keeps: Callable[[], bool]) -> Content:
    content = Content(bytearray(file.durable.data), file.durable.size)
    for call in file.pending:
        if call.kind == TRUNCATE:
            if keeps():
                content.do(call)
            continue
        at, end = call.offset, call.offset + len(call.data)
        while at < end:
            until = min(end, at - at % SECTOR + SECTOR)
            if keeps():
                piece = call.data[at - call.offset : until - call.offset]
                content.do(Call(WRITE, 0, 0, at, "", "", piece))
            at = until
    return content


@dataclass
class _RemainingFiles:
    """Writes the files of a disk after a power failure."""

    disk: Disk
    names: dict[tuple[int, str], int]
    keeps: Callable[[], bool]
    made: dict[int, Path] = field(default_factory=dict)

    def make(self, folder: int, into: Path) -> None:
        """Write a folder and its content."""
        into.mkdir()
        for (parent, name), leads in self.names.items():
            if parent != folder:
                continue
            path = into / name
            if leads in self.disk.folders:
                self.make(leads, path)
            elif leads in self.made:
                os.link(self.made[leads], path)
            else:
                _content(self.disk.files.get(leads, File()), self.keeps).make(path)
                self.made[leads] = path
