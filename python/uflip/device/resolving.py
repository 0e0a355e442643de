"""Patterns and states as a device would take them: checked, and with every default filled in."""

import json

from uflip import _native
from uflip.data.device import DeviceInfo
from uflip.errors import native_errors
from uflip.spec import Spec


def resolve(spec: Spec, info: DeviceInfo) -> Spec:
    """Check a specification against a device and fill in the defaults; nothing is touched.

    Parameters
    ----------
    spec : Spec
        As made by `uflip.spec`.
    info : DeviceInfo
        The device.

    Returns
    -------
    Spec
        Complete, and with "totals": total_ios, bytes_read, bytes_written, pause_ns.

    Raises
    ------
    UsageError
        If it does not make sense, or does not fit the device.

    Examples
    --------
    >>> info = open_device("null").info
    >>> resolve({"kind": "basic", "mode": "read", "location": "random"}, info)["io_size"]
    32768
    """
    with native_errors():
        text = _native.resolve_pattern(
            json.dumps(spec), info.capacity_bytes, info.sector_bytes, info.kind
        )
    resolved: Spec = json.loads(text)
    return resolved


def resolve_state(state: Spec, info: DeviceInfo) -> Spec:
    """Check a state against a device and fill in the defaults; nothing is touched.

    Parameters
    ----------
    state : Spec
        state ("random" or "sequential"); optional target_offset, target_size, io_size_max,
        random_bytes [bytes], seed.
    info : DeviceInfo
        The device.

    Returns
    -------
    Spec
        Complete, and with "totals": total_ios, bytes_written.

    Raises
    ------
    UsageError
        If it does not make sense, or does not fit the device.

    Examples
    --------
    >>> info = open_device("null", size="1MiB").info
    >>> resolve_state({"state": "sequential"}, info)["totals"]
    {'total_ios': 8, 'bytes_written': 1048576}
    """
    with native_errors():
        text = _native.resolve_state(json.dumps(state), info.capacity_bytes, info.sector_bytes)
    resolved: Spec = json.loads(text)
    return resolved
