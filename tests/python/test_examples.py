"""Do the examples in docstrings print what they show?"""

import doctest
import pkgutil
from importlib import import_module
from pathlib import Path

import pytest

import uflip

# Migrations are Alembic's to load, and `__main__` runs the command line.
NOT_LOADED = ("uflip.site.migrations", "uflip.__main__")


def names() -> list[str]:
    found = [each.name for each in pkgutil.walk_packages(uflip.__path__, "uflip.")]
    return [name for name in found if not name.startswith(NOT_LOADED)]


def examples(name: str) -> list[doctest.DocTest]:
    found = doctest.DocTestFinder().find(import_module(name))
    return [test for test in found if test.examples]


def source(name: str) -> Path:
    path = Path(uflip.__file__).parent.joinpath(*name.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def with_examples() -> list[str]:
    """The modules whose source has a prompt: the others need not be loaded for this."""
    ours = [name for name in names() if source(name).exists()]
    return [name for name in ours if ">>> " in source(name).read_text(encoding="utf-8")]


def test_there_are_many() -> None:
    assert len(with_examples()) > 50


@pytest.mark.parametrize("name", with_examples())
def test_examples_of_docstrings_say_what_happens(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = examples(name)
    assert found, "it has examples"
    said: list[str] = []
    for number, test in enumerate(found):
        (tmp_path / str(number)).mkdir()
        monkeypatch.chdir(tmp_path / str(number))
        doctest.DocTestRunner().run(test, out=said.append)
    assert "".join(said) == ""
