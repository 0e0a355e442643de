"""Do the formulas of `uflip cost` agree with simulated workloads, and are their errors right?"""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import uflip

from uflip.cost.predict import parameters, predict
from uflip.cost.replay import replay
from uflip.cost.workloads import WORKLOADS, Parameters, Prices
from uflip.errors import UsageError
from uflip.results.statistics import Mean

KIB, MIB = 1 << 10, 1 << 20
SMALL = Parameters(
    data=8 * MIB, memory=512 * KIB, block=64 * KIB, page=4 * KIB, operations=2000, area=MIB
)
UNIT = Prices(
    {
        f"granularity {pattern}": {512: Mean(1.0), MIB: Mean(1.0)}
        for pattern in ("SR", "SW", "RR", "RW")
    }
)
DEVICE = "sim:demo?blocks_per_die=256"


def count_modes(name: str, params: Parameters) -> Counter[str]:
    return Counter(mode for mode, _, _ in WORKLOADS[name].ios(params))


@pytest.mark.parametrize("memory", [256 * KIB, 512 * KIB, 2 * MIB, 8 * MIB])
def test_sort_moves_all_data_once_per_pass(memory: int) -> None:
    params = replace(SMALL, memory=memory)
    blocks, ios = params.data // params.block, [*WORKLOADS["sort"].ios(params)]
    assert len(ios) == 2 * blocks * (1 + params.passes)
    assert sum(count for _, count, _ in WORKLOADS["sort"].parts(UNIT, params)) == len(ios)
    for mode in ("read", "write"):
        offsets = [offset for each, offset, _ in ios if each == mode]
        for begin in range(0, len(offsets), blocks):
            assert len({*offsets[begin : begin + blocks]}) == blocks, "each block once"
    check_reads_what_was_written(ios, params.data)


def check_reads_what_was_written(ios: list[tuple[str, int, int]], from_before: int) -> None:
    """Check that all data read was written before, or existed from the beginning."""
    written = set(range(0, from_before, ios[0][2]))
    for mode, offset, _ in ios:
        if mode == "write":
            written.add(offset)
        else:
            assert offset in written


@pytest.mark.parametrize("memory", [256 * KIB, MIB, 7 * MIB])
def test_tree_reads_and_writes_one_leaf_per_miss(memory: int) -> None:
    params = replace(SMALL, memory=memory)
    ios = [*WORKLOADS["b-tree"].ios(params)]
    counts = Counter(mode for mode, _, _ in ios)
    assert counts["read"] == counts["write"]
    expected = params.operations * params.misses
    assert counts["read"] == pytest.approx(expected, abs=5 * np.sqrt(params.operations / 4))
    # A displaced leaf was in memory: it is never the leaf that is being read.
    assert all(read[1] != write[1] for read, write in zip(ios[::2], ios[1::2], strict=True))


def naive_levels(params: Parameters) -> tuple[int, int]:
    """Return the blocks read and written by merges, computed from sizes alone."""
    unit, sizes, reads, writes = params.memory // params.block, [0] * params.levels, 0, 0
    for _ in range(params.runs):
        incoming, level = unit, 0
        while True:
            reads += sizes[level] + (incoming if level else 0)
            sizes[level] += incoming
            writes += sizes[level]
            if level + 1 == params.levels or sizes[level] < unit * params.growth ** (level + 1):
                break
            incoming, sizes[level], level = sizes[level], 0, level + 1
    return reads, writes


@pytest.mark.parametrize("growth", [2, 4, 10])
@pytest.mark.parametrize("memory", [64 * KIB, 256 * KIB, MIB])
def test_levels_read_and_write_merged_blocks(growth: int, memory: int) -> None:
    params = replace(SMALL, growth=growth, memory=memory)
    ios = [*WORKLOADS["levels"].ios(params)]
    counts = Counter(mode for mode, _, _ in ios)
    assert (counts["read"], counts["write"]) == naive_levels(params)
    check_reads_what_was_written(ios, 0)
    assert max(offset for _, offset, _ in ios) < 4 * params.data
    # The formula has the same numbers.
    parts = {name.split()[0]: count for name, count, _ in WORKLOADS["levels"].parts(UNIT, params)}
    assert (parts["read"], parts["write"]) == pytest.approx((counts["read"], counts["write"]))


def test_log_is_sequential_and_focus_stays_in_its_area() -> None:
    log = [*WORKLOADS["log"].ios(SMALL)]
    assert [offset for _, offset, _ in log] == [
        number * SMALL.page % SMALL.data for number in range(SMALL.operations)
    ]
    assert count_modes("log", SMALL)["write"] == SMALL.operations
    focus = [offset for _, offset, _ in WORKLOADS["focus"].ios(SMALL)]
    assert len(focus) == SMALL.operations
    assert 0 <= min(focus) <= max(focus) <= SMALL.area - SMALL.page
    assert all(offset % SMALL.page == 0 for offset in focus)


@pytest.mark.parametrize("name", WORKLOADS)
def test_replay_makes_the_workloads_ios_serially(name: str) -> None:
    params = replace(SMALL, operations=400)
    replayed = replay(DEVICE, WORKLOADS[name], params)
    assert Counter(replayed.ios) == count_modes(name, params)
    # I/Os follow each other without a gap: their response times add up to the time.
    spent = sum(replayed.ios[mode] * ns for mode, ns in replayed.ns_per_io.items())
    assert spent == pytest.approx(replayed.time_ns, rel=1e-9)


def test_prices_are_interpolated_between_measurements() -> None:
    curve = {512: 90.0, 4096: 100.0, 16384: 180.0, 65536: 500.0}
    prices = Prices({"granularity SR": {size: Mean(ns) for size, ns in curve.items()}})
    for size in (512, 1000, 4096, 10_000, 60_000):
        expected = np.interp(size, list(curve), list(curve.values()))
        assert prices.io_ns("SR", size) == pytest.approx(expected)
    assert prices.io_ns("SR", 131072) == pytest.approx(500 + 65536 * 320 / 49152)
    assert not Prices({"granularity SR": {512: Mean(1.0)}}).has_price("SR")


@pytest.mark.parametrize("wrong", ["data", "memory", "block", "page", "area"])
def test_parameters_beyond_the_device_are_refused(wrong: str) -> None:
    for value in (0, 1, 1 << 60):
        with pytest.raises(UsageError, match="does not fit"):
            parameters(1 << 30, **{wrong: value})


def test_too_small_device_is_refused() -> None:
    with pytest.raises(UsageError, match="too small for this") as raised:
        parameters(256 << 10)
    assert "256 KiB" in raised.value.got


def test_results_without_granularity_are_refused(workdir: Path) -> None:
    outcome = uflip("run", DEVICE, "--scale", "quick", "--only", "order", "--out", "r", "-q")
    assert outcome.code == 0, outcome.err
    outcome = uflip("cost", "r")
    assert (outcome.code, "Granularity was not measured" in outcome.err) == (2, True), outcome.err


def test_no_prediction_without_prices() -> None:
    predictions = predict({"micro_benchmarks": {}, "baselines": []}, SMALL)
    assert all(each.time_ns is None for each in predictions)
    assert all(each.missing == each.workload.needs for each in predictions)


def test_error_of_each_formula_is_printed(workdir: Path) -> None:
    only = "granularity,locality,partitioning"
    outcome = uflip("run", DEVICE, "--scale", "quick", "--only", only, "--out", "r", "-q")
    assert outcome.code == 0, outcome.err
    arguments = ("cost", "r", "--data", "32MiB", "--operations", 1000, "--replay")
    document = json.loads(uflip(*arguments, "--json").out)
    assert [each["workload"] for each in document["workloads"]] == [*WORKLOADS]
    for each in document["workloads"]:
        assert each["replayed_ns"] > 0
        assert each["error"] == pytest.approx(each["predicted_ns"] / each["replayed_ns"] - 1)
        # The formula counts the I/Os exactly; its error is in their cost beside others.
        formula_ios = {"read": 0.0, "write": 0.0}
        for part in each["parts"]:
            formula_ios["read" if part["what"].startswith("read") else "write"] += part["ios"]
        if each["workload"] == "log":
            formula_ios = {"read": 0.0, "write": formula_ios["read"] + formula_ios["write"]}
        for mode, ios in formula_ios.items():
            replayed_ios = each["replayed"][mode]["ios"]
            assert ios == pytest.approx(replayed_ios, rel=0.02), (each["workload"], mode)
    text = uflip(*arguments[:-1], "--workload", "log").out
    assert text.startswith("an append-only log: ")
    assert "operations · SW" in text
