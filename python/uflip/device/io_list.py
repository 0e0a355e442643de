"""A list of I/Os that a device replays, from offsets and sizes."""

import tempfile
from collections.abc import Iterable
from pathlib import Path

from uflip import _native
from uflip.device.handle import Device
from uflip.errors import native_errors


def native_ios(ios: Iterable[tuple[str, int, int]], device: Device) -> _native.Ios:
    """Return I/Os (mode, offset, size [bytes]) as a native list, written as an I/O log of fio."""
    info = device.info
    with tempfile.TemporaryDirectory(prefix="uflip-") as folder, native_errors():
        path = Path(folder) / "workload.log"
        with path.open("w", encoding="ascii") as file:
            file.write("fio version 2 iolog\nw add\nw open\n")
            file.writelines(f"w {mode} {offset} {size}\n" for mode, offset, size in ios)
            file.write("w close\n")
        recording = _native.read_recording([str(path)])
        return recording.fit(info.capacity_bytes, info.sector_bytes, "refuse", None)
