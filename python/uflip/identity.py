"""What makes two descriptions of a device descriptions of one device: plain data, knows nobody."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

MODEL = ("kind", "model", "serial", "capacity_bytes", "sector_bytes")
FILE = ("inode", "file_system_device")


def model_identity(info: Mapping[str, Any]) -> dict[str, Any]:
    """What identifies a device as far as a plan is concerned: model, serial number, sizes.

    Examples
    --------
    >>> model_identity({"kind": "null", "model": "null", "serial": "", "capacity_bytes": 1024})
    {'kind': 'null', 'model': 'null', 'capacity_bytes': 1024}
    """
    found = {name: info[name] for name in MODEL if info.get(name)}
    if info.get("kind") == "sim":
        profile = json.dumps(info["details"]["profile"], sort_keys=True)
        found["profile"] = hashlib.blake2b(profile.encode(), digest_size=8).hexdigest()
        if (snapshot := info["details"].get("snapshot")) is not None:
            found["snapshot"] = json.dumps(snapshot, sort_keys=True)
    return found


def identity(info: Mapping[str, Any]) -> dict[str, Any]:
    """What identifies a device with what is stored on it: of a file also which file it is."""
    found = model_identity(info)
    if info.get("kind") == "file":
        details = info.get("details", {})
        found |= {name: details.get(name) for name in FILE}
    return found
