"""Does a fit to one table of uFLIP-OC see nothing of the other one?"""

from collections.abc import Callable
from fnmatch import fnmatchcase

import pytest

from uflip.profiles import profile_sources
from uflip.reproduce import oc_cross_fit
from uflip.reproduce.published import PUBLISHED
from uflip.reproduce.refit import Constants

RATES = {
    table: [key for key in PUBLISHED if fnmatchcase(key, f"oc/{table}/*") and "factor" not in key]
    for table in oc_cross_fit.OTHER
}


def test_every_constant_fitted_to_the_tables_is_searched() -> None:
    named = {
        key
        for key, source in profile_sources("dfc").items()
        if any(fnmatchcase(rate, value) for rate in RATES["table2"] for value in source.values)
    }
    assert named == set(oc_cross_fit.START)


def model(table: str, calls: list[str]) -> Callable[[Constants], dict[str, float]]:
    """A card whose rates are proportional to one constant."""

    def measure(constants: Constants) -> dict[str, float]:
        calls.append(table)
        scale = constants["channel_bytes_per_s"] / 73e6
        return {key: scale * float(PUBLISHED[key].number or 0) for key in RATES[table]}

    return measure


def test_every_rate_of_the_tables_is_measured() -> None:
    for table, measure in oc_cross_fit.MEASURE.items():
        assert sorted(measure(oc_cross_fit.START)) == sorted(RATES[table])


@pytest.mark.parametrize("fitted", ["table2", "table3"])
def test_search_measures_only_the_fitted_table(
    fitted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    for table in oc_cross_fit.OTHER:
        monkeypatch.setitem(oc_cross_fit.MEASURE, table, model(table, calls))
    found = oc_cross_fit.fit((fitted, dict(oc_cross_fit.START)))
    assert set(calls[: found.devices]) == {fitted}
    assert calls.count(oc_cross_fit.OTHER[fitted]) == 1, "the score, at the end"
    assert found.constants["channel_bytes_per_s"] == pytest.approx(73e6, rel=0.02)
    assert found.ratios(oc_cross_fit.OTHER[fitted]) == pytest.approx(
        [found.constants["channel_bytes_per_s"] / 73e6] * len(RATES[oc_cross_fit.OTHER[fitted]])
    )
