"""Does the ablation distinguish constants that a row needs from those that it does not?

The device of the test is a formula in which some constants matter; the profile whose constants are
removed is a real one.
"""

import json
from collections.abc import Mapping

from command_line import uflip

from uflip.device.catalogue import inspect_device
from uflip.profiles import profile_sources
from uflip.reproduce import ablation, table3
from uflip.reproduce.coordinate_search import Constants

DTI = "kingston-dti"
VALUES = ablation.values_of(inspect_device(f"sim:{DTI}"))


def cells(deviations: Mapping[str, float]) -> dict[str, table3.Cell]:
    row = {}
    for column in table3.COLUMNS:
        deviation = deviations.get(column, 0.0)
        within, wide = abs(deviation) <= 0.05, abs(deviation) <= 0.15
        row[column] = table3.Cell(column, "1", "1", deviation, "±5 %", within, wide)
    return row


def device(constants: Constants) -> dict[str, table3.Cell] | None:
    """Return the row of a device that misses SR without a link rate, and None without units."""
    if "open_units" in constants:
        return None
    return cells({"RW": 0.1, "SR": 0.2 if "link_bytes_per_s" in constants else 0.0})


def test_unneeded_constant_brings_nothing() -> None:
    progress: list[str] = []
    whole, ablations = ablation.ablate(
        DTI, VALUES, device, lambda _number, name: progress.append(name)
    )
    assert (whole.agree, whole.wide) == (9, 10)
    by_key = {one.key: one for one in ablations}
    # Each is reported as it ends; threads end in any order.
    assert sorted(progress) == sorted(["as it is", *by_key])
    link = by_key["link_bytes_per_s"]
    assert link.score is not None
    assert (link.score.agree, link.score.wide, link.brings_nothing) == (8, 9, False)
    units = by_key["open_units"]
    assert (units.score, units.brings_nothing) == (None, False)
    needless = {key for key, one in by_key.items() if one.brings_nothing}
    # open_map_pages was fitted to a figure, and is not ablated.
    assert needless == set(by_key) - {"link_bytes_per_s", "open_units", "open_map_pages"}
    text = ablation.text(DTI, whole, ablations)
    assert f"{len(needless)} of {len(ablations)} constants bring nothing" in text


def test_only_fitted_constants_are_removable() -> None:
    sources = profile_sources(DTI)
    keys = ablation.removable(DTI, VALUES)
    assert keys
    for key, without in keys.items():
        assert sources[key].kind == "fitted"
        assert VALUES[key] != without == ablation.UNFITTED_VALUES[key]


def test_row_with_larger_deviation_scores_worse() -> None:
    first, second = (ablation.score(cells({"RW": by})) for by in (0.1, 0.14))
    assert (first.agree, first.wide) == (second.agree, second.wide)
    assert first.is_as_good_as(second)
    assert not second.is_as_good_as(first)


def test_device_outside_the_table_is_refused() -> None:
    outcome = uflip("reproduce", "uflip-table3", "--ablate", "demo", "--json")
    assert outcome.code == 2
    error = json.loads(outcome.err or outcome.out)["error"]
    assert error["where"] == "--ablate"
    assert DTI in error["allowed"]
    both = uflip("reproduce", "uflip-table3", "--ablate", DTI, "--refit")
    assert both.code == 2
    assert "cannot be combined" in both.err
