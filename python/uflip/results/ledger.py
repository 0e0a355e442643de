"""Writes the ledger of a result folder: a line is on disk before its file has its name.

`uflip.data.ledger` documents the lines and this order.
"""

import contextlib
import os
from pathlib import Path

from uflip.data import ledger
from uflip.data.ledger import FILE_NAME, BeginEntry, Entry
from uflip.results import atomic


class LedgerWriter:
    """A ledger that is being written; `create` begins one, `resume` continues one."""

    def __init__(self, path: Path, lines: int, end: int, link: str) -> None:
        self._path = path
        self._end = end
        self._link = link
        self._before = (lines, end, link)
        self.lines = lines
        """Number of lines."""

    @classmethod
    def create(cls, folder: Path, folder_id: str, plan: str) -> "LedgerWriter":
        """Begin the ledger of a folder with this plan (its digest).

        Raises
        ------
        OSError
            From the operating system; most likely the file exists.
        """
        path = folder / FILE_NAME
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        os.close(descriptor)
        writer = cls(path, 0, 0, "")
        writer.append(BeginEntry(folder_id, plan))
        atomic.fsync_directory(folder)
        return writer

    def set_folder(self, folder: Path) -> None:
        """Record the new name of the folder."""
        self._path = folder / FILE_NAME

    @classmethod
    def resume(cls, folder: Path, previous: ledger.Ledger, *, dangling: bool) -> "LedgerWriter":
        """Continue the ledger of a folder; cut off a partial line left by a kill.

        Parameters
        ----------
        folder : Path
            The result folder.
        previous : Ledger
            Its parsed content.
        dangling : bool
            Cut off the last line too: a kill came between it and its file.

        Raises
        ------
        OSError
            From the operating system.
        """
        path = folder / FILE_NAME
        lines, end, link = (
            previous.without_last if dangling else (previous.lines, previous.end, previous.link)
        )
        os.truncate(path, end)
        return cls(path, lines, end, link)

    def append(self, entry: Entry) -> None:
        """Write a line, and sync it; a failure leaves the ledger as it was.

        Raises
        ------
        OSError
            From the operating system (most likely: no space).
        """
        text, link = ledger.line(entry, self._link)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            try:
                if os.write(descriptor, text) < len(text):
                    raise OSError("only a part of a line was written")
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

    def remove_last_line(self) -> None:
        """Cut off the last appended line: its file did not get its name.

        If that fails too (the file system is gone), the file is reported as missing, correctly.
        """
        self.lines, self._end, self._link = self._before
        with contextlib.suppress(OSError):
            os.truncate(self._path, self._end)
