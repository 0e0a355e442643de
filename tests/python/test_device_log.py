"""Does the device log record what happened, and does recording change nothing?"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stored
from command_line import uflip

from uflip.device.handle import Device
from uflip.device.opener import open_device
from uflip.errors import ResultsError
from uflip.results import Results
from uflip.results.device_log import DeviceLog, read_device_log
from uflip.results.integrity import verify
from uflip.web.device_log import device_log_view
from uflip.web.open_results import Folders, OpenResults, key_of

SMALL = "sim:demo?blocks_per_die=64"
WRITES = stored.baseline_run(1, "RW", io_size=8192, io_count=5000)
READS = stored.baseline_run(2, "RR", io_size=4096, io_count=100)


def record_results(path: Path, url: str = SMALL) -> Results:
    with open_device(url) as device:
        device.looks_inside = True
        results_writer = stored.writer(path, (WRITES, READS), device)
        for run in (WRITES, READS):
            results_writer.commit(run, device.run(run.spec))
        results_writer.finish("complete")
    return Results.load(path)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return record_results(tmp_path_factory.mktemp("inside") / "r")


def device_log_of(results: Results, number: int = 0) -> DeviceLog:
    device_log = read_device_log(results.runs[number])
    assert device_log is not None
    return device_log


def test_recording_changes_no_response_time(results: Results) -> None:
    with open_device(SMALL) as device:
        traces = [device.run(run.spec) for run in (WRITES, READS)]
    for trace, run in zip(traces, results.runs, strict=True):
        for name in trace.columns:
            assert np.array_equal(trace.column(name), run.trace().column(name)), name


def test_samples_match_the_device_counters(results: Results) -> None:
    device_log, counters = device_log_of(results), results.runs[0].meta.counters
    assert counters is not None
    last = {name: int(values[-1]) for name, values in device_log.samples.items()}
    assert last["ios"] == 5000
    assert last["written_bytes"] == 5000 * 8192
    for name in ("pages_programmed", "pages_relocated", "blocks_erased"):
        assert last[name] == counters[name] > 0
    assert last["at_ns"] == results.runs[0].trace().elapsed_ns()
    assert int((device_log.erases - device_log.erases_before).sum()) == counters["blocks_erased"]
    after = device_log_of(results, 1)
    assert np.array_equal(after.erases_before, device_log.erases), (
        "a run begins where the last ended"
    )
    read_counters = results.runs[1].meta.counters
    assert read_counters is not None
    for name in ("pages_programmed", "pages_relocated", "blocks_erased"):
        assert int(after.samples[name][-1]) == read_counters[name], "background work continues"


def test_samples_are_few_and_evenly_spaced(results: Results) -> None:
    ios = device_log_of(results).samples["ios"].astype(np.int64)
    assert 256 <= len(ios) <= 513
    steps = set(np.diff(ios)[:-1].tolist())
    assert len(steps) == 1
    assert steps.pop() == 16
    assert len(device_log_of(results, 1).samples["ios"]) == 101, (
        "a short run has a sample for each I/O"
    )


def test_valid_pages_match_the_written_data(results: Results) -> None:
    device_log, shape = device_log_of(results), results.manifest.device.profile.geometry
    assert (device_log.channels, device_log.dies) == (4, 8)
    assert len(device_log.erases) == 8 * 64
    assert device_log.valid is not None
    # The whole device was written: every logical page is in a full block, or in one that is open.
    logical = results.manifest.device.capacity_bytes // (shape.page_bytes or 1)
    full = int(device_log.valid[device_log.valid >= 0].sum())
    open_blocks = 8 * 2
    assert logical - open_blocks * shape.pages_per_block <= full <= logical
    erased = int(device_log.samples["erased_blocks"][-1])
    assert (
        int((device_log.valid < 0).sum()) - open_blocks
        <= erased
        <= int((device_log.valid < 0).sum())
    )
    assert (
        device_log.samples["least_erased_blocks"].max() * 8
        <= device_log.samples["erased_blocks"].max()
    )


def test_merging_device_records_no_valid_pages(tmp_path: Path) -> None:
    small = stored.baseline_run(1, "RW", io_size=8192, io_count=50, target_size=4 << 20)
    with open_device("sim:transcend-module") as device:
        device.looks_inside = True
        results_writer = stored.writer(tmp_path / "r", [small], device)
        results_writer.commit(small, device.run(small.spec))
        results_writer.finish("complete")
    device_log = device_log_of(Results.load(tmp_path / "r"))
    assert device_log.valid is None
    assert int(device_log.samples["blocks_erased"][-1]) == int(
        (device_log.erases - device_log.erases_before).sum()
    )


def test_explorer_figures_follow_from_the_device_log(results: Results) -> None:
    opened = OpenResults(Folders([results.path]))
    drawn: Any = device_log_view(opened, key_of(results.path), results.runs[0].id)
    json.dumps(drawn, allow_nan=False)
    device_log = device_log_of(results)
    page = results.manifest.device.page_bytes
    assert page is not None
    weights = np.diff(device_log.samples["written_bytes"].astype(float))
    amplification = np.array(drawn["write_amplification"][1:], float)
    counters = results.runs[0].meta.counters
    assert counters is not None
    whole = counters["pages_programmed"] * page / (5000 * 8192)
    assert float((amplification * weights).sum() / weights.sum()) == pytest.approx(whole)
    assert sum(drawn["valid"]) == int((device_log.valid >= 0).sum())  # type: ignore[operator]
    assert np.array(drawn["erases"]).shape == (8, 64)
    assert int(np.array(drawn["erases"]).sum()) == drawn["erased"], "one column per block"


@pytest.mark.parametrize("damage", ["byte", "cut", "gone"])
def test_damaged_device_log_leaves_the_run_readable(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "r"
    run = record_results(path).runs[0]
    file = path / "inside" / f"{run.id}.parquet"
    assert [each.state for each in verify(path)].count("proven") == 6
    content = bytearray(file.read_bytes())
    if damage == "byte":
        content[len(content) // 2] ^= 1
    file.write_bytes(content[: len(content) // 2] if damage == "cut" else content)
    if damage == "gone":
        file.unlink()
    lost = [each for each in verify(path) if not each.usable]
    assert [(each.file, each.state) for each in lost] == [
        (f"inside/{run.id}.parquet", "missing" if damage == "gone" else "damaged")
    ]
    again = Results.load(path)
    assert len(again.runs[0].trace()) == 5000
    with pytest.raises(ResultsError):
        read_device_log(again.runs[0])


def test_inside_option_records_a_device_log(workdir: Path) -> None:
    outcome = uflip("run", SMALL, "--inside", "--scale", "quick", "--only", "order", "--out", "r")
    assert outcome.code == 0, outcome.err
    runs = Results.load(workdir / "r").runs
    logged_runs = [run for run in runs if read_device_log(run) is not None]
    assert {run.micro_benchmark for run in logged_runs} == {"order"}
    refused = uflip("run", "file:x.bin", "--size", "1MiB", "--inside")
    assert (refused.code, "simulated" in refused.err) == (2, True)
    assert not (workdir / "x.bin").exists()


def test_device_log_is_off_by_default() -> None:
    with open_device("null") as device:
        assert isinstance(device, Device)
        assert not device.run(READS.spec).has_inside


def test_pattern_verb_stores_a_device_log(workdir: Path) -> None:
    options = "--pattern", "RW", "--io-size", "8k", "--io-count", "500"
    outcome = uflip("pattern", SMALL, *options, "--inside", "r", "--json")
    assert outcome.code == 0, outcome.err
    without = uflip("pattern", SMALL, *options, "--json")
    assert json.loads(outcome.out) == json.loads(without.out), "it is the same run"
    results = Results.load(workdir / "r")
    (run,) = results.runs
    assert (run.pattern, run.micro_benchmark, results.manifest.status) == (
        "RW",
        "pattern",
        "complete",
    )
    device_log = device_log_of(results)
    assert int(device_log.samples["ios"][-1]) == 500
    assert set(range(500)) <= set(device_log.operations.io.tolist())
    assert all(each.usable for each in verify(workdir / "r"))
    mixed = uflip(
        "pattern", SMALL, "--pattern", "SR", "--mix", "RW", "--ratio", "4", "--inside", "m"
    )
    assert mixed.code == 0, mixed.err
    assert Results.load(workdir / "m").runs[0].pattern == "SR/RW"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("null", "--pattern", "RR", "--inside", "x"), 2, "sim:NAME"),
        (("sim:fast-1gb", "--preset", "myers-sinclair", "--inside", "x"), 2, "--preset"),
        ((SMALL, "--pattern", "RR", "--inside", "there"), 5, "never overwritten"),
    ],
)
def test_invalid_inside_option_is_refused_before_work(
    workdir: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    (workdir / "there").mkdir()
    refused = uflip("pattern", *arguments)
    assert (refused.code, words in refused.err) == (code, True), refused.err
    assert not (workdir / "x").exists()
    assert list((workdir / "there").iterdir()) == []
