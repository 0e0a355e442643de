"""Shell completion, with the script in a real bash; zsh and fish get the script of click."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import PACKAGE_ROOT, uflip

# bash calls the function of the script with the words so far; it fills COMPREPLY.
COMPLETE = """
eval "$(uflip completion bash)"
COMP_WORDS=({words})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_uflip_completion uflip
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def bash(tmp_path: Path) -> Path:
    """Return a folder with the command `uflip`, on the path of `proposals`."""
    command = tmp_path / "bin" / "uflip"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m uflip "$@"\n')
    command.chmod(0o755)
    return command.parent


def proposals(bash: Path, *words: str, folder: Path | None = None) -> list[str]:
    script = COMPLETE.format(words=" ".join(map(shlex.quote, ("uflip", *words))))
    environment = {"PATH": f"{bash}:{os.environ['PATH']}", "PYTHONPATH": str(PACKAGE_ROOT)}
    process = subprocess.run(
        ["bash", "--norc", "-c", script],
        env=environment, cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert process.stderr == ""
    return process.stdout.split()


def test_bash_completes_verbs_devices_and_values(bash: Path) -> None:
    assert proposals(bash, "com") == ["compare", "completion"]
    assert proposals(bash, "run", "sim:dem") == ["sim:demo"]
    assert proposals(bash, "pattern", "sim:demo", "--pattern", "R") == ["RR", "RW"]
    assert proposals(bash, "run", "sim:demo", "--only", "order,gran") == ["order,granularity"]
    assert proposals(bash, "reproduce", "uflip-fig") == [f"uflip-fig{n}" for n in range(3, 9)]


def test_bash_completes_files_of_devices(bash: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").touch()
    (tmp_path / "data.bin").touch()
    assert proposals(bash, "info", "file:d", folder=tmp_path) == ["file:data.bin"]
    assert proposals(bash, "info", f"sim:{tmp_path}/", folder=tmp_path) == [
        f"sim:{tmp_path}/bin/", f"sim:{tmp_path}/mine.toml",
    ]  # fmt: skip


def test_bash_completes_the_figures_of_a_result(bash: Path, tmp_path: Path) -> None:
    result = tmp_path / "demo"
    words = ("sim:demo", "--scale", "quick", "--only", "baseline,order", "--quiet")
    assert uflip("run", *words, "--out", result).code == 0
    listed = uflip("figure", result).out.split()
    assert proposals(bash, "figure", str(result), "") == listed
    assert "traces" in listed
    assert proposals(bash, "figure", str(tmp_path / "missing"), "") == []


def test_scripts_of_all_shells() -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_UFLIP_COMPLETE" in uflip("completion", shell).out
    assert uflip("completion", "tcsh").code == 2
