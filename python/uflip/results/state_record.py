"""The state record of a device: stored beside the results, read before the next benchmark.

`uflip.data.state_record` defines its content. It is valid only while no one else has written to the
device, as far as the system shows: a file has a modification time, a block device a count of
sectors written since boot. And only while the medium is the same, which the brand of the data on it
and the number from the kernel show.
"""

import hashlib
import re
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from uflip import _native, safe_files
from uflip.data import state_record
from uflip.data.device import DeviceInfo
from uflip.data.state_record import StateDocument, StateRequest, Written
from uflip.device.identity import MEDIUM, identity, medium, medium_difference
from uflip.errors import RefusedError, ResultsError
from uflip.results.result_dir import why_not_writable

FOLDER = Path("results") / "states"
PLAIN_DEVICE_NAME = re.compile(
    r"(file:|(block:)?/dev/)[A-Za-z0-9.]+(-[A-Za-z0-9.]+)*(?<![.-])", re.ASCII
)
"""Names that can be recovered from the record's name; others get a digest."""


class StateRecord:
    """A state record on disk. Made by `open_record`."""

    def __init__(self, path: Path, info: DeviceInfo, state: StateDocument | None) -> None:
        self.path = path
        self._info = info
        self.state = state
        """The state; None if it is unknown or no longer valid."""

    def begin(self, request: StateRequest, total_ios: int) -> int:
        """Record that enforcement of a state begins; return the number of writes already made."""
        current = self.state
        if current and current.state_id is None and current.request == dict(request):
            return current.done_ios
        self._save(
            StateDocument(
                uflip_version=_native.__version__,
                updated_utc=_now(),
                device=identity(self._info) | medium(self._info),
                request=request,
                total_ios=total_ios,
            )
        )
        return 0

    def save_progress(self, done_ios: int) -> None:
        """Record the number of enforcement writes made so far."""
        assert self.state is not None, "begin comes first"
        self._save(msgspec.structs.replace(self.state, done_ios=done_ios))

    def save_enforced(self, state_id: str) -> None:
        """Record that the enforcement is complete."""
        assert self.state is not None, "begin comes first"
        self._save(msgspec.structs.replace(self.state, state_id=state_id))

    def save_run(self, state_id: str | None, written_bytes: int, used_bytes: int) -> None:
        """Record the state after a run; do nothing if it was unknown before."""
        if self.state is None:
            return
        self._save(
            msgspec.structs.replace(
                self.state,
                state_id=state_id,
                runs_since=self.state.runs_since + 1,
                bytes_written_since=self.state.bytes_written_since + written_bytes,
                used_bytes=max(self.state.used_bytes, used_bytes),
            )
        )

    def forget(self) -> None:
        """Remove the record: a deallocated device is in no state to begin in."""
        self.state = None
        self.path.unlink(missing_ok=True)
        if self.path.parent.exists():
            safe_files.sync_path(self.path.parent)

    def _save(self, state: StateDocument) -> None:
        self.state = msgspec.structs.replace(
            state,
            uflip_version=_native.__version__,
            updated_utc=_now(),
            written=last_write(self._info),
        )
        try:
            safe_files.make_folders(self.path.parent)
            safe_files.write_file(self.path, state_record.encode(self.state))
        except OSError as error:
            raise ResultsError(
                what="The record of the device's state could not be written",
                where=str(self.path),
                got=error.strerror or str(error),
                allowed="a writable folder with free space",
                action="name another file with --record",
            ) from error


def default_path(url: str) -> Path:
    """Return the default path of a device's record: each device has its own.

    >>> default_path("file:scratch.bin").name, default_path("/dev/nvme1n1").name
    ('file-scratch.bin.json', 'dev-nvme1n1.json')
    >>> default_path("file:d/x.bin").name
    'file-d-x.bin-7a07e84d.json'
    """
    slug = re.sub(r"[^A-Za-z0-9.]+", "-", url).strip("-.")[-80:]
    if PLAIN_DEVICE_NAME.fullmatch(url) is None or len(slug) == 80:
        slug += (
            "-" + hashlib.blake2b(url.encode(errors="surrogateescape"), digest_size=4).hexdigest()
        )
    return FOLDER / f"{slug}.json"


def check_record_path(path: Path) -> None:
    """Fail before anything is written to the device if no record can be written at this path."""
    if path.is_symlink():
        raise RefusedError(
            "The record of the device's state never replaces a symbolic link",
            where=f"--record {path}",
            allowed="the name of a regular file, or an unused name",
            action="name the file that the link leads to",
        )
    if not (reason := why_not_writable(path)):
        return
    raise ResultsError(
        "The state record cannot be written",
        where=str(path),
        got=reason,
        allowed="a path that can be written",
        action="name another file with --record",
    )


def open_record(path: Path, info: DeviceInfo, *, ours_is_last: bool = False) -> StateRecord:
    """Open the record of a device, or begin a new one.

    `path`: the file; it may not exist yet. `info`: the device, as it is now. `ours_is_last`:
    whether the last write to the device is known to come from our own interrupted run, after which
    no record could be written.
    """
    check_record_path(path)
    state = state_record.read(path)
    if state is None:
        return StateRecord(path, info, None)
    undisturbed = ours_is_last or _undisturbed(state.written, last_write(info))
    recorded = {name: value for name, value in state.device.items() if name not in MEDIUM}
    is_same = recorded == identity(info) and medium_difference(state.device, info) is None
    trusted = is_same and undisturbed
    return StateRecord(path, info, state if trusted else None)


def last_write(info: DeviceInfo) -> Written:
    """Return what the system records about the last write to a device; empty if unknown."""
    try:
        if info.kind == "file":
            return Written(mtime_ns=Path(info.url.removeprefix("file:")).stat().st_mtime_ns)
        if info.is_disk:
            name = Path(info.url.removeprefix("block:").removeprefix("nvme:")).resolve().name
            counted = Path(f"/sys/class/block/{name}/stat").read_text().split()
            boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
            # Fields of Documentation/block/stat.rst: the seventh counts sectors written, the
            # fourteenth those discarded, which change a device as much.
            changed = int(counted[6]) + (int(counted[13]) if len(counted) > 13 else 0)
            return Written(boot_id=boot_id, sectors_written=changed)
    except (OSError, ValueError, IndexError):
        pass  # an unknown value does not contradict the record
    return Written()


def _undisturbed(then: Written, now: Written) -> bool:
    if then.boot_id != now.boot_id:
        return True  # counters restarted at boot: no evidence against the record
    return then == now


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
