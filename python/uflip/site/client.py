"""The client of a site: submits a result folder, and downloads one.

It trusts no data from the network: fields of responses have types, digests and ids are validated,
and redirections are refused.

A submitted copy identifies neither machine, nor owner, nor drive. Results contain no host and no
user name. Before a result is submitted, this module removes serial numbers, paths, ids of media and
boots, and the command line. The ledger of the copy continues with a line for the changed manifest,
as for every change of a manifest, so that the copy still verifies.
"""

import atexit
import fcntl
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from random import uniform
from time import monotonic, sleep, time
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, TypeVar

import msgspec
from msgspec import Meta, Struct

from uflip.data import ledger, manifest
from uflip.data.device import DeviceDetails, DeviceInfo
from uflip.data.document import Count, DigestText, Table
from uflip.data.manifest import Manifest
from uflip.errors import RefusedError, ResultsError, UflipError, UnavailableError, UsageError
from uflip.escape import without_password
from uflip.executors import Threads, on_all, using
from uflip.extras import missing_extra
from uflip.results.integrity import examine
from uflip.results.result_dir import create_atomically, refuse_existing
from uflip.results.writer import FolderFiles
from uflip.site.upload_files import (
    COMPLETE,
    Missing,
    UploadFile,
    bodies,
    check_names,
    pack_parts,
    unfinished_error,
)

if TYPE_CHECKING:
    import httpx

PRIVATE_DETAILS = (
    "backing_file", "boot_id", "brand", "diskseq", "file_system_device", "inode", "snapshot",
)  # fmt: skip
PRIVATE_HOST = ("command_line", "executable")


@dataclass(frozen=True)
class RedactedValue:
    """A removed value: its key in the manifest, and its content."""

    where: str
    value: str


def redacted_values(content: Manifest) -> list[RedactedValue]:
    """Return the values that are removed from a manifest."""
    return [
        RedactedValue(where, str(value))
        for where, value in _private(content).items()
        if value not in (None, "", ())
    ]


def redact_manifest(content: Manifest) -> Manifest:
    """Return a manifest without values that identify a machine or a drive."""
    device = content.device
    details = msgspec.structs.replace(
        device.details, **{name: getattr(DeviceDetails(), name) for name in PRIVATE_DETAILS}
    )
    url = device.url if device.simulated and not _is_path(device.url) else f"{device.kind}:"
    cleaned: DeviceInfo = msgspec.structs.replace(device, url=url, serial="", details=details)
    host: Table = {name: value for name, value in content.host.items() if name not in PRIVATE_HOST}
    state = msgspec.structs.replace(content.state, record=None)
    return msgspec.structs.replace(content, device=cleaned, host=host, state=state)


def redacted_copy(folder: Path, out: Path) -> list[RedactedValue]:
    """Copy a finished result folder without private values, with a valid ledger.

    `folder`: a folder of `uflip run`; it does not change. `out`: a path that does not exist.
    """
    state = examine(folder)
    if state.lost:
        first = state.lost[0]
        raise ResultsError(
            "The results were changed after the measurement",
            where=str(folder / first.file),
            got=f"{first.state}: {first.reason}",
            allowed="unchanged files",
            action=f"`uflip verify {folder}` lists them all; `uflip run --resume` measures lost "
            "runs again",
        )
    if not (folder / ledger.FILE_NAME).exists():
        raise ResultsError(
            "The results have no ledger",
            where=str(folder / ledger.FILE_NAME),
            got="no ledger: it was lost",
            allowed="a folder with a ledger, which has the digest of every file",
            action="restore it from a copy, or measure again",
        )
    status = state.usable_manifest().status
    if status != COMPLETE:
        raise unfinished_error(status)
    (out / manifest.RUNS).mkdir(parents=True)
    for name in (manifest.FILE_NAME, ledger.FILE_NAME):
        shutil.copyfile(folder / name, out / name)
    for path in sorted((folder / manifest.RUNS).glob("*.parquet")):
        shutil.copyfile(path, out / manifest.RUNS / path.name)
    verification = examine(out)
    content = verification.usable_manifest()
    files = FolderFiles(out)
    try:
        files.resume(content, verification)
        files.write_manifest(redact_manifest(content))
    finally:
        files.close()
    return redacted_values(content)


def _private(content: Manifest) -> dict[str, object]:
    device = content.device
    private: dict[str, object] = {
        "device.serial": device.serial,
        "state.record": content.state.record,
    }
    if not device.simulated or _is_path(device.url):
        private["device.url"] = device.url
    private |= {f"device.details.{name}": getattr(device.details, name) for name in PRIVATE_DETAILS}
    host = {name: content.host.get(name) for name in PRIVATE_HOST}
    return private | {
        f"host.{name}": " ".join(value) if isinstance(value, list) else value
        for name, value in host.items()
    }


def _is_path(url: str) -> bool:
    return "/" in url


TOKEN = "UFLIP_SITE_TOKEN"
TIMEOUT_S = 60.0
COMMIT_S = 600.0
MAX_ANSWER_BYTES = 16 << 20
"""Limit for answers other than files: the longest lists the files of a result, 400 bytes each."""
MAX_ATTEMPTS = 10
"""Attempts at an upload while a concurrent upload of the same result ends it."""
RETRY_PAUSE_S = 0.05
"""Longest pause before the second attempt, doubled each time; random, so that few collide again."""
CONCURRENT_DOWNLOADS = 8
"""Concurrent downloads: most files are short, and each waits for the network and the disk."""
SUBMITTED, FETCHED = "uflip-submit-", "uflip-fetched-"
ABANDONED_AFTER_S = 60.0
"""An older folder that no process has locked was left by a kill."""
_TOKEN_CHARACTERS = re.compile("[\x21-\x7e]+")
OnBytes = Callable[[int, int], None]
ERROR_KINDS: dict[str, type[UflipError]] = {
    "usage": UsageError,
    "refused": RefusedError,
    "results": ResultsError,
    "unavailable": UnavailableError,
}
MAX_PART = 2000
Shape = TypeVar("Shape")


class UploadStatusResponse(Struct):
    """An upload: the number of received bytes of each file, by its digest."""

    id: Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
    received: dict[str, Count]


class ReceivedBytesResponse(Struct):
    """The numbers of received bytes of files."""

    received: dict[str, Count]


class Submitted(TypedDict):
    """The answer to a committed submission."""

    id: str
    url: str
    new: bool
    own: bool
    published: bool


class FileResponse(Struct):
    """A file of a result."""

    path: str
    digest: DigestText
    bytes: Count


class ResultResponse(Struct):
    """The fields of a result that the client uses."""

    files: list[FileResponse]


class NotFoundError(ResultsError):
    """The requested object is not on the site, or not any more."""


@dataclass(frozen=True)
class PreparedResult:
    """The data to send: a copy of a result folder without private values, and its files."""

    folder: Path  #: The copy.
    files: list[UploadFile]  #: The files of the copy.
    redacted: list[RedactedValue]  #: The values that it does not contain.

    @property
    def bytes(self) -> int:
        """Length of all files together [bytes]."""
        return sum(each.bytes for each in self.files)


def prepare(folder: Path, scratch: Path) -> PreparedResult:
    """Make a copy of a result folder without private values.

    `folder`: of `uflip run`. `scratch`: an empty folder.
    """
    copy = scratch / "result"
    redactions = redacted_copy(folder, copy)
    names = [manifest.FILE_NAME, ledger.FILE_NAME]
    names += sorted(f"{manifest.RUNS}/{path.name}" for path in (copy / manifest.RUNS).iterdir())
    files = [_digested(copy, name) for name in names]
    return PreparedResult(copy, files, redactions)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield a folder for a copy, and remove it afterwards."""
    with tempfile.TemporaryDirectory(prefix=_remove_stale(SUBMITTED)) as folder:
        lock = _locked(Path(folder))
        try:
            inner = Path(folder) / "copy"
            inner.mkdir()
            yield inner
        finally:
            if lock is not None:
                os.close(lock)


def _remove_stale(prefix: str) -> str:
    """Remove folders with this prefix that killed processes of this user left; return the prefix.

    A process that uses such a folder holds a lock on it, which ends with the process.
    """
    for stale in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with suppress(OSError):
            if stale.lstat().st_uid == os.geteuid():
                _remove_unlocked(stale)
    return prefix


def _remove_unlocked(folder: Path) -> None:
    lock = _locked(folder)
    # The owner of a young folder may be about to lock it.
    if lock is not None:
        if time() - folder.stat().st_mtime > ABANDONED_AFTER_S:
            shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _locked(folder: Path) -> int | None:
    """Lock a folder and return its descriptor; None if another process holds the lock."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _digested(folder: Path, name: str) -> UploadFile:
    with (folder / name).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return UploadFile(name, digest, (folder / name).stat().st_size)


def missing(prepared: PreparedResult, received: Mapping[str, int]) -> list[Missing]:
    """Return the files to send: incomplete ones, and empty ones again."""
    return [
        Missing(prepared.folder / each.path, each.digest, each.bytes, at)
        for each in prepared.files
        if (at := received.get(each.digest, 0)) < each.bytes or each.bytes == 0
    ]


class Client:
    """A connection to a site; use it in a `with` block.

    `url`: address of the site, as in `https://results.example.org`. `token`: authenticates the
    user; by default that of the environment (`UFLIP_SITE_TOKEN`). Raises UsageError if the address
    or the token is malformed. Raises UnavailableError if httpx is not installed.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        try:
            import httpx
        except ImportError as error:
            what = "Connecting to a site needs httpx"
            raise missing_extra("site", what, where=without_password(url)) from error
        try:
            address = httpx.URL(url)
            is_address = address.scheme in ("http", "https") and bool(address.host)
        except httpx.InvalidURL:
            is_address = False
        if not is_address:
            raise UsageError(
                "Not the address of a site",
                where="URL",
                got=without_password(url),
                allowed="http://HOST:PORT, https://HOST",
                action="name the address at which `uflip site serve` is reached",
            )
        valid = _token(token)
        headers = {"Authorization": f"Bearer {valid}"} if valid else {}
        headers["Accept-Encoding"] = "identity"  # a few bytes may unpack to all of the memory
        self.url = without_password(url.rstrip("/"))
        """The address that errors show, without a password."""
        base = f"{url.rstrip('/')}/api/v1/"
        self._http = httpx.Client(base_url=base, headers=headers, timeout=TIMEOUT_S)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def submit(
        self, prepared: PreparedResult, *, publish: bool = False, on_bytes: OnBytes | None = None
    ) -> Submitted:
        """Upload the missing parts of a result, and commit it."""
        files = [asdict(each) for each in prepared.files]
        for attempt in range(MAX_ATTEMPTS):
            upload = self._ask(UploadStatusResponse, "POST", "submissions", json={"files": files})
            try:
                self._send(prepared, upload, on_bytes)
                parameters = {"publish": publish}
                commit = f"submissions/{upload.id}/commit"
                return self._ask(Submitted, "POST", commit, params=parameters, timeout=COMMIT_S)
            except NotFoundError:
                # A concurrent upload of the same files ended it: it may be a result by now.
                if attempt + 1 == MAX_ATTEMPTS:
                    raise
                sleep(uniform(0, RETRY_PAUSE_S * 2**attempt))
            except ResultsError as error:
                # The site keeps the upload; the error shows its id, which no other output does.
                ends = f"DELETE {self.url}/api/v1/submissions/{upload.id} ends the upload"
                error.action = "; ".join(filter(None, (error.action, ends)))
                raise
        raise AssertionError("the last try ends in a result or an error")

    def _send(
        self,
        prepared: PreparedResult,
        upload: UploadStatusResponse,
        on_bytes: OnBytes | None,
    ) -> None:
        """Send the missing parts of the files."""
        received = upload.received
        for some in bodies(missing(prepared, received)):
            address = f"submissions/{upload.id}/parts"
            received |= self._ask(
                ReceivedBytesResponse, "POST", address, content=pack_parts(some)
            ).received
            if on_bytes is not None:
                sent_bytes = sum(received.get(each.digest, 0) for each in prepared.files)
                on_bytes(sent_bytes, prepared.bytes)

    def pull(self, result: str, out: Path) -> Path:
        """Download a result into a new folder, and check its files against their digests."""
        refuse_existing(out)
        response = self._ask(ResultResponse, "GET", f"results/{result}")
        offered = [UploadFile(each.path, each.digest, each.bytes) for each in response.files]
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
        with create_atomically(out) as hidden:
            (hidden / manifest.RUNS).mkdir()
            with using(Threads(CONCURRENT_DOWNLOADS, wait_on_cancel=True)):
                on_all(partial(self._fetch, result, hidden), offered)
        return out

    def _fetch(self, result: str, folder: Path, offered: UploadFile) -> None:
        summed, length = hashlib.sha256(), 0
        path = folder / offered.path
        address = f"results/{result}/files/{offered.digest}"
        with (
            self._network_errors(),
            self._http.stream("GET", address) as response,
            path.open("xb") as file,
        ):
            if not response.is_success:
                check_response(response, self._content(response))
            for part in response.iter_raw(1 << 20):
                length += len(part)
                if length > offered.bytes:
                    break
                summed.update(part)
                file.write(part)
        if (length, summed.hexdigest()) != (offered.bytes, offered.digest):
            raise ResultsError(
                "The file does not match its digest on the site", where=path.name,
                got=f"{summed.hexdigest()}, {length} bytes",
                allowed=f"{offered.digest}, {offered.bytes} bytes", action="fetch it again",
            )  # fmt: skip

    def _ask(self, shape: type[Shape], method: str, address: str, **options: Any) -> Shape:
        with self._network_errors(), self._http.stream(method, address, **options) as response:
            content = self._content(response)
        return read_response(response, content, shape)

    def _content(self, answer: "httpx.Response") -> bytes:
        """Read an answer to its end, within limits of length and time."""
        content, end = bytearray(), monotonic() + COMMIT_S
        for part in answer.iter_raw():
            content += part
            if len(content) > MAX_ANSWER_BYTES or monotonic() > end:
                raise UnavailableError(
                    "The answer of the site is too long or too slow",
                    where=self.url,
                    got=f"more than {len(content) >> 20} MiB",
                    allowed=f"{MAX_ANSWER_BYTES >> 20} MiB in {COMMIT_S:.0f} s",
                    action="check the address",
                )
        return bytes(content)

    @contextmanager
    def _network_errors(self) -> Iterator[None]:
        """Convert network errors into an `UnavailableError`."""
        import httpx

        try:
            yield
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise UnavailableError(
                "The site does not answer",
                where=self.url,
                got=str(error) or type(error).__name__,
                action="try again; data that the site has received is not sent again",
            ) from error


def read_response(answer: "httpx.Response", content: bytes, shape: type[Shape]) -> Shape:
    """Decode the content of a response."""
    check_response(answer, content)
    try:
        return msgspec.json.decode(content, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _not_a_site_error(answer, str(error)) from error


def check_response(answer: "httpx.Response", content: bytes) -> None:
    """Refuse a response that reports an error."""
    if answer.is_success:
        return
    try:
        parts = dict(json.loads(content)["error"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        where = answer.headers.get("location", "")[:200]
        raise _not_a_site_error(answer, f"it leads to {where}" if where else "") from error
    kind = ERROR_KINDS.get(str(parts.pop("kind", "")), UnavailableError)
    if answer.status_code == HTTPStatus.NOT_FOUND and kind is ResultsError:
        kind = NotFoundError
    fields = ("what", "where", "got", "allowed", "action")
    raise kind(**{name: str(parts.get(name) or "")[:MAX_PART] for name in fields})


def _not_a_site_error(answer: "httpx.Response", problem: str) -> UflipError:
    requested = answer.request.url
    return UnavailableError(
        "The server is not a uflip results site",
        where=f"{requested.scheme}://{requested.netloc.decode()}{requested.path}",
        got=f"an answer {answer.status_code} of another kind"
        + (f": {problem[:200]}" if problem else ""),
        action="check the address",
    )


def _token(option: str | None) -> str | None:
    """Return the token to use; no error ever shows it."""
    token = (option or os.environ.get(TOKEN) or "").strip()
    if token and not _TOKEN_CHARACTERS.fullmatch(token):
        raise UsageError(
            "Not a token",
            where="--token" if option else TOKEN,
            got=f"{len(token)} characters, and not all of them are those of a token",
            allowed="letters, digits and signs of ASCII, without blanks",
            action="give it as `uflip site token` printed it",
        )
    return token or None


def download_result(url: str) -> Path:
    """Download the result of a permanent address into a folder that this process removes at exit.

    `url`: as in `https://results.example.org/results/0123456789abcdef0123456789abcdef`.
    """
    site, separator, result = url.rstrip("/").rpartition("/results/")
    if not separator or not result.isalnum():
        raise UsageError(
            "Not the address of a result",
            where=without_password(url),
            allowed="https://SITE/results/ID",
            action="copy it from the page of the result",
        )
    scratch = tempfile.mkdtemp(prefix=_remove_stale(FETCHED))
    _locked(Path(scratch))  # until this process ends
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    with Client(site) as client:
        return client.pull(result, Path(scratch) / result)
