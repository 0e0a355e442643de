"""`uflip compare`: compare the same experiments of two or more results."""

import re
from collections.abc import Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import TYPE_CHECKING

import click

from uflip._native import __version__
from uflip.cli.options import force_option, json_option, option_name, path_option
from uflip.cli.terminal import echo, echo_json, error_document
from uflip.errors import SlowerError, UflipError, UsageError
from uflip.escape import escape_line

if TYPE_CHECKING:
    from uflip.data.summary import Summary
    from uflip.results.comparison import Comparisons, ResultComparison
    from uflip.results.outputs import OutputPath

MAX_LISTED = 5
FORMATS = (".csv", ".html", ".md", ".pdf", ".svg", ".png")

EPILOG = """\b
Examples:
  uflip compare results/before results/after
  uflip compare results/before results/after --fail-if-slower 5%
  uflip compare results/a results/b results/c -o comparison.html

\b
An experiment is slower or faster if the 95 % interval of the ratio does not include 1, and the
ratio exceeds the differences of the same pattern within either result. --fail-if-slower tests all
experiments together, with Holm's correction for their number, and also fails if nothing can be
compared (exit code 2). An experiment has no verdict if either result has only one run of it or may
include the start-up of the device, or if the two made or ignored different I/Os. For verdicts,
measure both with --repetitions 3 or more.
"""


def _read_share(_ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    match = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)\s*%", value.strip())
    if match is None:
        raise UsageError(
            "Not a percentage",
            where=option_name(param),
            got=f"'{value}'",
            allowed="a number with %, as in 5%",
            action="give the accepted slowdown",
        )
    return float(match[1]) / 100


def _folder(result: str) -> Path:
    """Return the folder of a result; that of a results site is downloaded."""
    if not result.startswith(("http://", "https://")):
        return Path(result)
    from uflip.site.client import download_result

    return download_result(result)


@click.command("compare", epilog=EPILOG)
@click.argument("results", nargs=-1, type=click.Path(readable=False))
@click.option("--all", "every", is_flag=True, help="List every experiment, not only differences.")
@click.option(
    "--fail-if-slower",
    metavar="N%",
    callback=_read_share,
    help="Exit with code 7 if any experiment is significantly slower, by more than this.",
)
@path_option(
    "-o",
    "--out",
    metavar="FILE",
    help="Write the comparison: a .html page, a .md text for a pull request, a .csv table, or the "
    "figure of all results (.pdf, .svg, .png).",
)
@force_option
@json_option
def command(
    *,
    results: tuple[str, ...],
    every: bool,
    fail_if_slower: float | None,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Compare two or more result folders with the first: RESULTS RESULTS ...

    A result can also be the address of its page on a results site.
    """
    if len(results) < 2:
        raise UsageError(
            "A comparison needs two results",
            where="RESULTS",
            got=f"{len(results)} folders" if len(results) != 1 else "one folder",
            allowed="two folders or more; all are compared with the first",
            action="give both: `uflip compare BEFORE AFTER`",
        )
    if out is not None:
        _output_path(out, force)
    from uflip.result_views import summary
    from uflip.results import Results
    from uflip.results.comparison import NamedComparison, compare

    summaries = [summary(Results.load(_folder(each))) for each in results]
    comparisons = [compare(summaries[0], other) for other in summaries[1:]]
    names = list(results)
    if out is not None:
        _write(comparisons, summaries, names, _output_path(out, force))
        if not as_json:
            echo(f"{out}")
    failed = None if fail_if_slower is None else _failure(comparisons, names, fail_if_slower)
    if as_json:
        pairs = zip(names[1:], comparisons, strict=True)
        each = [
            NamedComparison(
                **{field.name: getattr(comparison, field.name) for field in fields(comparison)},
                results=(names[0], name),
            )
            for name, comparison in pairs
        ]
        document: Comparisons = {"comparisons": each}
        if failed is not None:
            document["error"] = error_document(failed)
        echo_json(document)
        raise click.exceptions.Exit(0 if failed is None else failed.exit_code)
    _print_comparisons(comparisons, names, every=every)
    if failed is not None:
        raise failed


def _print_comparisons(
    comparisons: "Sequence[ResultComparison]", names: Sequence[str], *, every: bool
) -> None:
    from uflip.report.comparison import lines_of

    for number, (name, comparison) in enumerate(zip(names[1:], comparisons, strict=True)):
        lines = lines_of(comparison, (names[0], name), every=every)
        echo(("\n" if number else "") + "\n".join(map(escape_line, lines)))


def _failure(
    comparisons: "Sequence[ResultComparison]", names: Sequence[str], share: float
) -> UflipError | None:
    """Return the error if an experiment is too slow, or if nothing could be compared."""
    from uflip.report.comparison import describe_verdicts
    from uflip.results.comparability import ONE_REPETITION
    from uflip.results.comparison import experiment_name, slower_than

    slower = slower_than([row for each in comparisons for row in each.rows], share)
    descriptions = [
        f"{experiment_name(row.micro_benchmark, row.pattern, row.parameter, row.value)}: "
        f"x{row.ratio:.2f} in {name}"
        for name, each in zip(names[1:], comparisons, strict=True)
        for row in slower
        if row in each.rows
    ]
    if descriptions:
        single_runs = sum(row.repetitions < 2 for row in slower)
        more = (
            f"; and {len(descriptions) - MAX_LISTED} more" if len(descriptions) > MAX_LISTED else ""
        )
        return SlowerError(
            f"Slower by more than {100 * share:g} %",
            where=", ".join(names[1:]),
            got="; ".join(descriptions[:MAX_LISTED]) + more,
            allowed=f"at most {100 * share:g} % slower than {names[0]}, or uncertain",
            action="look at these first, in the table above or with `uflip explore`"
            + f"; {single_runs} of them have one run: first compare two results of the same device"
            * bool(single_runs),
        )
    for name, each in zip(names[1:], comparisons, strict=True):
        if not any(row.low is not None and row.estimates is not None for row in each.rows):
            single_runs = any(row.unknown_because == ONE_REPETITION for row in each.rows)
            return UsageError(
                "Nothing could be compared",
                where=f"{names[0]} and {name}",
                got=describe_verdicts(each),
                allowed="results with at least one experiment in both that has a verdict",
                action="measure both with --repetitions 3 or more"
                if single_runs
                else "measure both with the same options; --all and --json list all experiments",
            )
    return None


def _output_path(path: Path, force: bool) -> "OutputPath":
    from uflip.results import outputs

    outputs.check_ending(path, "file", "--out", FORMATS)
    kind = {".csv": outputs.TABLE, ".md": outputs.TABLE, ".html": outputs.COMPARISON}
    return outputs.check(path, (kind | outputs.FIGURES)[path.suffix], "--out", force=force)


def _write(
    comparisons: "Sequence[ResultComparison]",
    summaries: "Sequence[Summary]",
    names: Sequence[str],
    output: "OutputPath",
) -> None:
    from uflip.report.comparison import build_page, markdown
    from uflip.results import outputs

    if output.path.suffix == ".html":
        page = build_page(comparisons, summaries, names, __version__)
        outputs.write(output, page.encode(errors="replace"))
    elif output.path.suffix == ".md":
        outputs.write(output, markdown(comparisons, names).encode(errors="replace"))
    elif output.path.suffix in outputs.FIGURES:
        _draw(summaries, names, output.path)
    else:
        _write_table(comparisons, names, output)


def _draw(summaries: "Sequence[Summary]", names: Sequence[str], path: Path) -> None:
    from uflip.report.figures import side_by_side
    from uflip.report.figures.matplotlib_chart import figure_of, nothing_to_draw, save

    chart = side_by_side.chart(summaries, names)
    if chart is None:
        raise nothing_to_draw("no micro-benchmark that two of the results have", path)
    save(figure_of(chart), path, side_by_side.NAME, force=True)


def _write_table(
    comparisons: "Sequence[ResultComparison]", names: Sequence[str], output: "OutputPath"
) -> None:
    from uflip.results.comparison import ComparedExperiment
    from uflip.results.outputs import write_table

    rows = (
        [names[0], name, *astuple(row)]
        for name, comparison in zip(names[1:], comparisons, strict=True)
        for row in comparison.rows
    )
    write_table(
        output, ["first", "second", *(field.name for field in fields(ComparedExperiment))], rows
    )
