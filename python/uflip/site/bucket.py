"""Files of a site in S3-compatible storage, if configured: `--store s3://BUCKET/PREFIX`.

The bucket has every file of every result before its row is committed, each under its digest. The
site's folder is then a cache, filled again where files are missing. The usual variables configure
server and keys: AWS_ENDPOINT, AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY (and
AWS_ALLOW_HTTP=true for a server without TLS).
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from uflip import safe_files
from uflip.errors import ResultsError, UnavailableError, UsageError
from uflip.extras import missing_extra

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
