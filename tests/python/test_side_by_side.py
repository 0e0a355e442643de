"""Is the output of parallel steps of `make test` shown in order, and is their failure one?"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "side_by_side.py"
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
    shutil.copy(TOOL, folder / "tools")
    (folder / "Makefile").write_text(MAKEFILE, encoding="utf-8")
    process = subprocess.run(
        [sys.executable, folder / "tools" / TOOL.name, first, second],
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
