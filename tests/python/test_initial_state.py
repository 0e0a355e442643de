"""Effects of the initial state (uFLIP §4.1): are they measured, and can each statement fail?"""

from dataclasses import replace

import pytest

from uflip.device.opener import CreationProgress, open_device
from uflip.reproduce import uflip_states as states
from uflip.results.key_characteristics import LIKE_FACTOR

UNCHANGED = dict.fromkeys(states.PATTERNS, 1.0)
NO_EFFECT = dict.fromkeys(states.DISTURBANCES, UNCHANGED)


def largest_change(state: str) -> float:
    url = f"sim:demo?{states.STATES[state]}"
    with open_device(url) as device:
        before = states._probe_means(device)
        return max(
            max(ratio, 1 / ratio)
            for disturbance in states.DISTURBANCES.values()
            for ratio in states._means_after_disturbance(device, before, disturbance).values()
        )


def test_random_writes_change_only_a_sequential_state() -> None:
    """After a sequential rewrite nothing is collected until the spare blocks are used up."""
    assert largest_change("random") < LIKE_FACTOR
    assert largest_change("sequential") > 2


def constructed_data(**changes: object) -> states.InitialStateEffects:
    means = {"baseline SR": 0.5, "baseline RW": 18.0, "order RW 2": 20.0}
    data = states.InitialStateEffects(
        means={"samsung": dict.fromkeys(states.STATES, means)},
        characteristics={"samsung": dict.fromkeys(states.STATES, ["1"] * 10)},
        disturbed={"samsung": {"random": NO_EFFECT, "sequential": NO_EFFECT}},
        small_writes={"fresh": 1.0, "sequential": 8.0, "random": 8.0, "aged": 8.0},
    )
    return replace(data, **changes)  # type: ignore[arg-type]


def verdicts_of(data: states.InitialStateEffects) -> dict[str, bool]:
    return {(row.value_id or "").rpartition("/")[2]: row.within for row in states.rows(data)}


ONE_EFFECT = NO_EFFECT | {"badly aligned": UNCHANGED | {"SW": 0.5}}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {"fresh": True, "decrease": True, "stable": True, "less_stable": False}),
        ({"small_writes": {"fresh": 2.0, "random": 8.0}}, {"fresh": False, "decrease": False}),
        ({"small_writes": {"fresh": 0.5, "random": 8.0}}, {"fresh": False, "decrease": False}),
        (
            {"disturbed": {"samsung": {"random": NO_EFFECT, "sequential": ONE_EFFECT}}},
            {"stable": True, "less_stable": True},
        ),
        (
            {"disturbed": {"samsung": {"random": ONE_EFFECT, "sequential": NO_EFFECT}}},
            {"stable": False, "less_stable": False},
        ),
    ],
)
def test_each_statement_can_hold_or_fail(
    changes: dict[str, object], expected: dict[str, bool]
) -> None:
    verdicts = verdicts_of(constructed_data(**changes))
    assert {name: verdicts[name] for name in expected} == expected


def test_differences_are_counted_per_experiment() -> None:
    reference = {"a": 1.0, "b": 2.0, "c": 4.0, "only here": 1.0}
    one = states.difference({"a": 1.04, "b": 1.0, "c": 4.0}, reference)
    assert (one.experiments, one.equal, one.most) == (3, 2, "b")
    assert (one.least, one.largest) == (0.5, 1.04)
    assert one.mean == pytest.approx((1.04 * 0.5 * 1.0) ** (1 / 3))


def test_text_has_a_line_for_each_state_and_disturbance() -> None:
    text = states.text(constructed_data())
    rows, differences, disturbances = text.split("\n\n")
    assert [line.split()[0] for line in rows.splitlines()[1:]] == list(states.STATES)
    assert [line.split()[1] for line in differences.splitlines()[1:]] == [
        state for state in states.STATES if state != states.REFERENCE
    ]
    assert len(disturbances.splitlines()) == 1 + 2 * len(states.DISTURBANCES)


def test_slow_device_creation_estimates_its_remaining_time() -> None:
    times = iter((0, 500_000_000, 2_000_000_000, 30_000_000_000, 55_000_000_000))
    reported: list[tuple[int, int, int]] = []
    making = CreationProgress(lambda *progress: reported.append(progress), lambda: next(times))
    making(1, 1000, 0)  # too early to know
    making(400, 1000, 0)  # three seconds are not long
    assert reported == []
    making(600, 1000, 0)
    assert reported == [(600, 1000, 20_000_000_000)]
    making(990, 1000, 0)
    assert reported[1:] == [(990, 1000, 555_555_555)], "every later step is reported"


@pytest.mark.parametrize("state", ["random", "sequential", "scattered"])
def test_creation_progress_counts_the_bytes_of_the_state(
    monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    monkeypatch.setenv("UFLIP_CACHE_SIZE", "0")
    progress: list[tuple[int, int]] = []
    url = f"sim:demo?blocks_per_die=24&state={state}&random_overwrites=2.0"
    with open_device(
        url, on_progress=lambda done, total, _: progress.append((done, total))
    ) as device:
        capacity = device.info.capacity_bytes
    total = {"random": 3, "sequential": 1, "scattered": 2}[state] * capacity
    steps = [(done, goal) for done, goal in progress if done]
    assert steps[-1][1] == total
    assert total <= steps[-1][0] < total + (128 << 10), "the whole state is written"
