"""Are profiles printed, created and checked so that they give the named device?"""

import itertools
import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from command_line import uflip, unchanged

from uflip.device.catalogue import inspect_device
from uflip.profiles import profile_names, profile_sources, read_profile
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


# Is every mistake in a profile reported before any work: what, where, got, allowed, do?


# The table of sources would repeat the keys.
DEMO = read_profile("demo")[1].partition("\n[sources]")[0] + (
    '\n[sources]\ndefault = { kind = "guess" }\n'
)

# Override of sim:demo -> texts of the error.
OVERRIDES: dict[str, list[str]] = {
    "page_bytes=256": ["'page_bytes' has an invalid value", "got      256", "whole sectors of 512"],
    "channels=0": ["'channels' has an invalid value", "got      0", "1 or more"],
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
def test_invalid_override_is_named_as_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, override: str, texts: list[str]
) -> None:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if "memory" in texts[0] and memory > 32 << 30:  # 2³² pages, two maps of 4 bytes each
        pytest.skip("this machine has enough memory for every device")
    monkeypatch.chdir(tmp_path)
    for verb in (["info"], ["plan"], ["run", "--out", "out"], ["prepare"]):
        with unchanged(tmp_path):
            outcome = uflip(*verb, f"sim:demo?{override}")
        assert (outcome.code, outcome.out) == (2, "")
        for text in [*texts, f"?{override.partition('=')[0]}="]:
            assert text in outcome.err
        error = json.loads(uflip(*verb, f"sim:demo?{override}", "--json").out)["error"]
        assert all(error[part] for part in ("what", "where", "got", "allowed", "action")), error
        assert error["where"].startswith(f"?{override.partition('=')[0]}=")


# Text to replace in demo.toml, its replacement, and the lines and messages of the faults.
EDITS: list[tuple[str, str, list[tuple[str, list[str]]]]] = [
    (
        "pages_per_block =",
        "page_per_block =",
        [
            ("[geometry]", ["missing key `pages_per_block`", "a whole number"]),
            (
                "page_per_block",
                ["unknown key `page_per_block`", "blocks_per_die, pages_per_block,"],
            ),
        ],
    ),
    ("pages_per_block =", "# =", [("[geometry]", ["missing key `pages_per_block`", "a whole"])]),
    (
        "[wear]",
        "[ware]",
        [
            ("# A small", ["missing key `wear`", "dynamic_wear_levelling, static_wear_threshold"]),
            ("[ware]", ["unknown key `ware`", "wear, cache, state"]),
        ],
    ),
    ("description =", "# =", [("# A small", ["missing key `description`", "a text in quotes"])]),
    ("read_ns = 50_000", 'read_ns = "50"', [("read_ns", ["A duration needs its unit", "100us"])]),
    ("read_ns = 50_000", "read_ns = -1", [("read_ns", ["`read_ns` is -1", "0 to 9223"])]),
    ("channels = 4", "channels = 5e9", [("channels", ["`channels` is 5000000000.0", "a whole"])]),
    ("channels = 4", "channels = 5000000000", [("channels", ["0 to 4294967295"])]),
    ("spare_factor = 0.1502", "spare_factor = nan", [("spare_factor", ["is NaN", "finite"])]),
    ('flush = "when_needed"', 'flush = "never"', [("flush", ['is "never"', "eager, when_needed"])]),
    ("copy_back = false", 'copy_back = "no"', [("copy_back", ['is "no"', "true, false"])]),
    ("copy_back = false", "copy_back = 1979-05-27", [("copy_back", ["a date or a time"])]),
]


@pytest.mark.parametrize(("old", "new", "faults"), EDITS, ids=str)
def test_every_fault_has_its_line_and_allowed_values(
    tmp_path: Path, old: str, new: str, faults: list[tuple[str, list[str]]]
) -> None:
    assert DEMO.count(f"\n{old}") == 1
    path = tmp_path / "my.toml"
    path.write_text(DEMO.replace(f"\n{old}", f"\n{new}", 1))
    lines = path.read_text().splitlines()
    outcome = uflip("profile", "check", path, "--json")
    reported = json.loads(outcome.out)["faults"]
    assert outcome.code == 2
    # An unknown table or key also causes faults of its source.
    reported = [fault for fault in reported if not fault["key"].startswith("sources")]
    assert len(reported) == len(faults)
    for fault, (line, texts) in zip(reported, faults, strict=True):
        assert lines[fault["line"] - 1].startswith(line)
        for text in texts:
            assert text in f"{fault['got']} {fault['allowed']}"
    error = json.loads(uflip("info", f"sim:{path}", "--json").out)["error"]
    assert (error["kind"], error["where"].startswith(str(path))) == ("usage", True)
    assert all(fault["got"] in error["got"] for fault in reported)
    assert "docs/reference/profiles.md" in error["action"]


def test_all_faults_are_reported_at_once(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    text = DEMO.replace("\nread_ns = 50_000", '\nread_ns = "50 parsecs"\nred_ns = 1', 1)
    text = text.replace("\nerase_ns = 2_000_000", "").replace("\n[gc]", "\n[gcc]")
    path.write_text(text.replace("seed = 1\n", "seed = false\n"))
    outcome = uflip("profile", "check", path)
    assert outcome.code == 2
    for words in ("Unknown unit 'parsecs'", "unknown key `red_ns`", "missing key `erase_ns`",
                  "unknown key `gcc`", "`seed` is false"):  # fmt: skip
        assert outcome.out.count(words) == 1, words
    for line in outcome.out.splitlines():
        assert line.startswith(f"{path}:")
    assert "The profile is not valid" in outcome.err
    assert f"{len(outcome.out.splitlines())} faults" in outcome.err


def test_all_out_of_range_values_are_reported_at_once(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    text = DEMO.replace("\nchannels = 4", "\nchannels = 0").replace(
        "page_bytes = 4096", 'page_bytes = "1000B"'
    )
    path.write_text(text.replace("overwrites = 1.0", "overwrites = 101.0"))
    faults = json.loads(uflip("profile", "check", path, "--json").out)["faults"]
    assert [fault["key"] for fault in faults] == [
        "geometry.channels", "geometry.page_bytes", "state.random_overwrites",
    ]  # fmt: skip
    assert faults[0]["allowed"] == "1 or more"
    path.write_text(DEMO.replace("spare_factor = 0.1502", "spare_factor = 0.0001"))
    [fault] = json.loads(uflip("profile", "check", path, "--json").out)["faults"]
    assert "reserved blocks" in fault["got"]


def test_fault_of_a_file_is_not_blamed_on_an_override(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_text(DEMO.replace("\nchannels = 4", "\nchannels = 0", 1))
    error = json.loads(uflip("info", f"sim:{path}?seed=3", "--json").out)["error"]
    assert error["where"] == str(path)


@pytest.mark.parametrize(
    ("line", "wrong", "message"),
    [
        ('ftl = "page_map"', 'ftl = "pagemapp"', "Unknown FTL: 'pagemapp'"),
        ('gc = "cyclic"', 'gc = "cyclical"', "Unknown victim policy: 'cyclical'"),
        ('gc = "cyclic"', 'gc = "greedy_window:0"', "greedy_window"),
        ('allocator = "round_robin"', 'allocator = "robin"', "Unknown allocator: 'robin'"),
        ("spare_factor = 0.1502", "spare_factor = 0.001", "spare_factor = 0.001"),
        ("reserved_blocks = 1", "reserved_blocks = 0", "`reserved_blocks` is 0"),
        ("idle_free_blocks = 3", "idle_free_blocks = 1", "idle_free_blocks = 1"),
    ],
    ids=lambda text: text,
)
def test_invalid_value_is_reported_at_its_line(
    tmp_path: Path, line: str, wrong: str, message: str
) -> None:
    path = tmp_path / "my.toml"
    assert DEMO.count(f"\n{line}\n") == 1
    path.write_text(DEMO.replace(f"\n{line}\n", f"\n{wrong}\n"))
    at = path.read_text().splitlines().index(wrong) + 1
    outcome = uflip("profile", "check", path)
    assert outcome.code == 2
    assert outcome.out.startswith(f"{path}:{at}: ")
    assert message in outcome.out
