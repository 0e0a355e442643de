"""Runs the command line: in this process for its output, as a process of its own for signals."""

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from uflip.cli.main import main

PACKAGE_ROOT = Path(__file__).resolve().parents[2] / "python"


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


def uflip(*arguments: object) -> Outcome:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = end.code
    assert isinstance(code, int)
    return Outcome(code, out.getvalue(), err.getvalue())


def start(
    *arguments: object, program: Path | None = None, **options: object
) -> subprocess.Popen[str]:
    """Start a command as a process of its own: of a new interpreter, or of a program (`warm`)."""
    environment = os.environ | {"PYTHONPATH": str(PACKAGE_ROOT)}
    begin = [sys.executable, "-m", "uflip"] if program is None else [str(program)]
    return subprocess.Popen(
        [*begin, *(str(argument) for argument in arguments)],
        env=environment,
        text=True,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
    )


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return every entry of a folder: path -> (mode, content)."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in sorted(folder.rglob("*"))
    }


@contextmanager
def unchanged(folder: Path) -> Iterator[None]:
    """Check that nothing in a folder appears, disappears or changes."""
    before = tree(folder)
    yield
    assert tree(folder) == before
