"""Identity of a device: compare two descriptions of a device, and of its medium."""

import hashlib
import json
from collections.abc import Mapping

from uflip.data.device import DeviceInfo
from uflip.data.device_reports import Identity

MODEL = ("kind", "model", "serial", "capacity_bytes", "sector_bytes")
FILE = ("inode", "file_system_device")
MEDIUM = ("brand", "diskseq", "boot_id")


def model_identity(info: DeviceInfo) -> Identity:
    """Return the identity of a device for plans: model, serial number, sizes.

    Examples
    --------
    >>> from uflip.device.opener import open_device
    >>> model_identity(open_device("null", size="1MiB").info)
    {'kind': 'null', 'model': 'null', 'capacity_bytes': 1048576, 'sector_bytes': 512}
    """
    properties: Identity = {name: value for name in MODEL if (value := getattr(info, name))}
    if info.simulated:
        profile = json.dumps(info.profile_table, sort_keys=True)
        properties["profile"] = hashlib.blake2b(profile.encode(), digest_size=8).hexdigest()
        if info.details.snapshot is not None:
            properties["snapshot"] = json.dumps(info.details.snapshot)
    return properties


def identity(info: DeviceInfo) -> Identity:
    """Return the identity of a device with its data: for a file also its inode."""
    properties = model_identity(info)
    if info.kind == "file":
        properties |= {name: getattr(info.details, name) for name in FILE}
    return properties


def medium(info: DeviceInfo) -> Identity:
    """Return the identity of the medium in a device: the brand of the data that uflip wrote, and
    the number from the kernel, which is valid until the machine is rebooted.

    Examples
    --------
    >>> from uflip.device.opener import open_device
    >>> from uflip.data.device import with_details
    >>> info = open_device("null").info
    >>> medium(with_details(info, brand="0123456789abcdef", inode=7))
    {'brand': '0123456789abcdef'}
    """
    return {name: value for name in MEDIUM if (value := getattr(info.details, name))}


def medium_difference(earlier: Mapping[str, object], now: DeviceInfo) -> tuple[str, str] | None:
    """Return the difference between the earlier and the current medium of a device.

    Parameters
    ----------
    earlier : mapping
        The earlier result of `medium`.
    now : DeviceInfo
        The current device.

    Returns
    -------
    (str, str) or None
        The current and the expected one; None for the same medium, or if nothing is known.

    Examples
    --------
    >>> from uflip.device.opener import open_device
    >>> from uflip.data.device import with_details
    >>> medium_difference({"brand": "a"}, with_details(open_device("null").info, brand="b"))
    ('brand b', 'brand a')
    """
    current = medium(now)
    # A brand that was just created is on no medium yet.
    brand = None if now.details.brand_is_new else current.get("brand")
    if earlier.get("brand") and brand == earlier["brand"]:
        return None
    if earlier.get("brand") and brand:
        return f"brand {brand}", f"brand {earlier['brand']}"
    if earlier.get("diskseq") and earlier.get("boot_id") == current.get("boot_id"):
        if earlier["diskseq"] == current.get("diskseq"):
            return None
        return f"diskseq {current.get('diskseq', 'none')}", f"diskseq {earlier['diskseq']}"
    if earlier.get("brand"):
        return "no data of uflip on it", f"data of the brand {earlier['brand']}"
    return None
