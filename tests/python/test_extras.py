"""The advice for a missing library matches how the package was installed."""

import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from uflip.extras import install_command, libraries_of, missing_extra

TOP = Path(__file__).resolve().parents[2]
EXTRAS = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["optional-dependencies"]


@pytest.mark.parametrize("extra", EXTRAS)
def test_libraries_are_those_of_the_package(extra: str) -> None:
    expected = [each for each in EXTRAS[extra] if not each.startswith("uflip[")]
    found = [each for each in libraries_of(extra) if not each.startswith("uflip[")]
    assert sorted(each.lower() for each in found) == sorted(each.lower() for each in expected)


def test_all_names_every_extra() -> None:
    (all_of,) = EXTRAS["all"]
    named = all_of.removeprefix("uflip[").removesuffix("]").split(",")
    assert sorted(named) == sorted(EXTRAS.keys() - {"all"})


@pytest.mark.parametrize(
    ("marker", "begin"), [("pipx_metadata.json", "pipx inject"), ("uv-receipt.toml", "uv tool")]
)
def test_tools_that_own_their_environment(
    marker: str, begin: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / marker).touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    command = install_command("web", ["starlette>=1.0"])
    assert command.startswith(begin)
    assert "'starlette>=1.0'" in command


def test_checkout_and_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    action = missing_extra("site-s3", "S3 needs obstore").action
    assert action == f"{sys.executable} -m pip install 'obstore>=0.8'"
    about = tmp_path / "uflip-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.4\nName: uflip\nVersion: 0.1.0\n")
    monkeypatch.setattr(metadata, "distribution", lambda _: metadata.PathDistribution(about))
    assert install_command("web", ["starlette>=1.0"]) == "pip install 'uflip[web]'"
