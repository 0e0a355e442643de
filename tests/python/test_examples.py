"""Do the examples in docstrings print what they show?"""

import doctest
import json
import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import uflip

# Alembic loads the migrations, and `__main__` runs the command line.
NOT_LOADED = ("uflip.site.migrations", "uflip.__main__")


def module_names() -> list[str]:
    modules = [each.name for each in pkgutil.walk_packages(uflip.__path__, "uflip.")]
    return [name for name in modules if not name.startswith(NOT_LOADED)]


def doctests_of(name: str) -> list[doctest.DocTest]:
    tests = doctest.DocTestFinder().find(import_module(name))
    return [test for test in tests if test.examples]


def source(name: str) -> Path:
    path = Path(uflip.__file__).parent.joinpath(*name.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def modules_with_examples() -> list[str]:
    """Return the modules whose source has a prompt; the others are not loaded."""
    ours = [name for name in module_names() if source(name).exists()]
    return [name for name in ours if ">>> " in source(name).read_text(encoding="utf-8")]


def test_many_modules_have_examples() -> None:
    assert len(modules_with_examples()) > 50


@pytest.mark.parametrize("name", modules_with_examples())
def test_docstring_examples_print_their_output(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = doctests_of(name)
    assert tests, "the module has no examples"
    failures: list[str] = []
    for number, test in enumerate(tests):
        (tmp_path / str(number)).mkdir()
        monkeypatch.chdir(tmp_path / str(number))
        doctest.DocTestRunner().run(test, out=failures.append)
    assert "".join(failures) == ""


# Do the notebooks of the documentation run, and reproduce their output?


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
