"""Do the ten key characteristics match a computation by hand?"""

import json
from typing import Any

import pytest
import stored
from command_line import uflip

from uflip.data.summary import CHARACTERISTICS, Characteristic
from uflip.report import key_row
from uflip.results.key_characteristics import VERDICTS, characteristics

BASELINES = {"SR": 0.4, "RR": 0.5, "SW": 0.4, "RW": 9.0}
MS = 1_000_000
MIB = 1 << 20


def run(pattern: str, value: int, mean_ms: float | None) -> dict[str, Any]:
    statistics = None if mean_ms is None else {"mean_ns": mean_ms * MS}
    return {
        "pattern": pattern,
        "value": value,
        "statistics": statistics,
        "spec": {"io_size": 32768},
    }


def curve(pattern: str, means: dict[int, float | None]) -> list[dict[str, Any]]:
    return [run(pattern, value, mean) for value, mean in means.items()]


# A device like the paper's Mtron: works in pauses, a log of 8 MiB, four streams, banks.
MTRON = {
    "pause": [
        *curve("SW", {100_000: 0.4, 25_600_000: 0.4}),
        *curve("RW", {100_000: 8.9, 3_200_000: 5.8, 6_400_000: 2.6, 12_800_000: 0.42,
                      25_600_000: 0.4}),
    ],
    "locality": curve(
        "RW", {32768: 0.9, MIB: 0.4, 2 * MIB: 0.4, 4 * MIB: 0.4, 8 * MIB: 0.8, 16 * MIB: 1.1,
               32 * MIB: 3.0},
    ),
    "partitioning": curve("SW", {1: 0.4, 2: 0.6, 4: 0.62, 8: 2.4, 16: 9.0}),
    "order": curve(
        "SW", {-1: 0.4, 0: 0.36, 1: 0.4, 16: 9.0, 32: 10.0, 64: 14.0, 128: 18.0, 256: 17.0}
    ),
}  # fmt: skip


def pause(
    verdict: str, value: Any, factor: Any, bounds: tuple[Any, Any] = (None, None)
) -> dict[str, Any]:
    first, last = bounds
    found = {"verdict": verdict, "pause_ns": value, "factor": factor}
    return found | {"pause_from_ns": first, "pause_to_ns": last}


def limit(
    name: str, verdict: str, value: Any, factor: Any, reference: Any = None
) -> dict[str, Any]:
    return {"verdict": verdict, name: value, "factor": factor, "reference": reference}


def characteristics_with(**changes: Any) -> Any:
    return characteristics(BASELINES, MTRON | changes)


def test_row_matches_hand_computation() -> None:
    row = characteristics_with()
    assert [row[f"{name}_ms"] for name in BASELINES] == [0.4, 0.5, 0.4, 9.0]
    # 6.4 ms are too short by 2.6 - 0.4 = 2.2 ms.
    assert row["pause"] == pause(
        "found", pytest.approx(8.6 * MS), pytest.approx(1.05), bounds=(6.4 * MS, 12.8 * MS)
    )
    # 8 MiB cost x2, 16 MiB x2.75, although both are far below a random write.
    assert row["locality"] == limit(
        "locality_bytes", "found", 8 * MIB, pytest.approx(2.0), "sequential"
    )
    assert row["partitions"] == limit("partitions", "found", 4, pytest.approx(1.55), "sequential")
    assert row["reverse"]["factor"] == pytest.approx(1.0)
    assert row["in_place"]["factor"] == pytest.approx(0.9)
    # The worst of 1, 2, 4 and 8 MiB; the gap of 512 KiB does not count.
    assert row["large_increments"]["factor"] == pytest.approx(2.0)
    assert key_row.cells(row) == [
        "0.400", "0.500", "0.400", "9.00", "8.6 ms (6.4 ms to 12.8 ms)", "8 MB (x2)",
        "4 (x1.5)", "=", "x0.9", "x2",
    ]  # fmt: skip

    assert key_row.in_words(row) == [
        "After a pause of 8.6 ms, a random write costs about as much as a sequential one.",
        "A random write within 8 MB costs 2 times a sequential one; anywhere, 22 times.",
        "Sequential writes to 4 partitions side by side cost at most 1.5 times a sequential one "
        "each, to more partitions significantly more.",
        "A write in reverse order costs as much as a sequential one.",
        "A write in place costs 0.9 times a sequential one.",
        "A write 1 to 8 MB after the one before costs at most 2 times a random one.",
    ]


@pytest.mark.parametrize("name", CHARACTERISTICS)
@pytest.mark.parametrize("verdict", VERDICTS)
def test_every_verdict_is_in_words(name: Characteristic, verdict: str) -> None:
    row = characteristics({"SR": 0.0075}, {})
    row[name] = {"verdict": verdict, "factor": 1.0}
    words = key_row.in_words(row)
    bare = name in ("reverse", "in_place", "large_increments")
    expected = verdict != "not_measured" and not (bare and verdict in ("none", "everywhere"))
    assert len(words) == expected, "one sentence, and none about what was not measured"


def test_cells_have_numeric_values() -> None:
    row = characteristics_with(pause=curve("RW", {100_000: 9.1, 25_600_000: 8.9}))
    assert key_row.cells(row)[4:6] == ["no", "8 MB (x2)"]
    assert key_row.numbers(row) == pytest.approx(
        [0.4, 0.5, 0.4, 9.0, None, 8 * MIB, 4, 1.0, 0.9, 2.0]
    )
    quick = characteristics({"SR": 0.0075}, {})
    assert key_row.cells(quick)[:2] == ["0.00750", "–"]
    assert key_row.numbers(quick)[:2] == [0.0075, None]


def test_no_work_in_pauses_gives_no_pause() -> None:
    row = characteristics_with(pause=curve("RW", {100_000: 9.1, 3_200_000: 9.0, 25_600_000: 8.9}))
    assert row["pause"] == pause("none", None, pytest.approx(22.25))


def test_sufficient_shortest_pause_is_an_upper_bound() -> None:
    row = characteristics_with(pause=curve("RW", {100_000: 0.41, 200_000: 0.4}))
    # A write without a pause costs 9 ms, so 8.6 ms are missing; but 0.1 ms suffice as measured.
    assert (
        row["pause"]["pause_ns"],
        (row["pause"]["pause_from_ns"], row["pause"]["pause_to_ns"]),
    ) == (100_000, (0, 100_000))


def test_pause_is_extrapolated_on_a_linear_device_only() -> None:
    # 6.4 + 1.5 ms are not the 9 ms of a random write: the missing pause is unknown.
    row = characteristics_with(pause=curve("RW", {3_200_000: 5.8, 6_400_000: 1.5, 12_800_000: 0.4}))
    assert row["pause"]["pause_ns"] == 12.8 * MS
    assert (row["pause"]["pause_from_ns"], row["pause"]["pause_to_ns"]) == (6.4 * MS, 12.8 * MS)


def test_cheap_random_writes_need_no_pause() -> None:
    row = characteristics(BASELINES | {"RW": 0.45}, MTRON)
    assert row["pause"]["verdict"] == "everywhere"


@pytest.mark.parametrize(("ratio", "written"), [(1.21, "="), (1.24, "x1.5")])
def test_equal_behaviour_is_printed_as_equal(ratio: float, written: str) -> None:
    """ "=" ends at the geometric mean of 1 and 1.5, 1.2247."""
    alike = (
        characteristics(BASELINES | {"RW": ratio * 0.4}, MTRON)["pause"]["verdict"] == "everywhere"
    )
    assert (key_row.factor(ratio), alike) == (written, written == "=")


def test_small_effect_of_a_pause_is_none() -> None:
    row = characteristics_with(pause=curve("RW", {100_000: 9.0, 25_600_000: 0.6}))
    assert (row["pause"]["verdict"], row["pause"]["factor"]) == ("none", pytest.approx(1.5))


def test_locality_area_may_cost_more_than_sequential_writes() -> None:
    slow = {"SR": 1.3, "RR": 1.5, "SW": 1.8, "RW": 270.0}
    locality = curve("RW", {MIB: 24.0, 16 * MIB: 26.0, 32 * MIB: 130.0})
    row = characteristics(slow, {"locality": locality})
    assert row["locality"] == limit(
        "locality_bytes", "found", 16 * MIB, pytest.approx(26.0 / 1.8), "smallest"
    )


def test_expensive_smallest_value_is_not_measured() -> None:
    row = characteristics_with(
        locality=curve("RW", {512 << 10: 0.4, 8 * MIB: 8.0, 16 * MIB: 9.0}),
        partitioning=curve("SW", {1: 0.4, 4: 3.0, 32: 9.0}),
    )
    assert row["locality"]["verdict"] == row["partitions"]["verdict"] == "not_measured"
    # A cheap smallest value is measured.
    row = characteristics_with(
        locality=curve("RW", {8 * MIB: 0.4, 16 * MIB: 9.0}),
        partitioning=curve("SW", {1: 0.4, 4: 0.4, 32: 9.0}),
    )
    assert (row["locality"]["locality_bytes"], row["partitions"]["partitions"]) == (8 * MIB, 4)


def test_expensive_area_ends_at_a_significant_cost_increase() -> None:
    slow = {"SR": 1.3, "RR": 1.5, "SW": 1.8, "RW": 270.0}
    # The step from 24 to 60 ms is x2.5; the one before is x2.4.
    means = {MIB: 10.0, 8 * MIB: 24.0, 16 * MIB: 60.0, 32 * MIB: 61.0}
    row = characteristics(slow, {"locality": curve("RW", means)})
    assert row["locality"]["locality_bytes"] == 8 * MIB
    # Without a step the area ends where random writes elsewhere cost no longer x2.45 as much.
    means = {MIB: 10.0, 2 * MIB: 22.0, 4 * MIB: 50.0, 8 * MIB: 110.0, 16 * MIB: 120.0}
    row = characteristics(slow, {"locality": curve("RW", means)})
    assert row["locality"]["locality_bytes"] == 8 * MIB
    assert row["locality"]["factor"] == pytest.approx(110.0 / 1.8)
    assert row["locality"]["reference"] == "smallest"
    # Half the cost of a random write is not a cheap area, however flat.
    means = {MIB: 135.0, 8 * MIB: 135.0, 32 * MIB: 270.0}
    row = characteristics(slow, {"locality": curve("RW", means)})
    assert row["locality"]["verdict"] == "none"


def test_no_locality_area() -> None:
    row = characteristics_with(locality=curve("RW", {32768: 0.1, MIB: 8.0, 2 * MIB: 9.0}))
    assert row["locality"] == limit("locality_bytes", "none", None, pytest.approx(20.0)), (
        "one I/O size is not an area"
    )
    assert key_row.cells(row)[5] == "no"


def test_area_ends_at_its_first_degradation() -> None:
    row = characteristics_with(locality=curve("RW", {MIB: 0.4, 2 * MIB: 3.0, 4 * MIB: 0.4}))
    assert row["locality"]["locality_bytes"] == MIB


def test_page_mapped_device_never_degrades() -> None:
    means = {"SR": 0.1, "RR": 0.1, "SW": 0.2, "RW": 0.3}
    row = characteristics(
        means,
        {
            "locality": curve("RW", {MIB: 0.2, 2 << 30: 0.3}),
            "partitioning": curve("SW", {1: 0.2, 256: 0.21}),
        },
    )
    assert row["locality"] == limit(
        "locality_bytes", "everywhere", 2 << 30, pytest.approx(1.5), "sequential"
    )
    assert row["partitions"]["verdict"] == "everywhere"


def test_single_cheap_partition_is_none() -> None:
    row = characteristics_with(partitioning=curve("SW", {1: 0.4, 2: 5.0, 4: 9.0}))
    assert row["partitions"]["verdict"] == "none"


def test_expensive_partitions_count_if_random_writes_cost_more() -> None:
    slow = {"SR": 1.9, "RR": 2.2, "SW": 2.9, "RW": 256.0}
    partitions = curve("SW", {1: 2.9, 2: 14.0, 4: 14.5, 8: 200.0})
    row = characteristics(slow, {"partitioning": partitions})
    assert row["partitions"] == limit("partitions", "found", 4, pytest.approx(5.0), "smallest")


@pytest.mark.parametrize("missing", ["pause", "locality", "partitioning", "order"])
def test_missing_experiment_is_not_measured(missing: str) -> None:
    measured = {name: runs for name, runs in MTRON.items() if name != missing}
    row, complete = characteristics(BASELINES, measured), characteristics_with()
    columns = {
        "pause": {"pause"},
        "locality": {"locality"},
        "partitioning": {"partitions"},
        "order": {"reverse", "in_place", "large_increments"},
    }
    for name, value in row.items():
        if name in columns[missing]:
            assert value["verdict"] == "not_measured"
        else:
            assert value == complete[name]


def test_missing_baselines_leave_nothing_measured() -> None:
    row = characteristics(dict.fromkeys(BASELINES), MTRON)
    assert {value["verdict"] for value in row.values() if value} == {"not_measured"}
    document = {"device": stored.device_info("sim"), "key_characteristics": row}
    assert not key_row.has_characteristics(document)


def test_run_inside_the_startup_is_ignored() -> None:
    row = characteristics_with(locality=curve("RW", {MIB: 0.4, 2 * MIB: 0.5, 4 * MIB: None}))
    assert row["locality"] == limit(
        "locality_bytes", "everywhere", 2 * MIB, pytest.approx(1.25), "sequential"
    )


def test_every_verdict_has_words() -> None:
    assert set(key_row.WORDS) | {"found"} == set(VERDICTS)


@pytest.mark.parametrize(
    ("one", "other", "steps"),
    [(1.0, 1.5, 1), (1.0, 2.0, 2), (1.5, 3.0, 2), (0.6, 1.0, 4), (9.0, 10.0, 1), (10, 20, 2)],
)
def test_steps_of_the_scale(one: float, other: float, steps: int) -> None:
    assert key_row.steps_between(one, other) == key_row.steps_between(other, one) == steps


def test_show_prints_the_row(tmp_path: Any) -> None:
    out = tmp_path / "r"
    stored.results(out, [*stored.FOUR, _order(5, -1), _order(6, 0), _order(7, 1)])
    shown = uflip("show", out)
    assert "Key characteristics" in shown.out
    row = json.loads(uflip("show", out, "--json").out)["key_characteristics"]
    assert row["reverse"]["factor"] > 0
    assert row["large_increments"]["verdict"] == "not_measured"


def _order(ordinal: int, incr: int) -> Any:
    spec = stored.baseline_run(ordinal, "SW").spec.but(location="ordered", incr=incr)
    return stored.planned_run(
        ordinal, "order", "SW", parameter="incr", value=incr, unit="", spec=spec
    )
