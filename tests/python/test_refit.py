"""Does a refitted device not depend on the held-out cells, and find its constants from the others?

The device of most tests is two lines of arithmetic with known best constants; one is real.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from command_line import uflip

from uflip.device.catalogue import inspect_device
from uflip.errors import UsageError
from uflip.reproduce import refit, table3

DTI = "kingston-dti"
PRINTED = refit.published_row(DTI).means_ms


def cell(column: str, ours: float, printed: float) -> table3.Cell:
    deviation = ours / printed - 1
    within = abs(deviation) <= table3.REPEATABILITY
    return table3.Cell(column, f"{printed:g}", f"{ours:g}", deviation, "±5 %", within, within)


def two_lines(constants: refit.Constants, columns: Sequence[str]) -> Mapping[str, table3.Cell]:
    """SR and RR [ms] of 32 KiB over a link, RR with a seek more; nothing else is known here."""
    sequential = constants["command_read_ns"] / 1e6 + 32768e3 / constants["link_bytes_per_s"]
    times = {"SR": sequential, "RR": sequential + constants["seek_read_ns"] / 1e6}
    printed = dict(zip(("SR", "RR"), PRINTED, strict=False))
    return {column: cell(column, times[column], printed[column]) for column in columns}


def test_search_finds_known_constants() -> None:
    start = {"command_read_ns": 100_000, "link_bytes_per_s": 80_000_000, "seek_read_ns": 0}
    constants, made = refit.search(start, list(start), ["SR", "RR"], two_lines)
    assert all(one.within for one in two_lines(constants, ["SR", "RR"]).values())
    assert constants["seek_read_ns"] / 1e6 == pytest.approx(PRINTED[1] - PRINTED[0], abs=0.25)
    assert made <= refit.BUDGET


def test_search_respects_budget_and_never_gets_worse() -> None:
    def far_off(constants: refit.Constants, _columns: Sequence[str]) -> Mapping[str, table3.Cell]:
        return {"SR": cell("SR", 1000 + constants["streams"], 1.0)}

    best, made = refit.search({"streams": 4}, ["streams"], ["SR"], far_off)
    assert made <= refit.BUDGET
    assert best["streams"] <= 4
    unchanged, _ = refit.search({"streams": 4}, ["streams"], ["SR"], lambda *_: None)
    assert unchanged == {"streams": 4}, "there is no such device, and no better one either"


VALUES = {
    row.profile: refit.values_of(inspect_device(f"sim:{row.profile}")) for row in table3.TABLE
}


@pytest.mark.parametrize("leave", refit.LEAVE_OUT_UNITS)
@pytest.mark.parametrize("column", table3.COLUMNS)
def test_held_out_cell_does_not_influence_fit(column: str, leave: str) -> None:
    """The refitted device is the same for any value fitted to the held-out cell."""
    calls: list[dict[str, Any]] = []

    def measure(constants: refit.Constants, columns: Sequence[str]) -> Mapping[str, table3.Cell]:
        calls.append(dict(constants))
        # Depends on every constant, and on nothing else.
        total = sum(hash((key, value)) % 97 for key, value in sorted(constants.items()))
        return {one: cell(one, 1.0 + total / 10, 1.0) for one in columns}

    def folded(values: dict[str, Any]) -> tuple[refit.Fold, list[dict[str, Any]]]:
        calls.clear()
        one = refit.fold(DTI, (column,), leave, VALUES | {DTI: values}, measure)
        return one, list(calls)

    keys = refit.fitted_keys(DTI, VALUES[DTI], [column])
    begun = refit.start_values(keys, VALUES[DTI], [], leave)
    covered = [key for key in keys if key in refit.UNFITTED_VALUES]
    assert set(covered) == set(keys), f"{begun}: a constant without a beginning of its own"
    first, first_calls = folded(VALUES[DTI])
    second, second_calls = folded(VALUES[DTI] | dict.fromkeys(keys, 123_456_789))
    assert first_calls == second_calls
    assert first.cells == second.cells
    assert {key: ends[1:] for key, ends in first.constants.items()} == {
        key: ends[1:] for key, ends in second.constants.items()
    }


def test_each_fitted_constant_has_an_uninformed_beginning() -> None:
    for row in table3.TABLE:
        fitted = refit.fitted_keys(row.profile, VALUES[row.profile], table3.COLUMNS)
        assert set(fitted) <= set(refit.UNFITTED_VALUES), row.profile


def test_unconstrained_constant_keeps_its_beginning() -> None:
    """Only the held-out cell constrains the number of clusters written downwards."""
    document = json.loads(
        uflip("reproduce", "uflip-table3", "--refit", DTI, "--without", "reverse", "--json").out
    )
    (fold,) = document["folds"]
    others = [name for name in VALUES if name != DTI and "backward_clusters" in VALUES[name]]
    assert others == [], "no other device has such a constant to begin at"
    fitted = VALUES[DTI]["backward_clusters"]
    assert fold["constants"] == {"backward_clusters": [fitted, 0, 0]}
    assert fold["devices"] == 1
    (result,) = fold["cells"]
    # Each write downwards then merges its unit, as a random write does.
    assert (result["column"], result["within"]) == ("Reverse", False)
    assert result["deviation"] > 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("uflip-fig3", "--refit", DTI), "uflip-table3"),
        (("uflip-table3", "--without", "RW"), "--refit"),
        (("uflip-table3", "--refit", "demo"), DTI),
        (("uflip-table3", "--refit", DTI, "--without", "XX"), "in_place"),
        (("uflip-table3", "--refit", DTI, "-o", "f.png"), "no figure"),
    ],
)
def test_impossible_refit_is_refused(arguments: tuple[str, ...], message: str) -> None:
    refused = uflip("reproduce", *arguments)
    assert refused.code == 2
    assert message in refused.err


def test_columns_have_two_names() -> None:
    assert refit.check_columns(["Large Incr", "large_incr"]) == ("Large Incr", "Large Incr")
    with pytest.raises(UsageError):
        refit.check_columns(["RX"])
