"""What makes two descriptions of a device descriptions of one device: plain data, knows nobody."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from uflip.data.capabilities import capabilities

MODEL = ("kind", "model", "serial", "capacity_bytes", "sector_bytes")
FILE = ("inode", "file_system_device")
MEDIUM = ("brand", "diskseq", "boot_id")


def model_identity(info: Mapping[str, Any]) -> dict[str, Any]:
    """What identifies a device as far as a plan is concerned: model, serial number, sizes.

    Examples
    --------
    >>> model_identity({"kind": "null", "model": "null", "serial": "", "capacity_bytes": 1024})
    {'kind': 'null', 'model': 'null', 'capacity_bytes': 1024}
    """
    found = {name: info[name] for name in MODEL if info.get(name)}
    if capabilities(info).simulated:
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


def medium(info: Mapping[str, Any]) -> dict[str, Any]:
    """What tells a medium from another one behind the same name: the brand of the data that uflip
    wrote, and the number that the kernel gave it, which holds until the machine is started again.

    Examples
    --------
    >>> medium({"details": {"brand": "0123456789abcdef", "inode": 7}})
    {'brand': '0123456789abcdef'}
    """
    details = info.get("details", {})
    return {name: details[name] for name in MEDIUM if details.get(name)}


def other_medium(was: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, str] | None:
    """Say how the medium of a device is another one than it was.

    Parameters
    ----------
    was : mapping
        What `medium` said then.
    now : mapping
        The device, as it is now.

    Returns
    -------
    (str, str) or None
        What is there, and what should be; None for the same medium, or if nothing is known.

    Examples
    --------
    >>> other_medium({"brand": "a"}, {"details": {"brand": "b"}})
    ('brand b', 'brand a')
    """
    here = medium(now)
    # A brand that was made up a moment ago is on no medium yet.
    brand = None if now.get("details", {}).get("brand_is_new") else here.get("brand")
    if was.get("brand") and brand == was["brand"]:
        return None
    if was.get("brand") and brand:
        return f"brand {brand}", f"brand {was['brand']}"
    if was.get("diskseq") and was.get("boot_id") == here.get("boot_id"):
        if was["diskseq"] == here.get("diskseq"):
            return None
        return f"diskseq {here.get('diskseq', 'none')}", f"diskseq {was['diskseq']}"
    if was.get("brand"):
        return "no data of uflip on it", f"data of the brand {was['brand']}"
    return None
