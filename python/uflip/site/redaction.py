"""Redaction of results: a submitted copy identifies neither machine, nor owner, nor drive.

Results contain no host and no user name. Before a result is submitted, this module removes values
that identify a machine: serial numbers, paths, ids of media and boots, and the command line. The
ledger of the copy continues with a line for the changed manifest, as for every change of a
manifest, so that the copy still verifies.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

import msgspec

from uflip.data import ledger, manifest
from uflip.data.device import DeviceDetails, DeviceInfo
from uflip.data.document import Table
from uflip.data.manifest import Manifest
from uflip.errors import ResultsError
from uflip.results.integrity import examine
from uflip.results.writer import FolderFiles
from uflip.site.upload_files import COMPLETE, unfinished_error

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
