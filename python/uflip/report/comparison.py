"""A comparison as lines for a terminal, and as one HTML page."""

import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from uflip.data.summary import Summary
from uflip.escape import escape_line
from uflip.microbench.labels import PATTERN_NAMES, format_value, parameter_name
from uflip.report.blocks import Block, Collapsible, Paragraph
from uflip.report.figures import ratios, side_by_side
from uflip.report.labels import format_ms, title
from uflip.report.page import ReportPage, Section, render_page
from uflip.results.comparability import ONE_REPETITION, UNKNOWN_REASONS
from uflip.results.comparison import ComparedExperiment, ResultComparison
from uflip.results.statistics import VERDICTS
from uflip.table import Table, text_width

HEAD = (
    "micro-benchmark", "pattern", "varies", "first [ms]", "second [ms]", "ratio", "95 % interval",
    "p50", "p99", "verdict",
)  # fmt: skip
ALIGN = "lllrrrrrrl"
# Columns that a narrow terminal lacks, in this order.
OPTIONAL = ("p99", "p50", "95 % interval", "second [ms]")
DIFFERENT = ("slower", "faster")
PATTERN_WORDS = {pattern: f"{words}s" for pattern, words in PATTERN_NAMES.items()}
SINGLE_RUN_FACTOR = 1.25
"""Single runs are compared in words from this factor: a device differs by less from itself."""
# Differing properties of the devices that a terminal shows.
FACTS_SHOWN = 12


def select_rows(comparison: ResultComparison, *, every: bool) -> list[ComparedExperiment]:
    """Return every row, or only the baselines and the experiments that differ."""
    if every:
        return list(comparison.rows)
    baselines = [row for row in comparison.rows if row.micro_benchmark == "baseline"]
    others = [row for row in comparison.rows if row not in baselines and row.verdict in DIFFERENT]
    return baselines + sorted(others, key=lambda row: -max(row.ratio, 1 / row.ratio))


def table(rows: Sequence[ComparedExperiment], omitted: Sequence[str] = ()) -> Table:
    """Return the table of some rows."""
    kept = [index for index, name in enumerate(HEAD) if name not in omitted]
    head, align, *cells = (
        [each[i] for i in kept] for each in (HEAD, ALIGN, *(_cells(row) for row in rows))
    )
    return Table(head, cells, "".join(align))


def _cells(row: ComparedExperiment) -> list[str]:
    varies = f"{parameter_name(row.parameter)} {format_value(row.value, row.unit)}".strip()
    bounds = "–" if row.low is None else f"{_ratio(row.low)} to {_ratio(row.high)}"
    return [
        title(row.micro_benchmark),
        row.pattern,
        varies,
        format_ms(row.first_ns),
        format_ms(row.second_ns),
        _ratio(row.ratio),
        bounds,
        _ratio(row.p50_ratio),
        _ratio(row.p99_ratio),
        row.verdict.replace("_", " "),
    ]


def _ratio(value: float | None) -> str:
    if value is None:
        return "–"
    if 0 < value < 0.1:
        return f"{value:.2g}"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def describe_verdicts(comparison: ResultComparison) -> str:
    """Return the number of experiments with each verdict, as a sentence."""
    count = comparison.count()
    verdicts = ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in count.items())
    unknown = Counter(row.unknown_because for row in comparison.rows if row.unknown_because)
    if unknown:
        reasons = (f"{number} {name.replace('_', ' ')}" for name, number in unknown.items())
        verdicts += f" ({', '.join(reasons)})"
    both = len(comparison.rows)
    only = len(comparison.only_in_first), len(comparison.only_in_second)
    unpaired = f"; only in one: {only[0]} and {only[1]}" if any(only) else ""
    return f"{both} experiments in both: {verdicts}{unpaired}"


def sentences(comparison: ResultComparison, names: Sequence[str]) -> list[str]:
    """Return the differences in words, one sentence for each micro-benchmark that has any.

    Examples are in `tests/python/test_compare.py`.
    """
    by_benchmark: dict[str, dict[str, list[ComparedExperiment]]] = {}
    for row in comparison.rows:
        by_benchmark.setdefault(row.micro_benchmark, {}).setdefault(row.pattern, []).append(row)
    found = []
    for benchmark, patterns in by_benchmark.items():
        for judged, end in ((_differs, ""), (_single_run_differs, " (single runs, no verdict)")):
            if clause := _clause(patterns, judged):
                found.append(f"{title(benchmark)}: {names[1]} {clause}{end}.")
    return found


def _differs(row: ComparedExperiment) -> bool:
    return row.verdict in DIFFERENT


def _single_run_differs(row: ComparedExperiment) -> bool:
    """Return whether single runs differ by far more than runs of one device do."""
    if row.unknown_because != ONE_REPETITION or row.low is None or row.high is None:
        return False
    return row.low > SINGLE_RUN_FACTOR or row.high < 1 / SINGLE_RUN_FACTOR


def _clause(
    patterns: Mapping[str, Sequence[ComparedExperiment]],
    judged: Callable[[ComparedExperiment], bool],
) -> str:
    """Return the ratios that differ, as "takes 1.5 to 3.4 times as long for random writes"."""
    longer: list[str] = []
    faster: list[str] = []
    for pattern, rows in patterns.items():
        differing = [row.ratio for row in rows if judged(row)]
        for factors, parts, words in (
            ([ratio for ratio in differing if ratio > 1], longer, "long"),
            ([1 / ratio for ratio in differing if 0 < ratio < 1], faster, "fast"),
        ):
            if factors:
                ends = dict.fromkeys(_ratio(end) for end in (min(factors), max(factors)))
                of = f" at {len(factors)} of {len(rows)} values" * (len(factors) < len(rows))
                name = PATTERN_WORDS.get(pattern, pattern)
                parts.append(f"{' to '.join(ends)} times as {words} for {name}{of}")
    clauses = (("takes ", longer), ("is ", faster))
    return "; ".join(verb + ", ".join(parts) for verb, parts in clauses if parts)


def lines_of(comparison: ResultComparison, names: Sequence[str], *, every: bool) -> list[str]:
    """Return the lines of a comparison for a terminal."""
    found, rows = sentences(comparison, names), select_rows(comparison, every=every)
    lines = [
        f"first   {names[0]}  {comparison.first}",
        f"second  {names[1]}  {comparison.second}",
        *(line for fact in _facts(comparison) for line in _wrapped(fact, "  ", "    ")),
        *(
            line
            for each in comparison.conditions
            for line in (
                *_wrapped(each.message, "warning: ", " " * 9),
                *_wrapped(each.advice, " " * 9, " " * 9),
            )
        ),
        *(["", *(line for each in found for line in _wrapped(each))] if found else []),
        *(["", *_fitting_lines(rows)] if rows else []),
        "",
        *_wrapped(describe_verdicts(comparison)),
    ]
    if rows and not every:
        lines.append("shown: the baselines and the differences; --all shows every experiment")
    return lines


def _wrapped(text: str, first: str = "", others: str = "  ") -> list[str]:
    return textwrap.wrap(
        text,
        text_width(),
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _fitting_lines(rows: Sequence[ComparedExperiment]) -> list[str]:
    """Return the lines of the table, without the optional columns that the terminal cannot show."""
    width = text_width(most=sys.maxsize)
    return next(
        (
            lines
            for number in range(len(OPTIONAL))
            if max(map(len, lines := table(rows, OPTIONAL[:number]).lines())) <= width
        ),
        table(rows, OPTIONAL).lines(),
    )


def _facts(comparison: ResultComparison) -> list[str]:
    facts = [
        f"{name}: {_plain(one)} and {_plain(other)}"
        for name, (one, other) in comparison.devices.items()
    ]
    more = len(facts) - FACTS_SHOWN
    return [*facts[:FACTS_SHOWN], f"and {more} more (--json has all)"] if more > 0 else facts


def _plain(value: Any) -> str:
    return "none" if value is None else str(value)


def markdown(comparisons: Sequence[ResultComparison], names: Sequence[str]) -> str:
    """Return the comparison for a pull request: sentences, and tables of what differs."""
    lines = []
    for name, comparison in zip(names[1:], comparisons, strict=True):
        pair = (names[0], name)
        lines += [f"### {name} compared with {names[0]}", ""]
        lines += [f"**{describe_verdicts(comparison)}**", ""]
        lines += [f"- {each}" for each in sentences(comparison, pair)]
        lines += [f"- warning: {each.message}: {each.advice}" for each in comparison.conditions]
        rows = [_cells(row) for row in select_rows(comparison, every=False)]
        rule = ["--:" if side == "r" else ":--" for side in ALIGN]
        lines += ["", *("| " + " | ".join(row) + " |" for row in [HEAD, rule, *rows]), ""]
    return "\n".join(map(escape_line, lines))


def build_page(
    comparisons: Sequence[ResultComparison],
    summaries: Sequence[Summary],
    names: Sequence[str],
    version: str,
) -> str:
    """Return one page for several comparisons with the same first result."""
    every = [comparisons[0].first, *(each.second for each in comparisons)]
    devices = "; ".join(dict.fromkeys(every))
    drawn = side_by_side.figure(summaries, names)
    heads = [f"{other} compared with {names[0]}" for other in names[1:]]
    sections = [
        Section(f"comparison-{number}", head, _body(each, (names[0], other), f"ratios-{number}"))
        for number, (head, other, each) in enumerate(
            zip(heads, names[1:], comparisons, strict=True), start=1
        )
    ]
    if drawn is not None:
        sections.insert(0, Section(drawn.name, "All results", [drawn]))
    how = [f"{name.replace('_', ' ')}: {meaning}." for name, meaning in VERDICTS.items()]
    reading = (
        "Ratios are second over first, with the interval of Fieller (1954) from the intervals of "
        "both means. Up to 5 % of the experiments that are in fact equal differ by chance."
    )
    why = [f"unknown ({name.replace('_', ' ')}): {it}." for name, it in UNKNOWN_REASONS.items()]
    sections.append(
        Section("reading", "How to read it", [Paragraph(each) for each in [reading, *how, *why]])
    )
    return render_page(
        ReportPage(
            benchmark="uFLIP",
            source="Results of the same experiments compared.",
            version=version,
            device=devices,
            title=f"{devices}: comparison",
            badge="comparison",
            facts=list(names),
            abstract=". ".join(describe_verdicts(each) for each in comparisons) + ".",
            sections=sections,
        )
    )


def _body(comparison: ResultComparison, names: tuple[str, str], anchor: str) -> list[Block]:
    drawn = ratios.figure(comparison, anchor)
    facts = [
        [name, _plain(one), _plain(other)] for name, (one, other) in comparison.devices.items()
    ]
    differing = [Collapsible("What differs", [Table(("property", "first", "second"), facts)])]
    doubts = [Paragraph(f"{each.message}: {each.advice}", "note") for each in comparison.conditions]
    return [
        Paragraph(f"First: {comparison.first}. Second: {comparison.second}."),
        *(Paragraph(each) for each in sentences(comparison, names)),
        *doubts,
        Paragraph(describe_verdicts(comparison) + "."),
        *([] if drawn is None else [drawn]),
        table(select_rows(comparison, every=False)),
        Collapsible("Every experiment", [table(select_rows(comparison, every=True))]),
        *(differing if facts else []),
    ]
