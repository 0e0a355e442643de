"""A saved open-channel device continues as it would have, and differs from a block device."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from command_line import uflip

from uflip.errors import ResultsError, UsageError
from uflip.oc import Job, open_flash_device
from uflip.results import Results

# Worn blocks, so that random cell errors matter.
WORN = "sim:dfc?channels=2&luns_per_channel=2&blocks_per_plane=8&pages_per_block=16&erases=3000"
WRITES = Job(channels=2, luns=2, blocks=2, pages=16, mix="WR")


def test_saved_device_continues_identically(tmp_path: Path) -> None:
    device = open_flash_device(WORN)
    device.run(WRITES)
    path = tmp_path / "written.snapshot"
    device.save(path)
    other = open_flash_device(f"sim:{path}")
    assert other.geometry == device.geometry
    assert other.info.details.snapshot is not None
    # The last page of block 1 is written already, block 3 is not.
    old = [(1, 1, 1, plane, 15, sector) for plane in range(2) for sector in range(4)]
    new = [(1, 1, 3, plane, 0, sector) for plane in range(2) for sector in range(4)]
    for op, addresses in [("read", old), ("write", old), ("write", new), ("read", new)]:
        assert other.command(op, addresses) == device.command(op, addresses)
    assert device.command("write", old)[1] == ["out_of_order"] * 8
    logs = [np.asarray(one.run(WRITES).column("response_time_ns")) for one in (device, other)]
    assert np.array_equal(*logs)


def test_device_is_saved_and_read_from_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    job = ["--blocks", "1", "--pages", "8", "--mix", "W"]
    saved = uflip("oc", "pattern", WORN, *job, "--save", "half.snapshot")
    assert saved.code == 0, saved.err
    assert open_flash_device("sim:half.snapshot").block_state(0, 0, 0) == (3001, 8, False)
    read = uflip("oc", "pattern", "sim:half.snapshot", "--pages", "8", "--log", "read.parquet")
    assert read.code == 0, read.err
    assert not any(pq.read_table("read.parquet").column("failed").to_pylist())
    info = json.loads(uflip("info", "sim:half.snapshot", "--json").out)
    assert info["details"]["interface"] == "open_channel"
    assert info["details"]["snapshot"]
    refused = uflip("oc", "pattern", WORN, *job, "--save", "half.snapshot")
    assert refused.code != 0
    assert "half.snapshot" in refused.err


def test_benchmark_of_saved_device_matches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    open_flash_device(WORN).save("new.snapshot")
    for name, device in [("a", WORN), ("b", "sim:new.snapshot")]:
        outcome = uflip("oc", device, "--scale", "quick", "--only", "oc0", "--out", name, "-q")
        assert outcome.code == 0, outcome.err
    one, other = (Results.load(Path(name)) for name in "ab")
    assert [run.id for run in one.runs] == [run.id for run in other.runs]
    for first, second in zip(one.runs, other.runs, strict=True):
        times = [np.asarray(run.log().column("response_time_ns")) for run in (first, second)]
        assert np.array_equal(*times)


def test_snapshot_of_other_device_kind_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    open_flash_device(WORN).save("flash.snapshot")
    with pytest.raises(ResultsError, match="The file exists"):
        open_flash_device(WORN).save("flash.snapshot")
    refused = uflip("pattern", "sim:flash.snapshot", "--pattern", "SR")
    assert refused.code == 2
    assert "has no sectors to address" in refused.err
    assert "uflip oc" in refused.err
    small = "sim:fast-1gb?blocks_per_die=512&spare_factor=0.3"
    outcome = uflip(
        "prepare",
        small,
        "--state",
        "sequential",
        "--save",
        "block.snapshot",
    )
    assert outcome.code == 0, outcome.err
    with pytest.raises(UsageError, match="hides its flash"):
        open_flash_device("sim:block.snapshot")
    with pytest.raises(UsageError, match="cannot be combined with overrides"):
        open_flash_device("sim:flash.snapshot?channels=3")
