"""Fixtures for pytest: a simulated device that any program reaches over NBD.

Load them in a `conftest.py`: ``pytest_plugins = ["uflip.testing"]``.
"""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Protocol

import pytest

START_SECONDS = 60.0


class ServedDevice:
    """A device that is being served.

    Attributes
    ----------
    uri : str
        Address for other programs, as `nbd+unix:///?socket=...`.
    device : str
        Name for uflip, as `nbd:unix:...`.
    """

    def __init__(self, url: str, folder: Path, options: Sequence[str]) -> None:
        folder.mkdir()
        socket = folder / "s"
        self.uri, self.device = f"nbd+unix:///?socket={socket}", f"nbd:unix:{socket}"
        self._url, self._recording, self._stopped = url, folder / "recording.csv", False
        words = [sys.executable, "-m", "uflip", "serve", url, "--socket", str(socket)]
        self._process = subprocess.Popen(
            [*words, "--record", str(self._recording), "--quiet", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        deadline = time.monotonic() + START_SECONDS
        while not socket.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"`uflip serve {url}` did not begin")
            time.sleep(0.02)

    def stop(self) -> Path:
        """Stop serving; return the recording: every read and write with its response time.

        Returns
        -------
        Path
            A trace for `uflip replay`.

        Raises
        ------
        RuntimeError
            If the server failed; the message contains its output.
        """
        if not self._stopped:
            self._stopped = True
            self._process.terminate()
            output, _ = self._process.communicate()
            if self._process.returncode not in (0, 143):
                raise RuntimeError(f"`uflip serve {self._url}` failed: {output}")
        return self._recording


class Serve(Protocol):
    """The fixture `serve_device`: begin to serve a device until the end of the test."""

    def __call__(self, url: str, *options: str) -> ServedDevice:
        """Serve `sim:NAME` with options of `uflip serve`."""


@pytest.fixture
def serve_device(tmp_path: Path) -> Iterator[Serve]:
    """Serve simulated devices, each until the end of the test.

    Options are those of `uflip serve`: ``serve_device("sim:tlc-nvme", "--state", "random")``.
    """
    with ExitStack() as devices:

        def serve(url: str, *options: str) -> ServedDevice:
            served = ServedDevice(url, tmp_path / f"served-{next(numbers)}", options)
            devices.callback(served.stop)
            return served

        numbers = count()
        yield serve
