"""Writes the ledger of a result folder: a line is on disk before what it tells of has its name.

What the lines are, and why, stands in `uflip.data.ledger`.
"""

import contextlib
import os
from pathlib import Path

from uflip.data import ledger
from uflip.data.ledger import FILE_NAME, Begin, Entry
from uflip.results import atomic


class LedgerWriter:
    """A ledger that is being written; `create` begins one, `go_on` takes one up."""

    def __init__(self, path: Path, lines: int, end: int, link: str) -> None:
        self._path = path
        self._end = end
        self._link = link
        self._before = (lines, end, link)
        self.lines = lines
        """How many there are."""

    @classmethod
    def create(cls, folder: Path, folder_id: str, plan: str) -> "LedgerWriter":
        """Begin the ledger of a folder with this plan (its digest).

        Raises
        ------
        OSError
            As the operating system says; a file of this name above all.
        """
        path = folder / FILE_NAME
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        os.close(descriptor)
        writer = cls(path, 0, 0, "")
        writer.append(Begin(folder_id, plan))
        atomic.fsync_directory(folder)
        return writer

    def moved_to(self, folder: Path) -> None:
        """Take note that the folder has another name now."""
        self._path = folder / FILE_NAME

    @classmethod
    def go_on(cls, folder: Path, known: ledger.Ledger, *, dangling: bool) -> "LedgerWriter":
        """Take up the ledger of a folder; what a kill left of a line is cut off.

        Parameters
        ----------
        folder : Path
            The result folder.
        known : Ledger
            What is in it.
        dangling : bool
            Cut off the last line too: a kill came between it and its file.

        Raises
        ------
        OSError
            As the operating system says.
        """
        path = folder / FILE_NAME
        lines, end, link = known.without_last if dangling else (known.lines, known.end, known.link)
        os.truncate(path, end)
        return cls(path, lines, end, link)

    def append(self, entry: Entry) -> None:
        """Write a line, and sync it; a failure leaves the ledger as it was.

        Raises
        ------
        OSError
            As the operating system says (no space above all).
        """
        text, link = ledger.line(entry, self._link)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            try:
                if os.write(descriptor, text) < len(text):
                    raise OSError("the ledger took only a part of a line")
                os.fsync(descriptor)
            except BaseException:
                os.ftruncate(descriptor, self._end)
                raise
        finally:
            os.close(descriptor)
        self._before = (self.lines, self._end, self._link)
        self._end += len(text)
        self._link = link
        self.lines += 1

    def take_back(self) -> None:
        """Cut off the line that was appended last: its file did not get its name.

        Where that fails too (a file system that is gone), the file is shown as missing: so it is.
        """
        self.lines, self._end, self._link = self._before
        with contextlib.suppress(OSError):
            os.truncate(self._path, self._end)
