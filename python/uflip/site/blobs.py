"""Files by the digest of their content: each is kept once, whoever sends it.

```text
blobs/ab/abcd…       a whole file, named by its SHA-256; never changed, never half there
arriving/ID/abcd…    a file of an upload: what came so far; when all did, a link to the whole file
folders/ID/          a result as `uflip.load` reads it: the same files by their names (links)
```
"""

import fcntl
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Container, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from uflip.errors import ResultsError, UsageError
from uflip.results.atomic import make_folders
from uflip.site.bucket import Bucket
from uflip.site.parts import FilePart

AT_ONCE = 8
"""Files that are synced together: the disk does much of it once."""
FOLDERS = "folders"
FOLDERS_OF_A_SITE = ("blobs", "arriving", FOLDERS)
_DIGEST = re.compile("[0-9a-f]{64}")


class Blobs:
    """The files of a site.

    Parameters
    ----------
    root : Path
        The site's folder.
    bucket : Bucket, optional
        Where files are kept; what is in the folder is a copy of it then.
    """

    def __init__(self, root: Path, bucket: Bucket | None = None) -> None:
        self.root = root
        self.bucket = bucket
        self.folders = root / FOLDERS
        for name in FOLDERS_OF_A_SITE:
            make_folders(root / name)

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
                "Not a digest",
                where="digest",
                got=digest[:80],
                allowed="SHA-256",
                action="send the SHA-256 of the content, in hexadecimal digits",
            )
        return self._blobs / digest[:2] / digest

    def there(self, digest: str) -> bool:
        """Whether a whole file is there."""
        return self.length(digest) is not None

    def length(self, digest: str) -> int | None:
        """Return the length of a whole file [bytes]; None where it is not there."""
        try:
            return self.path(digest).stat().st_size
        except FileNotFoundError:
            return None

    def received(self, submission: str, digest: str, size: int) -> int:
        """How many of the bytes of a file an upload has sent so far; all only if it is whole.

        What others have sent of the same file does not count: see `claims.visible`.
        """
        with self._alone(submission):
            return self._received(submission, digest, size)

    def _received(
        self, submission: str, digest: str, size: int, changed: Container[Path] = ()
    ) -> int:
        arriving = self._arriving / submission / digest
        try:
            there = arriving.stat().st_size
        except OSError:
            return 0
        if there < size or arriving in changed or self._is_whole(arriving):
            return there
        # Its last part came, and the server ended before it was made whole.
        try:
            on_disk([arriving])
            self._whole([arriving])
        except ResultsError:
            return 0
        return size

    def _is_whole(self, arriving: Path) -> bool:
        with suppress(FileNotFoundError):
            return arriving.samefile(self.path(arriving.name))
        return False

    def receive(self, submission: str, parts: Sequence[tuple[FilePart, int]]) -> dict[str, int]:
        """Take the next parts of files; the last one of a file makes it whole.

        Parameters
        ----------
        submission : str
            Whose files.
        parts : sequence of (Part, int)
            Each begins where the one before of its file ended; with the length of the whole file
            [bytes].

        Returns
        -------
        dict
            How many bytes there are now of each file, by its digest.

        Raises
        ------
        UsageError
            If a part begins elsewhere, or there is more than the file has.
        ResultsError
            If a whole has another digest; it has to be sent again then.
        """
        with self._alone(submission):
            received: dict[str, int] = {}
            changed: dict[Path, None] = {}
            whole: list[Path] = []
            try:
                for part, size in parts:
                    received[part.digest] = self._receive(submission, part, size, changed)
            finally:
                # What came before a part that does not fit is there as well.
                on_disk(changed)
            for part, size in parts:
                arriving = self._arriving / submission / part.digest
                if received[part.digest] == size and arriving in changed:
                    whole.append(arriving)
            self._whole([*dict.fromkeys(whole)])
            return received

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

    def _receive(
        self, submission: str, part: FilePart, size: int, changed: dict[Path, None]
    ) -> int:
        """Write a part behind those before it; returns how much is there now."""
        there = self._received(submission, part.digest, size, changed)
        end = part.offset + len(part.content)
        arriving = self._arriving / submission / part.digest
        if (part.content and end <= there) or (there == size and self._is_whole(arriving)):
            return there  # the sender sent it twice; the whole has its digest
        if part.offset != there or end > size:
            raise UsageError(
                "The part does not continue the upload",
                where=part.digest,
                got=f"{len(part.content)} bytes from byte {part.offset} on",
                allowed=f"from byte {there} on, to byte {size}",
                action="ask how much there is, and go on from there",
            )
        with arriving.open("ab") as file:
            file.write(part.content)
        changed[arriving] = None
        return end

    def _whole(self, arrived: Sequence[Path]) -> None:
        """Give files that are on the disk their names, if they are what they were said to be."""
        wrong, named = [], []
        for arriving in arrived:
            with arriving.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
            if found != arriving.name:
                arriving.unlink()
                wrong.append((arriving.name, found))
                continue
            path = self.path(found)
            make_folders(path.parent)
            arriving.chmod(0o444)
            _link(arriving, path)
            named += [path.parent, arriving.parent]
        on_disk(named)
        if wrong:
            raise ResultsError(
                "The file does not match its digest",
                where=wrong[0][0],
                got=f"content with the digest {wrong[0][1]}",
                action="send it again",
            )

    def assemble(self, folder: Path, files: Iterable[tuple[str, str]]) -> None:
        """Make a folder of whole files: pairs of a name in it and a digest.

        Raises
        ------
        ResultsError
            If a file is not there any more.
        """
        for name, digest in files:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(self.path(digest), path)
            except FileNotFoundError as error:
                raise ResultsError(
                    "A file of this result is missing",
                    where=name,
                    got=f"nothing with the digest {digest}",
                    action="restore the site from a backup: `uflip site restore`",
                ) from error

    def store(self, digests: Iterable[str]) -> None:
        """Bring whole files to the bucket, where there is one."""
        if self.bucket is not None:
            self.bucket.keep(map(self.path, dict.fromkeys(digests)))

    def fetch(self, digests: Iterable[str]) -> None:
        """Bring files here that only the bucket has, where there is one."""
        if self.bucket is not None:
            self.bucket.fetch(map(self.path, dict.fromkeys(digests)))

    def forget(self, submission: str) -> None:
        """Remove what has arrived of an upload."""
        shutil.rmtree(self._arriving / submission, ignore_errors=True)

    def arriving(self) -> list[str]:
        """Uploads of which something has arrived."""
        return [path.name for path in self._arriving.iterdir()]

    def kept(self, before: float) -> Iterator[Path]:
        """List whole files, and what was begun of one, that have not changed since a time [s]."""
        for path in self._blobs.glob("*/*"):
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < before:
                    yield path

    def remove(self, digests: Iterable[str]) -> None:
        """Remove files that no result has any more."""
        gone = [*digests]
        for digest in gone:
            with suppress(FileNotFoundError):
                self.path(digest).unlink()
        if self.bucket is not None:
            self.bucket.remove(gone)

    def hidden_folder(self, result: str) -> Path:
        """Return a new name for the folder of a result that is being made, or removed."""
        return self.folders / f".{result}-{secrets.token_hex(4)}"

    def remove_folder(self, result: str) -> None:
        """Remove the folder of a result: its name first, so that no kill leaves half of it."""
        hidden = self.hidden_folder(result)
        try:
            (self.folders / result).rename(hidden)
        except FileNotFoundError:
            return
        on_disk([self.folders])
        shutil.rmtree(hidden, ignore_errors=True)


def _link(arriving: Path, path: Path) -> None:
    """Let two names be of one file: that of the second, where it is there already."""
    try:
        os.link(arriving, path)
    except FileExistsError:
        linked = arriving.with_name(f"{arriving.name}.{secrets.token_hex(4)}")
        os.link(path, linked)
        linked.replace(arriving)


def on_disk(paths: Iterable[Path]) -> None:
    """Wait until files, or the names in folders, are on the disk."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in pool.map(_sync, dict.fromkeys(paths)):
            pass


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
