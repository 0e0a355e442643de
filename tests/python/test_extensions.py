"""Does a new micro-benchmark or figure need only a file and a line in a list?

The micro-benchmark is that of docs/how-to/add-a-micro-benchmark.md. It is added to the list at run
time, and then expected in every output for users.
"""

import importlib.util
import re
from pathlib import Path

import pytest
import stored
from command_line import uflip

from uflip.microbench import MICRO_BENCHMARKS, MicroBenchmark, varied_micro_benchmarks
from uflip.report import figures
from uflip.report.blocks import Figure
from uflip.report.data import Document, Traces
from uflip.report.figures.chart import Axis, Box, Chart, Panel
from uflip.report.figures.svg import draw
from uflip.result_views import write_report

HOW_TO = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "add-a-micro-benchmark.md"
DEVICE = "sim:demo?blocks_per_die=64"


@pytest.fixture
def distance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MicroBenchmark:
    """Add the micro-benchmark of the how-to to the list."""
    code = re.search(r"^```python file=(\w+)\.py\n(.*?)^```$", HOW_TO.read_text(), re.M | re.S)
    assert code
    path = tmp_path / f"{code[1]}.py"
    path.write_text(code[2])
    spec = importlib.util.spec_from_file_location(code[1], path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    added: MicroBenchmark = module.MICRO_BENCHMARK
    monkeypatch.setitem(MICRO_BENCHMARKS, added.name, added)
    return added


def figure_numbers(html: str) -> dict[str, int]:
    """Return the numbers of figures by their names."""
    figures_found = re.findall(r'<figure id="figure-([\w-]+)">.*?<b>Figure (\d+)\. ', html, re.S)
    return {name: int(number) for name, number in figures_found}


def test_added_micro_benchmark_appears_everywhere(distance: MicroBenchmark, tmp_path: Path) -> None:
    planned = uflip("plan", DEVICE, "--only", "baseline,distance", "--scale", "quick")
    assert planned.code == 0, planned.err
    assert "distance" in planned.out
    out = tmp_path / "r"
    only = ("--only", "baseline,distance", "--scale", "quick", "--state", "as-is")
    outcome = uflip("run", DEVICE, *only, "--out", out)
    assert outcome.code == 0, outcome.err
    assert "that are measured" in outcome.out, "values that do not fit are skipped with a reason"
    # The terminal shows its title, its parameter, and its finding.
    assert "Distance   target_offset 0 B …" in outcome.out
    section = outcome.out[outcome.out.index("Distance ") :]
    assert "The largest effect is on" in section
    page = tmp_path / "report.html"
    assert uflip("report", out, "-o", page).code == 0
    html = page.read_text()
    assert distance.question in html
    assert distance.how_to_read in html
    assert list(figure_numbers(html))[:4] == ["traces", "distribution", "spent", "distance"]
    assert list(figure_numbers(html).values()) == list(range(1, len(figure_numbers(html)) + 1))
    # Micro-benchmarks that were not run keep their section.
    assert html.count("it was not part of the plan") == len(varied_micro_benchmarks()) - 1
    assert uflip("export", out, "-o", tmp_path / "tables").code == 0
    assert "distance" in (tmp_path / "tables" / "summary.csv").read_text()
    unknown = uflip("plan", DEVICE, "--only", "distanze")
    assert "distance" in unknown.err


def test_added_figure_appears_in_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = stored.results(tmp_path / "r")
    write_report(results, tmp_path / "before.html")
    monkeypatch.setattr(figures, "BASELINES", [_longest, *figures.BASELINES])
    write_report(results, tmp_path / "after.html")
    before, after = (
        figure_numbers((tmp_path / f"{name}.html").read_text()) for name in ("before", "after")
    )
    assert after == {"longest": 1} | {name: number + 1 for name, number in before.items()}
    html = (tmp_path / "after.html").read_text()
    assert "<b>Figure 1. The longest &amp; the rest.</b> How long is it?" in html
    assert '<title id="fig-longest-title">The longest &lt;b&gt;</title>' in html


def _longest(document: Document, traces: Traces) -> Figure | None:
    """Return a figure, as a new module would."""
    assert document["baselines"]
    longest = [trace.measured_ms.max() for trace in traces]
    bars = [Box((number, number + 0.8), (0, ms)) for number, ms in enumerate(longest)]
    chart = Chart([Panel(Axis(0, len(bars)), Axis(0, max(longest)), bars)], 144)
    drawing = draw(chart, "longest", "The longest <b>", "A bar a pattern.")
    return Figure("longest", "The longest & the rest", drawing, "How long is it?")
