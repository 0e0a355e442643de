"""Is every mistake in a simulated device named before any work: what, where, got, allowed, do?"""

import json
import os
from pathlib import Path

import pytest
from command_line import uflip, unchanged

from uflip.profiles import read_profile

# Keys stand in the table of sources once more.
DEMO = read_profile("demo")[1].partition("\n[sources]")[0] + (
    '\n[sources]\ndefault = { kind = "guess" }\n'
)

# Override of sim:demo -> texts of the error.
OVERRIDES: dict[str, list[str]] = {
    "page_bytes=256": ["'page_bytes' makes no device", "got      256", "whole sectors of 512"],
    "channels=0": ["'channels' makes no device", "got      0", "1 or more"],
    "spare_factor=0.0001": ["does not suit the reserved blocks", "0.0001", "raise spare_factor"],
    "gc=greedy_window:99999999": ["window of 'greedy_window'", "1 to 2410, the blocks of a die"],
    "gc=d_choices:99999999": ["draws of 'd_choices'", "1 to 2410, the blocks of a die"],
    "gc=best": ["Unknown victim policy", "'best'", "cyclic, greedy, greedy_window, d_choices"],
    "ftl=best": ["Unknown FTL", "'best'", "page_map, dftl"],
    "allocator=best": ["Unknown allocator", "'best'", "round_robin, die_first"],
    "chanels=2": ["Unknown key of a profile", "'chanels'", "dies_per_channel"],
    "channels=many": ["override of 'channels' does not fit", '"many"', "same kind as 4"],
    "blocks_per_die=8000000": ["does not fit into memory", "MiB", "which are free now"],
}


@pytest.mark.parametrize(("override", "texts"), OVERRIDES.items(), ids=str)
def test_an_override_that_makes_no_device_is_named_as_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, override: str, texts: list[str]
) -> None:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if "memory" in texts[0] and memory > 32 << 30:  # 2³² pages, two maps of 4 bytes each
        pytest.skip("this machine holds every device that can be asked for")
    monkeypatch.chdir(tmp_path)
    for verb in (["info"], ["plan"], ["run", "--out", "out"], ["prepare"]):
        with unchanged(tmp_path):
            done = uflip(*verb, f"sim:demo?{override}")
        assert (done.code, done.out) == (2, "")
        for text in [*texts, f"?{override.partition('=')[0]}="]:
            assert text in done.err
        error = json.loads(uflip(*verb, f"sim:demo?{override}", "--json").out)["error"]
        assert all(error[part] for part in ("what", "where", "got", "allowed", "action")), error
        assert error["where"].startswith(f"?{override.partition('=')[0]}=")


# What is replaced in demo.toml, and by what -> what was got; some of the keys that are allowed.
EDITS: list[tuple[str, str, str, str]] = [
    ("pages_per_block =", "page_per_block =", "unknown key `page_per_block`", "pages_per_block,"),
    ("pages_per_block =", "# =", "missing key `pages_per_block`", "pages_per_block,"),
    ("[wear]", "[ware]", "unknown key `ware`", "wear, cache, state"),
    ("description =", "# =", "missing key `description`", "description, geometry, timing, ftl"),
]


@pytest.mark.parametrize(("old", "new", "got", "allowed"), EDITS, ids=str)
def test_a_key_that_is_unknown_or_missing_has_its_line_and_the_allowed_keys(
    tmp_path: Path, old: str, new: str, got: str, allowed: str
) -> None:
    assert DEMO.count(f"\n{old}") == 1
    path = tmp_path / "my.toml"
    path.write_text(DEMO.replace(f"\n{old}", f"\n{new}", 1))
    error = json.loads(uflip("info", f"sim:{path}", "--json").out)["error"]
    assert error["kind"] == "usage"
    place, _, line = error["where"].rpartition(", line ")
    assert place == str(path)
    lines = path.read_text().splitlines()
    if got.startswith("unknown"):
        assert lines[int(line) - 1].startswith(new)
    else:  # the table that lacks it; a missing table is missing from the beginning
        expected = "[geometry]" if "pages" in got else lines[0]
        assert lines[int(line) - 1] == expected
    assert error["got"] == got
    assert allowed in error["allowed"]
    assert "docs/reference/profiles.md" in error["action"]


def test_what_is_wrong_with_a_file_is_not_blamed_on_an_override(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_text(DEMO.replace("\nchannels = 4", "\nchannels = 0", 1))
    error = json.loads(uflip("info", f"sim:{path}?seed=3", "--json").out)["error"]
    assert error["where"] == str(path)
