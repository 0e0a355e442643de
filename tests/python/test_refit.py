"""Does a refitted device not depend on the held-out cells, and find its constants from the others?

The device of most tests is two lines of arithmetic, whose best constants are known; one is real.
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


def test_a_search_finds_what_the_cells_tell() -> None:
    start = {"command_read_ns": 100_000, "link_bytes_per_s": 80_000_000, "seek_read_ns": 0}
    found, made = refit.search(start, list(start), ["SR", "RR"], two_lines)
    assert all(one.within for one in two_lines(found, ["SR", "RR"]).values())
    assert found["seek_read_ns"] / 1e6 == pytest.approx(PRINTED[1] - PRINTED[0], abs=0.25)
    assert made <= refit.BUDGET


def test_a_search_ends_with_its_budget_and_never_gets_worse() -> None:
    def hopeless(constants: refit.Constants, _columns: Sequence[str]) -> Mapping[str, table3.Cell]:
        return {"SR": cell("SR", 1000 + constants["streams"], 1.0)}

    found, made = refit.search({"streams": 4}, ["streams"], ["SR"], hopeless)
    assert made <= refit.BUDGET
    assert found["streams"] <= 4
    nowhere, _ = refit.search({"streams": 4}, ["streams"], ["SR"], lambda *_: None)
    assert nowhere == {"streams": 4}, "there is no such device, and no better one either"


VALUES = {
    row.profile: refit.values_of(inspect_device(f"sim:{row.profile}")) for row in table3.TABLE
}


@pytest.mark.parametrize("leave", refit.LEAVE)
@pytest.mark.parametrize("column", table3.COLUMNS)
def test_nothing_of_a_held_out_cell_is_left(column: str, leave: str) -> None:
    """Whatever was fitted to the cell could have been anything else: the device is the same."""
    seen: list[dict[str, Any]] = []

    def measure(constants: refit.Constants, columns: Sequence[str]) -> Mapping[str, table3.Cell]:
        seen.append(dict(constants))
        # Depends on every constant, and on nothing else.
        total = sum(hash((key, value)) % 97 for key, value in sorted(constants.items()))
        return {one: cell(one, 1.0 + total / 10, 1.0) for one in columns}

    def folded(own: dict[str, Any]) -> tuple[refit.Fold, list[dict[str, Any]]]:
        seen.clear()
        one = refit.fold(DTI, (column,), leave, VALUES | {DTI: own}, measure)
        return one, list(seen)

    keys = refit.fitted_keys(DTI, VALUES[DTI], [column])
    begun = refit.start_values(keys, VALUES[DTI], [], leave)
    told = [key for key in keys if key in refit.UNFITTED_VALUES]
    assert set(told) == set(keys), f"{begun}: a constant without a beginning of its own"
    first, asked = folded(VALUES[DTI])
    second, again = folded(VALUES[DTI] | dict.fromkeys(keys, 123_456_789))
    assert asked == again
    assert first.cells == second.cells
    assert {key: ends[1:] for key, ends in first.constants.items()} == {
        key: ends[1:] for key, ends in second.constants.items()
    }


def test_every_fitted_number_of_the_table_has_a_beginning_that_knows_nothing() -> None:
    for row in table3.TABLE:
        fitted = refit.fitted_keys(row.profile, VALUES[row.profile], table3.COLUMNS)
        assert set(fitted) <= set(refit.UNFITTED_VALUES), row.profile


def test_what_no_other_cell_constrains_stays_where_it_began() -> None:
    """Only the cell itself told how many clusters may be written downwards."""
    said = json.loads(
        uflip("reproduce", "uflip-table3", "--refit", DTI, "--without", "reverse", "--json").out
    )
    (fold,) = said["folds"]
    others = [name for name in VALUES if name != DTI and "backward_clusters" in VALUES[name]]
    assert others == [], "no other device has such a constant to begin at"
    fitted = VALUES[DTI]["backward_clusters"]
    assert fold["constants"] == {"backward_clusters": [fitted, 0, 0]}
    assert fold["devices"] == 1
    (found,) = fold["cells"]
    # Each write downwards then merges its unit, as a random write does.
    assert (found["column"], found["within"]) == ("Reverse", False)
    assert found["deviation"] > 5


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("uflip-fig3", "--refit", DTI), "uflip-table3"),
        (("uflip-table3", "--without", "RW"), "--refit"),
        (("uflip-table3", "--refit", "demo"), DTI),
        (("uflip-table3", "--refit", DTI, "--without", "XX"), "in_place"),
        (("uflip-table3", "--refit", DTI, "-o", "f.png"), "no figure"),
    ],
)
def test_what_cannot_be_refitted_is_refused(arguments: tuple[str, ...], told: str) -> None:
    refused = uflip("reproduce", *arguments)
    assert refused.code == 2
    assert told in refused.err


def test_columns_are_known_by_both_of_their_names() -> None:
    assert refit.check_columns(["Large Incr", "large_incr"]) == ("Large Incr", "Large Incr")
    with pytest.raises(UsageError):
        refit.check_columns(["RX"])
