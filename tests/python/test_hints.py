"""Design hints: does each verdict follow from the measurements, and can it fail?

Devices are made up by what an I/O costs on them, so that what each hint must say is known; one is
simulated, and the command is asked about its folder.
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
from uflip.results.characteristics import LIKE, characteristics

KIB, MIB, MS = 1 << 10, 1 << 20, 1e6
PATTERNS = ("SR", "RR", "SW", "RW")
SIZES = [512 << power for power in range(11)]
Cost = Callable[[str, int, str, int], float]
"""(pattern, I/O size, what varies, its value) -> ms."""


def disk_of_2009(pattern: str, size: int, varies: str, value: int) -> float:
    """Merges of units of 1 MiB, a log of 8 MiB, four open units, pages of 16 KiB."""
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


def drive_of_today(pattern: str, size: int, varies: str, value: int) -> float:
    """A map of pages, and eight I/Os at a time."""
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


def measured(cost: Cost, share: float = 0.01, without: str = "") -> dict[str, Any]:
    """Return the summary of a benchmark, each mean with a relative interval."""
    size = 32 * KIB
    alone = {pattern: cost(pattern, size, "baseline", 0) for pattern in PATTERNS}
    benchmarks: dict[str, list[dict[str, Any]]] = {}
    for name, (parameter, values) in VALUES.items():
        benchmarks[name] = [
            run(pattern, parameter, value, cost(pattern, one_size, name, value), share)
            for pattern in PATTERNS
            for value in values
            for one_size in [value if name == "granularity" else size]
        ]
    benchmarks["mix"] = [
        run(f"{one}/{two}", "ratio", ratio, (ratio * alone[one] + alone[two]) / (ratio + 1), share)
        for one, two in (("SR", "RR"), ("SR", "RW"), ("SW", "RW"))
        for ratio in (1, 8, 64)
    ]
    benchmarks.pop(without, None)
    return {
        "device": inspect_device("sim:demo"),
        "baselines": [run(name, "io_size", size, mean, share) for name, mean in alone.items()],
        "micro_benchmarks": benchmarks,
        "key_characteristics": characteristics(alone, benchmarks).as_dict(),
        "repeatability": {},
    }


def hints(document: dict[str, Any]) -> dict[int, Hint]:
    return {hint.number: hint for hint in advise(document).hints}


def test_a_disk_of_2009_confirms_all_seven_hints() -> None:
    found = hints(measured(disk_of_2009))
    assert {number: hint.verdict for number, hint in found.items()} == dict.fromkeys(
        range(1, 8), CONFIRMED
    )
    assert found[1].numbers["fixed_ns"] == pytest.approx(0.1 * MS)
    assert found[1].numbers["rate_bytes_per_s"] == pytest.approx(100 * KIB * 1e3)
    assert found[3].numbers["unit_bytes"] == 16 * KIB
    assert found[3].numbers["unaligned_over_aligned"] == pytest.approx(2.5)
    assert found[4].numbers["area_bytes"] == 8 * MIB
    assert found[5].numbers["partitions"] == 4
    assert advise(measured(disk_of_2009)).classified.name == "high-end"


def test_a_drive_of_today_contradicts_what_was_about_merges() -> None:
    found = hints(measured(drive_of_today))
    verdicts = {number: hint.verdict for number, hint in found.items()}
    assert verdicts == {
        1: CONFIRMED, 2: CONFIRMED, 3: CONTRADICTED, 4: CONTRADICTED, 5: CONTRADICTED,
        6: CONFIRMED, 7: CONTRADICTED,
    }  # fmt: skip
    assert found[7].numbers["throughput_gain"] == pytest.approx(8)
    assert advise(measured(drive_of_today)).classified.name == "anywhere"


def thinned(cost: Cost, **values: list[int]) -> dict[int, Hint]:
    """The hints of a device of which fewer values of some micro-benchmarks were measured."""
    document = measured(cost)
    for name, kept in values.items():
        runs = document["micro_benchmarks"][name]
        document["micro_benchmarks"][name] = [one for one in runs if one["value"] in kept]
    alone = {one["pattern"]: one["statistics"]["mean_ns"] / MS for one in document["baselines"]}
    row = characteristics(alone, document["micro_benchmarks"])
    return hints(document | {"key_characteristics": row.as_dict()})


def test_nothing_is_said_of_values_that_were_not_measured() -> None:
    """The disk copes with areas of 8 MiB and with four partitions."""
    found = thinned(disk_of_2009, locality=[MIB, 64 * MIB], partitioning=[1, 2, 32, 256])
    assert found[4].verdict == found[5].verdict == CONFIRMED
    assert "within 64 MiB, the next that was measured" in found[4].because
    assert "32, the next that were measured" in found[5].because
    assert found[5].advice.endswith("not to 32")
    # The smallest that were measured are dear: smaller ones may be cheap, as they are here.
    found = thinned(disk_of_2009, locality=[512 * KIB, 16 * MIB, 64 * MIB], partitioning=[1, 8, 64])
    assert (found[4].verdict, found[5].verdict) == (NOT_MEASURED, NOT_MEASURED)
    assert found[4].advice == found[5].advice == ""


def dear_random_writes(pattern: str, size: int, varies: str, value: int) -> float:
    """Random writes cost ×1.8 what sequential ones do, in areas of all sizes."""
    return (0.1 + size / (100 * KIB)) * (1.8 if pattern == "RW" else 1)


def test_an_area_that_is_no_cheaper_is_not_worth_keeping_to() -> None:
    found = hints(measured(dear_random_writes))[4]
    assert (found.verdict, found.advice) == (
        CONTRADICTED, "random writes may go anywhere: no area is cheaper",
    )  # fmt: skip
    assert hints(measured(dear_random_writes, share=0.15))[4].verdict == UNDECIDED
    assert thinned(dear_random_writes, locality=[8 * MIB, 64 * MIB])[4].verdict == UNDECIDED


def test_an_area_is_told_as_far_as_it_is_cheaper() -> None:
    def cost(pattern: str, size: int, varies: str, value: int) -> float:
        """Without degradation up to 8 MiB, where nothing is gained any more."""
        times = {4 * MIB: 1.5, 8 * MIB: 2.4}.get(value, 1.0 if value < 4 * MIB else 2.6)
        times = times if varies == "locality" else 2.6
        return (0.1 + size / (100 * KIB)) * (times if pattern == "RW" else 1)

    document = measured(cost)
    assert document["key_characteristics"]["locality"]["locality_bytes"] == 8 * MIB
    assert hints(document)[4].numbers["area_bytes"] == 4 * MIB


def no_latency(pattern: str, size: int, varies: str, value: int) -> float:
    """Return the cost of an I/O in proportion to its bytes."""
    return size / (100 * KIB) * (2 if pattern == "RW" else 1)


def test_without_latency_larger_reads_bring_nothing_and_small_blocks_do() -> None:
    found = hints(measured(no_latency))
    assert found[1].verdict == CONTRADICTED
    assert found[2].verdict == CONTRADICTED
    assert found[2].numbers["enough_for_writes_bytes"] == 512


def test_mixes_that_cost_more_than_their_parts_contradict() -> None:
    document = measured(disk_of_2009)
    (dear,) = (
        one
        for one in document["micro_benchmarks"]["mix"]
        if (one["pattern"], one["value"]) == ("SW/RW", 8)
    )
    for name in ("mean_ns", "half_width_ns"):
        dear["together"][name] *= 2
    found = hints(document)[6]
    assert (found.verdict, found.numbers["mix"], found.numbers["ratio"]) == (
        CONTRADICTED, "SW/RW", 8,
    )  # fmt: skip
    assert found.numbers["mix_over_its_parts"] == pytest.approx(2)


@pytest.mark.parametrize("name", ["granularity", "alignment", "locality", "partitioning", "mix"])
def test_what_was_not_run_is_not_measured(name: str) -> None:
    full, without = hints(measured(disk_of_2009)), hints(measured(disk_of_2009, without=name))
    lost = {number for number, hint in without.items() if hint.verdict == NOT_MEASURED}
    assert lost == {number for number, hint in full.items() if hint.micro_benchmark == name}


def test_an_interval_that_holds_the_limit_does_not_tell() -> None:
    wide = hints(measured(disk_of_2009, share=0.5))
    assert wide[6].verdict == UNDECIDED
    assert f"{LIKE:.2f}" in wide[6].because
    assert wide[6].advice == ""
    assert hints(measured(disk_of_2009, share=0.1))[4].verdict == CONFIRMED


@pytest.mark.parametrize("half_width_ns", [None, 27.9 * MS])
def test_a_ratio_without_an_interval_does_not_tell(half_width_ns: float | None) -> None:
    """Random writes at their boundary take 17.7 ms, or nothing, or twice as much."""
    document = measured(drive_of_today)
    writes = {
        one["value"]: one["together"]
        for one in document["micro_benchmarks"]["alignment"]
        if one["pattern"] == "RW"
    }
    writes[0].update(mean_ns=17.7 * MS, half_width_ns=half_width_ns)
    writes[512].update(mean_ns=22.1 * MS, half_width_ns=16.2 * MS)
    found = hints(document)[3]
    assert (found.verdict, found.advice) == (UNDECIDED, "")
    assert "undecided: " in found.because
    # A certain cost is reported even if a possibly higher one is uncertain.
    for one in document["micro_benchmarks"]["alignment"]:
        if one["pattern"] == "SW":
            one["together"]["half_width_ns"] = 0.0
            one["together"]["mean_ns"] *= 1.0 if one["value"] == 0 else 1.24
    found = hints(document)[3]
    assert (found.verdict, found.numbers["pattern"]) == (CONFIRMED, "SW")


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
def test_block_sizes_of_writes_are_told_apart_by_intervals(
    at_16_kib: float, share: float, verdict: str
) -> None:
    found = hints(measured(writes_by_byte(at_16_kib), share))[2]
    assert found.verdict == verdict
    assert ("undecided: " in found.because) == (found.advice == "") == (verdict == UNDECIDED)
    # The findings about sizes are reported in any case.
    assert found.numbers["best_for_reads_bytes"] < 32 * KIB
    assert found.numbers["enough_for_writes_bytes"] == (16 if at_16_kib < LIKE else 32) * KIB


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
def test_pages_of_reads_are_told_apart_by_intervals(
    at_64_kib: float, share: float, verdict: str
) -> None:
    found = hints(measured(reads_of_pages(at_64_kib), share))[2]
    assert found.verdict == verdict
    assert found.numbers["best_for_reads_bytes"] == (64 if at_64_kib > 1 else 32) * KIB


def test_the_null_device_has_no_class() -> None:
    document = measured(drive_of_today) | {"device": inspect_device("null")}
    with pytest.raises(UsageError, match="does nothing"):
        advise(document)


def test_the_command_says_of_a_folder_what_the_function_says(here: Path) -> None:
    done = uflip(
        "run", "sim:demo?blocks_per_die=64", "--scale", "quick", "--only", "granularity,alignment",
        "--out", "r", "-q",
    )  # fmt: skip
    assert done.code == 0, done.err
    asked = ("hints", "r", "--device-price", "100", "--memory-price", "4")
    document = json.loads(uflip(*asked, "--json").out)
    assert {hint["verdict"] for hint in document["hints"]} <= set(VERDICTS)
    assert document["hints"][0]["verdict"] == CONFIRMED
    assert document["hints"][3]["verdict"] == NOT_MEASURED
    blocks = document["hints"][1]["numbers"]
    reads = blocks["best_for_reads_bytes"]
    shown = json.loads(uflip("show", "r", "--json").out)
    (read,) = (
        one
        for one in shown["micro_benchmarks"]["granularity"]
        if (one["pattern"], one["value"]) == ("RR", reads)
    )
    # Gray & Putzolu: pages a unit of memory over accesses a second, times price over price.
    interval = (2**30 / reads) * (read["together"]["mean_ns"] / 1e9) * (100 / 4)
    assert blocks["break_even_s"] == pytest.approx(interval)
    text = uflip(*asked).out
    assert "five-minute rule" in text
    for hint in document["hints"]:
        assert f"{hint['number']}  {hint['verdict']}" in text


def test_a_price_alone_says_nothing(here: Path) -> None:
    done = uflip("hints", "r", "--memory-price", "4")
    assert done.code == 2
    assert "--device-price" in done.err


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
def test_the_seven_devices_of_table_3_are_what_the_paper_calls_them(
    ms: tuple[float, float],
    pauses: bool,
    focused: float | None,
    orders: tuple[float, float],
    expected: str,
) -> None:
    def found(factor: float | None, **more: str) -> dict[str, Any]:
        return {"verdict": "none" if factor is None else "found", "factor": factor} | more

    reference = "sequential" if (focused or 0) < 2.45 else "smallest"
    row = {
        "pause": found(1.0 if pauses else None), "reverse": found(orders[0]),
        "locality": found(focused, reference=reference), "in_place": found(orders[1]),
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
def test_a_class_is_told_where_the_interval_tells_it(
    ratio: float, share: float, expected: str
) -> None:
    """The interval of the cost of random writes includes 1.22 or not."""

    def cost(pattern: str, size: int, varies: str, value: int) -> float:
        times = ratio if pattern == "RW" and varies == "baseline" else 1.0
        return times * drive_of_today(pattern, size, varies, value)

    document = measured(cost, share)
    found = advise(document)
    assert found.classified.name == expected
    # The fourth hint is about the same ratio, and as sure.
    told = {hint.number: hint.verdict for hint in found.hints}[4]
    assert (told == UNDECIDED) == (expected == "undecided")
    again = {"RW": {"experiments": 2, "smallest_ns": 1.0, "largest_ns": 1.6, "factor": 1.6}}
    assert classify(document | {"repeatability": again}).name == "undecided"
    assert classify(measured(disk_of_2009) | {"repeatability": again}).name == "high-end"


def marked(document: dict[str, Any], mark: str, *where: tuple[str, str]) -> dict[str, Any]:
    """Mark the runs of some micro-benchmarks and patterns."""
    every = {"baseline": document["baselines"], **document["micro_benchmarks"]}
    for name, pattern in where:
        for one in every[name]:
            if one["pattern"] == pattern:
                one["repetitions"] = [{"run": "0001", "reasons": [mark]}]
    return document


@pytest.mark.parametrize(("mark", "words"), [
    ("never_left_write_cache", "never left the write cache"),
    ("inside_startup", "inside the start-up"),
])  # fmt: skip
def test_a_marked_run_leaves_its_hints_and_the_class_undecided(mark: str, words: str) -> None:
    assert advise(measured(drive_of_today)).classified.name == "anywhere"
    document = marked(measured(drive_of_today), mark, ("baseline", "RW"), ("alignment", "SW"))
    document |= {"scale": "quick"}
    found = advise(document)
    assert found.classified.name == "undecided"
    of_number = {hint.number: hint for hint in found.hints}
    # Reads, and patterns whose runs are clear, decide as before.
    assert of_number[1].verdict == CONFIRMED
    for number, name in ((3, "alignment"), (4, "locality")):
        hint = of_number[number]
        assert (hint.verdict, hint.advice) == (UNDECIDED, "")
        assert words in hint.because
        assert hint.decided_by == f"uflip run sim:demo --only baseline,{name} --scale standard"
        assert hint.next_step.endswith(hint.decided_by)
    assert all((hint.advice == "") == bool(hint.decided_by) for hint in found.hints)


def test_runs_in_the_write_cache_give_no_headline_and_no_advice(here: Path) -> None:
    """128 MiB of cache, 32 MiB of writes: the flash is not measured."""
    device = "sim:enterprise-nvme?write_cache_bytes=134217728"
    done = uflip("run", device, "--scale", "quick", "--only", "baseline,locality", "--out", "r")
    assert done.code == 0, done.err
    text = " ".join(done.out.split())
    assert "times a sequential one" not in text
    assert "Undecided for sequential writes and random writes: the writes never left" in text
    assert "Undecided: RW (5 of 5)" in text
    document = json.loads(uflip("show", "r", "--json").out)
    row = document["key_characteristics"]
    assert (row["locality"]["verdict"], row["locality"]["locality_bytes"]) == ("undecided", None)
    said = uflip("hints", "r").out
    assert "may go anywhere" not in said
    assert "class undecided" in said
