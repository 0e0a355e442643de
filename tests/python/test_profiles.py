"""Are the built-in profiles as described, and are the documents about policies and fits true?"""

import json
import re
import tomllib
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from command_line import uflip

from uflip import _native
from uflip.device.catalogue import inspect_device
from uflip.device.opener import open_device
from uflip.profiles import (
    profile_names,
    profile_sources,
    random_access_names,
    read_profile,
)
from uflip.reproduce import ofc
from uflip.reproduce.simulated_device import SimulatedDevice
from uflip.spec import baseline, basic

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GC = ROOT / "crates/sim/src/pool/victim/mod.rs"


def profile(name: str) -> dict[str, dict[str, Any]]:
    return tomllib.loads(read_profile(name)[1])


@pytest.mark.parametrize("name", profile_names())
def test_toml_parsers_agree(name: str) -> None:
    text = read_profile(name)[1]
    odd = '\n[odd]\na = [1, -2.5, true, {b = "\\u00e9\\u0000"}, []]\n"c.d" = 9223372036854775807\n'
    assert json.loads(_native.toml_to_json(text + odd)) == tomllib.loads(text + odd)


@pytest.mark.parametrize("name", random_access_names())
def test_profile_makes_a_working_device(name: str) -> None:
    with open_device(f"sim:{name}") as device:
        for pattern in ("SW", "RW", "SR", "RR"):
            trace = device.run(baseline(pattern, io_count=20))
            assert (np.asarray(trace.column("response_time_ns")) > 0).all()


@pytest.mark.parametrize("name", profile_names())
def test_every_profile_constant_has_its_own_source(name: str) -> None:
    tables = profile(name)
    keys = {key for table in tables.values() if isinstance(table, dict) for key in table}
    assert "default" not in tables["sources"]
    assert set(tables["sources"]) == set(profile_sources(name)) == keys - {"default"}
    lines = read_profile(name)[1].partition("[geometry]")[2].partition("\n# Where")[0]
    assert "#" not in lines, "sources are data and not comments"


def test_features_marked_off_have_neutral_values() -> None:
    neutral = (0, False, 1, "none", "when_needed")
    for name in profile_names():
        values = {k: v for t in profile(name).values() if isinstance(t, dict) for k, v in t.items()}
        values = {k: v for k, v in values.items() if not isinstance(v, dict)}
        values |= {k: v for t, c in profile(name).items() if t != "sources" and isinstance(c, dict)
                   for k, v in c.items()}  # fmt: skip
        off = {key for key, source in profile_sources(name).items() if source.kind == "off"}
        assert {key: values[key] for key in off if values[key] not in neutral} == {}, name


def test_own_profile_needs_only_default_source(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    text, _, _ = read_profile("demo")[1].partition("[sources]")
    path.write_text(text)
    outcome = uflip("info", f"sim:{path}", "--json")
    assert outcome.code == 2
    error = json.loads(outcome.out)["error"]
    assert error["what"] == "A constant of the profile has no source"
    assert "channels" in error["got"]
    assert 'default = { kind = "guess" }' in error["allowed"]
    path.write_text(text + '[sources]\ndefault = { kind = "guess" }\n')
    rows = json.loads(uflip("info", f"sim:{path}", "--sources", "--json").out)
    assert {row["kind"] for row in rows} == {"guess"}


def test_sources_are_printed_with_values_and_overrides() -> None:
    rows = {
        row["key"]: row
        for row in json.loads(uflip("info", "sim:ofc?read_ns=30us", "--sources", "--json").out)
    }
    assert rows["relocate_ns"] == {
        "key": "relocate_ns",
        "value": profile("ofc")["timing"]["relocate_ns"],
        "kind": "fitted",
        "detail": profile_sources("ofc")["relocate_ns"].detail,
        "values": ["ofc/drop_30_pages"],
    }
    assert (rows["read_ns"]["value"], rows["read_ns"]["kind"]) == (30_000, "override")
    output = uflip("info", "sim:dfc", "--sources").out
    assert re.search(
        r"^rber_rated +0.00067 +fitted +oc/fig4/first_failure, oc/fig4/tenth", output, re.M
    )
    assert uflip("info", "null", "--sources").code == 2


def test_ofc_profile_matches_table_2_and_section_3() -> None:
    geometry, timing = profile("ofc")["geometry"], profile("ofc")["timing"]
    assert (geometry["channels"], geometry["dies_per_channel"]) == (4, 2)
    assert (geometry["blocks_per_die"], geometry["pages_per_block"]) == (1024, 128)
    assert geometry["metadata_pages"] == 1
    assert geometry["page_bytes"] + geometry["spare_bytes"] == 4320
    assert (timing["read_ns"], timing["program_ns"]) == (25_000, 200_000)
    assert (timing["channel_bytes_per_s"], timing["buses"]) == (166_000_000, 2)
    assert profile("ofc")["ftl"]["spare_factor"] == ofc.SPARE_FACTOR
    info = inspect_device("sim:ofc?state=empty")
    assert info.details.flash_bytes == 4 << 30, "a total capacity of 4 GiB"
    assert info.sector_bytes == 4096


def test_fast_1gb_profile_matches_table_1_of_myers_and_sinclair() -> None:
    tables = profile("fast-1gb")
    geometry, timing = tables["geometry"], tables["timing"]
    assert (geometry["page_bytes"], geometry["pages_per_block"]) == (4096, 64)
    times = ("read_ns", "program_ns", "program_high_ns", "erase_ns")
    assert [timing[name] for name in times] == [25_250, 101_250, 101_250, 1_500_000]
    assert (tables["ftl"]["ftl"], tables["log"]["log_blocks"]) == ("fast", 128)
    assert inspect_device("sim:fast-1gb?state=empty").capacity_bytes == 1 << 30


def test_tlc_nvme_profile_claims_no_product() -> None:
    text = read_profile("tlc-nvme")[1]
    assert "generic" in text.splitlines()[0]
    assert "generic" in profile("tlc-nvme")["description"]
    assert "no product" in text


def test_tlc_nvme_read_latency_is_realistic() -> None:
    with open_device("sim:tlc-nvme") as device:
        trace = device.run(baseline("RR", io_size="4k", io_count=500))
    read_us = np.median(np.asarray(trace.column("response_time_ns"))) / 1e3
    assert 50 < read_us < 150


SMALL = "channels=1&dies_per_channel=2&pages_per_block=64"


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("tlc-nvme", SMALL),
        ("enterprise-nvme", SMALL),
        ("qlc-nvme", SMALL),
        (
            "dramless-nvme",
            "channels=1&dies_per_channel=1&planes_per_die=1&blocks_per_die=550&pages_per_block=64",
        ),
    ],
)
def test_modern_profiles_limit_amplification_of_skewed_writes(name: str, keys: str) -> None:
    """Compare Zipf writes (θ = 1.0) with uniform ones.

    Of the drives that Haas et al. measured (SSD-iq, PVLDB 2025, θ from 0.2 to 1.0), none
    amplifies Zipf writes more than 1.18 times as much as uniform ones. Relocated pages mixed with
    the host's make it 1.3 to 1.5 times.
    """

    def amplification(location: Literal["random", "zipf"], **skew: int) -> float:
        device = SimulatedDevice(f"sim:{name}?{keys}")
        unit = int(profile(name)["ftl"].get("mapping_unit_bytes", device.page_bytes))
        units = device.logical_pages * device.page_bytes // unit
        for count, seed in ((2 * units, 1), (units // 2, 2)):
            spec = basic("write", location, io_size=unit, io_count=count, seed=seed, **skew)
            counted = device.apply(spec)
        return counted["pages_programmed"] / counted["host_pages_written"]

    ratio = amplification("zipf", skew_percent=100) / amplification("random")
    print(f"{name}: {ratio:.3f}")
    assert ratio < 1.2


# Fits


def test_fitted_constants_match_documentation() -> None:
    page = (DOCS / "reference" / "reproduce.md").read_text(encoding="utf-8")
    documented = dict(re.findall(r"^\| (?:`(\w+)`|outstanding requests) \| (\d+) \| ", page, re.M))
    timing = profile("ofc")["timing"]
    constants = {fit.constant for fit in ofc.FITS} - {"outstanding requests"}
    assert {name: int(value) for name, value in documented.items() if name} == {
        name: timing[name] for name in constants
    }
    assert int(documented[""]) == ofc.OUTSTANDING


def test_constants_marked_fitted_match_fits() -> None:
    fitted = {key: s.values for key, s in profile_sources("ofc").items() if s.kind == "fitted"}
    of_device = {fit.constant: (fit.value_id,) for fit in ofc.FITS}
    del of_device["outstanding requests"]
    assert fitted == of_device


def test_each_constant_is_fitted_to_its_own_number() -> None:
    numbers = [fit.value_id for fit in ofc.FITS]
    assert len(set(numbers)) == len(numbers)
    assert len(ofc.BY_CONSTANT) == len(ofc.FITS)


# The worked example of a victim policy


@pytest.fixture(scope="module")
def example() -> str:
    return (DOCS / "how-to" / "add-a-victim-policy.md").read_text(encoding="utf-8")


def rust_blocks(page: str) -> list[str]:
    return re.findall(r"^```rust[^\n]*\n(.*?)^```", page, re.M | re.S)


def test_example_registry_line_has_registry_form(example: str) -> None:
    form = re.compile(r'^    "(\w+)" => (\w+)::(\w+),$', re.M)
    listed = form.findall(GC.read_text(encoding="utf-8"))
    assert {name for name, *_ in listed} == set(json.loads(_native.registry_json())["gc"])
    [(name, module, policy)] = form.findall(rust_blocks(example)[1])
    assert f"file={module}.rs" in example
    assert "mod $module;)+" in GC.read_text(encoding="utf-8"), "the line is all it takes"
    source = rust_blocks(example)[0]
    assert f"pub(crate) struct {policy} {{" in source
    assert f'no_parameter("{name}")' in source
    assert name not in dict.fromkeys(entry[0] for entry in listed), "it is registered: another name"


def test_victim_policy_methods_are_documented(example: str) -> None:
    """The Rust tests compile the example, so it implements them."""
    text = GC.read_text(encoding="utf-8")
    trait = text[text.index("trait VictimPolicy") :]
    trait = trait[: trait.index("\n}\n")]
    documented = re.findall(r"^\| `(\w+)` \|", example, re.M)
    assert documented == re.findall(r"^    fn (\w+)\(", trait, re.M)
