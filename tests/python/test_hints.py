"""Design hints: does each verdict follow from the measurements, and can it fail?

Devices are cost functions of an I/O, so that each verdict is known; one device is simulated, for a
test of the command.
"""

import json
from collections.abc import Callable
from math import log2
from pathlib import Path
from typing import Any

import pytest
from command_line import uflip

from uflip.device.catalogue import inspect_device
from uflip.errors import UsageError
from uflip.hints import CONFIRMED, CONTRADICTED, NOT_MEASURED, UNDECIDED, VERDICTS, Hint, advise
from uflip.hints.classes import classify
from uflip.results.key_characteristics import LIKE_FACTOR, characteristics

KIB, MIB, MS = 1 << 10, 1 << 20, 1e6
PATTERNS = ("SR", "RR", "SW", "RW")
SIZES = [512 << power for power in range(11)]
Cost = Callable[[str, int, str, int], float]
"""(pattern, I/O size, what varies, its value) -> ms."""


def disk_of_2009(pattern: str, size: int, varies: str, value: int) -> float:
    """Cost of a disk with merges of 1 MiB, a log of 8 MiB, four open units, pages of 16 KiB."""
    together = value if varies == "parallelism" else 1
    if pattern in ("SR", "RR"):
        return together * (0.1 + size / (100 * KIB))
    write, merge = 0.1 + size / (80 * KIB), 9.0
    limit = {"locality": 8 * MIB, "partitioning": 4, "parallelism": 4}.get(varies, 0)
    if pattern == "SW":
        cost = write if value <= limit or not limit else merge
    else:
        cost = 1.3 * write if varies == "locality" and value <= limit else merge
        if varies == "pause":
            cost = max(merge - value / MS, write)
    if varies == "alignment" and value % (16 * KIB):
        cost *= 2.5
    return cost * together


def page_mapped_drive(pattern: str, size: int, varies: str, value: int) -> float:
    """Cost of a page-mapped drive that serves eight I/Os in parallel."""
    cost = (0.02 if pattern in ("SR", "RR") else 0.05) + size / (500 * KIB)
    return cost * max(value / 8, 1.0) if varies == "parallelism" else cost


VALUES: dict[str, tuple[str, list[int]]] = {
    "granularity": ("io_size", SIZES),
    "alignment": ("io_shift", [0, *(512 << power for power in range(7))]),
    "locality": ("target_size", [32 * KIB << power for power in range(13)]),
    "partitioning": ("partitions", [1 << power for power in range(9)]),
    "order": ("incr", [-1, 0, 1, 32, 64, 128, 256]),
    "parallelism": ("parallel_degree", [1, 2, 4, 8, 16]),
    "pause": ("pause", [100_000 << power for power in range(9)]),
}


def run(pattern: str, parameter: str, value: int, mean_ms: float, share: float) -> dict[str, Any]:
    mean, half = mean_ms * MS, share * mean_ms * MS
    return {
        "pattern": pattern, "parameter": parameter, "value": value, "unit": "",
        "statistics": {"mean_ns": mean}, "spec": {"io_size": 32 * KIB},
        "together": {"mean_ns": mean, "half_width_ns": half, "converged": True},
        "repetitions": [],
    }  # fmt: skip


def summary_of(cost: Cost, share: float = 0.01, without: str = "") -> dict[str, Any]:
    """Return the summary of a benchmark, each mean with a relative interval."""
    size = 32 * KIB
    baseline_ms = {pattern: cost(pattern, size, "baseline", 0) for pattern in PATTERNS}
    benchmarks: dict[str, list[dict[str, Any]]] = {}
    for name, (parameter, values) in VALUES.items():
        benchmarks[name] = [
            run(pattern, parameter, value, cost(pattern, one_size, name, value), share)
            for pattern in PATTERNS
            for value in values
            for one_size in [value if name == "granularity" else size]
        ]
    benchmarks["mix"] = [
        run(
            f"{one}/{two}",
            "ratio",
            ratio,
            (ratio * baseline_ms[one] + baseline_ms[two]) / (ratio + 1),
            share,
        )
        for one, two in (("SR", "RR"), ("SR", "RW"), ("SW", "RW"))
        for ratio in (1, 8, 64)
    ]
    benchmarks.pop(without, None)
    return {
        "device": inspect_device("sim:demo"),
        "baselines": [
            run(name, "io_size", size, mean, share) for name, mean in baseline_ms.items()
        ],
        "micro_benchmarks": benchmarks,
        "key_characteristics": characteristics(baseline_ms, benchmarks),
        "repeatability": {},
    }


def hints_by_number(document: dict[str, Any]) -> dict[int, Hint]:
    return {hint.number: hint for hint in advise(document).hints}


def test_disk_of_2009_confirms_all_hints() -> None:
    hints = hints_by_number(summary_of(disk_of_2009))
    assert {number: hint.verdict for number, hint in hints.items()} == dict.fromkeys(
        range(1, 8), CONFIRMED
    )
    assert hints[1].numbers["fixed_ns"] == pytest.approx(0.1 * MS)
    assert hints[1].numbers["rate_bytes_per_s"] == pytest.approx(100 * KIB * 1e3)
    assert hints[3].numbers["unit_bytes"] == 16 * KIB
    assert hints[3].numbers["unaligned_over_aligned"] == pytest.approx(2.5)
    assert hints[4].numbers["area_bytes"] == 8 * MIB
    assert hints[5].numbers["partitions"] == 4
    assert advise(summary_of(disk_of_2009)).classified.name == "high-end"


def test_page_mapped_drive_contradicts_hints_about_merges() -> None:
    hints = hints_by_number(summary_of(page_mapped_drive))
    verdicts = {number: hint.verdict for number, hint in hints.items()}
    assert verdicts == {
        1: CONFIRMED, 2: CONFIRMED, 3: CONTRADICTED, 4: CONTRADICTED, 5: CONTRADICTED,
        6: CONFIRMED, 7: CONTRADICTED,
    }  # fmt: skip
    assert hints[7].numbers["throughput_gain"] == pytest.approx(8)
    assert advise(summary_of(page_mapped_drive)).classified.name == "anywhere"


def hints_of_subset(cost: Cost, **values: list[int]) -> dict[int, Hint]:
    """Return the hints of a device with fewer values of some micro-benchmarks."""
    document = summary_of(cost)
    for name, measured_values in values.items():
        runs = document["micro_benchmarks"][name]
        document["micro_benchmarks"][name] = [
            one for one in runs if one["value"] in measured_values
        ]
    baseline_ms = {
        one["pattern"]: one["statistics"]["mean_ns"] / MS for one in document["baselines"]
    }
    row = characteristics(baseline_ms, document["micro_benchmarks"])
    return hints_by_number(document | {"key_characteristics": row})


def test_hints_name_only_measured_values() -> None:
    """The disk copes with areas of 8 MiB and with four partitions."""
    hints = hints_of_subset(disk_of_2009, locality=[MIB, 64 * MIB], partitioning=[1, 2, 32, 256])
    assert hints[4].verdict == hints[5].verdict == CONFIRMED
    assert "within 64 MiB, the next that was measured" in hints[4].because
    assert "32, the next that were measured" in hints[5].because
    assert hints[5].advice.endswith("not to 32")
    # The smallest measured values are expensive: smaller ones may be cheap, as here.
    hints = hints_of_subset(
        disk_of_2009, locality=[512 * KIB, 16 * MIB, 64 * MIB], partitioning=[1, 8, 64]
    )
    assert (hints[4].verdict, hints[5].verdict) == (NOT_MEASURED, NOT_MEASURED)
    assert hints[4].advice == hints[5].advice == ""


def expensive_random_writes(pattern: str, size: int, varies: str, value: int) -> float:
    """Random writes cost 1.8 times as much as sequential ones, in areas of all sizes."""
    return (0.1 + size / (100 * KIB)) * (1.8 if pattern == "RW" else 1)


def test_area_without_a_gain_is_contradicted() -> None:
    hint = hints_by_number(summary_of(expensive_random_writes))[4]
    assert (hint.verdict, hint.advice) == (
        CONTRADICTED, "random writes may go anywhere: no area is cheaper",
    )  # fmt: skip
    assert hints_by_number(summary_of(expensive_random_writes, share=0.15))[4].verdict == UNDECIDED
    assert (
        hints_of_subset(expensive_random_writes, locality=[8 * MIB, 64 * MIB])[4].verdict
        == UNDECIDED
    )


def test_area_ends_where_it_is_no_longer_cheaper() -> None:
    def cost(pattern: str, size: int, varies: str, value: int) -> float:
        """Return costs without degradation up to 8 MiB, where the gain ends."""
        times = {4 * MIB: 1.5, 8 * MIB: 2.4}.get(value, 1.0 if value < 4 * MIB else 2.6)
        times = times if varies == "locality" else 2.6
        return (0.1 + size / (100 * KIB)) * (times if pattern == "RW" else 1)

    document = summary_of(cost)
    assert document["key_characteristics"]["locality"]["locality_bytes"] == 8 * MIB
    assert hints_by_number(document)[4].numbers["area_bytes"] == 4 * MIB


def no_latency(pattern: str, size: int, varies: str, value: int) -> float:
    """Return the cost of an I/O in proportion to its bytes."""
    return size / (100 * KIB) * (2 if pattern == "RW" else 1)


def test_zero_latency_contradicts_hints_about_io_size() -> None:
    hints = hints_by_number(summary_of(no_latency))
    assert hints[1].verdict == CONTRADICTED
    assert hints[2].verdict == CONTRADICTED
    assert hints[2].numbers["enough_for_writes_bytes"] == 512


def test_expensive_mix_contradicts_its_hint() -> None:
    document = summary_of(disk_of_2009)
    (mix_run,) = (
        experiment
        for experiment in document["micro_benchmarks"]["mix"]
        if (experiment["pattern"], experiment["value"]) == ("SW/RW", 8)
    )
    for name in ("mean_ns", "half_width_ns"):
        mix_run["together"][name] *= 2
    hint = hints_by_number(document)[6]
    assert (hint.verdict, hint.numbers["mix"], hint.numbers["ratio"]) == (
        CONTRADICTED, "SW/RW", 8,
    )  # fmt: skip
    assert hint.numbers["mix_over_its_parts"] == pytest.approx(2)


@pytest.mark.parametrize("name", ["granularity", "alignment", "locality", "partitioning", "mix"])
def test_hint_without_its_micro_benchmark_is_not_measured(name: str) -> None:
    full, without = (
        hints_by_number(summary_of(disk_of_2009)),
        hints_by_number(summary_of(disk_of_2009, without=name)),
    )
    not_measured = {number for number, hint in without.items() if hint.verdict == NOT_MEASURED}
    assert not_measured == {number for number, hint in full.items() if hint.micro_benchmark == name}


def test_interval_including_the_limit_is_undecided() -> None:
    wide = hints_by_number(summary_of(disk_of_2009, share=0.5))
    assert wide[6].verdict == UNDECIDED
    assert f"{LIKE_FACTOR:.2f}" in wide[6].because
    assert wide[6].advice == ""
    assert hints_by_number(summary_of(disk_of_2009, share=0.1))[4].verdict == CONFIRMED


@pytest.mark.parametrize("half_width_ns", [None, 27.9 * MS])
def test_ratio_without_an_interval_is_undecided(half_width_ns: float | None) -> None:
    """The interval of aligned random writes of 17.7 ms includes zero, or is missing."""
    document = summary_of(page_mapped_drive)
    writes = {
        one["value"]: one["together"]
        for one in document["micro_benchmarks"]["alignment"]
        if one["pattern"] == "RW"
    }
    writes[0].update(mean_ns=17.7 * MS, half_width_ns=half_width_ns)
    writes[512].update(mean_ns=22.1 * MS, half_width_ns=16.2 * MS)
    hint = hints_by_number(document)[3]
    assert (hint.verdict, hint.advice) == (UNDECIDED, "")
    assert "undecided: " in hint.because
    # A certain cost is reported even if a possibly higher one is uncertain.
    for one in document["micro_benchmarks"]["alignment"]:
        if one["pattern"] == "SW":
            one["together"]["half_width_ns"] = 0.0
            one["together"]["mean_ns"] *= 1.0 if one["value"] == 0 else 1.24
    hint = hints_by_number(document)[3]
    assert (hint.verdict, hint.numbers["pattern"]) == (CONFIRMED, "SW")


def writes_by_byte(at_16_kib: float) -> Cost:
    """Return costs a byte: 16 KiB writes cost `at_16_kib` times larger ones, smaller far more."""

    def cost(pattern: str, size: int, varies: str, value: int) -> float:
        if pattern != "RW":
            return 0.1 + size / (100 * KIB)
        times = 1.0 if size > 16 * KIB else at_16_kib if size == 16 * KIB else 4.0
        return size / (100 * KIB) * times

    return cost


@pytest.mark.parametrize(
    ("at_16_kib", "share", "verdict"),
    [
        (1.1, 0.001, CONTRADICTED),  # 16 KiB are enough
        (1.2, 0.1, UNDECIDED),
        (1.25, 0.1, UNDECIDED),
        (1.25, 0.001, CONFIRMED),
        (1.5, 0.02, CONFIRMED),
    ],
)
def test_write_block_sizes_are_distinguished_by_intervals(
    at_16_kib: float, share: float, verdict: str
) -> None:
    hint = hints_by_number(summary_of(writes_by_byte(at_16_kib), share))[2]
    assert hint.verdict == verdict
    assert ("undecided: " in hint.because) == (hint.advice == "") == (verdict == UNDECIDED)
    # The findings about sizes are reported in any case.
    assert hint.numbers["best_for_reads_bytes"] < 32 * KIB
    assert hint.numbers["enough_for_writes_bytes"] == (16 if at_16_kib < LIKE_FACTOR else 32) * KIB


def reads_of_pages(at_64_kib: float) -> Cost:
    """Return costs: 64 KiB pages are `at_64_kib` times as useful as 32 KiB, the best below."""

    def cost(pattern: str, size: int, varies: str, value: int) -> float:
        if pattern != "RR":
            return 5.0
        entries = log2(0.7 * size / 20)
        return entries / {32 * KIB: 1.0, 64 * KIB: at_64_kib}.get(size, 0.5)

    return cost


@pytest.mark.parametrize(
    ("at_64_kib", "share", "verdict"),
    [
        (1.05, 0.001, CONTRADICTED),
        (1.05, 0.1, UNDECIDED),
        (0.95, 0.1, UNDECIDED),
        (0.95, 0.001, CONFIRMED),
    ],
)
def test_read_page_sizes_are_distinguished_by_intervals(
    at_64_kib: float, share: float, verdict: str
) -> None:
    hint = hints_by_number(summary_of(reads_of_pages(at_64_kib), share))[2]
    assert hint.verdict == verdict
    assert hint.numbers["best_for_reads_bytes"] == (64 if at_64_kib > 1 else 32) * KIB


def test_null_device_has_no_class() -> None:
    document = summary_of(page_mapped_drive) | {"device": inspect_device("null")}
    with pytest.raises(UsageError, match="does nothing"):
        advise(document)


def test_hints_verb_matches_the_function(workdir: Path) -> None:
    outcome = uflip(
        "run", "sim:demo?blocks_per_die=64", "--scale", "quick", "--only", "granularity,alignment",
        "--out", "r", "-q",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    arguments = ("hints", "r", "--device-price", "100", "--memory-price", "4")
    document = json.loads(uflip(*arguments, "--json").out)
    assert {hint["verdict"] for hint in document["hints"]} <= set(VERDICTS)
    assert document["hints"][0]["verdict"] == CONFIRMED
    assert document["hints"][3]["verdict"] == NOT_MEASURED
    blocks = document["hints"][1]["numbers"]
    reads = blocks["best_for_reads_bytes"]
    shown = json.loads(uflip("show", "r", "--json").out)
    (read,) = (
        experiment
        for experiment in shown["micro_benchmarks"]["granularity"]
        if (experiment["pattern"], experiment["value"]) == ("RR", reads)
    )
    # Gray & Putzolu: pages a unit of memory over accesses a second, times price over price.
    interval = (2**30 / reads) * (read["together"]["mean_ns"] / 1e9) * (100 / 4)
    assert blocks["break_even_s"] == pytest.approx(interval)
    text = uflip(*arguments).out
    assert "five-minute rule" in text
    for hint in document["hints"]:
        assert f"{hint['number']}  {hint['verdict']}" in text


def test_memory_price_requires_device_price(workdir: Path) -> None:
    outcome = uflip("hints", "r", "--memory-price", "4")
    assert outcome.code == 2
    assert "--device-price" in outcome.err


@pytest.mark.parametrize(
    ("ms", "pauses", "focused", "orders", "expected"),
    [
        ((0.3, 5), True, 1.0, (1.0, 1.0), "high-end"),  # Memoright
        ((0.4, 9), True, 2.0, (1.0, 1.0), "high-end"),  # Mtron
        ((0.6, 18), False, 1.5, (1.5, 0.6), "low-end"),  # Samsung
        ((1.7, 18), False, 2.0, (3.0, 2.0), "low-end"),  # Transcend Module
        ((2.6, 233), False, 1.0, (2.0, 2.0), "low-end"),  # Transcend MLC
        ((1.8, 270), False, 20.0, (7.0, 6.0), "usb"),  # Kingston DTHX
        ((2.9, 256), False, None, (8.0, 40.0), "usb"),  # Kingston DTI
    ],
)
def test_devices_of_table_3_have_the_papers_class(
    ms: tuple[float, float],
    pauses: bool,
    focused: float | None,
    orders: tuple[float, float],
    expected: str,
) -> None:
    def verdict_of(factor: float | None, **more: str) -> dict[str, Any]:
        return {"verdict": "none" if factor is None else "found", "factor": factor} | more

    reference = "sequential" if (focused or 0) < 2.45 else "smallest"
    row = {
        "pause": verdict_of(1.0 if pauses else None), "reverse": verdict_of(orders[0]),
        "locality": verdict_of(focused, reference=reference), "in_place": verdict_of(orders[1]),
    }  # fmt: skip
    document = {
        "baselines": [run("SW", "", 0, ms[0], 0.0), run("RW", "", 0, ms[1], 0.0)],
        "micro_benchmarks": {
            "order": [run("SW", "incr", -value, orders[1 - value] * ms[0], 0.0) for value in (0, 1)]
        },
        "repeatability": {}, "key_characteristics": row,
    }  # fmt: skip
    assert classify(document).name == expected


@pytest.mark.parametrize(
    ("ratio", "share", "expected"),
    [
        (1.0, 0.05, "anywhere"),
        (1.0, 0.3, "undecided"),
        (1.5, 0.3, "undecided"),
        (1.5, 0.05, "high-end"),
    ],
)
def test_class_is_undecided_if_the_interval_includes_the_limit(
    ratio: float, share: float, expected: str
) -> None:
    """The interval of the cost of random writes includes 1.22 or not."""

    def cost(pattern: str, size: int, varies: str, value: int) -> float:
        times = ratio if pattern == "RW" and varies == "baseline" else 1.0
        return times * page_mapped_drive(pattern, size, varies, value)

    document = summary_of(cost, share)
    advice = advise(document)
    assert advice.classified.name == expected
    # The fourth hint is about the same ratio, and has the same certainty.
    verdict = {hint.number: hint.verdict for hint in advice.hints}[4]
    assert (verdict == UNDECIDED) == (expected == "undecided")
    repeatability = {"RW": {"experiments": 2, "smallest_ns": 1.0, "largest_ns": 1.6, "factor": 1.6}}
    assert classify(document | {"repeatability": repeatability}).name == "undecided"
    assert classify(summary_of(disk_of_2009) | {"repeatability": repeatability}).name == "high-end"


def mark_runs(document: dict[str, Any], mark: str, *selection: tuple[str, str]) -> dict[str, Any]:
    """Mark the runs of some micro-benchmarks and patterns."""
    benchmarks = {"baseline": document["baselines"], **document["micro_benchmarks"]}
    for name, pattern in selection:
        for one in benchmarks[name]:
            if one["pattern"] == pattern:
                one["repetitions"] = [{"run": "0001", "reasons": [mark]}]
    return document


@pytest.mark.parametrize(("mark", "words"), [
    ("never_left_write_cache", "never left the write cache"),
    ("inside_startup", "inside the start-up"),
])  # fmt: skip
def test_marked_run_leaves_hints_and_class_undecided(mark: str, words: str) -> None:
    assert advise(summary_of(page_mapped_drive)).classified.name == "anywhere"
    document = mark_runs(
        summary_of(page_mapped_drive), mark, ("baseline", "RW"), ("alignment", "SW")
    )
    document |= {"scale": "quick"}
    advice = advise(document)
    assert advice.classified.name == "undecided"
    hints = {hint.number: hint for hint in advice.hints}
    # Reads, and patterns without a mark, have a verdict as before.
    assert hints[1].verdict == CONFIRMED
    for number, name in ((3, "alignment"), (4, "locality")):
        hint = hints[number]
        assert (hint.verdict, hint.advice) == (UNDECIDED, "")
        assert words in hint.because
        assert hint.decided_by == f"uflip run sim:demo --only baseline,{name} --scale standard"
        assert hint.next_step.endswith(hint.decided_by)
    assert all((hint.advice == "") == bool(hint.decided_by) for hint in advice.hints)


def test_runs_in_the_write_cache_give_no_advice(workdir: Path) -> None:
    """128 MiB of cache, 32 MiB of writes: the flash is not measured."""
    device = "sim:enterprise-nvme?write_cache_bytes=134217728"
    outcome = uflip("run", device, "--scale", "quick", "--only", "baseline,locality", "--out", "r")
    assert outcome.code == 0, outcome.err
    text = " ".join(outcome.out.split())
    assert "times a sequential one" not in text
    assert "Undecided for sequential writes and random writes: the writes never left" in text
    assert "Undecided: RW (5 of 5)" in text
    document = json.loads(uflip("show", "r", "--json").out)
    row = document["key_characteristics"]
    assert (row["locality"]["verdict"], row["locality"]["locality_bytes"]) == ("undecided", None)
    printed = uflip("hints", "r").out
    assert "may go anywhere" not in printed
    assert "class undecided" in printed
