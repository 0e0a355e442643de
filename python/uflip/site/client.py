"""The other side of a site: submitting a result folder, and fetching one."""

import fcntl
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import uniform
from time import monotonic, sleep, time
from typing import TYPE_CHECKING, Any

from uflip.data import ledger, manifest
from uflip.errors import ResultsError, UnavailableError, UsageError
from uflip.escape import without_password
from uflip.executors import Threads, on_all, using
from uflip.results.result_dir import made_beside, refuse_existing
from uflip.site import responses
from uflip.site.parts import Missing, bodies, packed
from uflip.site.redaction import RedactedValue, redacted_copy
from uflip.site.responses import Shape
from uflip.site.upload_manifest import UploadFile, check_names

if TYPE_CHECKING:
    import httpx

TOKEN = "UFLIP_SITE_TOKEN"
TIMEOUT_S = 60.0
COMMIT_S = 600.0
MOST_ANSWER_BYTES = 16 << 20
"""Of what is no file: the longest is the list of the files of a result, with 400 bytes for each."""
MOST_BEGUN = 10
"""How often an upload is begun again that somebody has ended meanwhile who sends the same."""
REST_S = 0.05
"""Before that, up to so long and twice as long each time: by chance, so that few meet again."""
AT_ONCE = 8
"""Files that are fetched together: most are short, and each waits for the network and the disk."""
SUBMITTED, FETCHED = "uflip-submit-", "uflip-fetched-"
YOUNG_S = 60.0
"""A folder that is older, and that nobody holds, was left by a kill."""
_OF_TOKENS = re.compile("[\x21-\x7e]+")
OnBytes = Callable[[int, int], None]


@dataclass(frozen=True)
class Submission:
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
    left_out: list[RedactedValue]

    @property
    def bytes(self) -> int:
        """Length of all files together."""
        return sum(size for _, _, size in self.files)


def prepare(folder: Path, scratch: Path) -> Submission:
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
    return Submission(copy, files, left)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Give a folder for a copy that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix=_swept(SUBMITTED)) as folder:
        held = _locked(Path(folder))
        try:
            inner = Path(folder) / "copy"
            inner.mkdir()
            yield inner
        finally:
            if held is not None:
                os.close(held)


def _swept(prefix: str) -> str:
    """Remove the folders of this name that killed processes of this user left.

    Who uses such a folder holds a lock on it, which ends with the process.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with suppress(OSError):
            if left.lstat().st_uid == os.geteuid():
                _remove_unless_held(left)
    return prefix


def _remove_unless_held(folder: Path) -> None:
    held = _locked(folder)
    # A young one may be one whose lock is about to be taken.
    if held is not None:
        if time() - folder.stat().st_mtime > YOUNG_S:
            shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def _locked(folder: Path) -> int | None:
    """Take the lock of a folder; None where another process has it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _digest(path: Path) -> tuple[str, int]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return digest, path.stat().st_size


def missing(prepared: Submission, received: Mapping[str, int]) -> list[Missing]:
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
        If it is no address of a site, or no token.
    UnavailableError
        If httpx is not installed.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        try:
            import httpx
        except ImportError as error:
            raise UnavailableError(
                "Talking to a site needs httpx",
                where=without_password(url),
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
                "Not the address of a site",
                where="URL",
                got=without_password(url),
                allowed="http://HOST:PORT, https://HOST",
                action="name the address at which `uflip site serve` is reached",
            )
        said = _token(token)
        headers = {"Authorization": f"Bearer {said}"} if said else {}
        headers["Accept-Encoding"] = "identity"  # a few bytes may unpack to all of the memory
        self.url = without_password(url.rstrip("/"))
        """As errors show it."""
        base = f"{url.rstrip('/')}/api/v1/"
        self._http = httpx.Client(base_url=base, headers=headers, timeout=TIMEOUT_S)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def submit(
        self, prepared: Submission, *, publish: bool = False, on_bytes: OnBytes | None = None
    ) -> responses.Submitted:
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
            If the site finds that it does not hold; how the upload is ended is said.
        RefusedError
            If the token does not allow it.
        UnavailableError
            If nobody answers; the same command goes on from where it was.
        """
        files = [
            {"path": name, "digest": digest, "bytes": size} for name, digest, size in prepared.files
        ]
        for attempt in range(MOST_BEGUN):
            begun = self._ask(
                responses.UploadStatusResponse, "POST", "submissions", json={"files": files}
            )
            try:
                self._send(prepared, begun, on_bytes)
                asked = {"publish": publish}
                commit = f"submissions/{begun.id}/commit"
                return self._ask(
                    responses.Submitted, "POST", commit, params=asked, timeout=COMMIT_S
                )
            except responses.NotThereError:
                # Whoever sends the same for this account has ended it: it may be a result by now.
                if attempt + 1 == MOST_BEGUN:
                    raise
                sleep(uniform(0, REST_S * 2**attempt))
            except ResultsError as error:
                # The site keeps what was sent; nobody else could say under which name.
                ends = f"DELETE {self.url}/api/v1/submissions/{begun.id} ends the upload"
                error.action = "; ".join(filter(None, (error.action, ends)))
                raise
        raise AssertionError("the last try ends in a result or an error")

    def _send(
        self, prepared: Submission, begun: responses.UploadStatusResponse, on_bytes: OnBytes | None
    ) -> None:
        """Send what is missing of the files."""
        received = begun.received
        for some in bodies(missing(prepared, received)):
            address = f"submissions/{begun.id}/parts"
            received |= self._ask(
                responses.ReceivedBytesResponse, "POST", address, content=packed(some)
            ).received
            if on_bytes is not None:
                there = sum(received.get(digest, 0) for _, digest, _ in prepared.files)
                on_bytes(there, prepared.bytes)

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
        UnavailableError
            If it is no site that answers.
        """
        refuse_existing(out)
        found = self._ask(responses.ResultResponse, "GET", f"results/{result}")
        offered = [UploadFile(each.path, each.digest, each.bytes) for each in found.files]
        try:
            check_names(offered)  # a site may write nothing else here
        except UsageError as error:
            raise ResultsError(
                "The site has no files of a result under this id",
                where=f"{self.url}/results/{result}",
                got=error.got,
                allowed=error.allowed,
                action="check the address and the id",
            ) from error
        with made_beside(out) as hidden:
            (hidden / manifest.RUNS).mkdir()
            with using(Threads(AT_ONCE, patient=True)):
                on_all(partial(self._fetch, result, hidden), offered)
        return out

    def _fetch(self, result: str, folder: Path, offered: UploadFile) -> None:
        summed, length = hashlib.sha256(), 0
        path = folder / offered.path
        address = f"results/{result}/files/{offered.digest}"
        with self._speaking(), self._http.stream("GET", address) as answer, path.open("xb") as file:
            if not answer.is_success:
                responses.check(answer, self._content(answer))
            for part in answer.iter_raw(1 << 20):
                length += len(part)
                if length > offered.bytes:
                    break
                summed.update(part)
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        if (length, summed.hexdigest()) != (offered.bytes, offered.digest):
            raise ResultsError(
                "The file does not match its digest on the site", where=path.name,
                got=f"{summed.hexdigest()}, {length} bytes",
                allowed=f"{offered.digest}, {offered.bytes} bytes", action="fetch it again",
            )  # fmt: skip

    def _ask(self, shape: type[Shape], method: str, address: str, **how: Any) -> Shape:
        with self._speaking(), self._http.stream(method, address, **how) as answer:
            content = self._content(answer)
        return responses.read(answer, content, shape)

    def _content(self, answer: "httpx.Response") -> bytes:
        """Read an answer to its end, which must come within a number of bytes, and in time."""
        content, end = bytearray(), monotonic() + COMMIT_S
        for part in answer.iter_raw():
            content += part
            if len(content) > MOST_ANSWER_BYTES or monotonic() > end:
                raise UnavailableError(
                    "The answer of the site has no end",
                    where=self.url,
                    got=f"more than {len(content) >> 20} MiB",
                    allowed=f"{MOST_ANSWER_BYTES >> 20} MiB in {COMMIT_S:.0f} s",
                    action="check the address",
                )
        return bytes(content)

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


def _token(given: str | None) -> str | None:
    """Return what says who asks; no error ever shows it."""
    said = (given or os.environ.get(TOKEN) or "").strip()
    if said and not _OF_TOKENS.fullmatch(said):
        raise UsageError(
            "Not a token",
            where="--token" if given else TOKEN,
            got=f"{len(said)} characters, and not all of them are those of a token",
            allowed="letters, digits and signs of ASCII, without blanks",
            action="give it as `uflip site token` printed it",
        )
    return said or None


def fetched(url: str) -> Path:
    """Fetch the result of a permanent address into a folder that lasts as long as this process.

    Parameters
    ----------
    url : str
        As in `https://results.example.org/results/0123456789abcdef0123456789abcdef`.

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
            "Not the address of a result",
            where=without_password(url),
            allowed="https://SITE/results/ID",
            action="copy it from the page of the result",
        )
    scratch = tempfile.mkdtemp(prefix=_swept(FETCHED))
    _locked(Path(scratch))  # as long as this process lasts
    _remove_at_exit(scratch)
    with Client(site) as client:
        return client.pull(result, Path(scratch) / result)


def _remove_at_exit(folder: str) -> None:
    import atexit
    import shutil

    atexit.register(shutil.rmtree, folder, ignore_errors=True)
