"""Is write amplification always bytes programmed over bytes written by the host?"""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from command_line import uflip

from uflip.device.catalogue import inspect_device
from uflip.models import write_amplification as theory
from uflip.reproduce.simulated_device import SimulatedDevice, device_url
from uflip.results.run_statistics import write_amplification
from uflip.spec import basic
from uflip.sweeping import sweep

# An empty device with pages of 16 KiB, and few writes, so that nothing is collected.
URL = "sim:demo?blocks_per_die=64&page_bytes=16384&state=empty"
WRITES = ("--pattern", "RW", "--io-size", "512", "--io-count", "500")
SECTORS_PER_PAGE = 16384 / 512


def test_sector_writes_amplify_by_sectors_per_page() -> None:
    outcome = uflip("pattern", URL, *WRITES, "--json")
    assert outcome.code == 0, outcome.err
    document = json.loads(outcome.out)
    counters = document["counters"]
    assert counters["blocks_collected"] == 0
    assert counters["pages_programmed"] == counters["host_pages_written"] == 500
    assert document["write_amplification"] == SECTORS_PER_PAGE
    text = uflip("pattern", URL, *WRITES).out
    assert f"write amplification  {SECTORS_PER_PAGE:.2f}" in text


@pytest.mark.parametrize("timed", [True, False])
def test_sweep_reports_the_same_amplification(timed: bool) -> None:
    spec = basic("write", "random", io_count=500, seed=1)
    rows = sweep(URL, spec, {"io_size": ["512", "16KiB", "32KiB"]}, timed=timed)
    assert [row.write_amplification for row in rows] == [SECTORS_PER_PAGE, 1.0, 1.0]


def test_show_and_export_report_the_same_amplification(tmp_path: Path) -> None:
    chosen = ("--only", "granularity", "--scale", "quick", "--state", "as-is", "--quiet")
    out = tmp_path / "out"
    assert uflip("run", URL, *chosen, "--out", out).code == 0
    summary = json.loads(uflip("show", out, "--json").out)
    runs = summary["micro_benchmarks"]["granularity"]
    (small,) = [run for run in runs if (run["pattern"], run["value"]) == ("RW", 512)]
    expected = small["counters"]["pages_programmed"] * 16384 / (small["io_count"] * 512)
    assert small["write_amplification"] == expected >= SECTORS_PER_PAGE
    assert all(run["write_amplification"] is None for run in runs if run["pattern"] == "RR")
    assert uflip("export", out, "--out", tmp_path / "csv").code == 0
    rows: list[dict[str, Any]] = list(
        csv.DictReader((tmp_path / "csv/summary.csv").read_text().splitlines())
    )
    (row,) = [row for row in rows if row["run"] == small["run"]]
    assert float(row["write_amplification"]) == expected


def test_amplification_is_none_without_counters() -> None:
    assert inspect_device("null").page_bytes is None
    assert write_amplification(None, 4096, 512) is None
    assert write_amplification({"pages_programmed": 3}, None, 512) is None
    assert write_amplification({"pages_programmed": 3}, 4096, 0) is None


@pytest.mark.parametrize("dies", [1, 4])
@pytest.mark.parametrize("policy", ["greedy", "cyclic"])
def test_mapping_units_amplify_as_theory_predicts(policy: str, dies: int) -> None:
    unit, units_per_block, blocks = 4096, 4 * 64, 2048
    device = SimulatedDevice(
        device_url(
            "ofc", gc=policy, page_bytes=4 * unit, mapping_unit_bytes=unit, pages_per_block=64,
            channels=1, dies_per_channel=dies, blocks_per_die=blocks // dies, metadata_pages=0,
            reserved_blocks=1, spare_factor=0.125, state="sequential",
        )
    )  # fmt: skip
    units = device.logical_pages * 4
    spare_factor = theory.pool_spare_factor(
        physical_blocks=blocks,
        pages_per_block=units_per_block,
        logical_pages=units,
        held_blocks=2 * dies,
    )
    if policy == "greedy":
        expected = theory.greedy(spare_factor=spare_factor, pages_per_block=units_per_block)
    else:
        expected = theory.fifo(spare_factor=spare_factor)
    for seed, ios in ((1, 4 * units), (2, 3 * units)):
        counters = device.apply(basic("write", "random", io_size=unit, io_count=ios, seed=seed))
    simulated = counters["pages_programmed"] / counters["host_pages_written"]
    assert simulated == pytest.approx(expected, rel=0.01)
    assert counters["pages_read_to_modify"] == counters["pages_padded"] == 0
