"""A file of zeros of which one read hangs while all others are answered: FUSE, without a library.

nbdfuse cannot do that: later requests wait behind the hanging one. Run as a script this is the
server; `hanging_file` starts one.
"""

import ctypes
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from fuse_file import unmount, wait_until

SIZE = 16 << 20
# Requests of the kernel (linux/fuse.h) that have an answer; the others have none, or ENOSYS.
GETATTR, OPEN, READ, RELEASE, FLUSH, INIT = 3, 14, 15, 18, 25, 26
FORGET, INTERRUPT, BATCH_FORGET = 2, 36, 42
ENOSYS = 38
ASYNC_READ, ASYNC_DIO = 1 << 0, 1 << 15
HEADER, ANSWER, LONGEST = 40, 16, 1 << 18

ATTRIBUTES = struct.pack(
    "<QQQQQQIIIIIIIIII", 1, SIZE, SIZE // 512, *[0] * 6, 0o100666, 1, 0, 0, 0, 4096, 0
)
ANSWERS = {
    INIT: struct.pack(
        "<IIIIHHII32x", 7, 31, LONGEST // 2, ASYNC_READ | ASYNC_DIO, 64, 48, LONGEST // 2, 1
    ),
    GETATTR: struct.pack("<QII", 0, 0, 0) + ATTRIBUTES,
    OPEN: struct.pack("<QII", 1, 1, 0),
    FLUSH: b"",
    RELEASE: b"",
}


@contextmanager
def hanging_file(folder: Path, hang_s: float) -> Iterator[tuple[Path, Path]]:
    """Make such a file; a read that finds a folder at the second path removes it, and hangs."""
    image, trigger = folder / "image", folder / "trigger"
    image.touch()
    server = subprocess.Popen([sys.executable, __file__, image, trigger, str(hang_s)])
    try:
        wait_until(lambda: server.poll() is not None or image.stat().st_size > 0)
        if server.poll() is not None:
            pytest.skip("FUSE cannot be mounted here")
        yield image, trigger
    finally:
        wait_until(lambda: unmount(image))
        server.kill()
        server.wait()
        image.unlink()


def mount(image: str) -> int:
    """Mount the file; return the descriptor of the kernel's requests."""
    kernel = os.open("/dev/fuse", os.O_RDWR)
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={kernel},rootmode=100000,user_id=0,group_id=0"
    if libc.mount(b"hanging", image.encode(), b"fuse", 0, options.encode()):
        sys.exit(os.strerror(ctypes.get_errno()))
    return kernel


def answer(kernel: int, unique: int, data: bytes = b"", error: int = 0) -> None:
    """Answer a request, unless it was cancelled."""
    with suppress(OSError):
        os.write(kernel, struct.pack("<IiQ", ANSWER + len(data), -error, unique) + data)


def answer_read(kernel: int, unique: int, data: bytes, trigger: Path, hang_s: float) -> None:
    """Answer a read: at once, or late if the trigger exists."""
    try:
        trigger.rmdir()
    except OSError:
        answer(kernel, unique, data)
    else:
        delayed = threading.Timer(hang_s, answer, (kernel, unique, data))
        delayed.daemon = True
        delayed.start()


def serve(image: str, trigger: Path, hang_s: float) -> None:
    """Answer for the file until it is unmounted."""
    kernel = mount(image)
    with suppress(OSError):
        while True:
            request = os.read(kernel, LONGEST)
            _, kind, unique = struct.unpack_from("<IIQ", request)
            if kind == READ:
                _, _, length = struct.unpack_from("<QQI", request, HEADER)
                answer_read(kernel, unique, bytes(length), trigger, hang_s)
            elif kind in ANSWERS:
                answer(kernel, unique, ANSWERS[kind])
            elif kind not in (FORGET, INTERRUPT, BATCH_FORGET):
                answer(kernel, unique, error=ENOSYS)


if __name__ == "__main__":
    serve(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]))
