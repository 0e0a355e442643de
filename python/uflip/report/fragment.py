"""Results in a notebook: the tables of the report, without its page."""

from collections.abc import Sequence

from uflip.data.summary import Summary
from uflip.report.blocks import Block, Paragraph, Table
from uflip.report.comparison import describe_verdicts, select_rows, table
from uflip.report.labels import format_ms, title
from uflip.report.page import render
from uflip.results.comparison import ResultComparison
from uflip.results.summary_document import describe_device


def result_fragment(document: Summary) -> str:
    """Return the baselines and micro-benchmarks of a result as HTML."""
    device = describe_device(document["device"])
    runs = f"{document['runs_finished']} of {document['runs_planned']} runs, {document['status']}"
    means = document["baselines_ms"].items()
    baselines = [[name, format_ms(None if ms is None else ms * 1e6)] for name, ms in means]
    measured = [
        [
            title(name),
            str(len(runs_of_benchmark)),
            str(sum(bool(run["together"]["converged"]) for run in runs_of_benchmark)),
        ]
        for name, runs_of_benchmark in document["micro_benchmarks"].items()
    ]
    return _fragment(
        [
            Paragraph(f"{device}: {runs}"),
            Table(["baseline", "mean [ms]"], baselines, "lr"),
            Table(["micro-benchmark", "experiments", "converged"], measured, "lr"),
        ]
    )


def comparison_fragment(comparison: ResultComparison) -> str:
    """Return the baselines and the differences of a comparison as HTML."""
    doubts = [Paragraph(f"{each.message}: {each.advice}", "note") for each in comparison.conditions]
    return _fragment(
        [
            Paragraph(f"First: {comparison.first}. Second: {comparison.second}."),
            *doubts,
            Paragraph(describe_verdicts(comparison) + "."),
            table(select_rows(comparison, every=False)),
        ]
    )


def _fragment(blocks: Sequence[Block]) -> str:
    return render("fragment.html", blocks=blocks)
