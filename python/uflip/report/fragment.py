"""Results in a notebook: the tables of the report, without its page."""

from collections.abc import Sequence

from uflip.data.summary import Summary
from uflip.report.blocks import Block, Paragraph, Table
from uflip.report.comparison import counted, rows_of, table
from uflip.report.labels import format_ms, title
from uflip.report.page import render
from uflip.results.comparison import ResultComparison
from uflip.results.summarise import describe_device


def of_result(document: Summary) -> str:
    """Return the baselines and micro-benchmarks of a result as HTML."""
    device = describe_device(document["device"])
    runs = f"{document['runs_finished']} of {document['runs_planned']} runs, {document['status']}"
    means = document["baselines_ms"].items()
    baselines = [[name, format_ms(None if ms is None else ms * 1e6)] for name, ms in means]
    measured = [
        [
            title(name),
            str(len(found)),
            str(sum(bool(run["together"]["converged"]) for run in found)),
        ]
        for name, found in document["micro_benchmarks"].items()
    ]
    return _fragment(
        [
            Paragraph(f"{device}: {runs}"),
            Table(["baseline", "mean [ms]"], baselines, "lr"),
            Table(["micro-benchmark", "experiments", "mean known"], measured, "lr"),
        ]
    )


def of_comparison(found: ResultComparison) -> str:
    """Return the baselines and the differences of a comparison as HTML."""
    doubts = [Paragraph(f"{each.message}: {each.advice}", "note") for each in found.conditions]
    return _fragment(
        [
            Paragraph(f"First: {found.first}. Second: {found.second}."),
            *doubts,
            Paragraph(counted(found) + "."),
            table(rows_of(found, every=False)),
        ]
    )


def _fragment(blocks: Sequence[Block]) -> str:
    return render("fragment.html", blocks=blocks)
