"""Parallel patterns of different kinds: each I/O has the causes of its own loop."""

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import uflip
from forged_results import rewrite_ledger

from uflip.results import Results
from uflip.results.integrity import verify

DEVICE = "sim:demo?state=sequential"
READS = {"kind": "basic", "mode": "read", "location": "random", "io_size": 4096}
CLOSED = {**READS, "target_size": 1 << 30, "io_count": 200}
# Two that arrive half a second apart: the closed loop is over by then.
OPEN = {**READS, "time": "fixed", "interval": 500_000_000, "io_count": 2}


def spec_file(*patterns: dict[str, Any]) -> Path:
    path = Path("spec.json")
    path.write_text(json.dumps({"kind": "parallel", "patterns": patterns}))
    return path


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_closed_loop_beside_open_loop_keeps_its_causes(workdir: Path) -> None:
    """A page of 4 KiB: controller 20 µs, cells 50 µs, channel 26.024 µs, link 14.628 µs."""
    outcome = uflip(
        "pattern", DEVICE, "--spec", spec_file(CLOSED, OPEN), "--trace", "t.csv", "--json"
    )
    assert outcome.code == 0, outcome.err
    names = json.loads(outcome.out)["causes_ns"]
    expected = {
        "controller_ns": 20_000,
        "link_ns": 14_628,
        "transfer_ns": 26_024,
        "cell_read_ns": 50_000,
    }
    table = rows(Path("t.csv"))
    assert len(table) == 202
    # Behind the first, which both loops submit at once.
    for row in table[1:200]:
        causes = {name: int(text) for name, text in row.items() if name in names}
        assert {name: ns for name, ns in causes.items() if ns} == expected
        assert int(row["response_time_ns"]) == 110_652


def test_file_times_are_plausible(workdir: Path) -> None:
    closed = {**CLOSED, "target_size": 1 << 20}
    arriving = {**OPEN, "target_size": 1 << 20, "interval": 1_000_000}
    device = ["file:disk", "--size", "4MiB", "--buffered"]
    spec = spec_file(closed, arriving)
    outcome = uflip("pattern", *device, "--spec", spec, "--trace", "t.csv", "--json")
    assert outcome.code == 0, outcome.err
    for row in rows(Path("t.csv")):
        wait, device = int(row["submission_wait_ns"]), int(row["device_ns"])
        assert wait + device == int(row["response_time_ns"]) < 60e9
        assert wait == 0 or row["stream"] == "1"
    document = json.loads(outcome.out)
    mean_ns = document["statistics"]["mean_ns"]
    assert sum(document["causes_ns"].values()) == pytest.approx(mean_ns)


def test_impossible_times_are_found_although_proven(workdir: Path) -> None:
    spec = spec_file(CLOSED, OPEN)
    outcome = uflip("pattern", DEVICE, "--spec", spec, "--inside", "r", "--json")
    assert outcome.code == 0, outcome.err
    assert all(each.usable for each in verify(Path("r")))
    (run,) = Results.load(Path("r")).runs
    path = Path("r") / "runs" / f"{run.id}.parquet"
    table = pq.read_table(path)
    # Shift the causes of the closed loop one column to the left.
    names = table.column_names
    wait, first = (names.index(name) for name in ("submission_wait_ns", "controller_ns"))
    assert first == wait + 1
    moved = table.set_column(wait, table.schema.field(wait), table.column(first))
    moved = moved.set_column(first, table.schema.field(first), table.column(wait))
    assert moved.column(wait)[0].as_py() == 20_000
    path.unlink()
    pq.write_table(moved.cast(table.schema), path, compression="NONE", use_dictionary=False)
    rewrite_ledger(Path("r"))
    checked = uflip("verify", "r")
    assert checked.code == 5
    assert "impossible" in checked.out
    assert "waited 20000 ns for its submission, in a closed loop" in checked.out


def test_impossible_sums_and_completions_are_found(workdir: Path) -> None:
    outcome = uflip("pattern", DEVICE, "--spec", spec_file(CLOSED, OPEN), "--inside", "r", "--json")
    assert outcome.code == 0, outcome.err
    (run,) = Results.load(Path("r")).runs
    path = Path("r") / "runs" / f"{run.id}.parquet"
    table = pq.read_table(path)
    for name, value, reason in [
        ("controller_ns", 20_001, "its causes sum to"),
        ("response_time_ns", (1 << 64) - 5, "took 18446744073709551611 ns"),
    ]:
        column = table.column_names.index(name)
        values = table.column(name).to_pylist()
        values[3] = value
        field = table.schema.field(column)
        path.unlink()
        changed = table.set_column(column, field, pa.array(values, field.type))
        pq.write_table(changed.cast(table.schema), path, compression="NONE", use_dictionary=False)
        rewrite_ledger(Path("r"))
        (wrong,) = [each for each in verify(Path("r")) if not each.usable]
        assert wrong.state == "impossible"
        assert reason in wrong.reason
