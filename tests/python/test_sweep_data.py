"""Are sampling methods as named, and rows stored, resumed, and equal bit for bit?"""

import io
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_line import start as begin
from command_line import uflip
from pyarrow import parquet
from scipy.stats import kstest

from uflip.cli.sweep import read_varied
from uflip.data.sweep import Design, Range, Sample, Value, Varied
from uflip.errors import ResultsError, UsageError
from uflip.executors import Threads, using
from uflip.spec import baseline, mix
from uflip.sweeping import load_plan, plan, sweep
from uflip.sweeping.data_set import DataSet
from uflip.sweeping.data_set import read_data_set as of_explorer
from uflip.sweeping.points import combinations
from uflip.sweeping.run_sweep import read_rows as of_figure

URL = "sim:demo?blocks_per_die=64"
READS = baseline("RR", io_size="4k", io_count=64)
VARY: Varied = {
    "spare_factor": Range(0.1, 0.5),
    "queue_depth": Range(1, 8),
    "gc": ["greedy", "cyclic"],
}


# Samples


def draw_points(vary: Varied, sample: Sample) -> list[list[Value]]:
    return combinations(Design(URL, READS, vary, sample))


def test_latin_hypercube_has_one_value_in_every_stratum() -> None:
    count = 40
    vary: Varied = {
        "spare_factor": Range(0.0, 1.0),
        "depth": Range(1, 4),
        "gc": ["a", "b", "c", "d"],
    }
    table = draw_points(vary, Sample("lhs", count, 3))
    assert len(table) == count
    shares = sorted(float(row[0]) for row in table)
    assert [int(share * count) for share in shares] == list(range(count))
    for column, values in ((1, [1, 2, 3, 4]), (2, ["a", "b", "c", "d"])):
        assert sorted(row[column] for row in table) == sorted(values * (count // 4))  # type: ignore[type-var]


@pytest.mark.parametrize("method", ["random", "lhs"])
def test_values_are_uniform_or_logarithmic_in_range(method: str) -> None:
    vary: Varied = {"a": Range(0.5, 2.0), "b": Range(1, 1024, logarithmic=True)}
    table = np.array(draw_points(vary, Sample(method, 2000, 1)), dtype=float)  # type: ignore[arg-type]
    assert kstest((table[:, 0] - 0.5) / 1.5, "uniform").pvalue > 0.001
    assert table[:, 1].min() == 1
    assert table[:, 1].max() <= 1024
    # Half of the values below 32, half above: each covers half of the exponents.
    assert np.mean(table[:, 1] < 32) == pytest.approx(0.5, abs=0.04)


def test_same_seed_draws_same_sample() -> None:
    for method in ("random", "lhs", "sobol"):
        samples = [draw_points(VARY, Sample(method, 16, seed)) for seed in (1, 1, 2)]  # type: ignore[arg-type]
        assert samples[0] == samples[1] != samples[2]


def test_sobol_design_changes_one_name_at_a_time() -> None:
    names, count = 3, 16
    table = draw_points(VARY, Sample("sobol", count, 0))
    assert len(table) == count * (names + 2)
    for block in itertools.batched(table, names + 2) if hasattr(itertools, "batched") else [
        table[start : start + names + 2] for start in range(0, len(table), names + 2)
    ]:  # fmt: skip
        first, *mixed, _last = block
        for name, row in enumerate(mixed):
            others = [index for index in range(names) if index != name]
            assert [row[index] for index in others] == [first[index] for index in others]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1..4/1", [1, 2, 3, 4]),
        ("a=0.1..0.3/0.1", [0.1, 0.2, 0.3]),
        ("a=4k..16KiB/4k", [4096, 8192, 12288, 16384]),
        ("a=1..64:log", Range(1, 64, True)),
        ("a=0.5..1", Range(0.5, 1)),
        ("a=1us..1ms", Range(1_000, 1_000_000)),
        ("a=d_choices:2,greedy", ["d_choices:2", "greedy"]),
    ],
)
def test_varied_values_are_parsed(text: str, expected: Any) -> None:
    assert read_varied([text]) == {"a": expected}


@pytest.mark.parametrize(
    "text", ["a=4..1", "a=1..1", "a=0..8:log", "a=x..y", "a=1..2/0", "a=0..1/1e-9"]
)
def test_invalid_range_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        read_varied([text])


def test_range_needs_step_or_sample() -> None:
    with pytest.raises(UsageError, match="needs a step or a sample"):
        combinations(Design(URL, READS, VARY))
    with pytest.raises(UsageError, match="powers of two"):
        draw_points(VARY, Sample("sobol", 12))
    with pytest.raises(UsageError, match="too many"):
        draw_points(VARY, Sample("random", 100_001))


def test_impossible_combinations_are_omitted_from_sample() -> None:
    vary: Varied = {"spare_factor": Range(0.1, 1.5)}
    planned = plan(Design(URL, READS, vary, Sample("lhs", 20)))
    assert len(planned.points) + len(planned.impossible) == 20
    for values, _ in planned.impossible:
        with pytest.raises(UsageError):
            plan(Design(URL, READS, {"spare_factor": [values["spare_factor"]]}))
    assert 4 < len(planned.impossible) < 16
    with pytest.raises(UsageError):
        plan(Design(URL, READS, {"spare_factor": Range(1.1, 1.5)}, Sample("lhs", 4)))


def test_equal_points_are_measured_once() -> None:
    vary: Varied = {"queue_depth": Range(1, 2)}
    planned = plan(Design(URL, READS, vary, Sample("random", 12)))
    steps: list[int] = []
    rows = planned.carry_out(lambda done, _text: steps.append(done))
    assert (len(rows), steps) == (12, [1, 2])
    assert [row.values for row in rows] == [point.values for point in planned.points]


# Rows on disk


def test_stored_rows_are_read_back(tmp_path: Path) -> None:
    spec = mix(baseline("RR"), baseline("RW"), 3, io_count=1100)
    for name, each, timed in (("a", spec, True), ("b", baseline("RW", io_count=64), False)):
        rows = sweep(URL, each, VARY, sample=Sample("lhs", 6), timed=timed, data=tmp_path / name)
        assert load_plan(tmp_path / name).carry_out() == rows
        table = pd.read_parquet(tmp_path / name / "points.parquet")
        assert list(table["point"]) == list(range(6))
        assert list(table["gc"]) == [row.values["gc"] for row in rows]
        assert list(table["spare_factor"]) == [row.values["spare_factor"] for row in rows]
        assert list(table["blocks_erased"]) == [row.counters["blocks_erased"] for row in rows]
        means = [None if row.writes is None else row.writes["mean_ns"] for row in rows]
        assert table["write_mean_ns"].replace({np.nan: None}).tolist() == means


def test_stored_bytes_do_not_depend_on_workers(tmp_path: Path) -> None:
    for workers in (1, 3):
        with using(Threads(workers)):
            sweep(URL, READS, VARY, sample=Sample("lhs", 8), data=tmp_path / str(workers))
    files = [(tmp_path / name / "points.parquet").read_bytes() for name in "13"]
    assert files[0] == files[1]


def test_stored_points_are_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = sweep(URL, READS, VARY, sample=Sample("lhs", 10), data=tmp_path / "whole")
    monkeypatch.setattr("uflip.sweeping.data_set.PART_ROWS", 1)
    planned = plan(Design(URL, READS, VARY, Sample("lhs", 10)), tmp_path / "cut")

    class StopSweep(Exception):  # noqa: N818
        pass

    def stop(done: int, _text: str) -> None:
        if done == 4:
            raise StopSweep

    with using(Threads(1)), pytest.raises(StopSweep):
        planned.carry_out(stop)
    parts = sorted((tmp_path / "cut" / "parts").iterdir())
    assert len(parts) == 4
    parts[0].write_bytes(parts[0].read_bytes()[:100])  # as a power failure may leave it
    steps: list[tuple[int, str]] = []
    rows = load_plan(tmp_path / "cut").carry_out(lambda *step: steps.append(step))
    assert steps[0] == (3, "stored rows")
    assert len(steps) == 1 + 7
    assert rows == whole
    tables = [(tmp_path / name / "points.parquet").read_bytes() for name in ("cut", "whole")]
    assert tables[0] == tables[1]
    assert not [*(tmp_path / "cut" / "parts").iterdir()]


@pytest.mark.parametrize("in_parts", [False, True])
def test_damaged_rows_are_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_parts: bool
) -> None:
    whole = sweep(URL, READS, VARY, sample=Sample("lhs", 6), data=tmp_path / "whole")
    if in_parts:  # as a kill leaves it before the rows are put together
        monkeypatch.setattr("uflip.sweeping.data_set.PART_ROWS", 3)
        monkeypatch.setattr(DataSet, "finish", lambda self, rows: self._write())
        sweep(URL, READS, VARY, sample=Sample("lhs", 6), data=tmp_path / "cut")
        monkeypatch.undo()
    folder = tmp_path / ("cut" if in_parts else "whole")
    file = min((folder / "parts").iterdir()) if in_parts else folder / "points.parquet"
    content = file.read_bytes()
    # A flipped bit that another reader accepts as a number: only a digest detects it.
    other = next(flipped for flipped in _flipped(content) if reads_differently(content, flipped))
    file.write_bytes(other)
    if not in_parts:
        for read in (of_explorer, of_figure):
            with pytest.raises(ResultsError, match="The rows of the sweep are damaged"):
                read(folder)
    steps: list[int] = []
    assert load_plan(folder).carry_out(lambda done, _: steps.append(done)) == whole
    assert steps[0] == (3 if in_parts else 1), "the other part was kept"
    assert (folder / "points.parquet").read_bytes() == (
        tmp_path / "whole" / "points.parquet"
    ).read_bytes()
    assert len(of_explorer(folder)[1]) == len(of_figure(folder)) == 6


def _flipped(content: bytes) -> Iterator[bytes]:
    for index in range(len(content)):
        yield content[:index] + bytes([content[index] ^ 1]) + content[index + 1 :]


def reads_differently(content: bytes, flipped: bytes) -> bool:
    with suppress(Exception):
        tables = [parquet.read_table(io.BytesIO(each)) for each in (content, flipped)]
        return tables[0].schema == tables[1].schema and tables[0] != tables[1]
    return False


def test_killed_sweep_resumes(tmp_path: Path) -> None:
    arguments = [
        URL, "--vary", "spare_factor=0.1..0.5", "--sample", "lhs:30", "--pattern", "RW",
        "--io-count", "20k", "--quiet", "--jobs", "1",
    ]  # fmt: skip
    data = tmp_path / "rows"
    command = [sys.executable, "-m", "uflip", "sweep", *arguments, "--data", str(data)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 60
        while not [*data.glob("parts/*.parquet")] and process.poll() is None:
            assert time.monotonic() < until, "nothing was kept"
            time.sleep(0.05)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=60)
    stored = sum(parquet.read_metadata(path).num_rows for path in data.glob("parts/*.parquet"))
    if process.returncode != -signal.SIGKILL or stored == 30:
        pytest.skip("this machine was done before it could be killed")
    assert stored > 0
    shutil.copytree(data, tmp_path / "copy")
    outcome = uflip("sweep", "--resume", str(data), "--json", "--jobs", "2")
    assert outcome.code == 0, outcome.err
    assert len(json.loads(outcome.out)["rows"]) == 30
    table = pd.read_parquet(data / "points.parquet")
    assert list(table["point"]) == list(range(30))
    # Stored points are unchanged, and later ones equal those of an uninterrupted sweep.
    for path in (tmp_path / "copy" / "parts").iterdir():
        part = pd.read_parquet(path).set_index("point")
        pd.testing.assert_frame_equal(
            part, table.set_index("point").loc[part.index], check_like=True
        )


def test_ctrl_c_keeps_measured_points(tmp_path: Path) -> None:
    data = tmp_path / "rows"
    command = [
        sys.executable, "-m", "uflip", "sweep", URL, "--vary", "queue_depth=1..16", "--sample",
        "random:200", "--vary", "spare_factor=0.1..0.5", "--pattern", "RW", "--io-count", "4k",
        "--data", str(data), "--quiet",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not (data / "sweep.json").exists():
        assert time.monotonic() < until
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert [*data.glob("parts/*.parquet")], "measured points are stored"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text.replace('"uflip-sweep"', '"uflip-seep"'), "format"),
        (
            lambda text: text.replace('"simulator": "', '"simulator": "0'),
            "another version of the simulator",
        ),
        (lambda text: text[:100], "JSON"),
        (lambda text: text.replace('"kind": "basic"', '"kind": "replay"'), "cannot be read"),
    ],
)
def test_foreign_manifest_is_refused(tmp_path: Path, change: Any, words: str) -> None:
    sweep(URL, READS, {"queue_depth": [1]}, data=tmp_path / "rows")
    path = tmp_path / "rows" / "sweep.json"
    path.write_text(change(path.read_text()))
    with pytest.raises(ResultsError, match=words):
        load_plan(tmp_path / "rows").carry_out()


def test_invalid_names_and_options_are_refused(tmp_path: Path) -> None:
    os.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    common = ("sweep", URL, "--vary", "queue_depth=1,2", "--pattern", "RR")
    refused = uflip(*common, "--data", "mine")
    assert (refused.code, "never overwrites" in refused.err) == (5, True)
    for options, word in (
        (["--resume", "mine", "--pattern", "RR"], "--pattern"),
        (["--resume", "mine"], "sweep.json"),
        ([URL, "--pattern", "RR"], "--vary"),
        ([*common[1:], "--sample-seed", "3"], "--sample"),
        ([*common[1:], "--sample", "lsh:3"], "lhs"),
        ([*common[1:], "--sample", "lhs:none"], "--sample"),
    ):
        outcome = uflip("sweep", *options)
        assert outcome.code in (2, 5), outcome.err
        assert word in outcome.err


def test_interrupted_sweep_prints_resume_command(tmp_path: Path) -> None:
    data = tmp_path / "kept rows"
    shares = ",".join(f"{0.1 + step / 1000:.3f}" for step in range(100))
    going = begin(
        "sweep", "sim:demo", "--vary", f"spare_factor={shares}", "--pattern", "RW", "--io-count",
        "20k", "--jobs", "1", "--data", data, "--no-cache", "--quiet",
    )  # fmt: skip
    while not (data / "sweep.json").exists() and going.poll() is None:
        time.sleep(0.05)
    time.sleep(1)
    going.send_signal(signal.SIGINT)
    _, err = going.communicate(timeout=60)
    assert going.returncode == 130, err
    assert f"--resume '{data}'" in err, err


def test_existing_data_folder_names_its_option(workdir: Path) -> None:
    (workdir / "taken").mkdir()
    outcome = uflip(
        "sweep", "sim:demo", "--vary", "gc=greedy", "--pattern", "RR", "--data", "taken"
    )
    assert (outcome.code, "choose another --data" in outcome.err) == (5, True), outcome.err
    assert "--out" not in outcome.err
