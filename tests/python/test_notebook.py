"""Do the notebooks of the documentation run, and reproduce their output?"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))


def run(path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "tools" / "run_notebook.py", path],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_reproduces_its_output(path: Path) -> None:
    done = run(path)
    command = f"python tools/run_notebook.py --update {path.relative_to(ROOT)}"
    assert done.returncode == 0, f"{done.stderr}\nif this is right: {command}"


def test_notebooks_exist_and_are_complete() -> None:
    assert NOTEBOOKS
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    for path in NOTEBOOKS:
        assert path.name in index
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        kinds = {kind for cell in cells for each in cell.get("outputs", ())
                 for kind in each.get("data", ())}  # fmt: skip
        assert {"text/plain", "text/html", "image/png"} <= kinds
        assert len({cell["id"] for cell in cells}) == len(cells)
        for link in "".join("".join(cell["source"]) for cell in cells).split("](")[1:]:
            assert (path.parent / link.partition(")")[0]).is_file(), link


@pytest.mark.parametrize(("held", "computed"), [("2", "3"), ("'a'", "'b'")])
def test_notebook_with_different_output_is_found(tmp_path: Path, held: str, computed: str) -> None:
    output = {"data": {"text/plain": [held]}, "metadata": {}, "execution_count": 1,
              "output_type": "execute_result"}  # fmt: skip
    cell = {"cell_type": "code", "source": [computed], "outputs": [output], "execution_count": 1}
    path = tmp_path / "x.ipynb"
    path.write_text(json.dumps({"cells": [cell]}))
    done = run(path)
    assert done.returncode == 1
    assert "code cell 1" in done.stderr
    path.write_text(json.dumps({"cells": [cell | {"source": [held]}]}))
    assert run(path).returncode == 0
