"""What the initial state does (uFLIP §4.1): is it measured, and can each statement fail?"""

from dataclasses import replace

import pytest

from uflip.device.opening import open_device
from uflip.reproduce import uflip_states as states
from uflip.results.characteristics import LIKE

STILL = dict.fromkeys(states.PATTERNS, 1.0)
WAYS = dict.fromkeys(states.DISTURBANCES, STILL)


def changes_most(state: str) -> float:
    url = f"sim:demo?{states.STATES[state]}"
    with open_device(url) as device:
        before = states._probed(device)
        return max(
            max(ratio, 1 / ratio)
            for way in states.DISTURBANCES.values()
            for ratio in states._disturbed(device, before, way).values()
        )


def test_random_writes_spoil_a_sequential_state_and_no_random_one() -> None:
    """After a sequential rewrite nothing has to be collected until the spare blocks are used up."""
    assert changes_most("random") < LIKE
    assert changes_most("sequential") > 2


def constructed(**changes: object) -> states.Data:
    means = {"baseline SR": 0.5, "baseline RW": 18.0, "order RW 2": 20.0}
    data = states.Data(
        means={"samsung": dict.fromkeys(states.STATES, means)},
        characteristics={"samsung": dict.fromkeys(states.STATES, ["1"] * 10)},
        disturbed={"samsung": {"random": WAYS, "sequential": WAYS}},
        small_writes={"fresh": 1.0, "sequential": 8.0, "random": 8.0, "aged": 8.0},
    )
    return replace(data, **changes)  # type: ignore[arg-type]


def within(data: states.Data) -> dict[str, bool]:
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
