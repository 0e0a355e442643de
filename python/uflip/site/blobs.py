"""Files by the digest of their content: each is kept once, whoever sends it.

```text
blobs/ab/abcd…       a whole file, named by its SHA-256; never changed, never half there
arriving/ID/abcd…    a file on its way: what came so far
folders/ID/          a result as `uflip.load` reads it: the same files by their names (links)
```
"""

import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from uflip.errors import ResultsError, UsageError
from uflip.results import atomic

_DIGEST = re.compile("[0-9a-f]{64}")


class Blobs:
    """The files of a site.

    Parameters
    ----------
    root : Path
        The site's folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folders = root / "folders"
        for folder in (self._blobs, self._arriving, self.folders):
            folder.mkdir(parents=True, exist_ok=True)

    @property
    def _blobs(self) -> Path:
        return self.root / "blobs"

    @property
    def _arriving(self) -> Path:
        return self.root / "arriving"

    def path(self, digest: str) -> Path:
        """Where a whole file is, or would be.

        Raises
        ------
        UsageError
            If it is no digest.
        """
        if not _DIGEST.fullmatch(digest):
            raise UsageError(
                "This is no digest",
                where="digest",
                got=digest[:80],
                allowed="SHA-256",
                action="send the SHA-256 of the content, in hexadecimal digits",
            )
        return self._blobs / digest[:2] / digest

    def there(self, digest: str) -> bool:
        """Whether a whole file is there."""
        return self.path(digest).exists()

    def received(self, submission: str, digest: str, size: int) -> int:
        """How many of the bytes of a file have come so far; all of them only if it is whole."""
        with self._alone(submission):
            return self._received(submission, digest, size)

    def _received(self, submission: str, digest: str, size: int) -> int:
        if self.there(digest):
            return size
        arriving = self._arriving / submission / digest
        try:
            there = arriving.stat().st_size
        except OSError:
            return 0
        if there < size:
            return there
        # Its last part came, and the server ended before it was made whole.
        try:
            self._whole(arriving, digest)
        except ResultsError:
            return 0
        return size

    def receive(self, submission: str, digest: str, size: int, offset: int, part: bytes) -> int:
        """Take the next part of a file; the last one makes it whole.

        Parameters
        ----------
        submission, digest : str
            Whose file, and which.
        size : int
            Of the whole [bytes].
        offset : int
            Where the part begins [bytes]: where the one before ended.
        part : bytes
            The content.

        Returns
        -------
        int
            How many bytes there are now.

        Raises
        ------
        UsageError
            If the part begins elsewhere, or there is more than the file has.
        ResultsError
            If the whole has another digest; it has to be sent again then.
        """
        with self._alone(submission):
            return self._receive(submission, digest, size, offset, part)

    @contextmanager
    def _alone(self, submission: str) -> Iterator[None]:
        """Hold an upload: its sender may send the same twice, to several servers, at once."""
        folder = self._arriving / submission
        folder.mkdir(exist_ok=True)
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(held, fcntl.LOCK_EX)
            # Whoever held it before may have ended the upload, and its folder.
            folder.mkdir(exist_ok=True)
            yield
        finally:
            os.close(held)

    def _receive(self, submission: str, digest: str, size: int, offset: int, part: bytes) -> int:
        there = self._received(submission, digest, size)
        if self.there(digest) or (part and offset + len(part) <= there):
            return there  # somebody else sent it meanwhile; the whole has its digest
        if offset != there or offset + len(part) > size:
            raise UsageError(
                "This part does not follow",
                where=digest,
                got=f"{len(part)} bytes from byte {offset} on",
                allowed=f"from byte {there} on, to byte {size}",
                action="ask how much there is, and go on from there",
            )
        arriving = self._arriving / submission / digest
        with arriving.open("ab") as file:
            file.write(part)
            file.flush()
            os.fsync(file.fileno())
        if offset + len(part) == size:
            self._whole(arriving, digest)
        return offset + len(part)

    def _whole(self, arriving: Path, digest: str) -> None:
        with arriving.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != digest:
            arriving.unlink()
            raise ResultsError(
                "A file is not what it was said to be",
                where=digest,
                got=f"content with the digest {found}",
                action="send it again",
            )
        path = self.path(digest)
        path.parent.mkdir(exist_ok=True)
        arriving.chmod(0o444)
        atomic.publish(arriving, path)

    def assemble(self, folder: Path, files: Iterable[tuple[str, str]]) -> None:
        """Make a folder of whole files: pairs of a name in it and a digest."""
        for name, digest in files:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            os.link(self.path(digest), path)

    def keep(self, result: str, files: Iterable[tuple[str, str]]) -> None:
        """Let the files of a result be found by their digests, whatever was removed."""
        for name, digest in files:
            with suppress(FileExistsError):
                os.link(self.folders / result / name, self.path(digest))

    def forget(self, submission: str) -> None:
        """Remove what has arrived of an upload."""
        shutil.rmtree(self._arriving / submission, ignore_errors=True)

    def arriving(self) -> list[str]:
        """Uploads of which something has arrived."""
        return [path.name for path in self._arriving.iterdir()]

    def remove(self, digests: Iterable[str]) -> None:
        """Remove files that no result has any more."""
        for digest in digests:
            with suppress(FileNotFoundError):
                self.path(digest).unlink()

    def remove_folder(self, result: str) -> None:
        """Remove the folder of a result."""
        shutil.rmtree(self.folders / result, ignore_errors=True)
