"""Does one search find structures of Table 3's devices, without the cells that are held out?

The device of most tests is a formula with a known best structure; one is simulated.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from command_line import uflip

from uflip.reproduce import null_models, table3
from uflip.reproduce import table3_structures as structures
from uflip.reproduce.table3_structures import CENTRE, CHOICES, SCORED, WAYS, Structure

DTHX = "kingston-dthx"
KEYS_OF_CELLS = {
    "Pause": "rewrite_buffer", "Locality": "unit_bytes", "Partitions": "open_units",
    "Reverse": "reverse_streams", "In-place": "log_clusters", "Large Incr": "banks",
}  # fmt: skip
"""Each cell of the formula is the distance of one key from its best value."""
BEST = Structure(
    reverse_streams=True, rewrite_buffer=True, unit_bytes=1 << 20, open_units=16, log_clusters=64,
    banks=8,
)  # fmt: skip


class Formula:
    """A structure whose cells follow from a formula."""

    def __init__(self, structure: Structure, best: Structure) -> None:
        self.structure, self.best = structure, best

    def loss(self, columns: Iterable[str], _limit: float = 0) -> float:
        def gap(key: str) -> int:
            ours, best = (
                CHOICES[key].index(getattr(one, key)) for one in (self.structure, self.best)
            )
            return abs(ours - best)

        return sum(gap(KEYS_OF_CELLS[column]) for column in columns)


class FormulaSearch(structures.StructureSearch):
    """A search of such structures."""

    def __init__(self, best: Structure) -> None:
        super().__init__(DTHX)
        self.optimum = best

    def measured(self, structure: Structure) -> Any:
        return Formula(structure, self.optimum)


def test_search_finds_known_structure() -> None:
    assert FormulaSearch(BEST).best(SCORED, CENTRE) == BEST


@pytest.mark.parametrize("column", SCORED)
def test_held_out_cell_does_not_influence_search(column: str) -> None:
    key = KEYS_OF_CELLS[column]
    used = [other for other in SCORED if other != column]
    found = [
        FormulaSearch(replace(BEST, **{key: value})).best(used, CENTRE)
        for value in (CHOICES[key][0], CHOICES[key][-1])
    ]
    assert found[0] == found[1] == replace(BEST, **{key: getattr(CENTRE, key)}), (
        "no other cell constrains the key"
    )


def test_means_of_calibrated_device_are_the_printed_ones() -> None:
    search = structures.StructureSearch(DTHX)
    found = search.measured(replace(CENTRE, banks=1))
    for printed, ours in zip(table3.row_of(DTHX).means_ms, found.means.values(), strict=True):
        assert ours == pytest.approx(printed, rel=table3.REPEATABILITY)
    assert search.measured(replace(CENTRE, banks=1)) is found, "measured once"
    # Written in place, a log of 16 clusters is merged at every 16th write, which costs a random
    # write or less: 1.8 ms and 270 / 16 ms, over 1.8 ms.
    in_place = found.row(["In-place"])["In-place"]
    assert in_place is not None
    assert in_place.deviation is not None
    assert 1 < 6 * (1 + in_place.deviation) <= (1.8 + 270 / 16) / 1.8 * 1.05


def test_statements_match_closed_forms() -> None:
    """Without reclamation a pause adds its length; a processor's time adds to a read."""
    found = structures.StructureSearch(DTHX).measured(replace(CENTRE, banks=1))
    measured = found.statements()
    longest_ms = structures.PAUSES_NS[-1] / 1e6
    assert measured["pauses"] == pytest.approx(1 + longest_ms / found.means["RW"], rel=0.05)
    processor = 8 * found.constants["command_read_ns"] / 1e6 / found.means["SR"]
    assert processor < measured["larger"] < 8


def scores_of_null_model(model: str) -> list[structures.StructureScore]:
    """Scores whose cells are the predictions of a null model."""
    scores = []
    for row in table3.TABLE:
        cells = table3.compare(row, null_models.predicted_row(row.profile, model))
        scored = {cell.column: cell for cell in cells if cell.column in SCORED}
        means = dict(zip(structures.MEANS, row.means_ms, strict=True))
        ways = dict.fromkeys(WAYS, scored)
        scores.append(
            structures.StructureScore(
                row.profile, CENTRE, {}, means, ways, dict.fromkeys(structures.STATEMENTS, 1.1)
            )
        )
    return scores


@pytest.mark.parametrize("model", null_models.NULL_MODELS)
def test_predictions_of_null_model_have_its_score(model: str) -> None:
    expected = sum(null_models.score(row.profile, model, SCORED) for row in table3.TABLE)
    lines = structures.text(scores_of_null_model(model)).splitlines()
    totals = [int(line.split()[-1]) for line in lines if line.startswith(WAYS)]
    assert totals == [expected] * len(WAYS)
    assert any(
        line.startswith(f"no simulator: {model}") and int(line.split()[-1]) == expected
        for line in lines
    )


def test_nearest_device_is_that_of_the_null_model() -> None:
    for row in table3.TABLE:
        others = [other for other in table3.TABLE if other is not row]
        near = min(others, key=lambda other: structures._gap_of_means(row.profile, other.profile))
        values = [null_models.values_of_row(other) for other in others]
        own = null_models.values_of_row(row)
        expected = null_models.nearest_means(table3.COLUMNS.index("Locality"), own, values)
        assert near.locality == expected


def test_command_prints_text_or_json(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = scores_of_null_model("nearest device")
    monkeypatch.setattr(structures, "evaluate", lambda _on_step: scores)
    assert "cells of 7 that agree" in uflip("reproduce", "uflip-table3", "--refit").out
    document = json.loads(uflip("reproduce", "uflip-table3", "--refit", "--json").out)
    assert [device["profile"] for device in document["devices"]] == [
        row.profile for row in table3.TABLE
    ]
    assert document["devices"][0]["cells"]["fitted"]["Pause"]["published"] == "5 ms"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("uflip-fig3", "--refit"), "uflip-table3"),
        (("uflip-table3", "--refit", "-o", "f.png"), "no figure"),
        (("uflip-table3", "--refit", "--ablate", DTHX), "cannot be combined"),
    ],
)
def test_impossible_refit_is_refused(arguments: Sequence[str], message: str) -> None:
    refused = uflip("reproduce", *arguments)
    assert refused.code == 2
    assert message in refused.err
