"""Are the figures of `uflip figure` those of the result, in the requested format?"""

import itertools
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import stored
from command_line import uflip
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from uflip.errors import UnavailableError
from uflip.report.figures import design_space, paper
from uflip.report.figures.chart import Polyline
from uflip.result import Result
from uflip.results import Results, summary

SMALL = "sim:demo?blocks_per_die=64"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sizes = []
    for name, parameter in (("granularity", "io_size"), ("locality", "target_size")):
        for value in (32768, 65536, 262144):
            for pattern in ("SR", "SW", "RW"):
                sizes_of_run = {"io_size": 4096, "target_size": 8 << 20} | {parameter: value}
                sizes.append(
                    stored.planned_run(
                        10 + len(sizes), name, pattern, parameter=parameter, value=value,
                        unit="bytes", spec=stored.baseline(pattern, io_count=40, **sizes_of_run),
                    )
                )  # fmt: skip
    path = tmp_path_factory.mktemp("figures") / "r"
    stored.results(path, [*stored.FOUR, *sizes], SMALL)
    return path


@pytest.mark.parametrize("kind", ["granularity", "locality", "locality-relative", "traces"])
def test_figure_is_written_in_its_size_and_reproducibly(
    results: Path, workdir: Path, kind: str
) -> None:
    outcome = uflip("figure", results, kind, "-o", "x.svg")
    assert (outcome.code, outcome.out.strip()) == (0, "x.svg"), outcome.err
    content = (workdir / "x.svg").read_text()
    assert content.startswith("<?xml")
    width = float(re.search(r'width="([\d.]+)pt"', content)[1]) / 72  # type: ignore[index]
    assert width == pytest.approx(paper.PAGE if kind == "traces" else paper.COLUMN, abs=0.01)
    again = uflip("figure", results, kind, "-o", "x.svg")
    assert again.code == 0, again.err
    assert (workdir / "x.svg").read_text() == content, "the same data gives the same file"


def test_lines_differ_by_more_than_colour(results: Path) -> None:
    loaded = Results.load(results)
    figure = paper.drawn(paper.kinds_of(loaded, summary(loaded))["granularity"])
    (axis,) = figure.axes
    pattern_lines = [line for line in axis.get_lines() if str(line.get_label())[:2] in paper.DASHES]
    looks = {(line.get_linestyle(), line.get_marker()) for line in pattern_lines}
    assert len(pattern_lines) == len(looks) == 3
    means = {run["pattern"]: [] for run in summary(loaded)["micro_benchmarks"]["granularity"]}
    for run in summary(loaded)["micro_benchmarks"]["granularity"]:
        means[run["pattern"]].append(run["statistics"]["mean_ns"] / 1e6)
    for line in pattern_lines:
        assert sorted(line.get_ydata()) == sorted(means[str(line.get_label())[:2]])


@pytest.fixture(scope="module")
def multi_panel_results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Store results that need several panels: mixes, also of a pattern with itself, and queues."""
    pairs = [*itertools.combinations(stored.PATTERNS, 2), ("RR", "RR")]
    mixes = [
        stored.mix_run(100 + 10 * number + ratio, *pair, ratio)
        for number, pair in enumerate(pairs)
        for ratio in (1, 4)
    ]
    queues = [
        stored.planned_run(
            200 + number, "queue_depth", pattern, parameter="queue_depth", value=depth, unit="",
            spec=stored.baseline(
                pattern, io_size=4096, io_count=60, target_size=1 << 20, queue_depth=depth
            ),
        )
        for number, (pattern, depth) in enumerate(itertools.product(("RR", "RW"), (1, 4)))
    ]  # fmt: skip
    path = tmp_path_factory.mktemp("several") / "r"
    return stored.results(path, [*stored.FOUR, *mixes, *queues], SMALL)


@pytest.mark.parametrize("name", ["mix", "queue_depth"])
def test_panels_match_the_report(multi_panel_results: Results, name: str) -> None:
    document = summary(multi_panel_results)
    chart = paper.benchmark_chart(document, name)
    assert len(chart.panels) == {"mix": 7, "queue_depth": 2}[name]
    figure = paper.drawn(paper.kinds_of(multi_panel_results, document)[name])
    assert figure.get_size_inches()[0] == pytest.approx(paper.PAGE)
    for axis, panel in zip(figure.axes, chart.panels, strict=False):
        # Without the vertical marks at the knees.
        lines = [line for line in axis.get_lines() if len(set(line.get_xdata())) > 1]
        expected = [list(line.y) for line in panel.marks if isinstance(line, Polyline)]
        assert [list(line.get_ydata()) for line in lines] == expected
        joined = [line for line in lines if line.get_linestyle() != "None"]
        looks = {
            (
                line.get_linestyle(),
                line.get_marker(),
                line.get_markerfacecolor() == line.get_color(),
            )
            for line in joined
        }
        assert len(looks) == len(joined) == {"mix": 4, "queue_depth": 2}[name]
    # On given axes the panels are placed side by side within them.
    axis = Figure().subplots()
    assert Result(multi_panel_results).plot(name, axis) is axis
    assert len(axis.child_axes) == len(chart.panels)


def test_legend_matches_the_line_styles(results: Path, multi_panel_results: Results) -> None:
    loaded = Results.load(results)
    for kinds, name in (
        (paper.kinds_of(loaded, summary(loaded)), "granularity"),
        (paper.kinds_of(multi_panel_results, summary(multi_panel_results)), "mix"),
    ):
        figure = paper.drawn(kinds[name])
        styles: dict[str, set[object]] = {}
        for line in (line for axis in figure.axes for line in axis.get_lines()):
            styles.setdefault(str(line.get_label()), set()).add(_line_style(line))
        (legend,) = figure.legends or [figure.axes[0].get_legend()]
        for text, line in zip(legend.get_texts(), legend.legend_handles, strict=True):
            if text.get_text() in styles:
                assert styles[text.get_text()] == {_line_style(line)}
        assert len({_line_style(line) for line in legend.legend_handles}) == len(legend.get_texts())


def _line_style(line: Line2D) -> tuple[object, ...]:
    return line.get_linestyle(), line.get_marker(), line.get_markerfacecolor() == line.get_color()


def test_queue_depth_axis_includes_the_means(multi_panel_results: Results) -> None:
    """One slow I/O of many lifts the mean above the whisker."""
    document = summary(multi_panel_results)
    runs = document["micro_benchmarks"]["queue_depth"]
    runs[0]["statistics"] |= {"mean_ns": 1e9, "p5_ns": 10, "p95_ns": 20}
    response = paper.benchmark_chart(document, "queue_depth").panels[1]
    assert response.y.low <= 1e3 <= response.y.high


def test_pause_determination_and_micro_benchmark_are_separate_figures(tmp_path: Path) -> None:
    runs = [
        stored.planned_run(
            number, "pause", "RW", parameter="pause", value=1000 * number, unit="ns",
            spec=stored.baseline("RW", io_size=4096, io_count=40, target_size=1 << 20),
        )
        for number in (1, 2)
    ]  # fmt: skip
    window = {"mean_ns": [10, 20], "max_ns": [20, 30]}
    interference = {
        "reads_affected": 0, "lingering_ns": 0, "over": True, "slow_ns": 1.0, "pause_ns": 1,
        "windows": {"ios": 64, "before": window, "writes": window, "after": window},
    }  # fmt: skip
    loaded = stored.results(tmp_path / "r", runs, SMALL)
    kinds = paper.kinds_of(loaded, {**summary(loaded), "interference": interference})
    measured, determined = (paper.drawn(kinds[name]) for name in ("pause", "pause-determination"))
    assert [axis.get_xlabel() for axis in measured.axes] == ["pause between I/Os (Pause)"]
    assert [axis.get_xlabel() for axis in determined.axes] == ["I/O number"]


def test_relative_locality_is_divided_by_sequential_writes(results: Path) -> None:
    loaded = Results.load(results)
    document = summary(loaded)
    figure = paper.drawn(paper.kinds_of(loaded, document)["locality-relative"])
    lines = {str(line.get_label()): line for line in figure.axes[0].get_lines()}
    for pattern in ("SW", "RW"):
        means = [
            run["statistics"]["mean_ns"] / 1e6
            for run in document["micro_benchmarks"]["locality"]
            if run["pattern"] == pattern
        ]
        expected = [mean / document["baselines_ms"]["SW"] for mean in means]
        assert list(lines[pattern].get_ydata()) == pytest.approx(expected)


def test_available_figures_are_listed_and_others_refused(results: Path, workdir: Path) -> None:
    listed = uflip("figure", results).out.split()
    assert listed == ["granularity", "locality", "locality-relative", "traces", "workload-history"]
    refused = uflip("figure", results, "wear", "-o", "x.pdf")
    assert refused.code == 2
    assert "granularity" in refused.err
    for name, head in (("x.pdf", b"%PDF"), ("x.png", b"\x89PNG")):
        assert uflip("figure", results, "granularity", "-o", name).code == 0
        assert (workdir / name).read_bytes().startswith(head)
    (workdir / "mine.pdf").write_text("a thesis")
    assert uflip("figure", results, "granularity", "-o", "mine.pdf").code == 3
    assert (workdir / "mine.pdf").read_text() == "a thesis"


def test_history_shows_every_workload_at_its_time_and_rate(tmp_path: Path) -> None:
    runs = [
        stored.baseline_run(number, pattern, io_size=4096, io_count=600)
        for number, pattern in enumerate(("SW", "RW", "SR", "RW"), 1)
    ]
    loaded = stored.results(tmp_path / "r", runs, SMALL)
    figure = paper.drawn(paper.kinds_of(loaded, summary(loaded))["workload-history"])
    (axis,) = figure.axes
    lines = [line for line in axis.get_lines() if len(line.get_xdata()) > 2]
    assert [str(line.get_label())[:2] for line in lines] == ["SW", "RW", "SR", "RW"]
    begin = 0.0
    for line, run in zip(lines, loaded.runs, strict=True):
        trace = run.trace()
        submit, took = (np.asarray(trace.column(name)).astype(float) for name in (
            "submit_ns", "response_time_ns",
        ))  # fmt: skip
        duration_s = float((submit + took).max() - submit.min()) / 1e9
        assert begin < line.get_xdata()[0] < line.get_xdata()[-1] < begin + duration_s
        # The area under the line is the number of I/Os.
        assert float(np.mean(line.get_ydata())) * 1e3 * duration_s == pytest.approx(600)
        begin += duration_s
    assert [text.get_text() for text in axis.texts if "run" in text.get_text()] == [
        "run 1", "run 2", "run 4",
    ], "run 3, of quick reads, has no space for a label"  # fmt: skip
    looks = {str(line.get_label())[:2]: line.get_linestyle() for line in lines}
    assert len(set(looks.values())) == 3, "distinguishable without colour"


def test_sweep_is_drawn_over_the_varied_parameter(workdir: Path) -> None:
    vary = "spare_factor=0.3,0.45,0.6", "--vary", "die_queue=fifo,reads_first"
    options = "--pattern", "RW", "--io-size", "4k", "--io-count", "300", "--json"
    swept = uflip("sweep", SMALL, "--vary", *vary, *options, "--data", "rows")
    assert swept.code == 0, swept.err
    rows = json.loads(swept.out)["rows"]
    assert uflip("figure", "rows").out.split() == ["spare-factor"]
    outcome = uflip("figure", "rows", "spare-factor", "-o", "x.svg")
    assert (outcome.code, outcome.out.strip()) == (0, "x.svg"), outcome.err
    points = [
        design_space.VariedPoint(row["values"], row["ios_per_s"], row["write_amplification"])
        for row in rows
    ]
    figure = paper.drawn(paper.kinds_of_sweep(points)["spare-factor"])
    rate, cost = figure.axes
    assert figure.get_size_inches()[0] == paper.COLUMN
    for axis, name, scale in ((rate, "ios_per_s", 1e-3), (cost, "write_amplification", 1)):
        looks = {(line.get_linestyle(), line.get_marker()) for line in axis.get_lines()}
        assert len(axis.get_lines()) == len(looks) == 2
        for line, queue in zip(axis.get_lines(), ("fifo", "reads_first"), strict=True):
            assert line.get_label() == f"die_queue={queue}"
            expected = [row[name] * scale for row in rows if row["values"]["die_queue"] == queue]
            assert list(line.get_xdata()) == [30, 45, 60]
            assert list(line.get_ydata()) == pytest.approx(expected)
    refused = uflip("figure", "rows", "die-queue")
    assert (refused.code, "spare-factor" in refused.err) == (2, True)


def test_omitted_lines_of_a_sweep_are_reported(
    workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = "--pattern", "RW", "--io-size", "4k", "--io-count", "200", "--data", "rows"
    policies = "gc=greedy,cyclic,random,greedy_window,cost_benefit,d_choices"
    swept = uflip("sweep", SMALL, "--vary", "spare_factor=0.3,0.5", "--vary", policies, *options)
    assert swept.code == 0, swept.err
    points = [
        design_space.VariedPoint({"spare_factor": spare, "gc": str(policy)}, 1e3 * policy, 1.0)
        for spare in (0.3, 0.5)
        for policy in range(30)
    ]
    rate, _ = paper.drawn(paper.kinds_of_sweep(points[:6] + points[30:36])["spare-factor"]).axes
    assert len({(line.get_linestyle(), line.get_marker()) for line in rate.get_lines()}) == 6
    rate, _ = paper.drawn(paper.kinds_of_sweep(points)["spare-factor"]).axes
    # matplotlib reports all custom dashes as "--".
    looks = {(str(vars(line)["_dash_pattern"]), line.get_marker()) for line in rate.get_lines()}
    assert len(looks) == len(rate.get_lines()) == 28
    assert rate.get_legend().get_title().get_text() == "the first 28, without 2 more"
    outcome = uflip("figure", "rows", "spare-factor", "-o", "x.svg")
    assert (outcome.code, outcome.err) == (0, "")
    monkeypatch.setattr(design_space, "MAX_LINES", 4)
    assert design_space.omitted_lines(points, "spare_factor") == 26
    outcome = uflip("figure", "rows", "spare-factor", "-o", "x.svg", "--force")
    assert (outcome.code, "note: 2 lines are omitted" in outcome.err) == (0, True)


def test_missing_matplotlib_error_names_the_typed_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    vary = ("--pattern", "RW", "--vary", "spare_factor=0.2,0.3", "--untimed")
    outcome = uflip("sweep", "sim:demo?blocks_per_die=64", *vary, "-o", "none.png")
    assert outcome.code == UnavailableError.exit_code
    assert "where    uflip sweep\n" in outcome.err
