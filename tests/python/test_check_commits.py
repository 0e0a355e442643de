"""`make check` accepts commit subjects of one form only, and passes without history."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_commits.py"


def git(folder: Path, *arguments: str) -> None:
    author = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    subprocess.run(["git", *author, *arguments], cwd=folder, check=True, capture_output=True)


def check(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, folder / "tools" / TOOL.name]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "Older commits are not checked")
    (tmp_path / "tools").mkdir()
    shutil.copy(TOOL, tmp_path / "tools")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "The commit that adds the check is not checked")
    return tmp_path


@pytest.mark.parametrize(
    "subject",
    [
        "sim/gc: reserve one block per die",
        "cli: `--json` prints one object",
        "cargo fmt",
        "a,b: fix",
    ],
)
def test_valid_subject_passes(repository: Path, subject: str) -> None:
    git(repository, "commit", "-q", "--allow-empty", "-m", subject)
    assert check(repository).returncode == 0


@pytest.mark.parametrize(
    "subject",
    ["An error about tables once", "Fix the parser", "sim: Reserve", "sim: " + "x" * 68],
)
def test_invalid_subject_fails_and_is_printed(repository: Path, subject: str) -> None:
    git(repository, "commit", "-q", "--allow-empty", "-m", subject)
    git(repository, "commit", "-q", "--allow-empty", "-m", "docs: a good one")
    done = check(repository)
    assert done.returncode == 1
    assert subject in done.stderr


def test_folder_without_history_passes(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    shutil.copy(TOOL, tmp_path / "tools")
    assert check(tmp_path).returncode == 0
