"""Effects of the initial state (uFLIP §4.1): are they measured, and can each statement fail?"""

from dataclasses import replace

import pytest

from uflip.device.opener import CreationProgress, open_device
from uflip.reproduce import uflip_states as states
from uflip.results.characteristics import LIKE

STILL = dict.fromkeys(states.PATTERNS, 1.0)
WAYS = dict.fromkeys(states.DISTURBANCES, STILL)


def changes_most(state: str) -> float:
    url = f"sim:demo?{states.STATES[state]}"
    with open_device(url) as device:
        before = states._probe_means(device)
        return max(
            max(ratio, 1 / ratio)
            for way in states.DISTURBANCES.values()
            for ratio in states._means_after_disturbance(device, before, way).values()
        )


def test_random_writes_spoil_a_sequential_state_and_no_random_one() -> None:
    """After a sequential rewrite nothing has to be collected until the spare blocks are used up."""
    assert changes_most("random") < LIKE
    assert changes_most("sequential") > 2


def constructed(**changes: object) -> states.InitialStateEffects:
    means = {"baseline SR": 0.5, "baseline RW": 18.0, "order RW 2": 20.0}
    data = states.InitialStateEffects(
        means={"samsung": dict.fromkeys(states.STATES, means)},
        characteristics={"samsung": dict.fromkeys(states.STATES, ["1"] * 10)},
        disturbed={"samsung": {"random": WAYS, "sequential": WAYS}},
        small_writes={"fresh": 1.0, "sequential": 8.0, "random": 8.0, "aged": 8.0},
    )
    return replace(data, **changes)  # type: ignore[arg-type]


def within(data: states.InitialStateEffects) -> dict[str, bool]:
    return {(row.value_id or "").rpartition("/")[2]: row.within for row in states.rows(data)}


SPOILT = WAYS | {"badly aligned": STILL | {"SW": 0.5}}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {"fresh": True, "decrease": True, "stable": True, "less_stable": False}),
        ({"small_writes": {"fresh": 2.0, "random": 8.0}}, {"fresh": False, "decrease": False}),
        ({"small_writes": {"fresh": 0.5, "random": 8.0}}, {"fresh": False, "decrease": False}),
        (
            {"disturbed": {"samsung": {"random": WAYS, "sequential": SPOILT}}},
            {"stable": True, "less_stable": True},
        ),
        (
            {"disturbed": {"samsung": {"random": SPOILT, "sequential": WAYS}}},
            {"stable": False, "less_stable": False},
        ),
    ],
)
def test_each_statement_can_come_out_and_miss(
    changes: dict[str, object], expected: dict[str, bool]
) -> None:
    found = within(constructed(**changes))
    assert {name: found[name] for name in expected} == expected


def test_what_differs_is_counted_experiment_by_experiment() -> None:
    reference = {"a": 1.0, "b": 2.0, "c": 4.0, "only here": 1.0}
    one = states.difference({"a": 1.04, "b": 1.0, "c": 4.0}, reference)
    assert (one.experiments, one.equal, one.most) == (3, 2, "b")
    assert (one.least, one.largest) == (0.5, 1.04)
    assert one.mean == pytest.approx((1.04 * 0.5 * 1.0) ** (1 / 3))


def test_the_text_has_a_line_for_each_state_and_disturbance() -> None:
    text = states.text(constructed())
    rows, differences, disturbances = text.split("\n\n")
    assert [line.split()[0] for line in rows.splitlines()[1:]] == list(states.STATES)
    assert [line.split()[1] for line in differences.splitlines()[1:]] == [
        state for state in states.STATES if state != states.REFERENCE
    ]
    assert len(disturbances.splitlines()) == 1 + 2 * len(states.DISTURBANCES)


def test_a_device_that_takes_long_says_how_long_by_its_pace() -> None:
    times = iter((0, 500_000_000, 2_000_000_000, 30_000_000_000, 55_000_000_000))
    told: list[tuple[int, int, int]] = []
    making = CreationProgress(lambda *progress: told.append(progress), lambda: next(times))
    making(1, 1000, 0)  # too early to know
    making(400, 1000, 0)  # three seconds are not long
    assert told == []
    making(600, 1000, 0)
    assert told == [(600, 1000, 20_000_000_000)]
    making(990, 1000, 0)
    assert told[1:] == [(990, 1000, 555_555_555)], "from then on until it is made"


@pytest.mark.parametrize("state", ["random", "sequential", "scattered"])
def test_how_far_a_device_is_counts_the_bytes_of_its_state(
    monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    monkeypatch.setenv("UFLIP_CACHE_SIZE", "0")
    seen: list[tuple[int, int]] = []
    url = f"sim:demo?blocks_per_die=24&state={state}&random_overwrites=2.0"
    with open_device(url, on_progress=lambda done, total, _: seen.append((done, total))) as device:
        capacity = device.info.capacity_bytes
    total = {"random": 3, "sequential": 1, "scattered": 2}[state] * capacity
    made = [(done, of) for done, of in seen if done]
    assert made[-1][1] == total
    assert total <= made[-1][0] < total + (128 << 10), "all of it is written"
