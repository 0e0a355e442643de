"""The fixtures for other projects: the test of the how-to page runs in a pytest of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import PACKAGE_ROOT

from uflip.testing import ServedDevice

PAGE = PACKAGE_ROOT.parent / "docs" / "how-to" / "continuous-integration.md"


def run_pytest(folder: Path, commands: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": f"{commands}:{os.environ['PATH']}",
        "PYTHONPATH": str(PACKAGE_ROOT),
        "HOME": str(folder),
        "UFLIP_CACHE_DIR": str(folder / "cache"),
    }
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder)],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_test_of_the_page_passes(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE.read_text(), re.S)
    assert [name for name, _ in blocks] == ["conftest.py", "test_storage.py"]
    for name, code in blocks:
        (tmp_path / name).write_text(code)
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "uflip").write_text(f'#!/bin/sh\nexec {sys.executable} -m uflip "$@"\n')
    (commands / "uflip").chmod(0o755)
    outcome = run_pytest(tmp_path, commands)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert "1 passed" in outcome.stdout


def test_recording_holds_every_request(tmp_path: Path) -> None:
    served = ServedDevice("sim:demo?blocks_per_die=64", tmp_path / "served", ())
    words = ("pattern", served.device, "--pattern", "SW", "--io-size", "4k", "--io-count", "50")
    subprocess.run(
        [sys.executable, "-m", "uflip", *words, "--destroy", served.device],
        env=os.environ | {"PYTHONPATH": str(PACKAGE_ROOT)}, check=True, capture_output=True,
    )  # fmt: skip
    rows = served.stop().read_text().splitlines()
    assert sum(row.split(",")[5] == "4096" for row in rows) == 50
    assert served.stop() == tmp_path / "served" / "recording.csv"


def test_a_device_that_cannot_be_served_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="did you mean demo"):
        ServedDevice("sim:dmeo", tmp_path / "s", ())
