"""Do fronts, shares of variance and costs agree with theory and a naive search?"""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from command_line import uflip

from uflip.data.sweep import Design, Range, Sample, Varied
from uflip.device.catalogue import inspect_device
from uflip.errors import UsageError
from uflip.spec import baseline
from uflip.sweeping import PlannedSweep, SweepRow
from uflip.sweeping.measure_point import costs
from uflip.sweeping.points import combinations
from uflip.sweeping.ranking import (
    MIN_BASE_POINTS,
    check_objectives,
    pareto_front,
    sensitivity,
    why_sensitivity_doubtful,
)

URL = "sim:demo?blocks_per_die=64"


def sweep_row(values: dict[str, Any], **measured: Any) -> SweepRow:
    """Return a row with these values only."""
    empty = dict.fromkeys(
        ("spare_bytes", "memory_bytes", "elapsed_ns", "ios_per_s", "bytes_per_s", "reads",
         "writes", "write_amplification", "relocated_pages_per_block")
    )  # fmt: skip
    description = {"values": values, "device": "", "durability": "", "ios": 1, "counters": {}}
    return SweepRow(**(empty | description | measured))


# Fronts


@pytest.mark.parametrize("seed", range(8))
def test_front_matches_exhaustive_comparison(seed: int) -> None:
    rng = random.Random(seed)
    # Few values, so that many rows are equal in some objective or in all.
    rows = [
        sweep_row(
            {},
            spare_bytes=rng.randrange(12),
            memory_bytes=rng.choice([None, *range(6)]),
            ios_per_s=float(rng.randrange(12)),
        )
        for _ in range(120)
    ]
    objectives = ("spare_bytes", "memory_bytes", "iops")

    def beats(one: SweepRow, other: SweepRow) -> bool:
        pairs = [
            (one.spare_bytes, other.spare_bytes),
            (one.memory_bytes, other.memory_bytes),
            (other.ios_per_s, one.ios_per_s),
        ]
        return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)  # type: ignore[operator]

    measured = [each for each in rows if each.memory_bytes is not None]
    expected = [rows.index(a) for a in measured if not any(beats(b, a) for b in measured)]
    front_indices = pareto_front(rows, objectives)
    assert sorted(rows.index(rows[index]) for index in front_indices) == sorted(expected)
    assert [rows[index].spare_bytes for index in front_indices] == sorted(
        rows[index].spare_bytes or 0 for index in front_indices
    )


@pytest.mark.parametrize("names", [["p99"], ["p99", "p99"], ["p99", "spare"], ["p42", "p99"]])
def test_unknown_or_repeated_objectives_are_refused(names: list[str]) -> None:
    with pytest.raises(UsageError):
        check_objectives(names, baseline("RW"))
    assert check_objectives(["spare_bytes", "p99"], baseline("RW")) == ("spare_bytes", "p99")


# Sensitivity


def test_variance_shares_of_a_sum_and_a_product() -> None:
    vary: Varied = {"a": Range(0.0, 1.0), "b": Range(0.0, 1.0), "c": Range(0.0, 1.0)}
    design = Design(URL, baseline("RW"), vary, Sample("sobol", 1024))
    drawn = [dict(zip(vary, map(float, each), strict=True)) for each in combinations(design)]
    # 3a + b: variances are as 9 to 1. (a - ½)(b - ½): neither explains any variance alone.
    total = [sweep_row(each, ios_per_s=3 * each["a"] + each["b"]) for each in drawn]
    indices = {index.name: index for index in sensitivity(total, "iops")}
    for name, share in (("a", 0.9), ("b", 0.1), ("c", 0.0)):
        assert indices[name].first == pytest.approx(share, abs=0.03)
        assert indices[name].total == pytest.approx(share, abs=0.03)
    product = [sweep_row(each, ios_per_s=(each["a"] - 0.5) * (each["b"] - 0.5)) for each in drawn]
    indices = {index.name: index for index in sensitivity(product, "iops")}
    for name, share in (("a", 1.0), ("b", 1.0), ("c", 0.0)):
        assert indices[name].first == pytest.approx(0, abs=0.05)
        assert indices[name].total == pytest.approx(share, abs=0.05)
    assert sensitivity(total, "iops") == sensitivity(total, "iops")


def test_constant_measure_has_no_shares_and_missing_one_is_refused() -> None:
    rows = [sweep_row({"a": 1, "b": 2}, ios_per_s=5.0) for _ in range(32)]
    assert [(each.first, each.total) for each in sensitivity(rows, "iops")] == [(0, 0), (0, 0)]
    with pytest.raises(UsageError, match="Some points lack"):
        sensitivity([*rows, sweep_row({"a": 1, "b": 2})], "iops")


# Costs


@pytest.mark.parametrize(
    ("url", "memory_bytes"),
    [
        ("sim:demo", 4 * (1 << 20)),  # 4 GiB in pages of 4 KiB, 4 bytes each
        ("sim:demo?write_cache_bytes=1MiB", 5 << 20),
        (
            "sim:demo?ftl=dftl&mapping_cache_bytes=64KiB&mapping_cache_policy=lru"
            "&mapping_batch_update=true&idle_free_blocks=0",
            64 << 10,
        ),
        ("sim:memoright", None),  # the size of a hybrid's tables is unknown
    ],
)
def test_costs_match_counted_memory_and_spare(url: str, memory_bytes: int | None) -> None:
    info = inspect_device(url)
    device_costs = costs(info)
    assert device_costs.memory_bytes == memory_bytes
    shape = info.profile_table["geometry"]
    dies = shape["channels"] * shape["dies_per_channel"]
    blocks = dies * shape["blocks_per_die"] * shape["pages_per_block"]
    assert device_costs.spare_bytes == blocks * shape["page_bytes"] - info.capacity_bytes


# On the command line


def test_front_is_printed_drawn_and_in_json(workdir: Path) -> None:
    arguments = (
        "sweep", URL, "--vary", "spare_factor=0.15,0.3", "--vary", "gc=greedy,random",
        "--pattern", "RW", "--untimed", "--pareto", "spare_bytes,write_amplification",
    )  # fmt: skip
    outcome = uflip(*arguments, "-o", "front.svg")
    assert outcome.code == 0, outcome.err
    assert "Pareto front of spare_bytes, write_amplification: 2 of 4 points" in outcome.out
    assert (workdir / "front.svg").is_file()
    document = json.loads(uflip(*arguments, "--json").out)
    assert document["pareto"]["points"] == [0, 2]
    assert document["rows"][0]["spare_bytes"] < document["rows"][2]["spare_bytes"]


def test_sample_is_drawn_as_parallel_coordinates(workdir: Path) -> None:
    arguments = (
        "sweep", URL, "--vary", "spare_factor=0.15..0.3", "--vary", "gc=greedy,random",
        "--pattern", "RW", "--untimed", "--sample", "sobol:4", "-o", "sample.svg",
    )  # fmt: skip
    outcome = uflip(*arguments, "--sensitivity", "write_amplification", "--json")
    assert outcome.code == 0, outcome.err
    document = json.loads(outcome.out)
    assert len(document["rows"]) == 4 * 4
    assert [each["name"] for each in document["sensitivity"]["indices"]] == ["spare_factor", "gc"]
    first = (workdir / "sample.svg").read_bytes()
    again = uflip(*arguments, "--sensitivity", "write_amplification")
    assert "with interactions" in again.out
    warning = "4 points are too few to distinguish the names: draw 64 or more (--sample sobol:64)"
    assert document["sensitivity"]["doubt"] == warning
    assert f"warning: {warning}" in again.out
    assert (workdir / "sample.svg").read_bytes() == first, "the same data, the same figure"


def test_enough_points_give_no_doubt() -> None:
    rows = [sweep_row({"a": number, "b": 1}) for number in range(4 * MIN_BASE_POINTS)]
    assert why_sensitivity_doubtful(rows) is None
    assert why_sensitivity_doubtful(rows[:-1]) is not None


def test_sensitivity_requires_a_sobol_sample() -> None:
    arguments = ("sweep", URL, "--vary", "spare_factor=0.15..0.3", "--pattern", "RW")
    outcome = uflip(*arguments, "--sample", "lhs:4", "--sensitivity", "p99")
    assert (outcome.code, "sobol:N" in outcome.err) == (2, True)


SHORT_SWEEP = ("--pattern", "RW", "--vary", "spare_factor=0.15..0.3", "--io-count", 50, "-q")


@pytest.mark.parametrize(
    "arguments",
    [
        (*SHORT_SWEEP, "--sample", "lhs:2", "--pareto", "p99,mean"),
        ("--pattern", "RW", "--vary", "spare_factor=0.2,0.3", "--io-count", 50, "-q",
         "--pareto", "p99,p95"),
        ("--pattern", "RR", "--vary", "queue_depth=1..4", "--io-count", 50, "--sample", "lhs:2",
         "--untimed"),
        ("--pattern", "RR", "--vary", "queue_depth=1,4", "--untimed"),
    ],
)  # fmt: skip
def test_rows_are_printed_when_nothing_can_be_drawn(
    workdir: Path, arguments: tuple[object, ...]
) -> None:
    outcome = uflip("sweep", URL, *arguments, "-o", "none.png")
    assert (outcome.code, "There is nothing to draw" in outcome.err) == (2, True), outcome.err
    assert len(outcome.out.splitlines()) >= 3, outcome.out
    document = json.loads(uflip("sweep", URL, *arguments, "-o", "none.png", "--json").out)
    assert (len(document["rows"]), document["error"]["kind"]) == (2, "usage")
    assert not (workdir / "none.png").exists()


def test_rows_are_printed_when_points_lack_a_measure() -> None:
    # A run until convergence may have too few I/Os for the percentile.
    arguments = ("sweep", URL, "--pattern", "RW", "--vary", "spare_factor=0.15..0.3", "-q",
                 "--until-converged", "--max-ios", 900, "--sample", "sobol:2",
                 "--sensitivity", "p99")  # fmt: skip
    outcome = uflip(*arguments)
    document = json.loads(uflip(*arguments, "--json").out)
    with_p99 = sum(each["writes"]["p99_ns"] is not None for each in document["rows"])
    assert with_p99 < 6, "the test needs runs that converge earlier"
    assert (outcome.code, f"p99 of {with_p99} of 6 points" in outcome.out) == (0, True), outcome.err
    assert (len(document["rows"]), document["sensitivity"]["indices"]) == (6, [])
    assert "--io-count" in document["sensitivity"]["doubt"]


@pytest.mark.parametrize(
    ("arguments", "missing_measure"),
    [
        # 50 I/Os do not support the 99th percentile: ten must lie beyond it.
        ((*SHORT_SWEEP, "--sensitivity", "p99"), "p99 of 0 of 6 points"),
        # Neither do 1019 I/Os of which 20 are ignored.
        (("--pattern", "RW", "--vary", "spare_factor=0.15..0.3", "--io-count", 1019,
          "--io-ignore", 20, "--sensitivity", "p99"), "p99 of 0 of 6 points"),
        # Points of reads have no write amplification.
        (("--location", "random", "--vary", "mode=write,read", "--sensitivity",
          "write_amplification"), "write_amplification of 3 of 6 points"),
        (("--location", "random", "--vary", "mode=trim,read", "--sensitivity", "mean"),
         "mean of 3 of 6 points"),
    ],
)  # fmt: skip
def test_sensitivity_of_missing_measure_is_refused_before_work(
    monkeypatch: pytest.MonkeyPatch, arguments: tuple[object, ...], missing_measure: str
) -> None:
    def no_work(self: PlannedSweep, *_: object) -> list[SweepRow]:
        raise AssertionError("a run was started")

    monkeypatch.setattr(PlannedSweep, "carry_out", no_work)
    outcome = uflip("sweep", URL, *arguments, "--sample", "sobol:2")
    assert (outcome.code, missing_measure in outcome.err) == (2, True), outcome.err
