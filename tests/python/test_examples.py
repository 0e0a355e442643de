"""Do the examples in docstrings print what they show?"""

import doctest
import pkgutil
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
