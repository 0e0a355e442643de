"""Is write amplification bytes programmed over bytes that the host wrote, wherever it is said?"""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from command_line import uflip

from uflip.amplification import write_amplification
from uflip.device.catalogue import inspect_device
from uflip.spec import basic
from uflip.sweeping import sweep

# A page of 16 KiB, nothing on it yet, and far fewer writes than pages: nothing is collected.
URL = "sim:demo?blocks_per_die=64&page_bytes=16384&state=empty"
WRITES = ("--pattern", "RW", "--io-size", "512", "--io-count", "500")
EACH = 16384 / 512


def test_a_sector_that_programs_a_page_amplifies_by_the_sectors_of_a_page() -> None:
    done = uflip("pattern", URL, *WRITES, "--json")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    counters = document["counters"]
    assert counters["blocks_collected"] == 0
    assert counters["pages_programmed"] == counters["host_pages_written"] == 500
    assert document["write_amplification"] == EACH
    text = uflip("pattern", URL, *WRITES).out
    assert f"write amplification  {EACH:.2f}" in text


@pytest.mark.parametrize("timed", [True, False])
def test_a_sweep_says_the_same(timed: bool) -> None:
    spec = basic("write", "random", io_count=500, seed=1)
    rows = sweep(URL, spec, {"io_size": ["512", "16KiB", "32KiB"]}, timed=timed)
    assert [row.write_amplification for row in rows] == [EACH, 1.0, 1.0]


def test_results_say_the_same_in_show_the_report_and_exports(tmp_path: Path) -> None:
    chosen = ("--only", "granularity", "--scale", "quick", "--state", "as-is", "--quiet")
    out = tmp_path / "out"
    assert uflip("run", URL, *chosen, "--out", out).code == 0
    summary = json.loads(uflip("show", out, "--json").out)
    runs = summary["micro_benchmarks"]["granularity"]
    (small,) = [run for run in runs if (run["pattern"], run["value"]) == ("RW", 512)]
    expected = small["counters"]["pages_programmed"] * 16384 / (small["io_count"] * 512)
    assert small["write_amplification"] == expected >= EACH
    assert all(run["write_amplification"] is None for run in runs if run["pattern"] == "RR")
    assert uflip("export", out, "--out", tmp_path / "csv").code == 0
    rows: list[dict[str, Any]] = list(
        csv.DictReader((tmp_path / "csv/summary.csv").read_text().splitlines())
    )
    (row,) = [row for row in rows if row["run"] == small["run"]]
    assert float(row["write_amplification"]) == expected


def test_nothing_is_said_where_nothing_is_known() -> None:
    assert inspect_device("null").page_bytes is None
    assert write_amplification(None, 4096, 512) is None
    assert write_amplification({"pages_programmed": 3}, None, 512) is None
    assert write_amplification({"pages_programmed": 3}, 4096, 0) is None
