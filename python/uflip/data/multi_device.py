"""A multi-device benchmark: its devices, their result folders, and the common options.

::

    {"format": "uflip-devices", "format_version": 1, "uflip_version": …, "created_utc": …,
     "id": …, "options": {…}, "devices": [{"device": "sim:demo", "folder": "sim-demo"}, …]}

It is stored beside the result folders, so that a resumed benchmark begins the missing devices with
the same options. It does not contain permissions to destroy: the user must give them again.
"""

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from uflip.data.document import (
    Count,
    DocumentKind,
    FolderId,
    Instant,
    Name,
    Positive,
    Text,
    decode,
    file_name_problem,
    read_document,
)

FILE_NAME = "devices.json"
KIND = DocumentKind(
    "list of devices",
    1 << 20,
    "name the folder that `uflip run` made for several devices",
    format="uflip-devices",
)
MAX_DEVICES = 1000


class MultiDeviceOptions(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The options for every device, as in `uflip.benchmark.BenchmarkRequest`; null: not given."""

    suite: Text | None = None
    scale: Text | None = None
    only: list[Name] | None = None
    seed: Count | None = None
    io_size: Count | None = None
    pause_ns: Count | None = None
    repetitions: Positive | None = None
    method: Text | None = None
    state: Text | None = None
    target_size: Count | None = None
    max_bytes_written: Count | None = None
    max_time_ns: Count | None = None
    size: Count | None = None
    buffered: bool = False
    durability: Text | None = None
    data: Text = "random"
    io_timeout_ns: Count = 60_000_000_000
    completion: Text | None = None
    inside: bool = False


class DeviceEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """One device."""

    #: Its name, as on the command line, with the label of its host before an @ if it has one.
    device: Text
    folder: Name  #: Its result folder, within the folder of this document.


class MultiDeviceManifest(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The whole document."""

    format: Literal["uflip-devices"] = "uflip-devices"
    format_version: Literal[1] = 1
    uflip_version: Text
    created_utc: Instant
    id: FolderId  #: The identity of these benchmarks on the hosts of the drives.
    options: MultiDeviceOptions
    devices: Annotated[list[DeviceEntry], Meta(min_length=1, max_length=MAX_DEVICES)]


def read(folder: Path) -> MultiDeviceManifest:
    """Read the list of devices in a folder."""
    path = folder / FILE_NAME
    manifest = decode(path, KIND, read_document(path, KIND), MultiDeviceManifest)
    names = [entry.folder for entry in manifest.devices]
    for name in names:
        if reason := file_name_problem(name):
            raise KIND.unreadable(path, f"'folder': {reason}", "names as uflip makes them")
    if len({*names}) < len(names):
        raise KIND.unreadable(path, "a folder for two devices", "a folder for each")
    return manifest


def encode(manifest: MultiDeviceManifest) -> bytes:
    """Return the bytes of a list of devices."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1)
