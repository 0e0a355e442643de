"""Do the papers' numbers come out, are misses told as misses, and are figures drawn?"""

import importlib
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Outcome, uflip

from uflip.reproduce import REPRODUCTIONS, carry_out, figure, fits, ofc, ofc_fig7, traffic
from uflip.reproduce.row import fitted, prediction, statement
from uflip.reproduce.simulated import SimulatedDevice
from uflip.run import open_device

ROW_KEYS = ["what", "unit", "published", "ours", "deviation", "within", "kind", "note"]
LABELS = ("Source", "Faithful", "Simplified", "Ambiguous")
# These have tests of their own, uflip-table3 one that `make soak` runs.
SLOW = ("ofc-fig7", "oc-fig4", "uflip-table3")
QUICK = [name for name in REPRODUCTIONS if name not in SLOW]
MAGIC = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}

# What does not come out, and is told so. A change of this list is news: either the simulator has
# come closer to the paper, or further from it.
MISSES = {
    "ms-fig1": set(),
    "ms-fig2": set(),
    "ms-fig3": set(),
    "ms-fig4": {"zero-page merge, FAST as described", "full merge, FAST as described"},
    "ofc-fig5a": set(),
    "ofc-fig5b": {
        "random writes, 30 % spare",
        "relocated pages, 30 % spare: text",
        "relocated pages, 45 % spare: text",
        "the same a host page, 45 % spare: text",
    },
    "ofc-fig6a": {"relocated pages, steady: text"},
    "ofc-fig6b": set(),
    "ofc-fig7": {"#3 below #2", "#6 random reads, last second above the first"},
    "uflip-fig3": set(),
    "uflip-fig4": set(),
    "uflip-fig5": set(),
    "uflip-fig6": set(),
    "uflip-fig7": set(),
    "uflip-fig8": set(),
    "ofc-throughput": {
        "raw writes, no processing (§III)",
        "raw reads if a bus carried the printed 100 MB/s",
        "random reads if a bus carried the printed 100 MB/s",
    },
    "oc-fig2": set(),
    "oc-fig3": set(),
    "oc-fig5": {"writes alone, standard deviation over that at 50 % writes"},
    "oc-table2": set(),
    "oc-table3": set(),
}

Run = Callable[[str], Outcome]


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Each quick reproduction is carried out once, with its figure."""
    folder = tmp_path_factory.mktemp("figures")
    endings = dict(zip(QUICK, [*MAGIC] * len(QUICK), strict=False))
    done: dict[str, Outcome] = {}

    def run(name: str) -> Outcome:
        if name not in done:
            done[name] = uflip("reproduce", name, "--json", "-o", folder / (name + endings[name]))
        return done[name]

    return run


def rows_of(outcome: Outcome) -> dict[str, dict[str, Any]]:
    return {row["what"]: row for row in json.loads(outcome.out)["rows"]}


# The numbers


@pytest.mark.parametrize("name", QUICK)
def test_what_comes_out_and_what_does_not(name: str, reproduced: Run) -> None:
    outcome = reproduced(name)
    assert outcome.code == 0, "a miss is no error"
    assert outcome.err == ""
    rows = rows_of(outcome)
    assert {what for what, row in rows.items() if not row["within"]} == MISSES[name]
    for row in rows.values():
        assert list(row) == ROW_KEYS
        assert row["within"] or row["note"], f"a miss without its reason: {row['what']}"


@pytest.mark.parametrize("name", QUICK)
def test_the_figure_is_a_picture(name: str, reproduced: Run) -> None:
    document = json.loads(reproduced(name).out)
    path = Path(document["figure"])
    assert path.read_bytes().startswith(MAGIC[path.suffix])
    assert path.stat().st_size > 5_000
    assert document["series"]


def test_text_equation_and_simulation_stand_side_by_side(reproduced: Run) -> None:
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
    host = "the same a host page, 45 % spare"
    assert rows[f"{host}: text"]["published"] == 0.5
    assert rows[f"{host}: equation (2)"]["published"] == pytest.approx(0.353, abs=0.0005)


def test_printed_pairs_of_pages_and_rates_are_predicted(reproduced: Run) -> None:
    rows = rows_of(reproduced("ofc-fig5a"))
    pairs = {15: 13.0, 27: 8.5, 45: 6.0}
    for pages, kiops in pairs.items():
        row = rows[f"random writes at {pages} relocated pages"]
        assert (row["published"], row["kind"], row["within"]) == (kiops, "prediction", True)


def test_all_fits_are_shown_and_come_out(reproduced: Run) -> None:
    rows = rows_of(reproduced("ofc-throughput"))
    for fit in fits.FITS:
        row = rows[fit.what]
        assert (row["kind"], row["published"], row["within"]) == ("fitted", fit.published, True)
        assert row["note"] == f"fitted: {fit.constant}"


def test_a_reproduction_gives_the_same_numbers_again(reproduced: Run) -> None:
    again = uflip("reproduce", "ofc-fig5a", "--json")
    first = json.loads(reproduced("ofc-fig5a").out)
    assert json.loads(again.out) == first | {"figure": None}


def test_the_nine_steps_with_fewer_requests(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Enough to write the flash twice in each step; the docs run all 5.5 million.
    monkeypatch.setattr(ofc, "IOS", 2_200_000)
    outcome = carry_out(ofc_fig7.REPRODUCTION)
    rows = {row.what: row for row in outcome.rows}
    misses = {what for what, row in rows.items() if not row.within}
    assert misses == MISSES["ofc-fig7"]
    assert len(outcome.data.steps) == 9
    assert {row.what[1] for row in outcome.rows} == set("123456789")
    path = tmp_path / "figure.svg"
    figure.write(outcome, path)
    first = path.read_bytes()
    figure.write(outcome, path)
    assert path.read_bytes() == first, "the same data gives the same file"


# The traffic generator


def addresses(specs: list[dict[str, Any]], page_bytes: int) -> list[np.ndarray]:
    """Pages of each run, in the order of submission."""
    with open_device("sim:ofc?state=empty&blocks_per_die=64") as device:
        traces = [device.run(spec) for spec in specs]
    return [np.asarray(trace.column("offset_bytes")) // page_bytes for trace in traces]


@pytest.mark.parametrize("outstanding", [1, 6, 7])
def test_a_sequential_stream_goes_round_the_device_in_order(outstanding: int) -> None:
    device = SimulatedDevice("sim:ofc?state=empty&blocks_per_die=64")
    pages = device.logical_pages
    runs = traffic.sequential(
        "write",
        logical_pages=pages,
        page_bytes=device.page_bytes,
        outstanding=outstanding,
        ios=pages + 1000,
        run_ios=10_000,
    )
    touched = np.concatenate(addresses(list(runs), device.page_bytes))
    assert touched.tolist() == [*range(pages), *range(1000)]


def test_as_many_requests_are_outstanding_as_were_asked_for() -> None:
    (spec,) = traffic.random("write", page_bytes=4096, outstanding=6, ios=3000, seed=1)
    with open_device("sim:ofc?state=empty&blocks_per_die=64") as device:
        trace = device.run(spec)
    submitted = np.asarray(trace.column("submit_ns"))
    completed = submitted + np.asarray(trace.column("response_time_ns"))
    under_way = [int((completed[:i] > submitted[i]).sum()) + 1 for i in range(6, 3000)]
    assert max(under_way) == 6
    assert np.mean(under_way) > 5.9


def test_random_requests_cover_the_device_and_no_two_runs_agree() -> None:
    runs = list(traffic.random("read", page_bytes=4096, outstanding=6, ios=1_000_000, seed=5))
    assert [run["seed"] for run in runs] == [5, 6]
    assert sum(run["io_count"] for run in runs) == 1_000_000
    first, second = addresses([run | {"io_count": 30_000} for run in runs], 4096)
    assert (first != second).mean() > 0.99
    assert np.histogram(first, 10)[0].min() > 0.9 * len(first) / 10


def test_a_mix_holds_its_share() -> None:
    for percent in (75, 20, 50):
        spec = traffic.mixed(percent, page_bytes=4096, outstanding=2, ios=4000, seed=1)
        with open_device("sim:ofc?state=empty&blocks_per_die=64") as device:
            mode = np.asarray(device.run(spec).column("mode"))
        # Five standard deviations of a binomial of 4000 draws are 4 %.
        assert mode.mean() == pytest.approx(1 - percent / 100, abs=0.04)


# Rows


def test_rows_say_whether_they_agree() -> None:
    assert prediction("x", "", 8.5, 8.5 * 1.09).within
    assert not prediction("x", "", 8.5, 8.5 * 1.11).within
    assert not fitted("x", "", 8.5, 8.5 * 1.03, constant="y").within
    assert statement("x", "", "lower", 0.9, holds=True).deviation is None


# The list


@pytest.mark.parametrize("name", REPRODUCTIONS)
def test_a_reproduction_is_in_a_file_that_says_how_the_paper_was_read(name: str) -> None:
    module = importlib.import_module(REPRODUCTIONS[name].rows.__module__)
    assert REPRODUCTIONS[name] in vars(module).values()
    places = [re.search(rf"^\*\*{label}\*\*", module.__doc__ or "", re.M) for label in LABELS]
    assert all(places), "the four labelled lines"
    assert [match.start() for match in places if match] == sorted(
        match.start() for match in places if match
    )


def test_reproductions_are_listed_and_documented() -> None:
    listed = uflip("reproduce")
    assert [line.split()[0] for line in listed.out.splitlines()[1:]] == list(REPRODUCTIONS)
    as_json = json.loads(uflip("reproduce", "--json").out)
    assert [one["id"] for one in as_json] == list(REPRODUCTIONS)
    folder = Path(__file__).resolve().parents[2] / "docs" / "reference"
    pages = [folder / "reproduce.md", folder / "reproduce-oc.md"]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    # Those of uFLIP share a section: one is told of in its text, the others in its table.
    of_uflip = re.findall(r"^(?:\| )?`(uflip-[\w-]+)`", text, re.M)
    headings = re.findall(r"^## ((?:ms|ofc|oc)-\S+)$", text, re.M)
    assert headings + of_uflip == list(REPRODUCTIONS)


# Bad input


def test_an_unknown_id_lists_the_known_ones() -> None:
    done = uflip("reproduce", "ofc-fig5")
    assert done.code == 2
    assert "did you mean ofc-fig5" in done.err
    assert "ofc-throughput" in done.err


@pytest.mark.parametrize("out", ["figure.gif", "figure", "no-such-folder/figure.png"])
def test_a_figure_that_cannot_be_written_is_refused_before_any_work(
    out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("uflip.reproduce.carry_out", lambda *_: pytest.fail("it has begun"))
    done = uflip("reproduce", "ofc-fig5a", "-o", out)
    assert done.code == 2
    assert list(tmp_path.iterdir()) == []


def test_a_figure_without_an_id_is_refused() -> None:
    assert uflip("reproduce", "-o", "x.png").code == 2


def test_without_matplotlib_rows_are_printed_and_figures_are_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr("uflip.reproduce.carry_out", lambda *_: pytest.fail("it has begun"))
    done = uflip("reproduce", "ofc-fig5a", "-o", tmp_path / "x.png", "--json")
    assert done.code == 6
    assert json.loads(done.out)["error"]["kind"] == "unavailable"


def test_the_listing_needs_no_heavy_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert uflip("reproduce").code == 0
