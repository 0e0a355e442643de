"""Cached run summaries agree with the runs: tested against them, and against plain loops.

A summary that is kept must be no other than one that is made from the run files; whatever happens
to it, no number of the result changes.
"""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stored
from command_line import uflip

import uflip as api
from uflip.data.document import plain
from uflip.data.run_summary import FOLDER
from uflip.results import Results, StoredRun, summary
from uflip.results.pyramid import Pyramid, pyramid_of
from uflip.results.run_summary import merge_repetitions
from uflip.spec import baseline, parallel

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
REPETITIONS = 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Reads, writes and a mix, three times each, and once."""
    out = tmp_path_factory.mktemp("kept") / "r"
    runs = []
    for repetition in range(REPETITIONS):
        at = 10 * repetition
        for number, pattern in enumerate(("SR", "RW"), at + 1):
            runs.append(
                as_repetition(stored.baseline_run(number, pattern, seed=number), repetition)
            )
        runs.append(as_repetition(stored.mix_run(at + 3, "SR", "RW", 3, io_ignore=4), repetition))
    runs.append(stored.mix_run(40, "SR", "RW", 7))
    stored.results(out, runs)
    return out


def as_repetition(run: Any, repetition: int) -> Any:
    """The same run as a repetition."""
    name = run.id if repetition == 0 else f"{run.id}-r{repetition + 1}"
    return stored.PlannedRun(
        name, run.micro_benchmark, run.pattern, run.parameter, run.value, run.unit, run.spec,
        repetition=repetition + 1,
    )  # fmt: skip


@pytest.fixture
def copied_dir(folder: Path, tmp_path: Path) -> Path:
    shutil.copytree(folder, tmp_path / "r")
    return tmp_path / "r"


@pytest.fixture(scope="module")
def expected_document(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the document computed from the run files alone."""
    bare = tmp_path_factory.mktemp("bare") / "r"
    shutil.copytree(folder, bare)
    shutil.rmtree(bare / FOLDER)
    return summary(Results.load(bare))


def test_cached_summary_matches_runs(folder: Path, expected_document: dict[str, Any]) -> None:
    assert summary(Results.load(folder)) == expected_document
    assert len(expected_document["baselines"][0]["repetitions"]) == REPETITIONS


def test_summary_is_read_without_ios(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_on_read(self: StoredRun) -> None:
        raise AssertionError(f"{self.id} was read")

    monkeypatch.setattr(StoredRun, "trace", fail_on_read)
    results = Results.load(folder)
    summary(results)
    for run in results.runs:
        results.summary_of([run])
        results.pyramid_of(run)


@pytest.mark.parametrize("run", range(3 * REPETITIONS + 1))
def test_cached_summary_matches_each_run(folder: Path, run: int) -> None:
    results = Results.load(folder)
    one = results.runs[run]
    cached = results.summary_of([one])
    times = one.response_time_ns()
    assert cached.run == one.id
    assert cached.statistics is not None
    assert cached.statistics["mean_ns"] == pytest.approx(sum(times.tolist()) / len(times))
    assert plain(cached) == plain(merge_repetitions([one.part()]))


def files(at: Path) -> list[Path]:
    paths = sorted((at / FOLDER).iterdir())
    assert len(paths) == 2 * (3 * REPETITIONS + 1) + 1
    return paths


@pytest.mark.parametrize("seed", range(40))
def test_corrupted_cache_changes_no_number(
    copied_dir: Path, expected_document: dict[str, Any], seed: int
) -> None:
    rng = random.Random(seed)
    for path in files(copied_dir):
        content = bytearray(path.read_bytes())
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(content)
    results = Results.load(copied_dir)
    assert summary(results) == expected_document
    same(results.pyramid_of(results.runs[0]), pyramid_of(results.runs[0].trace()))


def test_swapped_cache_files_are_ignored(
    copied_dir: Path, expected_document: dict[str, Any]
) -> None:
    names = files(copied_dir)
    contents = [path.read_bytes() for path in names]
    for path, content in zip(names, contents[1:] + contents[:1], strict=True):
        path.write_bytes(content)
    assert summary(Results.load(copied_dir)) == expected_document


def test_lost_run_is_excluded_from_summary(copied_dir: Path) -> None:
    results = Results.load(copied_dir)
    results.runs[0].path.unlink()
    (experiment,) = [
        run for run in summary(Results.load(copied_dir))["baselines"] if run["pattern"] == "SR"
    ]
    assert [each["run"] for each in experiment["repetitions"]] == [
        run.id for run in results.runs[1:] if run.pattern == "SR"
    ]
    others = np.concatenate([r.response_time_ns() for r in results.runs[1:] if r.pattern == "SR"])
    assert experiment["statistics"]["mean_ns"] == pytest.approx(others.mean())


def test_benchmark_works_without_cache(tmp_path: Path) -> None:
    with stored.open_device("sim:demo") as device:
        filled = stored.writer(tmp_path / "r", stored.FOUR, device)
        (tmp_path / "r" / FOLDER).write_text("in the way")
        for run in stored.FOUR:
            filled.commit(run, device.run(run.spec))
        filled.finish("complete")
    assert len(summary(Results.load(tmp_path / "r"))["baselines"]) == 4
    assert uflip("verify", tmp_path / "r").code == 0


def test_golden_summaries_match_this_version() -> None:
    """If this fails, stored numbers have changed their meaning: raise FORMAT_VERSION."""
    results = Results.load(GOLDEN / "results")
    for run in results.runs:
        cached = results._summary_cache.find([(run.id, run.expected)])
        assert cached is not None
        assert plain(cached) == plain(merge_repetitions([run.part()]))


# Pyramids


def naive(times: list[int], position: list[int]) -> dict[int, tuple[int, int, int, int]]:
    """Least, most, sum and count of the times at each place, one by one."""
    groups: dict[int, list[int]] = {}
    for at, time in zip(position, times, strict=True):
        groups.setdefault(at, []).append(time)
    return {at: (min(some), max(some), sum(some), len(some)) for at, some in groups.items()}


def rows(pyramid: Any) -> dict[int, tuple[int, int, int, int]]:
    return {at: tuple(map(int, row)) for at, row in enumerate(pyramid.tolist()) if row[3]}  # type: ignore[misc]


def same(one: Pyramid, other: Pyramid) -> None:
    assert rows(one.over_number) == rows(other.over_number)
    assert rows(one.over_time) == rows(other.over_time)
    assert (one.ios_per_row, one.ns_per_row) == (other.ios_per_row, other.ns_per_row)


def traces() -> Iterator[Any]:
    specs: list[Any] = [
        baseline("RW", io_count=count, io_size=4096, seed=3) for count in (1, 15, 16, 17, 5000)
    ]
    specs.append(baseline("SR", io_count=70_000, io_size=4096))
    specs.append(parallel(*(baseline("RW", io_count=300, io_size=4096, seed=n) for n in range(5))))
    specs.append(baseline("RR", io_count=400, io_size=4096, time="pause", pause=3_000_000))
    with stored.open_device("sim:demo") as device:
        for spec in specs:
            yield device.run(spec)


def test_pyramid_matches_naive_aggregation() -> None:
    tried = 0
    for trace in traces():
        times, submitted = (np.asarray(trace.column(c)) for c in ("response_time_ns", "submit_ns"))
        pyramid = pyramid_of(trace)
        for factor in (1, 2, 8, 1 << 14):
            coarse = pyramid.coarser(factor)
            by_number = [at // coarse.ios_per_row for at in range(len(times))]
            by_time = [(int(at) - coarse.begin_ns) // coarse.ns_per_row for at in submitted]
            assert coarse.begin_ns == int(submitted.min())
            assert rows(coarse.over_number) == naive(times.tolist(), by_number)
            assert rows(coarse.over_time) == naive(times.tolist(), by_time)
            assert max(len(coarse.over_number), len(coarse.over_time)) <= 4096
        assert len(pyramid.coarser(1 << 14).over_number) == 1
        tried += 1
    assert tried == 8


def test_pyramid_coarsens_by_powers_of_two(folder: Path) -> None:
    result = api.load(folder)
    pyramid = result.pyramid(result.runs[0].id)
    with pytest.raises(ValueError, match="power of two"):
        pyramid.coarser(3)
