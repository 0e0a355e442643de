"""Opening a device by its URL; a simulated one is created, or read from the cache or a snapshot."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from uflip import _native
from uflip import durability as durabilities
from uflip.data.device import DeviceInfo, read_info, with_details
from uflip.data.document import DocumentKind, read_start
from uflip.data.manifest import refuse_results
from uflip.device.cache import cache_key, cached_device
from uflip.device.guard import COMPLETIONS, IO_TIMEOUT_NS, check_options
from uflip.device.handle import Device
from uflip.device.power import PowerSampler
from uflip.device.url import SNAPSHOT, DeviceUrl, parse_url, read_override
from uflip.errors import DeviceError, InterruptedRun, RefusedError, UsageError, native_errors
from uflip.native_wait import CREATE_CANCEL_TIMEOUT_S, OnProgress, run_native
from uflip.profiles import profile_interface, read_profile, twin_errors

ESTIMATE_AFTER_NS = 1_000_000_000
"""Time after which the pace of creating a device predicts the rest [ns]."""

REPORT_FROM_NS = 10_000_000_000
"""Remaining time from which progress is reported [ns]: about the limit of silent waiting."""

Report = Callable[[int, int, int], None]
"""Called with (bytes written, bytes in total, time left [ns])."""

# The null device has any size; this one holds every target of the standard plan.
NULL_CAPACITY_BYTES = 64 << 30

# The native part checks the content.
SNAPSHOT_FILE = DocumentKind("snapshot", 1 << 62, "check its name; `--save FILE` makes one")


def open_device(
    url: str,
    *,
    size: str | int | None = None,
    buffered: bool = False,
    durability: str | None = None,
    data: str = "random",
    writable: bool = True,
    destroy: str | None = None,
    brand: str | None = None,
    io_timeout_ns: int = IO_TIMEOUT_NS,
    completion: str | None = None,
    power: str | None = None,
    on_progress: OnProgress | None = None,
) -> Device:
    """Open a device for runs.

    Parameters
    ----------
    url : str
        One of the forms in `uflip.device.url`.
    size : str or int, optional
        For `file:`, create the file, or extend it, to this size [bytes]; for `null`, its size.
        Without it a file must exist, and is used as it is.
    buffered : bool
        Accept I/O through the page cache, if direct I/O is unavailable or unwanted.
    durability : str, optional
        Durability of writes: "cached", "fua" or "flush:N" (`uflip.durability`). The default is
        "cached", or "fua" where the page cache would take the data.
    data : str
        The written data: "random" (incompressible) or "zeros".
    writable : bool
        Open for writing as well.
    destroy : str, optional
        For a block device to be written: its token from `uflip devices`. For an existing file that
        uflip did not make: its path again. Both followed by their content, as in "+ext4".
    brand : str, optional
        For a block device: the earlier brand of its data, if none is found there.
    io_timeout_ns : int
        Time limit of an I/O on a file, block device or export [ns]; 0: none. A slower one fails
        with a `DeviceError`. A simulated device accepts only the default.
    completion : str, optional
        How completions of queued I/Os are detected: "interrupt"; "polled", by a busy processor;
        "auto", the default: polled if the device supports it.
    power : str, optional
        Power meter that is sampled during each run: "rapl", "hwmon:CHIP/CHANNEL" or "csv:FILE", see
        `uflip.device.power`. Not for a simulated device.
    on_progress : callable, optional
        Called about ten times a second while a file is brought to its size, with (writes made,
        writes in total, last response time [ns]); and while a simulated device is made, with bytes
        instead of writes.

    Returns
    -------
    Device

    Raises
    ------
    UsageError
        For an unknown device or profile, or options that do not fit the device.
    RefusedError
        For writing to anything that is in use, to a block device without its exact token, to a file
        that uflip did not make, or into a result folder.
    DeviceError
        If it cannot be opened, or a file not be extended; it is unchanged then.
    InterruptedRun
        After Ctrl-C while a file is extended; it is unchanged then.

    Examples
    --------
    >>> open_device("null").info.kind
    'null'
    """
    target = parse_url(url)
    size_bytes = check_options(
        target, size, data, destroy,
        buffered=buffered, completion=completion, power=power, io_timeout_ns=io_timeout_ns,
    )  # fmt: skip
    durability = durabilities.durability_or_default(durability, buffered=buffered)
    opened = _open(
        target, size_bytes, durability, on_progress,
        buffered=buffered, data=data, writable=writable, destroy=destroy, brand=brand,
        io_timeout_ns=io_timeout_ns, completion=completion,
    )  # fmt: skip
    opened.power = None if power is None else PowerSampler(power)
    return opened


def _open(
    target: DeviceUrl,
    size_bytes: int | None,
    durability: str,
    on_progress: OnProgress | None,
    *,
    buffered: bool,
    data: str,
    writable: bool,
    destroy: str | None,
    brand: str | None,
    io_timeout_ns: int,
    completion: str | None,
) -> Device:
    """Open a device of any kind; the options were checked."""
    url = target.text
    if target.kind == "sim":
        return _open_simulated(target, durability, on_progress)
    if target.kind == "null":
        return Device(open_null(size_bytes), url, durability)
    if target.kind == "nbd":
        if writable:
            _check_export_named(target, destroy)
        with native_errors():
            export = _native.Device.nbd(
                target.name, writable=writable, durability=durability, io_timeout_ns=io_timeout_ns
            )
        opened = Device(export, url, durability)
        check_medium(opened.info)
        return opened
    if target.kind in ("block", "nvme"):
        disk = _open_disk(
            target,
            writable=writable, buffered=buffered, data=data, destroy=destroy, brand=brand,
        )  # fmt: skip
        opened = _open_real(disk, url, durability, completion, io_timeout_ns)
        check_medium(opened.info)
        return opened
    if completion == COMPLETIONS[-1]:
        with native_errors():  # before a file is made
            _native.check_polled(target.name, buffered)
    present = Path(target.name).exists()

    def make() -> _native.Handle[_native.Device]:
        return _native.Device.file(
            target.name,
            writable=writable,
            buffered=buffered,
            data=data,
            size_bytes=size_bytes,
            destroy=destroy,
        )

    if writable:
        refuse_results(Path(target.name), "file", url)
    file = _wait_for_file(make, url, on_progress, io_timeout_ns, present=present)
    return _open_real(file, url, durability, completion, io_timeout_ns)


def _open_disk(
    target: DeviceUrl,
    *,
    writable: bool,
    buffered: bool,
    data: str,
    destroy: str | None,
    brand: str | None,
) -> _native.Device:
    """Open a block device, or the commands of an NVMe namespace."""
    with native_errors():
        if target.kind == "nvme":
            return _native.Device.nvme(
                target.name, writable=writable, data=data, destroy=destroy, brand=brand
            )
        return _native.Device.block(
            target.name,
            writable=writable,
            buffered=buffered,
            data=data,
            destroy=destroy,
            brand=brand,
        )


def check_medium(info: DeviceInfo) -> None:
    """Refuse a device without a medium: an empty card reader, a loop device without a file.

    Raises DeviceError if its capacity is 0.
    """
    if info.capacity_bytes == 0:
        raise DeviceError(
            "There is no medium in the device",
            where=info.url,
            got="a capacity of 0 bytes",
            allowed="a device that holds data",
            action="insert a medium, attach a file (losetup), or name another device",
        )


def _check_export_named(target: DeviceUrl, destroy: str | None) -> None:
    """Refuse to write to an export without a repeated name: it may be somebody's disk."""
    if destroy != target.text:
        raise RefusedError(
            "All data on the export would be lost",
            where=target.text,
            got="no --destroy" if destroy is None else f"--destroy {destroy}",
            allowed=f"--destroy {target.text}",
            action="repeat the name of the export with --destroy to overwrite it",
        )


def _open_real(
    native: _native.Device, url: str, durability: str, completion: str | None, io_timeout_ns: int
) -> Device:
    with native_errors():
        polled = native.choose_completion(completion or COMPLETIONS[0])
    device = Device(native, url, durability)
    device.io_timeout_ns = io_timeout_ns
    if polled:
        device.info = with_details(device.info, completion=COMPLETIONS[-1])
    return device


def _wait_for_file(
    make: Callable[[], _native.Handle[_native.Device]],
    url: str,
    on_progress: OnProgress | None,
    io_timeout_ns: int,
    *,
    present: bool,
) -> _native.Device:
    """Wait until a file has the requested size."""
    done, total = 0, 0

    def progress(done_mib: int, all_mib: int, response_ns: int) -> None:
        nonlocal done, total
        done, total = done_mib, all_mib
        if on_progress is not None:
            on_progress(done_mib, all_mib, response_ns)

    try:
        return run_native(make, progress, io_timeout_ns=io_timeout_ns)
    except KeyboardInterrupt:
        # A signal may come between the last write and the return of the device.
        is_complete = 0 < done == total
        if is_complete and not present:
            Path(parse_url(url).name).resolve().unlink(missing_ok=True)
        as_before = "extended to its full size" if is_complete else "as long as it was before"
        raise InterruptedRun(
            f"Interrupted after {done} of {total} MiB of the file were written",
            where=url,
            action=f"the file is {as_before}" if present else "the file was removed",
        ) from None


def _open_simulated(target: DeviceUrl, durability: str, on_progress: OnProgress | None) -> Device:
    device = Device(open_sim(target, on_progress), target.text, durability)
    if target.name.endswith(SNAPSHOT):
        device.info = inspect_sim(target)
    device.info = _with_twin(device.info, target)
    device._state_name = state_name(device.info)
    return device


def open_null(size_bytes: int | None) -> _native.Device:
    """Return a null device of a size [bytes], by default one that fits every plan."""
    with native_errors():
        return _native.Device.null(NULL_CAPACITY_BYTES if size_bytes is None else size_bytes)


def open_sim(target: DeviceUrl, on_progress: OnProgress | None = None) -> _native.Device:
    """Create a simulated device, or read it from the cache or its snapshot.

    `target`: the device. `on_progress`: called about ten times a second while it is created, with
    (bytes of its state written, bytes in total, 0), or read.
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

    Raises UsageError if the profile or the snapshot describes a block device, or the profile is not
    valid. Raises ResultsError if the snapshot is missing or unreadable.
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
        info = read_info(inspect(*_profile_of(target)), url=target.text)
    return _with_twin(info, target)


def _with_twin(info: DeviceInfo, target: DeviceUrl) -> DeviceInfo:
    """Add the errors of a twin; other values of its keys make it another device."""
    errors = twin_errors(target.name)
    return info if errors is None else with_details(info, twin=errors)


def inspect_snapshot(path: str) -> DeviceInfo:
    """Describe the device in a snapshot without reading its state, for any interface.

    Raises ResultsError if it is not a snapshot, damaged, or of another version.
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


class CreationProgress:
    """Reports the progress of creating a simulated device, and the time left by its pace so far.

    The cost of its writes cannot be predicted: the number of relocations per write depends on all
    parameters of the FTL.

    `report`: called from the first second on, if the device takes long. `clock_ns`: the time [ns].
    """

    def __init__(self, report: Report, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._report, self._clock_ns = report, clock_ns
        self._began_ns = clock_ns()
        self._is_long = False

    def __call__(self, done: int, total: int, _last_ns: int) -> None:
        """Handle the number of bytes written so far."""
        taken_ns = self._clock_ns() - self._began_ns
        if not 0 < done <= total or taken_ns < ESTIMATE_AFTER_NS:
            return
        left_ns = taken_ns * (total - done) // done
        self._is_long |= left_ns >= REPORT_FROM_NS
        if self._is_long:
            self._report(done, total, left_ns)
