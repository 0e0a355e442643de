"""Are profiles printed, created and checked so that they give the named device?"""

import itertools
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from command_line import uflip

from uflip.device.catalogue import inspect_device
from uflip.profiles import profile_names, profile_sources
from uflip.profiles.keys import known_keys


def made_of(url: str) -> dict[str, Any]:
    return inspect_device(url, any_interface=True).profile_table


@pytest.mark.parametrize("name", profile_names())
def test_exported_profile_describes_same_device(tmp_path: Path, name: str) -> None:
    path = tmp_path / "copy.toml"
    path.write_text(uflip("profile", "export", f"sim:{name}").out)
    assert made_of(f"sim:{path}") == made_of(f"sim:{name}")
    sources, builtin = profile_sources(str(path)), profile_sources(name)
    assert {key: sources[key] for key in builtin} == builtin
    assert {sources[key].kind for key in set(sources) - set(builtin)} <= {"off"}


def test_export_includes_overrides(tmp_path: Path) -> None:
    path, url = tmp_path / "copy.toml", "sim:demo?page_bytes=8KiB&read_ns=25us&gc=greedy"
    path.write_text(uflip("profile", "export", url).out)
    assert made_of(f"sim:{path}") == made_of(url)
    assert profile_sources(str(path))["gc"].detail == f"set by {url}"
    tables = tomllib.loads(path.read_text())
    assert (tables["timing"]["read_ns"], tables["geometry"]["page_bytes"]) == ("25us", "8KiB")


def test_export_includes_tables_added_by_overrides(tmp_path: Path) -> None:
    path = tmp_path / "copy.toml"
    url = (
        "sim:worn-mlc?retention_by_block=true&commands_at_once=4&read_weight=2&write_weight=1"
        "&die_queue=reads_first&erase_suspend_ns=50us&suspensions_max=2&host_completion=polling"
        "&host_completion_ns=5us&coalesced_completions=1&coalescing_ns=0"
    )
    path.write_text(uflip("profile", "export", url).out)
    assert made_of(f"sim:{path}") == made_of(url)
    added = {"block_history", "host_queues", "suspend", "interrupts"}
    assert added <= set(tomllib.loads(path.read_text()))
    assert not added & set(made_of("sim:worn-mlc"))


@pytest.mark.parametrize("name", ["demo", "worn-mlc", "mtron", "dfc"])
def test_new_profile_comments_every_key_and_passes_check(tmp_path: Path, name: str) -> None:
    path = tmp_path / "mine.toml"
    outcome = uflip("profile", "new", f"sim:{name}", path)
    assert (outcome.code, outcome.err) == (0, "")
    lines = path.read_text().partition("\n[sources]")[0].splitlines()
    tables = {key for table in known_keys("open_channel" if name == "dfc" else "block").values()
              for key in table}  # fmt: skip
    keys = [(above, line) for above, line in itertools.pairwise(lines)
            if line.partition(" = ")[0] in tables]  # fmt: skip
    assert len(keys) > 20
    assert all(above.startswith("# ") for above, _ in keys)
    outcome = uflip("profile", "check", path)
    assert (outcome.code, outcome.err) == (0, "")
    assert "no fault" in outcome.out


def test_new_profile_refuses_existing_name(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("mine")
    assert uflip("profile", "new", "sim:demo", path).code == 3
    assert path.read_text() == "mine"
    assert uflip("profile", "new", "sim:demo", tmp_path / "mine").code == 2
    assert uflip("profile", "new", "null", tmp_path / "other.toml").code == 2
    assert list(tmp_path.iterdir()) == [path]


def test_profile_accepts_units_like_url(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    text = uflip("profile", "export", "sim:demo").out
    path.write_text(text.replace('erase_ns = "2ms"', 'erase_ns = "2500 µs"'))
    profile = made_of(f"sim:{path}")
    assert profile == made_of("sim:demo?erase_ns=2500µs")
    assert json.loads(json.dumps(profile))["timing"]["erase_ns"] == 2_500_000


def test_missing_profile_is_a_usage_error(workdir: Path) -> None:
    """The error is that of a missing plan or specification, not that of a failed device."""
    outcome = uflip("profile", "check", "missing.toml")
    assert outcome.code == 2
    assert "no such file" in outcome.err


def test_duplicate_override_is_refused(workdir: Path) -> None:
    for url in ("sim:demo?gc=greedy&gc=cyclic", "sim:demo?gc=greedy&spare_factor=0.2&gc=greedy"):
        outcome = uflip("info", url)
        assert outcome.code == 2
        assert "given twice" in outcome.err
        assert "spare_factor" not in outcome.err.split("got", 1)[1]


def test_existing_profile_is_replaced_only_by_force(workdir: Path) -> None:
    (workdir / "mine.toml").write_text("mine")
    assert uflip("profile", "new", "sim:demo", "mine.toml").code == 3
    assert uflip("profile", "new", "sim:demo", "mine.toml", "--force").code == 0
    assert (workdir / "mine.toml").read_text() != "mine"


def test_zoned_device_cannot_be_prepared() -> None:
    for more in ((), ("--dry-run",)):
        outcome = uflip("prepare", "sim:zns", *more)
        assert (outcome.code, "state cannot be enforced on" in outcome.err) == (2, True), (
            outcome.err
        )
        assert "measure it as it is" in outcome.err
        assert "--state" not in outcome.err, "the user did not pass it"
