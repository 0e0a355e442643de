"""Opening a simulated device: created from its profile, or read from the cache or a snapshot."""

import json
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from uflip import _native
from uflip.data.bounded_read import DocumentKind, read_start
from uflip.data.device import DeviceInfo, read_info
from uflip.device.cache import cache_key, cached_device
from uflip.device.url import SNAPSHOT, DeviceUrl, read_override
from uflip.errors import UsageError, native_errors
from uflip.native_wait import CREATE_CANCEL_TIMEOUT_S, OnProgress, run_native
from uflip.profiles import profile_interface, read_profile

# The native part checks the content.
SNAPSHOT_FILE = DocumentKind("snapshot", 1 << 62, "check its name; `--save FILE` makes one")


def open_sim(target: DeviceUrl, on_progress: OnProgress | None = None) -> _native.Device:
    """Create a simulated device, or read it from the cache or its snapshot.

    Parameters
    ----------
    target : DeviceUrl
        The device.
    on_progress : callable, optional
        Called about ten times a second while it is created, with (bytes of its state written, bytes
        in total, 0), or read.
    """
    if target.name.endswith(SNAPSHOT):
        _check_snapshot(target)
        snapshot = partial(_native.Device.restore, target.name)
        return run_native(snapshot, on_progress, cancel_timeout_s=CREATE_CANCEL_TIMEOUT_S)

    def make() -> _native.Device:
        new = partial(_native.Device.sim, *profile)
        return run_native(new, on_progress, cancel_timeout_s=CREATE_CANCEL_TIMEOUT_S)

    profile = _profile_of(target)
    info = inspect_sim(target)
    # Creating an empty device is faster than reading it.
    empty = info.profile.state.state == "empty"
    return make() if empty else cached_device(state_name(info), make, on_progress)


def state_name(info: DeviceInfo) -> str:
    """Return the cache name of the state in which a device is opened."""
    return cache_key(info.model, info.profile_table, info.details.snapshot)


def open_flash(target: DeviceUrl) -> _native.FlashDevice:
    """Create a simulated open-channel device, or read its snapshot.

    Raises
    ------
    UsageError
        If the profile or the snapshot describes a block device, or the profile is not valid.
    ResultsError
        If the snapshot is missing or unreadable.
    """
    if target.name.endswith(SNAPSHOT):
        _check_snapshot(target)
        restore = _native.FlashDevice.restore
        return run_native(lambda: restore(target.name), cancel_timeout_s=CREATE_CANCEL_TIMEOUT_S)
    profile = _profile_of(target)
    return run_native(
        lambda: _native.FlashDevice.sim(*profile), cancel_timeout_s=CREATE_CANCEL_TIMEOUT_S
    )


def inspect_sim(target: DeviceUrl, *, any_interface: bool = False) -> DeviceInfo:
    """Describe a simulated device without creating it; open-channel ones with `any_interface`."""
    if target.name.endswith(SNAPSHOT):
        _check_snapshot(target)
        return replace(_inspected(target.name, any_interface=any_interface), url=target.text)
    open_channel = any_interface and profile_interface(target.name) == "open_channel"
    inspect = _native.inspect_flash if open_channel else _native.inspect_sim
    with native_errors():
        return read_info(inspect(*_profile_of(target)), url=target.text)


def inspect_snapshot(path: str) -> DeviceInfo:
    """Describe the device in a snapshot without reading its state, for any interface.

    Raises
    ------
    ResultsError
        If it is not a snapshot, damaged, or of another version.
    """
    read_start(Path(path), SNAPSHOT_FILE, 1)  # refuses pipes and devices
    return _inspected(path, any_interface=True)


def _inspected(path: str, *, any_interface: bool) -> DeviceInfo:
    with native_errors():
        return read_info(_native.inspect_snapshot(path, None if any_interface else "block"))


def interface_of(target: DeviceUrl) -> str:
    """Return the interface of a simulated device: "block" or "open_channel"."""
    if target.name.endswith(SNAPSHOT):
        return inspect_snapshot(target.name).details.interface or "block"
    return profile_interface(target.name)


def _check_snapshot(target: DeviceUrl) -> None:
    _refuse_overrides(target)
    read_start(Path(target.name), SNAPSHOT_FILE, 1)


def _refuse_overrides(target: DeviceUrl) -> None:
    if target.overrides:
        raise UsageError(
            "A snapshot cannot be combined with overrides",
            where=target.text,
            got="?" + "&".join(f"{key}={value}" for key, value in target.overrides),
            action=f"omit the overrides: sim:{Path(target.name)}",
        )


def _profile_of(target: DeviceUrl) -> tuple[str, str, str, str]:
    """Return name, text and source of the profile, and the overrides as JSON."""
    name, text, source = read_profile(target.name)
    overrides = {key: read_override(key, value) for key, value in target.overrides}
    return name, text, source, json.dumps(overrides)
