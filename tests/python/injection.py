"""Runs a command in which one system call fails or hangs: see `tests/native/faults.c`."""

import atexit
import errno
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from command_line import PACKAGE_ROOT
from warm import BENCHMARKS, program

SOURCE = Path(__file__).resolve().parents[1] / "native" / "faults.c"

# Possible errors of each system call, by its name; every call may fail with EIO.
ERRORS = {
    "open": ("EIO", "EROFS", "EMFILE", "ENOMEM", "EINTR", "ENOSPC"),
    "mkdir": ("EIO", "ENOSPC", "EROFS"),
    "write": ("EIO", "ENOSPC", "EROFS", "EINTR"),
    "pwrite": ("EIO", "ENOSPC", "EROFS"),
    "rename": ("EIO", "ENOSPC", "EROFS"),
    "unlink": ("EIO", "EROFS"),
    "flock": ("EIO", "ENOMEM", "EINTR"),
    "fsync": ("EIO", "ENOSPC"),
}
OTHERS = ("EIO", "ENOMEM")


@dataclass(frozen=True)
class Call:
    """A system call of a command: its number among the counted ones, its name and its path."""

    number: int
    name: str
    path: str

    def errors(self) -> tuple[str, ...]:
        """Return the errors with which it may fail."""
        return next((names for key, names in ERRORS.items() if self.name.startswith(key)), OTHERS)


@dataclass(frozen=True)
class Injector:
    """The library that injects faults, and the paths that it covers."""

    library: Path
    paths: tuple[str, ...]

    def environment(self, **settings: object) -> dict[str, str]:
        """Return the environment of a command under injection."""
        return os.environ | {
            "PYTHONPATH": str(PACKAGE_ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            "LD_PRELOAD": str(self.library),
            "FAULT_PATHS": ":".join(self.paths),
            **{f"FAULT_{name.upper()}": str(value) for name, value in settings.items()},
        }

    def run(self, *arguments: object, **settings: object) -> subprocess.CompletedProcess[str]:
        """Run a command; `at`, `errno`, `from` and `hang` describe the fault.

        The libraries are preloaded, except with `hang`, where the exit of Python itself is under
        test too.
        """
        begin = [sys.executable, "-m", "uflip"]
        if "hang" not in settings:
            begin = [str(program(*BENCHMARKS, preloaded=self.library))]
        return subprocess.run(
            [*begin, *map(str, arguments)],
            env=self.environment(**settings),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def calls(self, *arguments: object, log: Path) -> list[Call]:
        """Run a command in which nothing fails, and list its calls."""
        log.unlink(missing_ok=True)
        outcome = self.run(*arguments, log=log)
        assert outcome.returncode == 0, outcome.stderr
        lines = (line.split(" ", 2) for line in log.read_text().splitlines())
        return [Call(int(number), name, path) for number, name, path in lines]


def build(*paths: str) -> Injector:
    """Make an injector for such paths; a test is skipped where there is no compiler."""
    return Injector(_library(), paths)


@cache
def _library() -> Path:
    """Compile the library, once for the tests of this process."""
    folder = Path(tempfile.mkdtemp(prefix="uflip-"))
    atexit.register(shutil.rmtree, folder)
    library = folder / "faults.so"
    command = ["cc", "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl", "-lpthread"]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("no C compiler is installed")
    return library


def errno_of(name: str) -> int:
    """Return the number of an error by its name."""
    return int(getattr(errno, name))
