"""Do the null models of Table 3 use nothing of the cell that they predict?"""

from dataclasses import replace

import pytest

from uflip.reproduce import null_models, table3

PROFILES = [row.profile for row in table3.TABLE]


def total(model: str) -> int:
    return sum(null_models.score(profile, model) for profile in PROFILES)


def test_scores_match_an_independent_program() -> None:
    """Counted by a separate script, by the table's scale and tolerances."""
    assert [total(model) for model in null_models.NULL_MODELS] == [10, 10, 17, 15]


@pytest.mark.parametrize("model", null_models.NULL_MODELS)
@pytest.mark.parametrize(("field", "value", "key"), [
    ("reverse", 99, "reverse"), ("large_increments", 99, "large_increments"),
    ("locality", (512, 99), "locality"), ("pause", "77", "pause"),
])  # fmt: skip
def test_prediction_is_independent_of_its_cell(
    model: str, field: str, value: object, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = null_models.predicted_row("mtron", model)[key]  # type: ignore[literal-required]
    rows = tuple(
        replace(row, **{field: value}) if row.profile == "mtron" else row  # type: ignore[arg-type]
        for row in table3.TABLE
    )
    monkeypatch.setattr(table3, "TABLE", rows)
    assert null_models.predicted_row("mtron", model)[key] == before  # type: ignore[literal-required]


def test_device_like_another_is_predicted_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    twin = replace(table3.TABLE[1], profile="twin")
    monkeypatch.setattr(table3, "TABLE", (*table3.TABLE, twin))
    assert null_models.score("twin", "nearest device") == len(table3.COLUMNS)
