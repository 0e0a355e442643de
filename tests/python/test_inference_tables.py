"""`uflip infer --observations`: a simulated device is measured as SSD-iq does; the truth is known.

The device has four dies; the model that is fitted has one of 256 lines.
"""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import uflip

from uflip.device.opener import open_device
from uflip.errors import ResultsError
from uflip.inference.from_table import TableInference, infer_table
from uflip.profiles import profile_sources
from uflip.reproduce.simulated_device import SimulatedDevice, device_url
from uflip.spec import basic

WRONG = ResultsError.exit_code
PAGE, DEPTH, CAPACITIES = 4096, 32, 3
SPARE = 0.1
Rows = list[dict[str, Any]]
# Pattern, details, the share of the device that is written, and the pattern's keys.
PHASES: tuple[tuple[str, str, float, dict[str, Any]], ...] = (
    ("sequential", "", 1, {"location": "sequential"}),
    ("uniform", "", 1, {"location": "random"}),
    ("uniform", "", 0.8, {"location": "random"}),
    ("zipf-shuffle", "0.8", 1, {"location": "zipf", "skew_percent": 80}),
    (
        "zones-shuffle", "s0.9 f0.1 s0.1 f0.9", 1,
        {"location": "hotcold", "hot_space_percent": 90, "hot_io_percent": 10},
    ),
)  # fmt: skip


def measure(**keys: Any) -> Rows:
    """Measure each phase on a new device that was written once: its last capacity counts."""
    url = device_url(
        "demo", channels=2, dies_per_channel=2, blocks_per_die=96, pages_per_block=64,
        spare_bytes=0, metadata_pages=0, idle_free_blocks=0, state="empty",
        spare_factor=SPARE, **keys,
    )  # fmt: skip
    rows = []
    for pattern, details, share, shape in PHASES:
        device = SimulatedDevice(url)
        pages = round(device.logical_pages * share)
        target: dict[str, Any] = {"io_size": PAGE, "target_size": pages * PAGE}
        # A shuffled fill scatters the two areas.
        step = 7919 if pattern.startswith("zones") else 1
        device.apply(basic("write", "ordered", io_count=pages, incr=step, **target))
        first, last = (
            basic("write", io_count=ios, queue_depth=DEPTH, seed=seed, **target, **shape)
            for seed, ios in ((1, (CAPACITIES - 1) * pages), (2, pages))
        )
        device.apply(first)
        window = device.run(last)
        counted = window.counters
        gib = pages * PAGE / (1 << 30)
        rows.append({
            "pattern": pattern, "details": details, "capacity_gib": gib,
            "written_gib": CAPACITIES * gib,
            "write_mib_s": window.ios * PAGE / (1 << 20) / window.elapsed_ns * 1e9,
            "write_amplification": counted["pages_programmed"] / counted["host_pages_written"],
        })  # fmt: skip
    return rows


def write(path: Path, rows: Rows) -> Path:
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    return path


@pytest.fixture(scope="module")
def measured() -> Rows:
    return measure(gc="greedy", separate_streams=True)


@pytest.fixture(scope="module")
def table(measured: Rows, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("tables") / "drive.csv", measured)


@pytest.fixture(scope="module")
def inferred(table: Path) -> TableInference:
    return infer_table(table)


def test_counted_writes_show_policy_and_spare_space(inferred: TableInference) -> None:
    assert inferred.estimate("gc").value == "greedy"
    assert inferred.estimate("separate_streams").value == "yes"
    spare = inferred.estimate("spare_factor")
    assert spare.low is not None
    assert spare.high is not None
    assert spare.low <= SPARE <= spare.high < SPARE + 0.08
    assert inferred.why_no_twin == ""


@pytest.mark.parametrize("key", ["dies", "page_bytes", "superblock_bytes", "write_cache_bytes"])
def test_rates_show_no_structure(inferred: TableInference, key: str) -> None:
    estimate = inferred.estimate(key)
    assert not estimate.is_identified
    assert estimate.reason


def test_rates_alone_show_no_policy(measured: Rows, tmp_path: Path) -> None:
    rates = [{k: v for k, v in row.items() if k != "write_amplification"} for row in measured]
    found = infer_table(write(tmp_path / "rates.csv", rates))
    assert "0 phases" in found.estimate("gc").reason
    assert not found.estimate("gc").is_identified
    assert not found.estimate("separate_streams").is_identified
    spare = found.estimate("spare_factor")
    assert not spare.is_identified or (spare.low or 0) <= SPARE <= (spare.high or 0)


def test_random_victims_fit_no_family(tmp_path: Path) -> None:
    """They relocate pages under sequential writes as well, which no line of the model does."""
    found = infer_table(write(tmp_path / "random.csv", measure(gc="random")))
    assert "no known family" in found.why_no_twin
    assert not found.estimate("gc").is_identified
    assert not found.estimate("ftl").is_identified


def test_text_json_and_twin(table: Path, tmp_path: Path) -> None:
    twin = tmp_path / "twin.toml"
    outcome = uflip("infer", "--observations", str(table), "-o", str(twin), "--json")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    assert found["written_to"] == str(twin)
    assert {row["quantity"] for row in found["rows"]} == {"rate", "write amplification"}
    sources = profile_sources(str(twin))
    assert sources["gc"].kind == "inferred"
    assert "drive.csv" in sources["gc"].detail
    assert sources["page_bytes"].kind == "guess"
    with open_device(f"sim:{twin}") as device:
        assert set(device.info.profile_table["gc"]) <= sources.keys()
    shown = uflip("infer", "--observations", str(table))
    assert "write amplification" in shown.out
    assert "Write the twin: uflip infer --observations" in shown.out


def test_json_table_equals_csv(measured: Rows, inferred: TableInference, tmp_path: Path) -> None:
    path = tmp_path / "drive.json"
    path.write_text(json.dumps(measured))
    assert infer_table(path).estimates == inferred.estimates


def change(column: str, value: Any) -> Callable[[Rows], Rows]:
    return lambda rows: [rows[0], {**rows[1], column: value}, *rows[2:]]


def rename(old: str, new: str) -> Callable[[Rows], Rows]:
    return lambda rows: [{new if k == old else k: v for k, v in row.items()} for row in rows]


@pytest.mark.parametrize(
    ("changed", "code", "message"),
    [
        (rename("details", "detail"), 2, "did you mean details?"),
        (rename("capacity_gib", "capacity"), 2, "capacity_gib"),
        (rename("write_mib_s", "write_mb_s"), 2, "did you mean write_mib_s?"),
        (change("write_mib_s", -5), WRONG, "a number above 0"),
        (change("write_amplification", 0.5), WRONG, "the flash writes what the host writes"),
        (change("write_amplification", "nan"), WRONG, "a finite number"),
        (change("capacity_gib", ""), WRONG, "no value"),
        (change("written_gib", "much"), WRONG, "much"),
        (lambda rows: [*rows, {**rows[1], "write_mib_s": 999}], WRONG, "contradict each other"),
        (lambda rows: [{**row, "drive": n} for n, row in enumerate(rows)], WRONG, "several drives"),
        (lambda rows: [{"what": "read", "rate": 0, "50p_us": 9}], WRONG, "above 0"),
        (lambda rows: [{"what": "read", "rate": 9, "50p_us": 9, "99p_us": 8}], WRONG, "at least"),
        (lambda rows: [{"rate": 9, "50p_us": 9}], WRONG, "column what"),
    ],
)  # fmt: skip
def test_odd_rows_are_named(
    measured: Rows, tmp_path: Path, changed: Callable[[Rows], Rows], code: int, message: str
) -> None:
    path = write(tmp_path / "odd.csv", changed(measured))
    outcome = uflip("infer", "--observations", str(path))
    assert (outcome.code, outcome.out) == (code, "")
    assert message in outcome.err
    assert "odd.csv" in outcome.err


@pytest.mark.parametrize(("name", "text"), [("a.csv", ""), ("a.json", "[]"), ("b.json", "{")])
def test_table_without_rows_is_refused(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    outcome = uflip("infer", "--observations", str(path))
    assert outcome.code in (2, ResultsError.exit_code)
    assert str(path) in outcome.err


def test_single_row_identifies_nothing(measured: Rows, tmp_path: Path) -> None:
    found = infer_table(write(tmp_path / "one.csv", measured[:1]))
    assert "no random writes" in found.why_no_twin
    assert not any(each.is_identified for each in found.estimates)


@pytest.mark.parametrize("words", [["sim:demo"], ["--out", "new"], ["--check"]])
def test_table_needs_no_device(table: Path, words: list[str]) -> None:
    outcome = uflip("infer", *words, "--observations", str(table))
    assert outcome.code == 2
    assert "cannot be combined" in outcome.err
