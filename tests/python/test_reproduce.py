"""Do the papers' numbers come out, are misses reported as misses, and are figures drawn?"""

import fnmatch
import importlib
import json
import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from command_line import Outcome, uflip

from uflip.device.opener import open_device
from uflip.profiles import profile_names, profile_sources, read_profile
from uflip.reproduce import (
    REPRODUCTIONS,
    figure,
    ofc,
    ofc_relocation,
    ofc_workloads,
    reproduction,
    simulated_device,
    uflip_table3,
)
from uflip.reproduce.published import PUBLISHED, with_determining_values
from uflip.reproduce.reproduction import (
    RULES,
    ReproductionRow,
    WiderTolerance,
    above,
    compare_printed,
    compare_stated,
    equation,
)
from uflip.reproduce.simulated_device import SimulatedDevice

ROW_KEYS = [
    "what", "unit", "published", "ours", "deviation", "tolerance", "within", "kind", "value_id",
    "fitted_by", "note",
]  # fmt: skip
DOCS = Path(__file__).resolve().parents[2] / "docs" / "reference"
LABELS = ("Source", "Faithful", "Simplified", "Ambiguous")
# The whole benchmark on several devices: test_uflip_devices.py and test_initial_state.py.
LONG = ("uflip-table3", "uflip-hints", "uflip-states", "drives")
QUICK = [name for name in REPRODUCTIONS if name not in LONG]
MAGIC = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}

# Rows that are reported as missed.
MISSES = tomllib.loads((DOCS.parent / "papers.toml").read_text(encoding="utf-8"))["misses"]

Run = Callable[[str], Outcome]


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory, reproduce: Callable[..., Outcome]) -> Run:
    """Each reproduction is carried out once, with its figure."""
    folder = tmp_path_factory.mktemp("figures")
    endings = dict(zip(QUICK, [*MAGIC] * len(QUICK), strict=False))
    done: dict[str, Outcome] = {}

    def run(name: str) -> Outcome:
        if name not in done:
            done[name] = reproduce(name, "--json", "-o", folder / (name + endings[name]))
        return done[name]

    return run


def rows_of(outcome: Outcome) -> dict[str, dict[str, Any]]:
    return {row["what"]: row for row in json.loads(outcome.out)["rows"]}


# The numbers


@pytest.mark.parametrize("name", QUICK)
def test_reproduced_values_match_except_known_misses(name: str, reproduced: Run) -> None:
    outcome = reproduced(name)
    assert outcome.code == 0, "a miss is not an error"
    assert outcome.err == ""
    rows = rows_of(outcome)
    assert {what for what, row in rows.items() if not row["within"]} == set(MISSES.get(name, ()))
    for row in rows.values():
        assert list(row) == ROW_KEYS
        assert row["within"] or row["note"], f"a miss without its reason: {row['what']}"


@pytest.mark.parametrize("name", QUICK)
def test_figure_is_a_picture(name: str, reproduced: Run) -> None:
    document = json.loads(reproduced(name).out)
    path = Path(document["figure"])
    assert path.read_bytes().startswith(MAGIC[path.suffix])
    assert path.stat().st_size > 5_000
    assert document["series"]


def test_text_equation_and_simulation_are_compared(reproduced: Run) -> None:
    rows = rows_of(reproduced("ofc-fig5b"))
    text = {0.30: 45, 0.45: 27, 0.60: 15}
    calculated = {0.30: 59.8, 0.45: 33.4, 0.60: 13.7}
    for spare_factor, pages in text.items():
        what = f"relocated pages, {100 * spare_factor:.0f} % spare"
        by_text, by_equation = rows[f"{what}: text"], rows[f"{what}: equation (2)"]
        assert by_text["published"] == pages
        assert by_equation["published"] == pytest.approx(calculated[spare_factor], abs=0.05)
        assert by_text["ours"] == by_equation["ours"]
        assert rows[f"{what}: equation (2), the pool"]["deviation"] == pytest.approx(0, abs=0.01)
    host = "the same per host page, 45 % spare"
    assert rows[f"{host}: text"]["published"] == 0.5
    assert rows[f"{host}: equation (2)"]["published"] == pytest.approx(0.353, abs=0.0005)


def test_published_pairs_of_pages_and_rates_agree(reproduced: Run) -> None:
    rows = rows_of(reproduced("ofc-fig5a"))
    pairs = {15: (13.0, "prediction"), 27: (8.5, "fitted"), 45: (6.0, "prediction")}
    for pages, (kiops, kind) in pairs.items():
        row = rows[f"random writes at {pages} relocated pages"]
        assert (row["published"], row["kind"], row["within"]) == (kiops, kind, True)


def test_value_between_two_fits_is_labelled_fitted() -> None:
    """17 at no pages and 8.5 at 30 were fitted: no falling, convex curve misses 8.5 ±10 % at 27.

    Convex, it lies below the chord of both; falling, it does not lie below its value at 30.
    """
    at_0, at_30 = 17.0, 8.5
    for value in (at_30, at_0 + (at_30 - at_0) * 27 / 30):
        assert compare_printed("ofc/relocating_27", value, wider=ofc_relocation.INTERPOLATED).within
    assert reproduction.kind_of("ofc/relocating_27") == "fitted"


def test_all_fits_are_printed_and_agree(reproduced: Run) -> None:
    rows = rows_of(reproduced("ofc-throughput"))
    for fit in ofc.FITS:
        row = rows[PUBLISHED[fit.value_id].quantity]
        assert (row["kind"], row["published"], row["within"]) == ("fitted", fit.published, True)
        assert fit.constant in row["fitted_by"]


def test_reproduction_is_deterministic(reproduced: Run) -> None:
    repeated = uflip("reproduce", "ofc-fig5a", "--json")
    first = json.loads(reproduced("ofc-fig5a").out)
    assert json.loads(repeated.out) == first | {"figure": None}


def test_nine_steps_are_reported_and_drawn_reproducibly(reproduced: Run, tmp_path: Path) -> None:
    rows = rows_of(reproduced("ofc-fig7"))
    assert {what[1] for what in rows} == set("123456789")
    series = json.loads(reproduced("ofc-fig7").out)["series"]
    data = ofc_workloads.WorkloadSequence(
        tuple(ofc_workloads.Step(**step) for step in series["steps"])
    )
    assert len(data.steps) == 9
    outcome = figure.ReproductionOutcome(ofc_workloads.OFC_FIGURE_7, data, [])
    paths = [tmp_path / "one.svg", tmp_path / "other.svg"]
    for path in paths:
        figure.write(outcome, path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


# The traffic generator


def addresses(specs: list[dict[str, Any]], page_bytes: int) -> list[np.ndarray]:
    """Pages of each run, in the order of submission."""
    with open_device("sim:ofc?state=empty&blocks_per_die=64") as device:
        traces = [device.run(spec) for spec in specs]
    return [np.asarray(trace.column("offset_bytes")) // page_bytes for trace in traces]


@pytest.mark.parametrize("outstanding", [1, 6, 7])
def test_sequential_stream_wraps_around_device(outstanding: int) -> None:
    device = SimulatedDevice("sim:ofc?state=empty&blocks_per_die=64")
    pages = device.logical_pages
    runs = simulated_device.sequential_requests(
        "write",
        logical_pages=pages,
        page_bytes=device.page_bytes,
        outstanding=outstanding,
        ios=pages + 1000,
        run_ios=10_000,
    )
    touched = np.concatenate(addresses(list(runs), device.page_bytes))
    assert touched.tolist() == [*range(pages), *range(1000)]


def test_outstanding_requests_match_option() -> None:
    (spec,) = simulated_device.random_requests(
        "write", page_bytes=4096, outstanding=6, ios=3000, seed=1
    )
    with open_device("sim:ofc?state=empty&blocks_per_die=64") as device:
        trace = device.run(spec)
    submitted = np.asarray(trace.column("submit_ns"))
    completed = submitted + np.asarray(trace.column("response_time_ns"))
    under_way = [int((completed[:i] > submitted[i]).sum()) + 1 for i in range(6, 3000)]
    assert max(under_way) == 6
    assert np.mean(under_way) > 5.9


def test_random_requests_cover_device_and_differ_between_runs() -> None:
    runs = list(
        simulated_device.random_requests(
            "read", page_bytes=4096, outstanding=6, ios=1_000_000, seed=5
        )
    )
    assert [run.seed for run in runs] == [5, 6]
    assert sum(run.io_count for run in runs) == 1_000_000
    first, second = addresses([run.but(io_count=30_000) for run in runs], 4096)
    assert (first != second).mean() > 0.99
    assert np.histogram(first, 10)[0].min() > 0.9 * len(first) / 10


def test_mix_keeps_its_share() -> None:
    for percent in (75, 20, 50):
        spec = simulated_device.mixed_requests(
            percent, page_bytes=4096, outstanding=2, ios=4000, seed=1
        )
        with open_device("sim:ofc?state=empty&blocks_per_die=64") as device:
            mode = np.asarray(device.run(spec).column("mode"))
        # Five standard deviations of a binomial of 4000 draws are 4 %.
        assert mode.mean() == pytest.approx(1 - percent / 100, abs=0.04)


# Rows


def test_row_states_agreement_and_rule() -> None:
    predicted = compare_printed("ofc/random_writes_45", 8.5 * 1.09)
    assert (predicted.kind, predicted.tolerance, predicted.within) == ("prediction", "±10 %", True)
    assert not compare_printed("ofc/random_writes_45", 8.5 * 1.11).within
    assert compare_printed("ofc/erasing_writes", 17.49).tolerance == "±0.5", "rounds to 17"
    fitted = compare_printed("ofc/drop_30_pages", 50 * 1.03)
    assert (fitted.kind, fitted.tolerance, fitted.within) == ("fitted", "±2 %", False)
    about = compare_printed("uflip/fig5/mtron/reads", 3000 * 1.09)
    assert (about.kind, about.tolerance, about.within) == ("fitted", "±10 %", True)
    wider = compare_printed(
        "ofc/drop_30_pages", 50 * 1.03, wider=WiderTolerance(0.05, "chance"), note="More."
    )
    assert (wider.tolerance, wider.within) == ("±5 %", True)
    assert wider.note == "±5 % instead of ±2 %: chance. More."
    assert not equation("x", "", 100, 103).within
    row = compare_stated("ofc/ratio_60_30", 2.0, above(2))
    assert (row.tolerance, row.within, row.deviation) == ("above 2", False, None)
    with pytest.raises(ValueError, match="in words"):
        compare_printed("ofc/ratio_60_30", 2.6)


# Fitted or predicted


SECOND_PROFILES = {"ofc-pipelined": "ofc"}
"""Further profiles of a device, with the profile that is used by default."""


def test_published_values_named_by_profiles_exist() -> None:
    for name in profile_names():
        for key, source in profile_sources(name).items():
            for pattern in source.values:
                matches = fnmatch.filter(PUBLISHED, pattern)
                assert matches, f"{name}: {key} names {pattern}"
                devices = {PUBLISHED[value].device for value in matches}
                allowed_devices = {name, SECOND_PROFILES.get(name, name), ""}
                assert devices <= allowed_devices, f"{name}: {key} names values of {devices}"


def test_determining_values_exist_and_share_the_device() -> None:
    for value in PUBLISHED.values():
        assert value.id not in value.determined_by
        for other in with_determining_values(value.id):
            assert PUBLISHED[other].device == value.device


def by_hand(row: dict[str, Any], device: str) -> str:
    """The kind of a row, from nothing but the profile's text and the declared relations."""
    if row["value_id"] is None:
        return "equation"
    pending, related = [row["value_id"]], set()
    while pending:
        related.add(one := pending.pop())
        pending += [other for other in PUBLISHED[one].determined_by if other not in related]
    table = tomllib.loads(read_profile(device)[1])["sources"]
    patterns = [value for source in table.values() for value in source.get("values", [])]
    hit = any(fnmatch.fnmatchcase(one, pattern) for one in related for pattern in patterns)
    return "fitted" if hit else "prediction"


# Values set outside of profiles, or undone by an override, make the kind another one.
KIND_EXCEPTIONS = {
    "ms-fig4": {"zero-page merge, with the fault", "full merge, with the fault",
                "N_valid, with the fault", "N_data, with the fault"},
    "ofc-fig1": {"median page over worst page, at the rated erases"},
    "ofc-fig4": {"usable pages at four times the rated erases"},
    "ofc-throughput": {"random reads (§V.F)", "random reads if a bus carried the printed 100 MB/s",
                       "raw reads if a bus carried the printed 100 MB/s"},
    "ofc-fig6b": {"random reads alone",
                  "drop from reads to writes alone: with relocation over erases only"},
    "ofc-fig7": {"#3 random reads"},
    "ofc-scaling": {"random reads (§V.F)"},
    "oc-fig2": {"100 % reads, 99th over 1st percentile"},
    "oc-tables": {one.quantity for one in PUBLISHED.values() if one.id.startswith("oc/table")},
    "oc-fig3": {"writes, spread over LUNs", "reads, spread over LUNs"},
    "oc-fig4": {"change of the mean write time", "failed writes"},
}  # fmt: skip


@pytest.mark.parametrize("name", QUICK)
def test_row_kind_follows_from_profile_sources(name: str, reproduced: Run) -> None:
    for what, row in rows_of(reproduced(name)).items():
        if what in KIND_EXCEPTIONS.get(name, ()):
            continue
        device = "" if row["value_id"] is None else PUBLISHED[row["value_id"]].device
        device = "ofc-pipelined" if name == "ofc-scaling" else device
        assert row["kind"] == by_hand(row, device), what
        assert bool(row["fitted_by"]) == (row["kind"] == "fitted"), what


def test_settings_outside_profiles_affect_kind() -> None:
    faulty = "fast-1gb?compat=flashsim2010"
    assert reproduction.kind_of("ms/fig4/n_data", faulty) == "fitted"
    assert reproduction.kind_of("ms/fig4/n_data") == "prediction"
    assert reproduction.fitted_by("ofc/random_reads") == ("outstanding requests",)
    assert reproduction.kind_of("ofc/raw_reads", "ofc?bus_bytes_per_s=100000000") == "prediction"
    for sources in reproduction.SETTINGS.values():
        for source in sources.values():
            assert set(source.values) <= set(PUBLISHED)


def test_uninfluenced_table_cells_are_predictions() -> None:
    """Four cells of Table 3 have nothing in their device that was set with an eye to them."""
    predicted = {
        (row.profile, column)
        for row in uflip_table3.table3.TABLE
        for column in uflip_table3.table3.COLUMNS
        if reproduction.kind_of(uflip_table3.value_id(row.profile, column)) == "prediction"
    }
    assert predicted == {
        ("memoright", "In-place"),
        ("transcend-mlc", "Large Incr"),
        ("kingston-dthx", "Large Incr"),
        ("kingston-dti", "Large Incr"),
    }


def test_rules_match_documentation() -> None:
    page = (DOCS / "reproduce.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `(\w+)` \|[^|]*\| (\d+) %", page, re.M)
    assert {kind: int(share) / 100 for kind, share in documented} == RULES
    assert [field.name for field in fields(ReproductionRow)] == ROW_KEYS
    assert all(f"`{key}`" in page for key in ROW_KEYS)


# The list


@pytest.mark.parametrize("name", REPRODUCTIONS)
def test_reproduction_documents_its_reading_of_the_paper(name: str) -> None:
    """Its section of the file begins with the four labelled lines: no other one ends in between."""
    rows = REPRODUCTIONS[name].rows
    module = importlib.import_module(rows.__module__)
    names = {key for key, each in vars(module).items() if each in REPRODUCTIONS.values()}
    assert REPRODUCTIONS[name] in [vars(module)[key] for key in names]
    source = Path(module.__file__).read_text(encoding="utf-8")
    section = source[: source.index(f"def {rows.__name__}(")]
    found = [
        [match.end() for match in re.finditer(rf"^(?:# )?\*\*{label}\*\*", section, re.M)]
        for label in LABELS
    ]
    assert all(found), "the four labelled lines"
    reading = [ends[-1] for ends in found]
    assert reading == sorted(reading)
    assert not re.search(rf"^(?:{'|'.join(names)}) =", section[reading[0] :], re.M)


def test_reproductions_are_listed_and_documented() -> None:
    listed = uflip("reproduce")
    assert [line.split()[0] for line in listed.out.splitlines()[1:]] == list(REPRODUCTIONS)
    as_json = json.loads(uflip("reproduce", "--json").out)
    assert [one["id"] for one in as_json] == list(REPRODUCTIONS)
    pages = [DOCS / "reproduce.md", DOCS / "reproduce-oc.md"]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    # The reproductions of uFLIP share a section: text describes one, a table the others.
    of_uflip = re.findall(r"^(?:\| )?`(uflip-[\w-]+)`", text, re.M)
    headings = re.findall(r"^## ((?:ms|ofc|oc)-\S+)$", text, re.M)
    assert [*headings, *of_uflip, "drives"] == list(REPRODUCTIONS)
    assert "\n## drives\n" in text


def key_types(hint: Any) -> set[Any]:
    """Return the types of the keys of all mappings within a type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (dict, Mapping):
        return {arguments[0]} | key_types(arguments[1])
    if not arguments and (is_dataclass(hint) or hasattr(hint, "__struct_fields__")):
        arguments = tuple(get_type_hints(hint).values())
    return set().union(*map(key_types, arguments))


@pytest.mark.parametrize("name", REPRODUCTIONS)
def test_series_of_long_reproductions_have_keys_of_json(name: str) -> None:
    measure = REPRODUCTIONS[name].measure
    data = get_type_hints(getattr(measure, "func", measure))["return"]
    assert key_types(data) <= {str, int}


# Bad input


def test_unknown_id_lists_known_ones() -> None:
    outcome = uflip("reproduce", "ofc-fig5")
    assert outcome.code == 2
    assert "did you mean ofc-fig5" in outcome.err
    assert "ofc-throughput" in outcome.err


@pytest.mark.parametrize("out", ["figure.gif", "figure", "no-such-folder/figure.png"])
def test_unwritable_figure_is_refused_before_any_work(
    out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("uflip.reproduce.carry_out", lambda *_: pytest.fail("it has begun"))
    outcome = uflip("reproduce", "ofc-fig5a", "-o", out)
    assert outcome.code == 2
    assert list(tmp_path.iterdir()) == []


def test_figure_without_id_is_refused() -> None:
    assert uflip("reproduce", "-o", "x.png").code == 2


def test_without_matplotlib_figure_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr("uflip.reproduce.carry_out", lambda *_: pytest.fail("it has begun"))
    outcome = uflip("reproduce", "ofc-fig5a", "-o", tmp_path / "x.png", "--json")
    assert outcome.code == 6
    assert json.loads(outcome.out)["error"]["kind"] == "unavailable"


def test_listing_imports_no_heavy_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert uflip("reproduce").code == 0
