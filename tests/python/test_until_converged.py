"""Runs that determine their own length, from Python to the file and back."""

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import uflip

from uflip import _native
from uflip.data.spec import text_of
from uflip.device.opener import open_device
from uflip.errors import UsageError
from uflip.results.columns import as_array, measured_column
from uflip.spec import baseline, mix, parallel, read_spec, until_converged

BUDGET = {"max_ios": 60_000}


def test_converged_run_records_its_result() -> None:
    trace = open_device("sim:demo").run(until_converged(baseline("RW", seed=2), **BUDGET))
    convergence = json.loads(trace.ended_json or "")
    (series,) = convergence["series"]
    assert convergence["converged"]
    assert convergence["ended_by"] == "converged"
    assert series["half_width_ns"] <= 0.05 * series["mean_ns"]
    assert int(as_array(trace, "ignored").sum()) == convergence["startup_ios"]
    # The last analysis excludes an incomplete period and I/Os in flight.
    assert measured_column(trace).mean() == pytest.approx(series["mean_ns"], rel=0.02)


def test_same_seed_stops_at_same_io() -> None:
    spec = until_converged(baseline("SW"), **BUDGET)
    first, second = (open_device("sim:demo").run(spec) for _ in range(2))
    assert np.array_equal(as_array(first, "submit_ns"), as_array(second, "submit_ns"))
    assert first.ended_json == second.ended_json


def test_convergence_survives_the_file(tmp_path: Path) -> None:
    spec = until_converged(mix(baseline("SR"), baseline("RW"), 4), **BUDGET)
    trace = open_device("sim:demo").run(spec)
    trace.write_parquet(str(tmp_path / "run.parquet"), "{}")
    reread = _native.read_trace(str(tmp_path / "run.parquet"))
    assert reread.ended_json == trace.ended_json
    assert json.loads(reread.spec_json) == json.loads(trace.spec_json)
    assert "stop" not in json.loads(reread.spec_json)
    assert len(json.loads(reread.ended_json or "")["series"]) == 2
    fixed = open_device("sim:demo").run(baseline("SR", io_count=10))
    assert fixed.ended_json is None


def test_file_run_converges_in_parallel(tmp_path: Path) -> None:
    device = open_device(f"file:{tmp_path / 'scratch'}", size="16MiB", buffered=True)
    budget = {"max_ios": 20_000, "max_time_ns": "2s"}
    for degree in (1, 3):
        spec = baseline("RR", io_size=4096, parallel_degree=degree)
        trace = device.run(until_converged(spec, half_width=0.5, **budget))
        resolved = json.loads(trace.spec_json)
        assert len(trace) == degree * resolved["io_count"]
        assert as_array(trace, "response_time_ns").max() < 2**63, "every I/O was recorded"
        assert np.array_equal(
            np.bincount(as_array(trace, "stream")), [resolved["io_count"]] * degree
        )


def test_parallel_patterns_on_a_file_stop_together(tmp_path: Path) -> None:
    device = open_device(f"file:{tmp_path / 'scratch'}", size="16MiB", buffered=True)
    patterns = parallel(baseline("RR", io_size=4096), baseline("RW", io_size=4096), seed=5)
    spec = until_converged(patterns, half_width=0.5, max_ios=200_000, max_time_ns="1s")
    trace = device.run(spec)
    resolved = json.loads(trace.spec_json)
    counts = [part["io_count"] for part in resolved["patterns"]]
    assert np.array_equal(np.bincount(as_array(trace, "stream")), counts)
    assert as_array(trace, "response_time_ns").max() < 2**63, "every I/O was recorded"
    convergence = json.loads(trace.ended_json or "")
    assert convergence["ended_by"] in ("converged", "max_time_ns", "max_ios")
    assert len(convergence["series"]) == 2


def test_command_prints_confidence_of_mean() -> None:
    outcome = uflip("pattern", "sim:demo", "--pattern", "SR", "--until-converged")
    assert outcome.code == 0, outcome.err
    assert "mean is known  within" in outcome.out
    arguments = ("--pattern", "RW", "--until-converged", "--max-ios", "2000", "--json")
    document = json.loads(uflip("pattern", "sim:demo", *arguments).out)
    assert (document["ended"]["converged"], document["ended"]["ended_by"]) == (False, "max_ios")
    assert document["ios"] == 2000


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (("--max-ios", "100"), "--max-ios"),
        (("--until-converged", "--io-count", "100"), "--io-count"),
        (("--until-converged", "--half-width", "7"), "half_width"),
        (("--until-converged", "--max-bytes-written", "4k"), "max_bytes_written"),
    ],
)
def test_incompatible_options_are_named(arguments: tuple[str, ...], where: str) -> None:
    outcome = uflip("pattern", "null", "--pattern", "RW", *arguments)
    assert outcome.code == 2
    assert where in outcome.err


def test_unknown_stop_parameter_is_named() -> None:
    with pytest.raises(UsageError, match="parameter of stop"):
        until_converged(baseline("SR"), max_io=5)


def test_parallel_patterns_stop_together_and_converge_separately(tmp_path: Path) -> None:
    patterns = parallel(baseline("RR", io_count=7), baseline("RW"), seed=3)
    spec = until_converged(patterns, half_width=0.1, **BUDGET)
    assert spec.patterns[0].io_count is None
    trace = open_device("sim:demo").run(spec)
    convergence, resolved = json.loads(trace.ended_json or ""), read_spec(trace.spec_json)
    assert convergence["converged"]
    stream, times = as_array(trace, "stream"), as_array(trace, "response_time_ns")
    for number, (series, part) in enumerate(
        zip(convergence["series"], resolved.patterns, strict=True)
    ):
        assert int((stream == number).sum()) == part.io_count
        measured = times[stream == number][part.io_ignore :]
        assert measured.mean() == pytest.approx(series["mean_ns"], rel=0.02)
    last = as_array(trace, "submit_ns") + times
    ends = [int(last[stream == number].max()) for number in (0, 1)]
    assert abs(ends[0] - ends[1]) <= times.max()
    trace.write_parquet(str(tmp_path / "run.parquet"), "{}")
    reread = _native.read_trace(str(tmp_path / "run.parquet"))
    assert reread.ended_json == trace.ended_json
    assert np.array_equal(as_array(reread, "stream"), stream)


def test_command_reports_parallel_patterns_separately(tmp_path: Path) -> None:
    spec = until_converged(parallel(baseline("SR"), mix(baseline("SR"), baseline("RR"), 2)))
    (tmp_path / "spec.json").write_text(text_of(spec))
    outcome = uflip("pattern", "sim:demo", "--spec", tmp_path / "spec.json")
    assert outcome.code == 0, outcome.err
    for prefix in ("1: ", "2: sequential: ", "2: random: "):
        assert f"{prefix}mean is known" in outcome.out
