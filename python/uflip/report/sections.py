"""The sections of the page: functions (summary, baseline I/Os) → blocks, possibly none.

They return text and numbers; the templates make HTML of them.
"""

from collections.abc import Sequence

from uflip.data.document import plain
from uflip.data.summary import WarningSummary as Doubt
from uflip.hints import advise
from uflip.microbench import MICRO_BENCHMARKS, suite_of, varied_micro_benchmarks
from uflip.report import figures, key_row, tables
from uflip.report.blocks import (
    Benchmark,
    Block,
    Collapsible,
    Facts,
    Paragraph,
    Table,
    Tiles,
    WarningBlock,
)
from uflip.report.data import Document, Traces
from uflip.report.labels import anchor, title
from uflip.report.tables import scale_note, tiles

Blocks = Sequence[Block]


def key_figures(document: Document, traces: Traces) -> Blocks:
    """Return the four tiles with a note."""
    note = (
        "Response time of one I/O at a time, without the start-up. p50 is the median; 99 % of the "
        "I/Os were not slower than p99 (a lower percentile is shown if there are too few I/Os "
        f"for p99). {scale_note(traces)}"
    )
    return [Tiles(tiles(document, traces)), Paragraph(note, "note")]


def key_characteristics(document: Document, _traces: Traces) -> Blocks:
    """Return the device's row of Table 3."""
    characteristics = document["key_characteristics"]
    if characteristics is None or not key_row.has_characteristics(document):
        return []
    row = Table(key_row.COLUMNS, [key_row.cells(characteristics)], "r")
    return [row, Paragraph(key_row.note(), "note")]


def design_hints(document: Document, _traces: Traces) -> Blocks:
    """Return the seven hints of §5.3, checked against this device."""
    if not key_row.has_characteristics(document):
        return []
    advice = advise(document)
    rows = [
        [f"{hint.number} {hint.verdict}", hint.statement, hint.because, hint.next_step or "–"]
        for hint in advice.hints
    ]
    about = f"Class {advice.classified.name}: {advice.classified.meaning}."
    table = Table(["Hint", "Statement", "Evidence", "Advice"], rows)
    return [Paragraph(about), table]


def baselines(document: Document, traces: Traces) -> Blocks:
    """Return the figures of the baselines."""
    drawn = (figure(document, traces) for figure in figures.BASELINES)
    return [figure for figure in drawn if figure]


HOW_TO_READ = (
    "Lines join mean response times, as in the paper. The dash on a whisker is the median; the "
    "whisker spans p5 to p95 (minimum to maximum in runs too short for percentiles). Thin "
    "dotted lines are the baselines. A mean far from the middle of its whisker is caused by a few "
    "very slow I/Os. Axes with a wide range are logarithmic."
)


def micro_benchmarks(document: Document, _traces: Traces) -> Blocks:
    """Return all micro-benchmarks of the suite in order: question, figure, caption, finding."""
    measured = set(document["micro_benchmarks"])
    suite = suite_of([*measured, *(entry.micro_benchmark for entry in document["skipped"])])
    others = sorted(measured - set(varied_micro_benchmarks(suite)))
    blocks = [
        _micro_benchmark(name, document) for name in [*varied_micro_benchmarks(suite), *others]
    ]
    return [Paragraph(HOW_TO_READ), *blocks]


def _micro_benchmark(name: str, document: Document) -> Benchmark:
    about = MICRO_BENCHMARKS.get(name)
    body = figures.kind_of(name).figure(document, name) or Paragraph(
        _why_absent(name, document), "absent"
    )
    return Benchmark(anchor(name), title(name), about.question if about else "", [body])


def _why_absent(name: str, document: Document) -> str:
    reasons = []
    if any(f"-{name}-" in run_id for run_id in document["missing"]):
        reasons.append("the benchmark ended before its runs")
    skipped = [entry for entry in document["skipped"] if entry.micro_benchmark == name]
    reasons.extend(sorted({entry.reason for entry in skipped}))
    return f"Not measured: {'; '.join(reasons or ['it was not part of the plan'])}."


def summary(document: Document, _traces: Traces) -> Blocks:
    """Return a table with one row per experiment."""
    rows = tables.summary_tables(document)
    intro = "The lowest and the highest mean response time of each experiment."
    return [Paragraph(intro), *rows] if rows else []


def warnings(document: Document, _traces: Traces) -> Blocks:
    """Return the warnings with their advice, or a note that there are no warnings."""
    if not document["warnings"]:
        return [Paragraph("None: no check raised a doubt about these data.")]
    return [_warning_block(warning) for warning in document["warnings"]]


def _warning_block(warning: Doubt) -> WarningBlock:
    runs = warning["numbers"].get("runs", [])
    return WarningBlock(warning, [str(run) for run in runs] if isinstance(runs, list) else [])


def skipped(document: Document, _traces: Traces) -> Blocks:
    """Return the runs that were not made, and why."""
    parts: list[Block] = []
    if document["skipped"]:
        parts.append(Paragraph("These runs were left out of the plan for the given reasons."))
        parts.append(tables.skipped_table(document["skipped"]))
    if missing := document["missing"]:
        text = f"{len(missing)} planned runs did not finish before the benchmark ended."
        parts.append(Paragraph(text))
        parts.append(Collapsible("Their names", [Paragraph(", ".join(missing), "note")]))
    return parts or [Paragraph("None: every run of the plan was made.")]


def provenance(document: Document, _traces: Traces) -> Blocks:
    """Return everything needed to judge and repeat the benchmark."""
    results = {
        key: document[key]
        for key in (
            "format_version", "uflip_version", "status", "created_utc", "finished_utc",
            "elapsed_s", "scale", "seed", "pause_ns", "durability", "runs_planned", "runs_finished",
        )
    }  # fmt: skip
    facts = (
        ("Device", plain(document["device"])),
        ("Host", document["host"]),
        ("Results", results),
        ("Harness", document["harness"]),
    )
    columns = [tables.facts_table(values, name) for name, values in facts if values]
    every = tables.every_experiment_table(document)
    note = (
        "Further runs of an experiment have own seeds, and sequential writes own target "
        "spaces; the specification of any run is in its file, and in the explorer."
    )
    about = Collapsible("Every experiment with its pattern specification", [every, Paragraph(note)])
    return [Facts(columns), about]
