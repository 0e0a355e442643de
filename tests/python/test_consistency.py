"""Is an experiment recognized under all its names, and are only real differences reported?"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stored
from command_line import uflip
from scipy import stats

from uflip.benchmark import Choices, make_plan
from uflip.device.opener import open_device
from uflip.device.resolve import resolve
from uflip.report.findings import finding
from uflip.results import Results
from uflip.results.consistency import (
    BaselineResult,
    baseline_key,
    count_comparisons,
    group_by_baseline,
    inconsistent_results,
    repeatability,
    withdraw_unrepeatable,
)
from uflip.spec import Basic, baseline, mix, read_spec

GIB = 1 << 30


def baseline_result(name: str, mean: float, half: float | None = None) -> BaselineResult:
    return BaselineResult(name.split(maxsplit=1)[0], name, mean, half)


# Runs with the same I/Os


@pytest.mark.parametrize("scale", ["quick", "standard"])
def test_neutral_values_have_the_baseline_key(scale: str) -> None:
    """The values of Table 1 at which its formulas are those of the baselines."""
    with open_device("null", size=64 * GIB) as null:
        info = null.info
    plan = make_plan(info, scale, 1, Choices(method="paper", repetitions=1))
    neutral = {
        ("granularity", 32768), ("alignment", 0), ("partitioning", 1), ("order", 1),
        ("parallelism", 1),
    }  # fmt: skip
    keys: dict[str, set[Any]] = {}
    for run in plan.runs:
        if run.micro_benchmark in ("interference", "mix"):
            continue
        spec = resolve(run.spec, info).spec
        key = baseline_key(spec, spec.io_count)
        is_baseline = run.micro_benchmark == "baseline"
        if is_baseline or (run.micro_benchmark, run.value) in neutral:
            assert key is not None, run.id
            keys.setdefault(run.pattern, set()).add(key)
        elif run.micro_benchmark in ("alignment", "partitioning", "order", "parallelism", "pause"):
            assert key is None, run.id
    assert {pattern: len(key) for pattern, key in keys.items()} == dict.fromkeys(
        ("SR", "RR", "SW", "RW"), 1
    )


def test_runs_of_one_key_make_the_same_ios() -> None:
    """Compare the engine's offsets; random patterns have one seed."""
    with open_device("null", size=GIB) as null:
        plan = make_plan(null.info, "quick", 1)
        sequences: dict[Any, list[Any]] = {}
        for run in plan.runs:
            if not isinstance(run.spec, Basic) or (run.spec.pause or 0) > 10**6:
                continue
            spec = run.spec.but(seed=5, target_offset=0)
            trace = null.run(spec)
            key = baseline_key(read_spec(trace.spec_json), len(trace))
            if key is None:
                continue
            sequence = np.asarray(trace.column("offset_bytes"))[:60].tolist()
            assert sequences.setdefault(key, sequence) == sequence, run.id
    assert len(sequences) > 10


@pytest.mark.parametrize(
    "change",
    [
        {"io_shift": 512}, {"parallel_degree": 2}, {"queue_depth": 2},
        {"time": "pause", "pause": 100}, {"time": "burst", "burst": 99, "pause": 100},
        {"location": "ordered", "incr": -1}, {"location": "partitioned", "partitions": 2},
        {"target_size": 99 * 4096},
    ],
)  # fmt: skip
def test_non_neutral_value_has_no_baseline_key(change: dict[str, Any]) -> None:
    spec = baseline(
        "SW", io_shift=0, time="consecutive", io_size=4096, target_size=100 * 4096,
        parallel_degree=1, queue_depth=1,
    )  # fmt: skip
    assert baseline_key(spec, 100) == ("SW", 4096)
    assert baseline_key(spec.but(time="burst", burst=100, pause=100), 100) == ("SW", 4096)
    assert baseline_key(spec.but(**change), 100) is None
    mixed = mix(baseline("SW"), baseline("RR"), 1)
    assert baseline_key(mixed, 100) is None


# Differences


def test_means_differ_beyond_interval_and_five_percent() -> None:
    base = baseline_result("baseline SW", 100.0, 3.0)
    for mean, half, differs in [
        (104.9, 0.0, False), (105.1, 0.0, True), (108.0, 8.0, False), (110.0, 8.0, True),
        (94.0, None, True), (95.2, None, True), (95.3, None, False),
    ]:  # fmt: skip
        same = {("SW", 1): [base, baseline_result("order SW incr 1", mean, half)]}
        inconsistent = inconsistent_results(same)
        assert bool(inconsistent) is differs, mean
        assert count_comparisons(same) == 1
        if differs:
            assert inconsistent[0][0] == pytest.approx(max(mean / 100, 100 / mean))


def test_repeatability_needs_no_baseline() -> None:
    keyed_results = [
        (("SR", 1), baseline_result("order a", 2.0)),
        (("SR", 1), baseline_result("alignment b", 3.0)),
        (None, baseline_result("order c", 99.0)),
        (("RR", 1, 9), baseline_result("baseline d", 1.0)),
    ]
    same = group_by_baseline(keyed_results)
    assert (inconsistent_results(same), count_comparisons(same)) == ([], 0)
    spread = {"experiments": 2, "smallest_ns": 2.0, "largest_ns": 3.0, "factor": 1.5}
    assert repeatability(same) == {"SR": spread, "RR": None, "SW": None, "RW": None}


# Cases without a warning


def order_runs(**means: float) -> list[dict[str, Any]]:
    values = {"reverse": -1, "in_place": 0, "unit": 1, "large": 256}
    return [
        {"pattern": "SW", "parameter": "incr", "value": values[name], "unit": "",
         "statistics": {"mean_ns": mean * 1e6}, "repetitions": []}
        for name, mean in means.items()
    ]  # fmt: skip


def document(factor: float, **means: float) -> dict[str, Any]:
    spread = {"experiments": 6, "smallest_ns": 820_000, "largest_ns": 820_000 * factor}
    return {
        "device": stored.device_info(),
        "micro_benchmarks": {"order": order_runs(**means)},
        "baselines_ms": {"SR": None, "RR": None, "SW": 1.0, "RW": 9.0},
        "baselines": [],
        "repeatability": {"SR": None, "RR": None, "SW": spread | {"factor": factor}, "RW": None},
    }


def test_effect_below_the_repeatability_is_no_finding() -> None:
    means = {"reverse": 2.0, "in_place": 0.44, "unit": 1.0}
    assert "a reverse write costs 2.0 times" in finding("order", document(1.03, **means))
    text = finding("order", document(4.3, **means))
    assert "reverse" not in text
    assert "No effect exceeds the differences between equal runs" in text
    assert "820 µs" in text
    assert "6 times" in text


def test_partly_insignificant_finding_names_its_limit() -> None:
    text = finding("order", document(1.5, reverse=3.0, in_place=1.2, unit=1.0))
    assert "a reverse write costs 3.0 times" in text
    assert "below 1.5 times is not significant" in text


def test_characteristics_below_the_repeatability_are_withdrawn() -> None:
    bare = {"verdict": "found", "factor": 2.0}
    row = {
        "SW_ms": 1.0, "reverse": bare, "in_place": bare | {"factor": 40.0},
        "large_increments": bare | {"factor": None}, "pause": bare | {"pause_ns": 5},
        "locality": bare | {"locality_bytes": 5}, "partitions": bare | {"partitions": 4.0},
    }  # fmt: skip
    spread = {"experiments": 6, "smallest_ns": 1, "largest_ns": 4, "factor": 4.0}
    withdrawn = withdraw_unrepeatable(row, {"SW": spread, "RW": None})
    assert withdrawn["reverse"] == {"verdict": "not_repeatable", "factor": 2.0}
    assert withdrawn["partitions"] == {
        "verdict": "not_repeatable",
        "partitions": None,
        "factor": 2.0,
    }
    assert withdrawn["in_place"]["verdict"] == "found", (
        "a factor of 40 exceeds the repeatability of 4"
    )
    assert withdrawn["large_increments"] == row["large_increments"]
    assert withdraw_unrepeatable(row, {"SW": spread | {"factor": 1.2}}) == row
    assert withdraw_unrepeatable(row, {"SW": None}) == row


# Whole benchmarks


def test_device_filling_up_during_a_run_is_inconsistent(tmp_path: Path) -> None:
    """The device is empty at first: baselines differ from later runs of the same pattern."""
    url, out = "sim:demo?blocks_per_die=64&state=empty", tmp_path / "out"
    chosen = ("--only", "baseline,granularity,order", "--scale", "quick", "--state", "as-is")
    assert uflip("run", url, *chosen, "--quiet", "--out", out).code == 0
    summary = json.loads(uflip("show", out, "--json").out)
    (warning,) = [w for w in summary["warnings"] if w["code"] == "consistency"]
    assert set(warning) == {"code", "message", "numbers", "advice"}
    worst = warning["numbers"]["worst"]
    assert worst["factor"] == pytest.approx(
        max(worst["mean_ns"] / worst["baseline_ns"], worst["baseline_ns"] / worst["mean_ns"]), 1e-3
    )
    assert worst["experiment"] in warning["numbers"]["experiments"]
    spread = summary["repeatability"]["SR"]
    means = [
        run["statistics"]["mean_ns"]
        for name in ("granularity", "order")
        for run in summary["micro_benchmarks"][name]
        if (run["pattern"], run["parameter"], run["value"])
        in (("SR", "io_size", 32768), ("SR", "incr", 1))
    ] + [run["statistics"]["mean_ns"] for run in summary["baselines"] if run["pattern"] == "SR"]
    assert (spread["smallest_ns"], spread["largest_ns"]) == (min(means), max(means))
    assert spread["experiments"] == len(means) == 3


def test_single_baseline_has_no_repeatability() -> None:
    one = [(("SW", 1), replace(baseline_result("baseline SW", 1.0), half_width_ns=None))]
    assert repeatability(group_by_baseline(one))["SW"] is None
    assert inconsistent_results(group_by_baseline(one)) == []


def test_quick_scale_is_consistent_across_pattern_names(tmp_path: Path) -> None:
    """ParallelDegree 1, Incr 1, one partition, IOShift 0: at most 2 of 100 are inconsistent.

    A plan in which runs write within 8 MiB before reads of these MiB, after a state of one
    overwrite, gave three to five inconsistent results for each seed of `sim:demo`.
    """
    compared = inconsistent = 0
    for seed in (1, 2, 3, 4):
        out = tmp_path / str(seed)
        chosen = ("--scale", "quick", "--seed", seed, "--quiet", "--out", out)
        assert uflip("run", "sim:demo", *chosen).code == 0
        compared += 17
        for warning in Results.load(out).warnings:
            if warning["code"] == "consistency":
                assert warning["numbers"]["comparisons"] == 17
                experiments = warning["numbers"]["experiments"]
                assert not [name for name in experiments if " SR " in name or " RR " in name]
                inconsistent += len(experiments)
    assert inconsistent <= stats.binom.ppf(0.999, compared, 0.02)
