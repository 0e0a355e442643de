"""Does the report agree with the summary, for every reader, without the network?"""

import itertools
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stored
from command_line import uflip

from uflip.device.opener import open_device
from uflip.microbench import varied_micro_benchmarks
from uflip.microbench.labels import by_pattern
from uflip.microbench.mix import expected_mix_ms
from uflip.report import figures
from uflip.report.data import BaselineTrace, baseline_traces, first_runs, pooled
from uflip.report.figures import palette
from uflip.report.figures.axes import parameter_axis, positions_of
from uflip.report.figures.chart import Panel, Polyline
from uflip.report.figures.distribution import slower_than
from uflip.report.findings import finding, headline
from uflip.report.html import build_page
from uflip.report.labels import format_ms
from uflip.report.page import render
from uflip.report.tables import tiles
from uflip.report.text import next_commands
from uflip.report.text import render as as_text
from uflip.result_views import write_report
from uflip.results import Results, summary
from uflip.spec import baseline
from uflip.stats import summarise

LARGEST_PAGE = 5 << 20
VOID = {"meta", "br", "img", "link", "hr", "input"}


class Page(HTMLParser):
    """Checks that tags are closed, and gathers what a reader or a screen reader meets."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == [], f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole quick run of the demonstration device."""
    out = tmp_path_factory.mktemp("report") / "demo"
    arguments = ("--scale", "quick", "--state", "as-is", "--out", out, "--quiet")
    outcome = uflip("run", "sim:demo", *arguments)
    assert outcome.code == 0, outcome.err
    return out


@pytest.fixture(scope="module")
def html(demo: Path) -> str:
    write_report(Results.load(demo), demo.parent / "report.html")
    return (demo.parent / "report.html").read_text()


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


@pytest.fixture(scope="module")
def document(demo: Path) -> dict[str, Any]:
    return summary(Results.load(demo))


# Colours


def test_causes_have_distinct_colours() -> None:
    """The 18 causes differ by more than two greys that an eye can distinguish."""
    with open_device("sim:demo?blocks_per_die=64") as device:
        causes = device.run(baseline("RW", io_count=1)).causes
    colors = [palette.activity(cause) for cause in ("submission_wait_ns", *causes)]
    channels = [[int(color[i : i + 2], 16) for i in (1, 3, 5)] for color in colors]
    for one, other in itertools.combinations(channels, 2):
        assert math.dist(one, other) > 40, (one, other)


# A self-contained file, accessible to all readers


def test_page_is_self_contained(html: str, page: Page) -> None:
    assert len(html.encode()) < LARGEST_PAGE
    for tag, attributes in page.tags:
        assert tag not in {"script", "link", "iframe", "object", "embed"}
        for name in ("src", "href", "xlink:href", "action", "data"):
            target = attributes.get(name) or ""
            assert target.startswith(("#", "data:image/png;base64,")) or not target, target
    assert not re.search(r"url\((?!#)", html)
    assert "@import" not in html
    policies = [meta["content"] or "" for meta in page.all("meta") if "http-equiv" in meta]
    assert policies[0].startswith("default-src 'none'")


def test_anchors_resolve_and_ids_are_unique(page: Page) -> None:
    ids = [attributes["id"] for _, attributes in page.tags if attributes.get("id")]
    assert len(ids) == len(set(ids))
    for attributes in (*page.all("a"), *page.all("use")):
        target = attributes.get("href") or attributes.get("xlink:href") or ""
        assert target.removeprefix("#") in ids


def test_figures_have_text_alternatives(html: str, page: Page) -> None:
    pictures = [svg for svg in page.all("svg") if svg.get("aria-hidden") != "true"]
    assert len(pictures) == len(page.all("figure"))
    for svg in pictures:
        assert svg["role"] == "img"
        for name in (svg["aria-labelledby"] or "").split():
            assert re.search(rf'<(title|desc) id="{name}">[^<]{{3,}}<', html), name


def test_figures_are_numbered_in_order(page: Page, html: str) -> None:
    drawn = ["traces", "distribution", "spent", *varied_micro_benchmarks()]
    drawn += ["phases", "interference", "convergence", "places"]
    assert [figure["id"] for figure in page.all("figure")] == [f"figure-{name}" for name in drawn]
    expected = list(range(1, len(drawn) + 1))
    assert [int(number) for number in re.findall(r"<b>Figure (\d+)\. ", html)] == expected
    # Each figure has its table below; that of the phases is not folded.
    numbered = [number for number, name in zip(expected, drawn, strict=True) if name != "phases"]
    assert page.text.count("Phases of the long baseline runs (uFLIP §4.2)") == 1
    assert [int(number) for number in re.findall(r"Data of figure (\d+)<", html)] == numbered


def test_micro_benchmark_has_question_figure_and_numbers(
    page: Page, document: dict[str, Any]
) -> None:
    for name, about in varied_micro_benchmarks().items():
        assert about.question in page.text
        assert about.how_to_read in page.text
        assert finding(name, document), name
        assert finding(name, document) in page.text
        for run in document["micro_benchmarks"][name]:
            assert format_ms(run["statistics"]["mean_ns"]) in page.text


def test_key_figures_match_summary(page: Page, document: dict[str, Any]) -> None:
    for run in document["baselines"]:
        mean, median = run["statistics"]["mean_ns"], run["statistics"]["p50_ns"]
        assert f"{format_ms(mean)} ms mean" in page.text
        assert f"p50 {format_ms(median)} ms" in page.text
        counted = run["counters"]
        if counted["host_pages_written"]:
            programmed = counted["pages_programmed"] / counted["host_pages_written"]
            assert f"write amplification {programmed:.3g}" in page.text
    assert headline(document) in page.text


def test_simulated_results_are_marked_everywhere(html: str, page: Page) -> None:
    assert "These are results of a simulator" in page.text
    assert '<span class="badge">simulated</span>' in html
    assert html.count(">simulated device</text>") == len(page.all("figure"))


def test_warnings_and_provenance_are_complete(page: Page, document: dict[str, Any]) -> None:
    assert document["warnings"], "the plan wraps around the device, which is a warning"
    for warning in document["warnings"]:
        assert warning["message"] in page.text
        assert warning["advice"] in page.text
    for value in (document["host"]["kernel"], document["uflip_version"], document["created_utc"]):
        assert value in page.text
    for run in document["baselines"]:
        assert run["run"] in page.text
        assert "Every run with" not in page.text, "repetitions are not listed one by one"
        assert f'"seed": {run["spec"]["seed"]}' in page.text


def test_report_is_reproducible(demo: Path, html: str, tmp_path: Path) -> None:
    size = write_report(Results.load(demo), tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text() == html
    assert size == (tmp_path / "again.html").stat().st_size


def test_styles_cover_light_dark_and_print(html: str) -> None:
    style = html[html.index("<style>") : html.index("</style>")]
    assert "prefers-color-scheme: dark" in style
    assert "@media print" in style
    used = set(re.findall(r"var\(--([a-z-]+)", html))
    defined = set(re.findall(r"--([a-z-]+):", style))
    assert used - defined - {"hue"} == set()


# Results of every kind


def report(results: Results, tmp_path: Path) -> Page:
    write_report(results, tmp_path / "report.html")
    return Page((tmp_path / "report.html").read_text())


def test_real_device_is_not_called_simulated(tmp_path: Path) -> None:
    page = report(stored.results(tmp_path / "r", url="null"), tmp_path)
    assert "simulated device" not in page.text
    assert "simulator" not in page.text
    assert {"class": "badge"} in page.all("span")  # which says: null device
    assert "null device" in page.text
    for meaningless in ("Key characteristics", "Pause between runs", "Phases", "Target spaces"):
        assert meaningless not in page.text
    assert "Time by cause" not in page.text
    assert "The harness itself takes 55 ns per I/O" in page.text


def test_device_names_are_escaped(tmp_path: Path) -> None:
    evil = stored.device_info(
        "block",
        url='file:"><script>alert(1)</script>',
        model="<img src=x onerror=alert(1)> & {{ 7 * 7 }} {% raw %} $100",
        capacity_bytes=1 << 30,
    )
    skipped = [
        {"micro_benchmark": "<b>", "pattern": "<i>", "parameter": "io_size", "value": 1,
         "reason": "<script>"}
    ]  # fmt: skip
    with stored.open_device("sim:demo") as device:
        writer = stored.writer(tmp_path / "r", stored.FOUR, device, device=evil, skipped=skipped)
        for run in stored.FOUR:
            writer.commit(run, device.run(run.spec))
        writer.finish("complete", [
            {"code": "<u>", "message": "<script>", "numbers": {}, "advice": "<script>"}
        ])  # fmt: skip
    page = report(Results.load(tmp_path / "r"), tmp_path)
    assert {tag for tag, _ in page.tags} & {"script", "img", "i", "u"} == set()
    assert "<img src=x onerror=alert(1)> & {{ 7 * 7 }} {% raw %} $100, 1 GiB" in page.text


def test_interrupted_benchmark_has_a_report(tmp_path: Path) -> None:
    runs = [*stored.FOUR, stored.mix_run(5, "SR", "RR", 2)]
    page = report(stored.results(tmp_path / "r", runs, finished=2, status="interrupted"), tmp_path)
    assert "The benchmark is interrupted: 2 of 5 runs are included." in page.text
    assert "3 planned runs did not finish" in page.text
    assert runs[4].id in page.text
    assert "the benchmark ended before its runs" in page.text  # mix
    assert "it was not part of the plan" in page.text  # the others
    assert page.text.count("not measured") == 2  # the tiles of SW and RW


def test_report_without_finished_run(tmp_path: Path) -> None:
    results = stored.results(tmp_path / "r", finished=0, status="failed")
    page = report(results, tmp_path)
    assert "The benchmark is failed: 0 of 4 runs" in page.text
    assert "0 of 4 runs" in as_text(summary(results))


def test_skipped_runs_are_listed_with_reasons(tmp_path: Path) -> None:
    skipped = [
        {"micro_benchmark": "alignment", "pattern": "SR", "parameter": "io_shift", "value": shift,
         "reason": "not a multiple of the sector of 4 KiB"}
        for shift in (512, 1024)
    ]  # fmt: skip
    results = stored.results(tmp_path / "r", skipped=skipped)
    page = report(results, tmp_path)
    assert "512 B, 1 KiB" in page.text
    assert "Not measured: not a multiple of the sector of 4 KiB." in page.text
    assert "not a multiple of the sector of 4 KiB" in as_text(summary(results))


def test_unreached_and_impossible_runs_have_different_reasons(tmp_path: Path) -> None:
    reason = "the target is larger than the device"
    skipped = [
        {"micro_benchmark": name, "pattern": "RW", "parameter": "target_size", "value": 1 << 40,
         "reason": reason}
        for name in ("locality", "partitioning")
    ]  # fmt: skip
    (first,) = stored.FOUR[:1]
    late = stored.planned_run(
        5, "locality", "RW", parameter="target_size", value=1 << 20, unit="bytes", spec=first.spec
    )
    runs = [*stored.FOUR, late]
    results = stored.results(
        tmp_path / "r", runs, finished=4, status="interrupted", skipped=skipped
    )
    page = report(results, tmp_path)
    early = "the benchmark ended before its runs"
    assert page.text.count(f"Not measured: {early}; {reason}.") == 1, "locality"
    assert page.text.count(f"Not measured: {reason}.") == 1, "partitioning"


# Figures


def run_of(pattern: str, value: int, times: list[int], unit: str = "") -> dict[str, Any]:
    return {
        "run": f"{pattern}-{value}",
        "pattern": pattern,
        "parameter": "incr",
        "value": value,
        "unit": unit,
        "statistics": summarise(times),
        "elapsed_ns": max(sum(times), 1),
        "io_count": len(times),
    }


@pytest.mark.parametrize(
    "runs",
    [
        [run_of("SR", 1, [100])],
        [run_of("SR", value, [0, 0, 0]) for value in (-1, 0, 1)],
        [run_of("SW", value, [5] * 500) for value in range(-3, 40)],
        [run_of("own pattern", 2**k, [10**k + 1] * 3, "bytes") for k in range(12)],
    ],
    ids=["one I/O", "all zero", "many values", "twelve decades"],
)
def test_any_numbers_can_be_drawn(runs: list[dict[str, Any]]) -> None:
    experiments = by_pattern(runs)
    assert experiments
    chart = figures.sweep.chart_of(experiments, {"SR": 0.1, "SW": None}, simulated=False)
    drawn = figures.sweep.svg.draw(chart, "order", "Order", figures.sweep._describe(experiments))
    markup = render("blocks/drawing.html", drawing=drawn)
    Page(markup)
    assert "NaN" not in markup
    assert "nan" not in re.sub(r"base64,[^\"]*", "", markup)


def test_empty_data_gives_no_figure() -> None:
    for kind in figures.MICRO_BENCHMARKS.values():
        assert kind.figure({"micro_benchmarks": {}}, "order") is None
        assert kind.figure({"micro_benchmarks": {"order": []}}, "order") is None
    assert figures.traces.draw([], simulated=True) is None
    assert figures.distribution.draw([], simulated=True) is None
    assert figures.causes.draw([]) is None


@pytest.mark.parametrize("times", [[0.0] * 40, [1.0], [1e-6, 1e4] * 4000])
def test_any_trace_can_be_drawn(times: list[float]) -> None:
    array = np.array(times)
    trace = BaselineTrace("RW", array, np.arange(len(array)) < len(array) // 2, {"wait_ns": array})
    assert figures.traces.draw([trace], simulated=True)
    assert figures.distribution.draw([trace], simulated=True)
    assert bool(figures.causes.draw([trace])) == any(times)


def test_positions_are_logarithmic_with_rest_to_the_left() -> None:
    assert positions_of([-1, 0, 1, 2, 4, 256]) == {-1: -2, 0: -1, 1: 0, 2: 1, 4: 2, 256: 8}
    assert list(positions_of([1024, 0, 512]).values()) == [8, 9, 10]


def line_points(panel: Panel) -> dict[str, list[float]]:
    """Label -> where the points of its line are, which must be within the axes."""
    points = {}
    for line in panel.marks:
        if isinstance(line, Polyline) and line.label:
            assert all(panel.x.low <= at <= panel.x.high for at in line.x), line.label
            assert all(panel.y.low <= at <= panel.y.high for at in line.y), line.label
            points[line.label[:2]] = list(line.x)
    return points


def test_zero_only_pattern_is_drawn_at_its_value() -> None:
    """A run that ended early has IOShift 0 of random writes, and no more of them."""
    runs = [run_of("SR", value, [1000, 2000], "bytes") for value in (0, 512, 32768)]
    runs.append(run_of("RW", 0, [1000, 2000], "bytes"))
    panel, _ = figures.sweep.panel_of(by_pattern(runs), None)
    points = line_points(panel)
    (tick,) = (at for at, name in panel.x.ticks or () if name == "0 B")
    assert (points["RW"][0], points["SR"][0]) == (pytest.approx(tick, abs=0.2),) * 2


def test_labels_of_close_values_do_not_overlap() -> None:
    values = [1, 2, 3, 4, 8, 16, 32, 64, 65, 128]
    axis = parameter_axis(values, list(map(str, values)))
    assert [name for _, name in axis.ticks or ()] == [
        "1", "2", "3", "4", "8", "16", "32", "64", "", "128",
    ]  # fmt: skip
    many = parameter_axis(range(1, 200), list(map(str, range(1, 200))))
    named = [at for at, name in many.ticks or () if name]
    assert np.diff(sorted(named)).min() >= np.log2(199) / 24
    long = parameter_axis([2**k for k in range(17)], ["256 KiB"] * 17)
    assert [name for _, name in long.ticks or ()] == ["256 KiB", ""] * 8 + ["256 KiB"]


def test_distribution_counts_at_least_as_slow_ios() -> None:
    times, share = slower_than(np.array([1.0, 2.0, 2.0, 10.0]))
    for time, part in zip(times, share, strict=True):
        assert part >= sum(x >= time for x in (1, 2, 2, 10)) / 4 - 0.5  # ties share a step
    assert (times[0], share[0], times[-1], share[-1]) == (1.0, 1.0, 10.0, 0.25)


def test_baseline_traces_match_stored_runs(tmp_path: Path) -> None:
    results = stored.results(tmp_path / "r", [stored.baseline_run(1, "RW", io_ignore=7)])
    (trace,) = baseline_traces(results)
    times = results.runs[0].response_time_ns(include_ignored=True)
    assert np.allclose(trace.response_time_ms * 1e6, times)
    assert (trace.io_ignore, len(trace.measured_ms)) == (7, 93)
    whole = trace.mean_by_cause_ms()
    assert sum(whole.values()) == pytest.approx(trace.measured_ms.mean())
    slowest = trace.mean_by_cause_ms(slowest=0.01)
    assert sum(slowest.values()) == pytest.approx(trace.measured_ms.max())


def test_repetitions_are_pooled_or_first_is_drawn(tmp_path: Path) -> None:
    runs = [
        replace(
            stored.baseline_run(number, pattern, seed=number, io_ignore=5),
            id=f"{number:04d}-{pattern}",
            repetition=repetition,
        )
        for number, (pattern, repetition) in enumerate(
            ((pattern, repetition) for pattern in ("SR", "RW") for repetition in (1, 2, 3)), 1
        )
    ]
    results = stored.results(tmp_path / "r", runs)
    document, traces = summary(results), baseline_traces(results)
    for run, together in zip(document["baselines"], pooled(traces), strict=True):
        statistics = run["statistics"]
        assert len(together.measured_ms) == statistics["count"] == 3 * 95
        assert together.measured_ms.max() * 1e6 == pytest.approx(statistics["max_ns"])
        spent = {cause: ms * 1e6 for cause, ms in together.mean_by_cause_ms().items()}
        assert spent == pytest.approx(run["time_spent_ns"])
        slowest = f"{run['pattern']}: half of the I/Os within .*? the slowest "
        drawn = figures.distribution.draw(traces, simulated=True)
        assert re.search(slowest + format_ms(statistics["max_ns"]), drawn.description)
    (first, _) = figures.traces.chart_of(traces, simulated=True).panels[2:]
    assert first.title == "RW random write, all 100 I/Os of the first run"
    page = report(results, tmp_path)
    assert page.text.count("The figure has the first run of each; the table has all.") == 1
    several, one = (tiles(document, some) for some in (traces, first_runs(traces)))
    assert [len(tile.bars) for tile in several] != [len(tile.bars) for tile in one]


def test_affected_reads_are_described_without_lasting_effect(document: dict[str, Any]) -> None:
    window = {"mean_ns": [122_000, 122_000], "max_ns": [130_000, 140_000]}
    after = {"mean_ns": [670_000, 122_000], "max_ns": [34_970_000, 130_000]}
    effect = {
        "reads_affected": 0, "lingering_ns": 0, "over": True, "slow_ns": 125_000.0, "pause_ns": 1,
        "device_busy_ns": 50_000_000, "gap_ns": 0,
        "windows": {"ios": 64, "before": window, "writes": window, "after": after},
    }  # fmt: skip
    text = Page(build_page({**document, "interference": effect, "method": "startup"}, [])).text
    assert "no lasting trace in the sequential reads after it; the slowest of them took 35" in text
    assert "of those before it 140 µs." in text
    assert "no read waited" not in text
    assert "Runs leave out the start-up before they measure: reads that of reads, in I/Os" in text


def test_tables_hold_the_drawn_data(document: dict[str, Any]) -> None:
    experiments = {"baseline": document["baselines"], **document["micro_benchmarks"]}
    (intervals,) = figures.convergence.figure(document, experiments).data
    repetitions = [
        each
        for runs in experiments.values()
        for run in runs
        for each in run["repetitions"]
        if each["half_width_ns"] is not None
    ]
    assert [row[0] for row in intervals.rows] == [each["run"] for each in repetitions]
    (windows,) = figures.interference.figure(document).data
    batches = document["interference"]["windows"]
    assert [row[1] for row in windows.rows] == [
        pattern
        for pattern, batch in (("SR", "before"), ("RW", "writes"), ("SR", "after"))
        for _ in batches[batch]["mean_ns"]
    ]
    assert windows.rows[-1][2:] == [
        format_ms(batches["after"][statistic][-1]) for statistic in ("mean_ns", "max_ns")
    ]
    (spaces,) = figures.target_spaces.figure(document).data
    assert [row[0] for row in spaces.rows] == [each["run"] for each in document["target_spaces"]]


# Words


def test_expected_cost_of_a_mix_by_hand() -> None:
    run = {"pattern": "SR/RW", "value": 4}
    assert expected_mix_ms(run, {"SR": 0.3, "RW": 5.3}) == pytest.approx((4 * 0.3 + 5.3) / 5)
    assert expected_mix_ms(run, {"SR": 0.3, "RW": None}) is None


def test_findings_of_hand_worked_example() -> None:
    means = {"SR": 1.0, "RR": 1.0, "SW": 2.0, "RW": 10.0}
    order = [run_of("SW", value, [time]) for value, time in
             ((-1, 3_000_000), (0, 1_000_000), (1, 2_000_000), (256, 20_000_000))]  # fmt: skip
    document = {
        "device": stored.device_info(),
        "baselines": [],
        "baselines_ms": means,
        "micro_benchmarks": {"order": [{"repetitions": [], **run} for run in order]},
    }
    assert finding("order", document) == (
        "Compared with Incr = 1, a reverse write costs 1.5 times and an in-place write 0.50 times "
        "as much. "
        "With Incr = 256, a write costs 2.0 times a random one."
    )
    assert finding("mix", document) == ""


def test_patterns_are_in_paper_order() -> None:
    runs = [run_of(name, 1, [1]) for name in ("RW", "SW/RW", "zz", "SR", "SR/RR", "RR")]
    assert list(by_pattern(runs)) == ["SR", "RR", "RW", "SR/RR", "SW/RW", "zz"]


@pytest.mark.parametrize("full", [False, True])
def test_terminal_summary_is_complete(document: dict[str, Any], full: bool) -> None:
    text = as_text(document, full=full)
    assert "SIMULATED" in text
    assert max(len(line) for line in text.splitlines()) <= 120
    assert not any(line.endswith(" ") for line in text.splitlines())
    for name in varied_micro_benchmarks().values():
        assert name.title in text
    for run in document["baselines"]:
        assert format_ms(run["statistics"]["mean_ns"]) in text
    if full:
        means = [run["statistics"]["mean_ns"] for run in document["micro_benchmarks"]["pause"]]
        assert all(format_ms(mean) in text for mean in means)
    for warning in document["warnings"]:
        assert warning["advice"].split()[0] in text


def test_suggested_commands_are_valid(demo: Path) -> None:
    for line in next_commands(str(demo)).splitlines():
        program, *arguments = line.split()
        assert program == "uflip"
        assert uflip(*arguments, "--help").code == 0


def test_a_page_without_traces_can_be_built(document: dict[str, Any]) -> None:
    Page(build_page(document, []))
