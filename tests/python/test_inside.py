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
from uflip.web.device_log import inside
from uflip.web.folders import Folders, key_of
from uflip.web.open_results import OpenResults

SMALL = "sim:demo?blocks_per_die=64"
WRITES = stored.baseline_run(1, "RW", io_size=8192, io_count=5000)
READS = stored.baseline_run(2, "RR", io_size=4096, io_count=100)


def recorded(path: Path, url: str = SMALL) -> Results:
    with open_device(url) as device:
        device.looks_inside = True
        filled = stored.writer(path, (WRITES, READS), device)
        for run in (WRITES, READS):
            filled.commit(run, device.run(run.spec))
        filled.finish("complete")
    return Results.load(path)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return recorded(tmp_path_factory.mktemp("inside") / "r")


def seen(results: Results, number: int = 0) -> DeviceLog:
    found = read_device_log(results.runs[number])
    assert found is not None
    return found


def test_a_look_changes_nothing(results: Results) -> None:
    with open_device(SMALL) as device:
        traces = [device.run(run.spec) for run in (WRITES, READS)]
    for trace, run in zip(traces, results.runs, strict=True):
        for name in trace.columns:
            assert np.array_equal(trace.column(name), run.trace().column(name)), name


def test_samples_are_what_the_device_counted(results: Results) -> None:
    found, counters = seen(results), results.runs[0].meta.counters
    assert counters is not None
    last = {name: int(values[-1]) for name, values in found.samples.items()}
    assert last["ios"] == 5000
    assert last["written_bytes"] == 5000 * 8192
    for name in ("pages_programmed", "pages_relocated", "blocks_erased"):
        assert last[name] == counters[name] > 0
    assert last["at_ns"] == results.runs[0].trace().elapsed_ns()
    assert int((found.erases - found.erases_before).sum()) == counters["blocks_erased"]
    after = seen(results, 1)
    assert np.array_equal(after.erases_before, found.erases), "a run begins where the last ended"
    of_reads = results.runs[1].meta.counters
    assert of_reads is not None
    for name in ("pages_programmed", "pages_relocated", "blocks_erased"):
        assert int(after.samples[name][-1]) == of_reads[name], "what is under way goes on"


def test_there_are_few_samples_of_any_run_evenly_apart(results: Results) -> None:
    ios = seen(results).samples["ios"].astype(np.int64)
    assert 256 <= len(ios) <= 513
    apart = set(np.diff(ios)[:-1].tolist())
    assert len(apart) == 1
    assert apart.pop() == 16
    assert len(seen(results, 1).samples["ios"]) == 101, "all of a short one"


def test_blocks_hold_what_was_written(results: Results) -> None:
    found, shape = seen(results), results.manifest.device.profile.geometry
    assert (found.channels, found.dies) == (4, 8)
    assert len(found.erases) == 8 * 64
    assert found.valid is not None
    # The whole device was written: every logical page is in a full block, or in one that is open.
    logical = results.manifest.device.capacity_bytes // (shape.page_bytes or 1)
    full = int(found.valid[found.valid >= 0].sum())
    open_blocks = 8 * 2
    assert logical - open_blocks * shape.pages_per_block <= full <= logical
    erased = int(found.samples["erased_blocks"][-1])
    assert int((found.valid < 0).sum()) - open_blocks <= erased <= int((found.valid < 0).sum())
    assert found.samples["least_erased_blocks"].max() * 8 <= found.samples["erased_blocks"].max()


def test_a_merging_device_has_no_book_of_valid_pages(tmp_path: Path) -> None:
    small = stored.baseline_run(1, "RW", io_size=8192, io_count=50, target_size=4 << 20)
    with open_device("sim:transcend-module") as device:
        device.looks_inside = True
        filled = stored.writer(tmp_path / "r", [small], device)
        filled.commit(small, device.run(small.spec))
        filled.finish("complete")
    found = seen(Results.load(tmp_path / "r"))
    assert found.valid is None
    assert int(found.samples["blocks_erased"][-1]) == int(
        (found.erases - found.erases_before).sum()
    )


def test_what_is_drawn_follows_from_what_was_recorded(results: Results) -> None:
    opened = OpenResults(Folders([results.path]))
    drawn: Any = inside(opened, key_of(results.path), results.runs[0].id)
    json.dumps(drawn, allow_nan=False)
    found = seen(results)
    page = results.manifest.device.page_bytes
    assert page is not None
    weights = np.diff(found.samples["written_bytes"].astype(float))
    told = np.array(drawn["write_amplification"][1:], float)
    counters = results.runs[0].meta.counters
    assert counters is not None
    whole = counters["pages_programmed"] * page / (5000 * 8192)
    assert float((told * weights).sum() / weights.sum()) == pytest.approx(whole)
    assert sum(drawn["valid"]) == int((found.valid >= 0).sum())  # type: ignore[operator]
    assert np.array(drawn["erases"]).shape == (8, 64)
    assert int(np.array(drawn["erases"]).sum()) == drawn["erased"], "a column a block"


@pytest.mark.parametrize("damage", ["byte", "cut", "gone"])
def test_damage_costs_the_look_and_nothing_of_the_run(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "r"
    run = recorded(path).runs[0]
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


def test_the_command_line_records_where_it_is_asked_to(here: Path) -> None:
    done = uflip("run", SMALL, "--inside", "--scale", "quick", "--only", "order", "--out", "r")
    assert done.code == 0, done.err
    runs = Results.load(here / "r").runs
    with_a_look = [run for run in runs if read_device_log(run) is not None]
    assert {run.micro_benchmark for run in with_a_look} == {"order"}
    refused = uflip("run", "file:x.bin", "--size", "1MiB", "--inside")
    assert (refused.code, "simulated" in refused.err) == (2, True)
    assert not (here / "x.bin").exists()


def test_a_device_looks_only_where_it_is_asked_to() -> None:
    with open_device("null") as device:
        assert isinstance(device, Device)
        assert not device.run(READS.spec).has_inside


def test_a_single_pattern_is_kept_with_what_happened_inside(here: Path) -> None:
    given = "--pattern", "RW", "--io-size", "8k", "--io-count", "500"
    done = uflip("pattern", SMALL, *given, "--inside", "r", "--json")
    assert done.code == 0, done.err
    without = uflip("pattern", SMALL, *given, "--json")
    assert json.loads(done.out) == json.loads(without.out), "it is the same run"
    results = Results.load(here / "r")
    (run,) = results.runs
    assert (run.pattern, run.micro_benchmark, results.manifest.status) == (
        "RW",
        "pattern",
        "complete",
    )
    found = seen(results)
    assert int(found.samples["ios"][-1]) == 500
    assert found.operations is not None
    assert set(range(500)) <= set(found.operations.io.tolist())
    assert all(each.usable for each in verify(here / "r"))
    mixed = uflip(
        "pattern", SMALL, "--pattern", "SR", "--mix", "RW", "--ratio", "4", "--inside", "m"
    )
    assert mixed.code == 0, mixed.err
    assert Results.load(here / "m").runs[0].pattern == "SR/RW"


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (("null", "--pattern", "RR", "--inside", "x"), 2, "sim:NAME"),
        (("sim:fast-1gb", "--preset", "myers-sinclair", "--inside", "x"), 2, "--preset"),
        ((SMALL, "--pattern", "RR", "--inside", "there"), 5, "never overwritten"),
    ],
)
def test_what_cannot_be_kept_is_refused_first(
    here: Path, given: tuple[str, ...], code: int, said: str
) -> None:
    (here / "there").mkdir()
    refused = uflip("pattern", *given)
    assert (refused.code, said in refused.err) == (code, True), refused.err
    assert not (here / "x").exists()
    assert list((here / "there").iterdir()) == []
