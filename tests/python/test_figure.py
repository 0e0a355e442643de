"""Are the figures of `uflip figure` those of the result, in the format that was asked for?"""

import re
from pathlib import Path

import pytest
import stored
from command_line import uflip

from uflip.report.figures import paper
from uflip.results import Results, summary

SMALL = "sim:demo?blocks_per_die=64"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sizes = []
    for name, parameter in (("granularity", "io_size"), ("locality", "target_size")):
        for value in (32768, 65536, 262144):
            for pattern in ("SR", "SW", "RW"):
                given = {"io_size": 4096, "target_size": 8 << 20} | {parameter: value}
                sizes.append(
                    stored.planned(
                        10 + len(sizes), name, pattern, parameter=parameter, value=value,
                        unit="bytes", spec=stored.baseline(pattern, io_count=40, **given),
                    )
                )  # fmt: skip
    path = tmp_path_factory.mktemp("figures") / "r"
    stored.results(path, [*stored.FOUR, *sizes], SMALL)
    return path


@pytest.mark.parametrize("kind", ["granularity", "locality", "locality-relative", "traces"])
def test_a_figure_has_a_line_a_pattern_told_apart_without_colour(
    results: Path, here: Path, kind: str
) -> None:
    done = uflip("figure", results, kind, "-o", "x.svg")
    assert (done.code, done.out.strip()) == (0, "x.svg"), done.err
    content = (here / "x.svg").read_text()
    assert content.startswith("<?xml")
    wide = float(re.search(r'width="([\d.]+)pt"', content)[1]) / 72  # type: ignore[index]
    assert wide == pytest.approx(paper.PAGE if kind == "traces" else paper.COLUMN, abs=0.01)
    again = uflip("figure", results, kind, "-o", "x.svg")
    assert again.code == 0, again.err
    assert (here / "x.svg").read_text() == content, "the same data gives the same file"


def test_lines_differ_by_more_than_colour(results: Path) -> None:
    loaded = Results.load(results)
    figure = paper.drawn(paper.kinds_of(loaded, summary(loaded))["granularity"])
    (axis,) = figure.axes
    named = [line for line in axis.get_lines() if str(line.get_label())[:2] in paper.DASHES]
    looks = {(line.get_linestyle(), line.get_marker()) for line in named}
    assert len(named) == len(looks) == 3
    means = {run["pattern"]: [] for run in summary(loaded)["micro_benchmarks"]["granularity"]}
    for run in summary(loaded)["micro_benchmarks"]["granularity"]:
        means[run["pattern"]].append(run["statistics"]["mean_ns"] / 1e6)
    for line in named:
        assert sorted(line.get_ydata()) == sorted(means[str(line.get_label())[:2]])


def test_relative_locality_is_the_mean_over_that_of_sequential_writes(results: Path) -> None:
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
        wanted = [mean / document["baselines_ms"]["SW"] for mean in means]
        assert list(lines[pattern].get_ydata()) == pytest.approx(wanted)


def test_what_a_result_has_is_listed_and_nothing_else_is_drawn(results: Path, here: Path) -> None:
    listed = uflip("figure", results).out.split()
    assert listed == ["granularity", "locality", "locality-relative", "traces"]
    refused = uflip("figure", results, "wear", "-o", "x.pdf")
    assert refused.code == 2
    assert "granularity" in refused.err
    for name, head in (("x.pdf", b"%PDF"), ("x.png", b"\x89PNG")):
        assert uflip("figure", results, "granularity", "-o", name).code == 0
        assert (here / name).read_bytes().startswith(head)
    (here / "mine.pdf").write_text("a thesis")
    assert uflip("figure", results, "granularity", "-o", "mine.pdf").code == 3
    assert (here / "mine.pdf").read_text() == "a thesis"
