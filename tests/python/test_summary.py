"""Does the document of `uflip show --json` agree with the stored I/Os?"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import stored
from command_line import uflip

from uflip.data.document import plain
from uflip.microbench import varied_micro_benchmarks
from uflip.results import Results, summary
from uflip.results.summary_document import describe_device


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
