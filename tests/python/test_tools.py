"""Do the tools of the repository work: parallel steps, checks of commits, instructions?"""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SIDE_BY_SIDE = Path(__file__).resolve().parents[2] / "tools" / "side_by_side.py"
MAKEFILE = """
short:
	@echo short begins; sleep 0.1; echo short ends
long:
	@echo long begins; sleep 1; echo long ends
fails:
	@echo fails; exit 3
waits:
	@echo waits; sleep 300; touch waited
"""
SHORT, LONG = ["short begins", "short ends"], ["long begins", "long ends"]


def run_tool(folder: Path, first: str, second: str) -> tuple[int, list[str]]:
    (folder / "tools").mkdir()
    shutil.copy(SIDE_BY_SIDE, folder / "tools")
    (folder / "Makefile").write_text(MAKEFILE, encoding="utf-8")
    process = subprocess.run(
        [sys.executable, folder / "tools" / SIDE_BY_SIDE.name, first, second],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return process.returncode, [line for line in process.stdout.splitlines() if "***" not in line]


@pytest.mark.parametrize(
    ("first", "second", "lines"),
    [
        ("short", "long", SHORT + LONG),
        ("long", "short", LONG + SHORT),
        ("short long", "short", SHORT + LONG + SHORT),
    ],
)
def test_outputs_are_printed_in_order(
    tmp_path: Path, first: str, second: str, lines: list[str]
) -> None:
    assert run_tool(tmp_path, first, second) == (0, lines)


@pytest.mark.parametrize(("first", "second"), [("fails", "waits"), ("waits", "fails")])
def test_failure_ends_the_other_step(tmp_path: Path, first: str, second: str) -> None:
    code, lines = run_tool(tmp_path, first, second)
    assert code == 2, "the exit code of make"
    assert "fails" in lines
    assert not (tmp_path / "waited").exists()


def test_last_failure_fails_the_whole(tmp_path: Path) -> None:
    assert run_tool(tmp_path, "short", "long fails") == (2, [*SHORT, *LONG, "fails"])


# `make check` accepts commit subjects of one form only, and passes without history.


CHECK_COMMITS = Path(__file__).resolve().parents[2] / "tools" / "check_commits.py"


def git(folder: Path, *arguments: str) -> None:
    author = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    subprocess.run(["git", *author, *arguments], cwd=folder, check=True, capture_output=True)


def check(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, folder / "tools" / CHECK_COMMITS.name]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "Older commits are not checked")
    (tmp_path / "tools").mkdir()
    shutil.copy(CHECK_COMMITS, tmp_path / "tools")
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
    shutil.copy(CHECK_COMMITS, tmp_path / "tools")
    assert check(tmp_path).returncode == 0


# Does the table of instructions name the simulator's source files?


ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def program() -> ModuleType:
    path = ROOT / "benches" / "instructions.py"
    spec = importlib.util.spec_from_file_location("instructions", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_files_of_stages_exist(program: ModuleType) -> None:
    names = [name for _, parts in program.STAGES for name in parts if name.startswith("crates/")]
    assert len(names) > 10
    missing = [name for name in names if not (ROOT / name).exists()]
    assert not missing


@pytest.mark.parametrize("crate", ["bench", "core", "engine", "sim"])
def test_every_source_file_belongs_to_a_stage(program: ModuleType, crate: str) -> None:
    files = (ROOT / "crates" / crate / "src").glob("**/*.rs")
    assert [file for file in files if program.stage_of(str(file)) == program.NO_SOURCE] == []


@pytest.mark.parametrize(
    ("file", "stage"),
    [
        ("crates/sim/src/device/write_backlog.rs", "garbage collection and its operations"),
        ("crates/sim/src/device/timed_flash.rs", "garbage collection and its operations"),
        ("crates/sim/src/device/io_path.rs", "host I/Os: accepted, split, completed"),
        ("crates/sim/src/timeline/calendar.rs", "event calendar"),
        ("crates/core/src/random.rs", "host workload: draws and submits addresses"),
        (
            "../sysdeps/x86_64/multiarch/memmove-vec-unaligned-erms.S",
            "memory copies (time accounts, events)",
        ),
        ("???", "without source line"),
    ],
)
def test_stage_of_file(program: ModuleType, file: str, stage: str) -> None:
    assert program.stage_of(file) == stage
