"""A file whose I/Os nbdkit answers through FUSE: a device that fails or stops on command.

Needs root, /dev/fuse, nbdkit and nbdfuse; without one of them a test is skipped with the reason
(`needs_fuse`).
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

MISSING = [
    name for name in ("nbdkit", "nbdfuse", "umount", "losetup") if shutil.which(name) is None
]
needs_fuse = pytest.mark.skipif(
    bool(MISSING) or os.geteuid() != 0 or not Path("/dev/fuse").exists(),
    reason=f"needs root, /dev/fuse and {', '.join(MISSING) or 'nothing else'}",
)


@contextmanager
def fuse_file(folder: Path, *arguments: str) -> Iterator[tuple[Path, int]]:
    """Mount a file that nbdkit serves with `arguments`; yield the file and the process id."""
    image, socket = folder / "image", folder / "s"
    image.touch()
    kit = subprocess.Popen(["nbdkit", "-f", "-U", socket, *arguments], stderr=subprocess.DEVNULL)
    fuse = None
    try:
        wait_until(socket.exists)
        fuse = subprocess.Popen(
            ["nbdfuse", image, f"nbd+unix:///?socket={socket}"], stderr=subprocess.DEVNULL
        )
        if not wait_until(lambda: image.stat().st_size > 0):
            pytest.skip("nbdfuse cannot mount here")
        yield image, kit.pid
    finally:
        kit.send_signal(signal.SIGCONT)
        wait_until(lambda: unmount(image))
        for process in (fuse, kit):
            if process is not None:
                process.terminate()
                process.wait(timeout=10)
        socket.unlink(missing_ok=True)
        image.unlink(missing_ok=True)


def unmount(image: Path) -> bool:
    """Unmount a file; return False while it is busy, as just after its loop device is detached."""
    process = subprocess.run(["umount", image], check=False, timeout=10, capture_output=True)
    return process.returncode == 0 or b"busy" not in process.stderr


def forget_partitions(device: str) -> None:
    """Delete the partitions of a loop device: those added by `addpart` outlive its file."""
    name = Path(device).name
    for partition in Path("/sys/block", name).glob(f"{name}p*"):
        number = (partition / "partition").read_text().strip()
        subprocess.run(["delpart", device, number], capture_output=True, check=False)


@contextmanager
def attached_loop(image: Path, *options: str) -> Iterator[str]:
    """Attach a loop device to a file; `options` are those of losetup."""
    process = subprocess.run(
        ["losetup", "-f", "--show", *options, image],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if process.returncode:
        pytest.skip(f"no loop device here: {process.stderr.strip()}")
    name = process.stdout.strip()
    forget_partitions(name)
    try:
        yield name
    finally:
        subprocess.run(["losetup", "-d", name], check=True)


def stop_process(pid: int) -> None:
    """Stop a process, and wait until all its threads have stopped."""
    os.kill(pid, signal.SIGSTOP)
    assert wait_until(
        lambda: all(thread_state(task) == "T" for task in Path(f"/proc/{pid}/task").iterdir())
    )


def thread_state(task: Path) -> str:
    """Return the state of a thread as the kernel's letter."""
    return (task / "stat").read_text().rsplit(")", 1)[1].split()[0]


def wait_until(condition: Callable[[], bool]) -> bool:
    """Wait at most ten seconds until a condition holds."""
    for _ in range(1000):
        if condition():
            return True
        time.sleep(0.01)
    return False
