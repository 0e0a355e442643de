"""Does the self-test compare what it claims, agree with theory, and fail when it should?"""

import json

import pytest
from command_line import uflip

from uflip import selftest
from uflip.device.catalogue import inspect_device
from uflip.executors import on_all
from uflip.selftest import SelfTest

KEYS = ["name", "device", "expected", "measured", "deviation", "tolerance", "within"]


@pytest.fixture(scope="module")
def document() -> dict[str, object]:
    """The whole self-test, once."""
    outcome = uflip("selftest", "--json")
    assert outcome.code == 0, outcome.out
    assert outcome.err == ""
    return json.loads(outcome.out)


def test_simulator_agrees_with_theory(document: dict[str, object]) -> None:
    assert [row["name"] for row in document["rows"] if not row["within"]] == []
    assert document["within"] is True


def test_row_contains_consistent_numbers(document: dict[str, object]) -> None:
    assert len(document["rows"]) == len(selftest.checks())
    for row in document["rows"]:
        assert list(row) == KEYS
        assert row["deviation"] == pytest.approx(row["measured"] / row["expected"] - 1)
        assert row["within"] == (abs(row["deviation"]) <= row["tolerance"])


def test_deviations_are_far_below_tolerance(document: dict[str, object]) -> None:
    # A wrong T would move all rows of a group to one side: chance does not.
    fixed = [row for row in document["rows"] if "cyclic" in row["name"] or "greedy" in row["name"]]
    assert len(fixed) > 20
    assert max(abs(row["deviation"]) for row in fixed) < 0.003


def test_checks_cover_policies_and_layouts() -> None:
    names = "\n".join(check.name for check in selftest.checks())
    for policy in ("cyclic", "greedy", "d_choices:2", "d_choices:5", "d_choices:10", "random"):
        for spare_factor in (0.07, 0.5):
            for pages in (64, 1024):
                name = f"{policy}, spare {spare_factor}, {pages} pages per block"
                assert f"write amplification {name}" in names
    assert "relocated pages cyclic, spare 0.45" in names
    for layout in ("1 x 1 die", "4 x 1 die", "1 x 2 dies"):
        assert f"channel rate reads, {layout}" in names
        assert f"channel rate writes, {layout}" in names


def test_tolerances_are_as_documented() -> None:
    assert (
        selftest.AMPLIFICATION_TOLERANCE,
        selftest.RELOCATION_TOLERANCE,
        selftest.CHANNEL_TOLERANCE,
    ) == (0.01, 0.02, 0.01)


def test_names_are_unique_and_devices_are_urls() -> None:
    checks = selftest.checks()
    assert len({check.name for check in checks}) == len(checks)
    groups = [group() for group in selftest.GROUPS.values()]
    for check in [group[0] for group in groups] + [group[-1] for group in groups]:
        assert inspect_device(check.device).url == check.device


def test_check_is_deterministic() -> None:
    check = selftest.relocation_checks()[-1]
    assert check.run() == check.run()


@pytest.fixture
def failing_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """A self-test of two checks, one of which is not within."""
    right = SelfTest("right", "sim:demo?gc=greedy", 0.01, lambda _: (2.0, 2.001))
    wrong = SelfTest("wrong", "sim:demo?gc=cyclic", 0.01, lambda _: (2.0, 2.1))
    monkeypatch.setattr(selftest, "checks", lambda: [right, wrong])


@pytest.mark.usefixtures("failing_check")
def test_deviation_sets_exit_code_and_names_device() -> None:
    outcome = uflip("selftest")
    assert outcome.code == 1
    table = {line.split()[0]: line for line in outcome.out.splitlines()[1:3]}
    assert table["right"].endswith("+0.05%     yes")
    assert "+5.00%" in table["wrong"]
    assert table["wrong"].endswith("NO, 1%")
    assert "1 of 2 not within" in outcome.out
    assert "sim:demo?gc=cyclic" in outcome.out.splitlines()[-1]


@pytest.mark.usefixtures("failing_check")
def test_deviation_keeps_one_json_document() -> None:
    outcome = uflip("selftest", "--json")
    assert outcome.code == 1
    document = json.loads(outcome.out)
    assert document["within"] is False
    assert [row["within"] for row in document["rows"]] == [True, False]


def test_on_all_keeps_order_and_stops_at_error() -> None:
    progress: list[tuple[int, str]] = []
    assert on_all(lambda x: x * x, [3, 1, 2], lambda *now: progress.append(now)) == [9, 1, 4]
    assert [done for done, _ in progress] == [1, 2, 3]
    assert sorted(name for _, name in progress) == ["1", "2", "3"]
    called: list[int] = []

    def fail(point: int) -> int:
        called.append(point)
        if point == 0:
            raise ValueError("no such point")
        return point

    with pytest.raises(ValueError, match="no such point"):
        on_all(fail, list(range(10_000)))
    assert len(called) < 10_000
