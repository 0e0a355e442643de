"""The other side of a site: submitting a result folder, and fetching one."""

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from uflip.data import ledger, manifest
from uflip.errors import (
    RefusedError,
    ResultsError,
    UflipError,
    UnavailableError,
    UsageError,
)
from uflip.executors import Threads, on_all, using
from uflip.results.place import made_beside, refuse_existing
from uflip.site.offer import Offered, check_names
from uflip.site.parts import Missing, bodies, packed
from uflip.site.redaction import LeftOut, redacted_copy

if TYPE_CHECKING:
    import httpx

TOKEN = "UFLIP_SITE_TOKEN"
TIMEOUT_S = 60.0
COMMIT_S = 600.0
AT_ONCE = 8
"""Files that are fetched together: most are short, and each waits for the network and the disk."""
KINDS: dict[str, type[UflipError]] = {
    "usage": UsageError,
    "refused": RefusedError,
    "results": ResultsError,
    "unavailable": UnavailableError,
}
OnBytes = Callable[[int, int], None]


@dataclass(frozen=True)
class Prepared:
    """What would be sent: a folder without what is private, and its files.

    Attributes
    ----------
    folder : Path
        The copy.
    files : list of (name, digest, length [bytes])
        In it.
    left_out : list of LeftOut
        What is not in it.
    """

    folder: Path
    files: list[tuple[str, str, int]]
    left_out: list[LeftOut]

    @property
    def bytes(self) -> int:
        """Length of all files together."""
        return sum(size for _, _, size in self.files)


class Submitted(TypedDict):
    """What a site says of a submission, see `uflip.site.answers.Committed`."""

    id: str
    url: str
    new: bool
    own: bool
    published: bool


def prepare(folder: Path, scratch: Path) -> Prepared:
    """Make the copy of a result folder that may leave this machine.

    Parameters
    ----------
    folder : Path
        Of `uflip run`.
    scratch : Path
        An empty folder.

    Raises
    ------
    ResultsError
        If it is no result folder, or is damaged.
    """
    copy = scratch / "result"
    left = redacted_copy(folder, copy)
    names = [manifest.FILE_NAME, ledger.FILE_NAME]
    names += sorted(f"{manifest.RUNS}/{path.name}" for path in (copy / manifest.RUNS).iterdir())
    files = [(name, *_digest(copy / name)) for name in names]
    return Prepared(copy, files, left)


def _digest(path: Path) -> tuple[str, int]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return digest, path.stat().st_size


def missing(prepared: Prepared, received: Mapping[str, int]) -> list[Missing]:
    """List what is to be sent: files of which not all has come; empty ones again."""
    return [
        Missing(prepared.folder / name, digest, size, at)
        for name, digest, size in prepared.files
        if (at := received.get(digest, 0)) < size or size == 0
    ]


class Client:
    """Somebody who asks a site; use it in a `with` block.

    Parameters
    ----------
    url : str
        Of the site, as in `https://results.example.org`.
    token : str, optional
        What says who asks; of the environment (`UFLIP_SITE_TOKEN`) without one.

    Raises
    ------
    UsageError
        If it is no address of a site.
    UnavailableError
        If httpx is not installed.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        try:
            import httpx
        except ImportError as error:
            raise UnavailableError(
                "Talking to a site needs httpx",
                where=url,
                allowed="httpx",
                action="pip install 'uflip[site]'",
            ) from error
        try:
            there = httpx.URL(url)
            known = there.scheme in ("http", "https") and bool(there.host)
        except httpx.InvalidURL:
            known = False
        if not known:
            raise UsageError(
                "This is no address of a site",
                where="URL",
                got=url,
                allowed="http://HOST:PORT, https://HOST",
                action="name the address at which `uflip site serve` is reached",
            )
        said = token or os.environ.get(TOKEN)
        headers = {"Authorization": f"Bearer {said}"} if said else {}
        self.url = url.rstrip("/")
        self._http = httpx.Client(
            base_url=f"{self.url}/api/v1/", headers=headers, timeout=TIMEOUT_S
        )

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def submit(
        self, prepared: Prepared, *, publish: bool = False, on_bytes: OnBytes | None = None
    ) -> Submitted:
        """Send what is missing of a result, and have it looked at.

        Parameters
        ----------
        prepared : Prepared
            The copy.
        publish : bool
            Let everybody see it.
        on_bytes : callable, optional
            Told how many bytes of how many are there.

        Returns
        -------
        Submitted
            The result that came of it.

        Raises
        ------
        ResultsError
            If the site finds that it does not hold.
        RefusedError
            If the token does not allow it.
        UnavailableError
            If nobody answers; the same command goes on from where it was.
        """
        files = [
            {"path": name, "digest": digest, "bytes": size} for name, digest, size in prepared.files
        ]
        begun = self._ask("POST", "submissions", json={"files": files})
        received: dict[str, int] = begun["received"]
        for some in bodies(missing(prepared, received)):
            address = f"submissions/{begun['id']}/parts"
            received |= self._ask("POST", address, content=packed(some))["received"]
            if on_bytes is not None:
                there = sum(received.get(digest, 0) for _, digest, _ in prepared.files)
                on_bytes(there, prepared.bytes)
        commit = f"submissions/{begun['id']}/commit"
        done: Submitted = self._ask("POST", commit, params={"publish": publish}, timeout=COMMIT_S)
        return done

    def pull(self, result: str, out: Path) -> Path:
        """Fetch a result into a new folder; its files are what the site says they are.

        Parameters
        ----------
        result : str
            Its id.
        out : Path
            A name that is not taken.

        Raises
        ------
        ResultsError
            If there is none, or a file is not what it should be, or the folder cannot be made.
        """
        refuse_existing(out)
        found = self._ask("GET", f"results/{result}")
        with made_beside(out) as hidden:
            (hidden / manifest.RUNS).mkdir()
            offered = [Offered(e["path"], e["digest"], e["bytes"]) for e in found["files"]]
            with using(Threads(AT_ONCE, patient=True)):
                on_all(partial(self._fetch, result, hidden), offered)
        return out

    def _fetch(self, result: str, folder: Path, offered: Offered) -> None:
        summed, length = hashlib.sha256(), 0
        path = folder / _checked(offered.path)
        address = f"results/{result}/files/{offered.digest}"
        with self._speaking(), self._http.stream("GET", address) as answer, path.open("xb") as file:
            if answer.is_error:
                answer.read()
                raise self._error(answer)
            for part in answer.iter_bytes(1 << 20):
                length += len(part)
                if length > offered.bytes:
                    break
                summed.update(part)
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        if (length, summed.hexdigest()) != (offered.bytes, offered.digest):
            raise ResultsError(
                "A file is not what the site says it is", where=path.name,
                got=f"{summed.hexdigest()}, {length} bytes",
                allowed=f"{offered.digest}, {offered.bytes} bytes", action="fetch it again",
            )  # fmt: skip

    def _ask(self, method: str, address: str, **how: Any) -> Any:
        with self._speaking():
            answer = self._http.request(method, address, **how)
        if answer.is_error:
            raise self._error(answer)
        try:
            return answer.json()
        except ValueError as error:
            raise self._no_site(answer) from error

    @contextmanager
    def _speaking(self) -> Iterator[None]:
        """Let what goes wrong between two machines be one of our errors."""
        import httpx

        try:
            yield
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise UnavailableError(
                "The site does not answer",
                where=self.url,
                got=str(error) or type(error).__name__,
                action="try again; what was sent is not sent twice",
            ) from error

    def _error(self, answer: "httpx.Response") -> UflipError:
        try:
            parts = dict(answer.json()["error"])
        except (ValueError, KeyError, TypeError):
            return self._no_site(answer)
        kind = KINDS.get(str(parts.pop("kind", "")), UnavailableError)
        known = ("what", "where", "got", "allowed", "action")
        return kind(**{name: str(parts.get(name) or "")[:2000] for name in known})

    def _no_site(self, answer: "httpx.Response") -> UflipError:
        return UnavailableError(
            "This is no site of uflip results",
            where=self.url,
            got=f"an answer {answer.status_code} that is none of ours",
            action="check the address",
        )


def _checked(name: str) -> str:
    """Refuse a name that a site may not write here."""
    fixed = [Offered(each, "0" * 64, 0) for each in (manifest.FILE_NAME, ledger.FILE_NAME)]
    if name not in (manifest.FILE_NAME, ledger.FILE_NAME):
        check_names([*fixed, Offered(name, "0" * 64, 0)])
    return name


def fetched(url: str) -> Path:
    """Fetch the result of a permanent address into a folder that lasts as long as this process.

    Parameters
    ----------
    url : str
        As in `https://results.example.org/results/0123456789ab`.

    Raises
    ------
    UsageError
        If it is no such address.
    UflipError
        As `Client.pull`.
    """
    site, found, result = url.rstrip("/").rpartition("/results/")
    if not found or not result.isalnum():
        raise UsageError(
            "This is no address of a result",
            where=url,
            allowed="https://SITE/results/ID",
            action="copy it from the page of the result",
        )
    scratch = tempfile.mkdtemp(prefix="uflip-fetched-")
    _remove_at_exit(scratch)
    with Client(site) as client:
        return client.pull(result, Path(scratch) / result)


def _remove_at_exit(folder: str) -> None:
    import atexit
    import shutil

    atexit.register(shutil.rmtree, folder, ignore_errors=True)
