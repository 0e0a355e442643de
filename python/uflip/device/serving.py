"""Serving simulated devices as real block devices over NBD, in real time."""

import ipaddress
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from uflip import _native
from uflip.data.device import ServedDocument
from uflip.data.manifest import refuse_results
from uflip.device.handle import Device
from uflip.errors import UflipError, UsageError, from_native, native_errors

REAL_TIME = 1.0
"""Slow-down of a served device: none."""

MAX_NAME_BYTES = 255

ServerResult = tuple[str, _native.NativeError | None]
"""Result of the native server: a document, and an error of the recording."""


@dataclass(frozen=True)
class Export:
    """A device, and its export name."""

    device: Device  #: Simulated, or null, which takes no time.
    name: str  #: The name that clients request; without a name they get the first export.
    #: The file for the data that clients write, created if missing; None: in memory.
    data: Path | None = None
    read_only: bool = False  #: Whether clients may not write.
    #: For an existing file that no server of uflip made: its path again, with its content, as in
    #: "disk.img+ext4".
    destroy: str | None = None


def check_data(data: Path, size_bytes: int, destroy: str | None, *, read_only: bool) -> None:
    """Refuse a file that must not hold the data of a device of this size [bytes]."""
    if not read_only:
        refuse_results(data, "file", str(data))
    with native_errors():
        _native.check_data_file(str(data), size_bytes, read_only, destroy)


def listen_unix(path: Path) -> _native.Listener:
    """Create a UNIX socket for this user only; it is removed when it is released."""
    with native_errors():
        return _native.Listener.unix(str(path))


def listen_tcp(address: str) -> _native.Listener:
    """Listen on a port of this machine, for local clients of all users."""
    host, colon, port = address.rpartition(":")
    number = host.removeprefix("[").removesuffix("]")
    try:
        loopback = ipaddress.ip_address(number).is_loopback
    except ValueError:
        loopback = False
    if not (colon and loopback and port.isascii() and port.isdigit() and int(port) < 1 << 16):
        raise UsageError(
            "The address is not a loopback address",
            where="--tcp",
            got=f"'{address}'",
            allowed="127.0.0.1:PORT, [::1]:PORT; port 0 is any that is free",
            action="use a loopback address; other machines can connect through ssh -L",
        )
    with native_errors():
        return _native.Listener.tcp(address)


def serve(
    listeners: Sequence[_native.Listener],
    exports: Sequence[Export],
    speed: float = REAL_TIME,
    *,
    statistics: _native.Listener | None = None,
    record: Path | None = None,
) -> "_native.Handle[ServerResult]":
    """Serve devices until the work is cancelled; clients may connect as soon as this returns.

    `listeners`: sockets for clients. `exports`: the exports; each has a unique name. `speed`:
    slow-down relative to the model: 1 keeps its response times, 10 is for software that is too fast
    for this machine, 0 disables timing. `statistics`: a client that connects there gets the
    statistics so far, as `server_result` returns them. `record`: a new file for every read and
    write, including write zeroes, in the MSR Cambridge format.
    """
    names = [export.name for export in exports]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise UsageError(
            "Two exports have the same name",
            where="serve",
            got=", ".join(repeated),
            action="name each device once, or serve copies with different overrides",
        )
    for export in exports:
        if export.data is not None:
            size = export.device.info.capacity_bytes
            check_data(export.data, size, export.destroy, read_only=export.read_only)
    native_exports = [
        (
            export.device.native(),
            export.name[:MAX_NAME_BYTES],
            None if export.data is None else str(export.data),
            export.read_only,
            export.destroy,
        )
        for export in exports
    ]
    with native_errors():
        return _native.serve(
            list(listeners),
            native_exports,
            round(speed * 1000),
            statistics,
            None if record is None else str(record),
        )


def server_result(
    handle: "_native.Handle[ServerResult]",
) -> tuple[ServedDocument, UflipError | None]:
    """Return the statistics after the end of the server, and an error of the recording."""
    with native_errors():
        text, recording_error = handle.result()
    document: ServedDocument = json.loads(text)
    return document, None if recording_error is None else from_native(recording_error)
