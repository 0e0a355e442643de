"""Content-addressed files: each is stored once, under its digest.

```text
blobs/ab/abcd…       a complete file, named by its SHA-256; immutable, never partial
arriving/ID/abcd…    a file of an upload: the bytes so far; when complete, a link to the blob
folders/ID/          a result as `uflip.load` reads it: the same files by their names (links)
```

With `--store s3://BUCKET/PREFIX` the files are in S3-compatible storage as well: the bucket has
every file of every result before its row is committed, each under its digest. The site's folder is
then a cache, filled again where files are missing. The usual variables configure server and keys:
AWS_ENDPOINT, AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY (and AWS_ALLOW_HTTP=true for a
server without TLS).
"""

import fcntl
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from uflip import safe_files
from uflip.errors import ResultsError, UnavailableError, UsageError
from uflip.extras import missing_extra
from uflip.safe_files import make_folders, sync_paths
from uflip.site.upload_files import FilePart

if TYPE_CHECKING:
    from obstore.store import ObjectStore, RetryConfig

RETRIES: "RetryConfig" = {"max_retries": 4, "retry_timeout": timedelta(seconds=30)}
"""Few and short: a client waits for the answer."""
CONCURRENT_REQUESTS = 16
"""Requests at a time: each waits for the network."""
DELETE_BATCH = 1000
"""Number of names that a deletion request takes."""


class Bucket:
    """Object storage of files by their digests.

    `url`: as in `s3://BUCKET/PREFIX`. Raises UnavailableError if obstore is not installed, or the
    server does not answer. Raises UsageError if the URL is malformed.
    """

    def __init__(self, url: str) -> None:
        try:
            from obstore.exceptions import BaseError
            from obstore.store import from_url
        except ImportError as error:
            what = "Storing files in a bucket needs obstore"
            raise missing_extra("site-s3", what, where=f"--store {url}") from error
        self._url, self._failed = url, BaseError
        try:
            if not url.startswith("s3://"):
                raise ValueError("another scheme than s3")
            self._store: ObjectStore = from_url(url, retry_config=RETRIES)
        except (BaseError, ValueError) as error:
            raise UsageError(
                "Not a bucket",
                where="--store",
                got=f"{url}: {error}"[:200],
                allowed="s3://BUCKET or s3://BUCKET/PREFIX",
                action="name an existing bucket; AWS_ENDPOINT sets the server",
            ) from error
        self.has("0" * 64)  # fail now, not at the first submission, if the server cannot be reached

    def has(self, digest: str) -> bool:
        """Return whether the bucket has a file."""
        import obstore

        with self._storage_errors(digest):
            try:
                obstore.head(self._store, digest)
            except FileNotFoundError:
                return False
        return True

    def upload(self, files: Iterable[Path]) -> None:
        """Upload missing files, each named by its digest."""
        import obstore

        def put(path: Path) -> None:
            if not self.has(path.name):
                with self._storage_errors(path.name), path.open("rb") as file:
                    obstore.put(self._store, path.name, file)

        _on_all(put, files)

    def fetch(self, files: Iterable[Path]) -> None:
        """Download missing files, each named by its digest."""
        import obstore

        def get(path: Path) -> None:
            if path.exists():
                return
            path.parent.mkdir(parents=True, exist_ok=True)
            content_digest = hashlib.sha256()
            try:
                with safe_files.temporary_file(path) as temporary:
                    with self._storage_errors(path.name), temporary.open("wb") as file:
                        for part in obstore.get(self._store, path.name).stream():
                            content_digest.update(part)
                            file.write(part)
                    if content_digest.hexdigest() != path.name:
                        raise self._wrong(path.name, content_digest.hexdigest())
                    safe_files.sync_path(temporary)
                    temporary.chmod(0o444)
                    safe_files.publish(temporary, path)
            except FileNotFoundError as error:
                raise self._wrong(path.name, "nothing") from error

        _on_all(get, files)

    def remove(self, digests: Iterable[str]) -> None:
        """Remove files."""
        import obstore

        names = [*digests]
        for begin in range(0, len(names), DELETE_BATCH):
            with self._storage_errors(names[begin]):
                obstore.delete(self._store, names[begin : begin + DELETE_BATCH])

    def _wrong(self, digest: str, got: str) -> ResultsError:
        return ResultsError(
            "A file in the bucket is damaged",
            where=f"{self._url}/{digest}",
            got=got,
            allowed="content of this digest",
            action="restore it from a backup of the site",
        )

    @contextmanager
    def _storage_errors(self, name: str) -> Iterator[None]:
        """Convert errors of the storage into an `UnavailableError`."""
        try:
            yield
        except self._failed as error:
            raise UnavailableError(
                "The bucket cannot be used",
                where=f"{self._url}/{name}",
                got=str(error).strip().splitlines()[0][:300],
                action="check that it exists, AWS_ENDPOINT and the keys",
            ) from error


def _on_all(work: Callable[[Path], None], files: Iterable[Path]) -> None:
    with ThreadPoolExecutor(CONCURRENT_REQUESTS) as pool:
        for _ in pool.map(work, files):
            pass


"""Files that are synced at a time: the disk merges much of the work."""
FOLDERS = "folders"
FOLDERS_OF_A_SITE = ("blobs", "arriving", FOLDERS)
_DIGEST = re.compile("[0-9a-f]{64}")


class Blobs:
    """The files of a site.

    `root`: the site's folder. `bucket`: object storage for the files; the folder is then a cache of
    it.
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
        """Return the path of a complete file, whether it exists or not."""
        if not _DIGEST.fullmatch(digest):
            raise UsageError(
                "Not a digest",
                where="digest",
                got=digest[:80],
                allowed="SHA-256",
                action="send the SHA-256 of the content, in hexadecimal digits",
            )
        return self._blobs / digest[:2] / digest

    def exists(self, digest: str) -> bool:
        """Return whether a complete file exists."""
        return self.length(digest) is not None

    def length(self, digest: str) -> int | None:
        """Return the length of a complete file [bytes]; None if it does not exist."""
        try:
            return self.path(digest).stat().st_size
        except FileNotFoundError:
            return None

    def received(self, submission: str, digest: str, size: int) -> int:
        """Return the number of bytes of a file that an upload has sent; all only if it is complete.

        Bytes that other accounts sent of the same file do not count: see `blob_refs.visible`.
        """
        with self._locked_upload(submission):
            return self._received(submission, digest, size)

    def _received(
        self, submission: str, digest: str, size: int, changed: Container[Path] = ()
    ) -> int:
        arriving = self._arriving / submission / digest
        try:
            received_bytes = arriving.stat().st_size
        except OSError:
            return 0
        if received_bytes < size or arriving in changed or self._is_published(arriving):
            return received_bytes
        # Its last part came, and the server ended before the file became a blob.
        try:
            sync_paths([arriving])
            self._publish([arriving])
        except ResultsError:
            return 0
        return size

    def _is_published(self, arriving: Path) -> bool:
        with suppress(FileNotFoundError):
            return arriving.samefile(self.path(arriving.name))
        return False

    def receive(self, submission: str, parts: Sequence[tuple[FilePart, int]]) -> dict[str, int]:
        """Append parts to files; the last part of a file makes it a blob.

        `submission`: id of the upload. `parts`: each begins where the previous part of its file
        ended; with the length of the whole file (Part, int) [bytes].
        """
        with self._locked_upload(submission):
            received: dict[str, int] = {}
            changed: dict[Path, None] = {}
            whole: list[Path] = []
            try:
                for part, size in parts:
                    received[part.digest] = self._receive(submission, part, size, changed)
            finally:
                # Parts before one that does not fit are durable, too.
                sync_paths(changed)
            for part, size in parts:
                arriving = self._arriving / submission / part.digest
                if received[part.digest] == size and arriving in changed:
                    whole.append(arriving)
            self._publish([*dict.fromkeys(whole)])
            return received

    @contextmanager
    def _locked_upload(self, submission: str) -> Iterator[None]:
        """Lock an upload: its sender may send the same parts to several servers at once."""
        descriptor = _make_and_lock(self._arriving / submission)
        try:
            yield
        finally:
            os.close(descriptor)

    def _receive(
        self, submission: str, part: FilePart, size: int, changed: dict[Path, None]
    ) -> int:
        """Append a part to its file; return the number of received bytes."""
        received_bytes = self._received(submission, part.digest, size, changed)
        end = part.offset + len(part.content)
        arriving = self._arriving / submission / part.digest
        if (part.content and end <= received_bytes) or (
            received_bytes == size and self._is_published(arriving)
        ):
            return received_bytes  # the part was sent twice; the digest checks the complete file
        if part.offset != received_bytes or end > size:
            raise UsageError(
                "The part does not continue the upload",
                where=part.digest,
                got=f"{len(part.content)} bytes from byte {part.offset} on",
                allowed=f"from byte {received_bytes} on, to byte {size}",
                action="request the received bytes, and resume after them",
            )
        with arriving.open("ab") as file:
            file.write(part.content)
        changed[arriving] = None
        return end

    def _publish(self, arrived: Sequence[Path]) -> None:
        """Link complete files that are on the disk as blobs, if their digests match."""
        mismatched, changed_folders = [], []
        for arriving in arrived:
            with arriving.open("rb") as file:
                content_digest = hashlib.file_digest(file, "sha256").hexdigest()
            if content_digest != arriving.name:
                arriving.unlink()
                mismatched.append((arriving.name, content_digest))
                continue
            path = self.path(content_digest)
            make_folders(path.parent)
            arriving.chmod(0o444)
            _link(arriving, path)
            changed_folders += [path.parent, arriving.parent]
        sync_paths(changed_folders)
        if mismatched:
            raise ResultsError(
                "The file does not match its digest",
                where=mismatched[0][0],
                got=f"content with the digest {mismatched[0][1]}",
                action="send it again",
            )

    def assemble(self, folder: Path, files: Iterable[tuple[str, str]]) -> None:
        """Link complete files into a folder: pairs of a name in it and a digest."""
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
        """Upload complete files to the bucket, if there is one."""
        if self.bucket is not None:
            self.bucket.upload(map(self.path, dict.fromkeys(digests)))

    def fetch(self, digests: Iterable[str]) -> None:
        """Download files that only the bucket has, if there is one."""
        if self.bucket is not None:
            self.bucket.fetch(map(self.path, dict.fromkeys(digests)))

    def remove_upload(self, submission: str) -> None:
        """Remove the received files of an upload, not while another request receives some."""
        if (self._arriving / submission).exists():
            with self._locked_upload(submission):
                shutil.rmtree(self._arriving / submission, ignore_errors=True)

    def arriving(self) -> list[str]:
        """Return the uploads of which parts have arrived."""
        return [path.name for path in self._arriving.iterdir()]

    def unchanged(self, before: float) -> Iterator[Path]:
        """Yield complete and partial files that have not changed since a time [s]."""
        for path in self._blobs.glob("*/*"):
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < before:
                    yield path

    def remove(self, digests: Iterable[str]) -> None:
        """Remove files that no result needs any more."""
        removed = [*digests]
        for digest in removed:
            with suppress(FileNotFoundError):
                self.path(digest).unlink()
        if self.bucket is not None:
            self.bucket.remove(removed)

    def remove_folder(self, result: str) -> None:
        """Remove the folder of a result: its name first, so that no kill leaves half of it."""
        hidden = self.folders / f".{result}-{secrets.token_hex(4)}"
        try:
            (self.folders / result).rename(hidden)
        except FileNotFoundError:
            return
        sync_paths([self.folders])
        shutil.rmtree(hidden, ignore_errors=True)


def _make_and_lock(folder: Path) -> int:
    while True:
        folder.mkdir(exist_ok=True)
        with suppress(FileNotFoundError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.fstat(descriptor).st_nlink > 0:
                return descriptor
            os.close(descriptor)  # the previous holder removed this folder


def _link(arriving: Path, path: Path) -> None:
    """Make both paths links to one file: the second path's, if it exists already."""
    try:
        os.link(arriving, path)
    except FileExistsError:
        linked = arriving.with_name(f"{arriving.name}.{secrets.token_hex(4)}")
        os.link(path, linked)
        linked.replace(arriving)
