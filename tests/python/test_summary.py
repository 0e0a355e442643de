"""Does the document of `uflip show --json` agree with the stored I/Os?"""

import json
import random
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import stored
from command_line import uflip

import uflip as api
from uflip.data.document import plain
from uflip.data.run_summary import FOLDER
from uflip.microbench import varied_micro_benchmarks
from uflip.results import Results, StoredRun, summary
from uflip.results.pyramid import Pyramid, pyramid_of
from uflip.results.run_summary import merge_repetitions
from uflip.results.summary_document import describe_device
from uflip.spec import baseline, parallel


def stored_times(results: Results, run_id: str) -> np.ndarray:
    """Response times [ns] as another Parquet reader sees them, start-up included."""
    (run,) = (run for run in results.runs if run.id == run_id)
    return pq.read_table(run.path)["response_time_ns"].to_numpy()


def test_baselines_are_means_of_stored_times(tmp_path: Path) -> None:
    runs = [stored.baseline_run(1, "SR"), stored.baseline_run(2, "RW", io_ignore=20)]
    results = stored.results(tmp_path / "r", runs)
    document = summary(results)
    sr, rw = (stored_times(results, run.id) for run in runs)
    assert document["baselines_ms"] == {
        "SR": pytest.approx(sum(sr.tolist()) / 100 / 1e6),
        "RR": None,
        "SW": None,
        "RW": pytest.approx(sum(rw[20:].tolist()) / 80 / 1e6),
    }
    assert document["baseline_io_size_bytes"] == 32768
    (_, random_writes) = document["baselines"]
    assert (random_writes["io_count"], random_writes["io_ignore"]) == (100, 20)
    assert random_writes["statistics"]["count"] == 80
    assert random_writes["statistics"]["max_ns"] == rw[20:].max()


def test_baselines_are_in_paper_order(tmp_path: Path) -> None:
    runs = [stored.baseline_run(n, name) for n, name in enumerate(("RW", "SR", "SW", "RR"), 1)]
    document = summary(stored.results(tmp_path / "r", runs))
    assert [run["pattern"] for run in document["baselines"]] == ["SR", "RR", "SW", "RW"]


def test_mix_is_summarised_whole_and_by_component(tmp_path: Path) -> None:
    run = stored.mix_run(1, "SR", "RW", 3, io_ignore=4)
    results = stored.results(tmp_path / "r", [run])
    (document,) = summary(results)["micro_benchmarks"]["mix"]
    times = stored_times(results, run.id).reshape(40, 4)[4:]  # 3 SR, then 1 RW, and so on
    first, second = document["components"]["first"], document["components"]["second"]
    assert (first["pattern"], second["pattern"]) == ("SR", "RW")
    assert first["statistics"]["count"] == 36 * 3
    assert first["statistics"]["mean_ns"] == pytest.approx(times[:, :3].mean())
    assert second["statistics"]["mean_ns"] == pytest.approx(times[:, 3].mean())
    assert document["statistics"]["mean_ns"] == pytest.approx(times.mean())
    assert (document["io_count"], document["io_ignore"]) == (160, 16)


def test_rate_covers_measured_ios_only(tmp_path: Path) -> None:
    """A device that starts up: 32 writes fill its cache, all others wait for the flash."""
    runs = [
        stored.baseline_run(1, "RW", io_ignore=20),
        stored.baseline_run(2, "RW", io_ignore=20, seed=8),
        stored.baseline_run(3, "RW", io_ignore=20, time="pause", pause=1_000_000),
        stored.baseline_run(4, "SW", io_ignore=5, parallel_degree=4, io_count=50),
        stored.baseline_run(5, "SR", io_count=10, io_ignore=9),
    ]
    runs[1] = replace(runs[1], repetition=2)
    runs[2] = replace(runs[2], parameter="pause", value=1_000_000, unit="ns")
    results = stored.results(tmp_path / "r", runs, "sim:demo?write_cache_bytes=1m")
    rates = {run["run"]: run["ios_per_s"] for run in summary(results)["baselines"]}

    def streams_of(number: int) -> list[list[tuple[int, int]]]:
        trace = results.runs[number].trace()
        columns = (trace.column(name) for name in ("stream", "submit_ns", "response_time_ns"))
        streams: dict[int, list[tuple[int, int]]] = {}
        for stream, submitted, took in zip(*map(np.asarray, columns), strict=True):
            streams.setdefault(stream, []).append((int(submitted), int(submitted + took)))
        return list(streams.values())

    def one_by_one(*numbers: int) -> float:
        ios = ns = 0
        for number in numbers:
            ignored = runs[number].spec.io_ignore
            measured = [io for every in streams_of(number) for io in every[ignored:]]
            ns += max(completed for _, completed in measured) - min(
                submitted for submitted, _ in measured
            )
            ios += len(measured)
        return ios / ns * 1e9

    assert rates == {
        runs[0].id: pytest.approx(one_by_one(0, 1)),
        **{runs[n].id: pytest.approx(one_by_one(n)) for n in (2, 4)},
        runs[3].id: rates[runs[3].id],
    }
    # Four processes: completions while each of them has measured I/Os left.
    four = streams_of(3)
    begin, end = max(every[5][1] for every in four), min(every[-1][0] for every in four)
    over = sum(begin < completed <= end for every in four for _, completed in every)
    assert rates[runs[3].id] == pytest.approx(over / (end - begin) * 1e9, rel=0.02)
    # Little's law: I/Os in flight over their mean response time, but for the last ones.
    parallel = next(run for run in summary(results)["baselines"] if run["pattern"] == "SW")
    by_means = 4e9 / parallel["statistics"]["mean_ns"]
    assert parallel["ios_per_s"] == pytest.approx(by_means, rel=0.05)


def test_time_spent_sums_to_the_mean(tmp_path: Path) -> None:
    document = summary(stored.results(tmp_path / "r"))
    for run in document["baselines"]:
        spent = run["time_spent_ns"]
        assert all(name.endswith("_ns") for name in spent)
        assert sum(spent.values()) == pytest.approx(run["statistics"]["mean_ns"])


def test_device_without_causes_reports_none(tmp_path: Path) -> None:
    document = summary(stored.results(tmp_path / "r", url="null"))
    assert "time_spent_ns" not in document["baselines"][0]
    assert "counters" not in document["baselines"][0]


def test_single_measured_io_has_no_spread(tmp_path: Path) -> None:
    run = stored.baseline_run(1, "RW", io_count=10, io_ignore=9)
    document = summary(stored.results(tmp_path / "r", [run]))
    assert document["baselines"][0]["statistics"]["count"] == 1
    assert document["baselines"][0]["statistics"]["std_ns"] is None


def test_unfinished_benchmark_lists_missing_runs(tmp_path: Path) -> None:
    results = stored.results(tmp_path / "r", finished=1, status="interrupted")
    document = summary(results)
    assert (document["status"], document["runs_finished"], document["runs_planned"]) == (
        "interrupted", 1, 4,
    )  # fmt: skip
    assert document["missing"] == [run.id for run in stored.FOUR[1:]]


def test_device_description_names_model_or_file() -> None:
    disk = stored.device_info("block", model="ACME X1", capacity_bytes=2**40)
    assert describe_device(disk) == "ACME X1, 1 TiB"
    file = stored.device_info("file", url="file:a/b.bin", capacity_bytes=2**30)
    assert describe_device(file) == "file b.bin, 1 GiB"
    file = stored.device_info("file", url="file:b.bin", capacity_bytes=2**30)
    assert describe_device(file) == "file b.bin, 1 GiB"


@pytest.fixture(scope="module")
def demo_document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The document of a whole quick run of the demonstration device."""
    out = tmp_path_factory.mktemp("whole") / "demo"
    outcome = uflip("run", "sim:demo", "--scale", "quick", "--out", out, "--quiet")
    assert outcome.code == 0, outcome.err
    document: dict[str, Any] = summary(Results.load(out))
    return document


def values_of(spec: Any, parameter: str) -> Iterator[Any]:
    """Every value that a pattern, or one of its components, has for a parameter."""
    if isinstance(spec, dict):
        yield from (value for key, value in spec.items() if key == parameter)
        spec = list(spec.values())
    if isinstance(spec, list):
        for part in spec:
            yield from values_of(part, parameter)


def test_document_contains_all_micro_benchmarks(demo_document: dict[str, Any]) -> None:
    assert set(demo_document["micro_benchmarks"]) == set(varied_micro_benchmarks())
    assert all(value > 0 for value in demo_document["baselines_ms"].values())
    assert (demo_document["status"], demo_document["missing"]) == ("complete", [])
    runs = [run for experiment in demo_document["micro_benchmarks"].values() for run in experiment]
    assert len(runs) + len(demo_document["baselines"]) + 3 == demo_document["runs_planned"]
    for run in runs:
        assert run["statistics"]["count"] == run["io_count"] - run["io_ignore"]
        # Every run names its varied parameter, and its pattern contains that value.
        assert run["value"] in list(values_of(run["spec"], run["parameter"]))


def test_document_is_plain_json(demo_document: dict[str, Any]) -> None:
    document = plain(demo_document)
    assert json.loads(json.dumps(document, allow_nan=False)) == document


# Cached run summaries agree with the runs: tested against them, and against plain loops.


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
