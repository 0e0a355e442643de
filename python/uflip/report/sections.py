"""The sections of the page, one function each: (summary, baseline I/Os) → HTML, empty if nothing.

Text that comes from results (names of devices, reasons, warnings) is escaped where it enters HTML.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from uflip.report import figures, key_row, tables
from uflip.report.data import BaselineTrace
from uflip.report.findings import finding
from uflip.report.tiles import scale_note, tiles
from uflip.report.words import MICRO_BENCHMARKS, anchor, title

Document = Mapping[str, Any]
Traces = Sequence[BaselineTrace]

# Figures are numbered in the order of the page: these four come before the micro-benchmarks.
TRACES, DISTRIBUTION, SPENT = 1, 2, 3


def key_figures(document: Document, traces: Traces) -> str:
    """Four tiles and the words to read them."""
    return (
        f'<div class="tiles">{tiles(document, traces)}</div>'
        "<p class=note>Response time of one I/O at a time, start-up left out. p50 is the median; "
        "99 % of the I/Os were not slower than p99 (a lower percentile stands where there are too "
        f"few I/Os for p99). {scale_note(traces)}</p>"
    )


def key_characteristics(document: Document, _traces: Traces) -> str:
    """The device's row of Table 3."""
    found = document["key_characteristics"]
    if not key_row.anything_to_say(document):
        return ""
    row = tables.table(key_row.COLUMNS, [key_row.cells(found)], "r")
    return f"{row}<p class=note>{escape(key_row.note())}</p>"


def baselines(document: Document, traces: Traces) -> str:
    """Traces, distribution, and what the time was spent on."""
    simulated = bool(document["device"].get("simulated"))
    parts = [
        figure(
            TRACES,
            "Traces",
            figures.traces(traces, simulated=simulated),
            "Is there a start-up phase, and does the running phase repeat itself? Each dot is one "
            "I/O; the first of them on the left, all on the right. A step at the left is a "
            "start-up; bands are cheap and expensive I/Os that alternate; where dashed and solid "
            "averages part, the start-up would have distorted the mean.",
            data=tables.baselines_table(document),
        ),
        figure(
            DISTRIBUTION,
            "Distribution",
            figures.distribution(traces, simulated=simulated),
            "How slow are the slow ones? "
            "Read upwards from a time: the height of a line is the share of I/Os slower than that. "
            "A steep line is a predictable device; a long tail to the right is what a mean hides.",
        ),
        figure(
            SPENT,
            "What the time was spent on",
            figures.spent(traces, simulated=simulated),
            "Why does it take so long? The parts of the response time as the simulator charged "
            "them, for all I/Os and for the slowest hundredth; the number beside a bar is the mean "
            "response time. A cause that grows from left to right is what makes slow I/Os slow.",
            data=tables.causes_table(document),
        ),
    ]
    return "\n".join(part for part in parts if part)


def micro_benchmarks(document: Document, traces: Traces) -> str:
    """The nine, in the paper's order: question, figure, how to read it, what it says here."""
    first = SPENT + 1 if any(trace.causes_ms for trace in traces) else SPENT
    names = [*MICRO_BENCHMARKS, *(set(document["micro_benchmarks"]) - set(MICRO_BENCHMARKS))]
    number, parts = first, [READING]
    for name in names:
        runs = document["micro_benchmarks"].get(name, [])
        drawn = _draw(name, runs, document)
        parts.append(_micro_benchmark(name, document, number, drawn))
        number += bool(drawn)
    return "\n".join(parts)


READING = (
    "<p>Lines join mean response times, as in the paper. The dash on a whisker is the median; the "
    "whisker spans p5 to p95 (minimum to maximum in runs too short for percentiles). Thin "
    "dotted lines are the baselines. Where means leave the middle of their whiskers, a few very "
    "slow I/Os carry them. Axes are logarithmic where the range asks for it.</p>"
)

# In these the first value is the baseline itself, or the I/O size differs from it.
WITHOUT_LEVELS = ("granularity",)


def _draw(name: str, runs: Sequence[Mapping[str, Any]], document: Document) -> str:
    simulated = bool(document["device"].get("simulated"))
    if name == "mix":
        return figures.mix(runs, document["baselines_ms"], simulated=simulated)
    levels = None if name in WITHOUT_LEVELS else document["baselines_ms"]
    return figures.sweep(name, runs, simulated=simulated, levels=levels)


def _micro_benchmark(name: str, document: Document, number: int, drawn: str) -> str:
    about = MICRO_BENCHMARKS.get(name)
    question = f'<p class="question">{escape(about.question)}</p>' if about else ""
    head = f'<h3 id="{anchor(name)}">{escape(title(name))}</h3>{question}'
    if not drawn:
        body = f'<p class="absent">{escape(_why_absent(name, document))}</p>'
        return f'<div class="benchmark">{head}{body}</div>'
    runs = document["micro_benchmarks"][name]
    data = tables.runs_table(runs, f"{title(name)}, response time [ms]")
    if name == "mix":
        data += tables.components_table(runs)
    how = about.how_to_read if about else ""
    found = finding(name, document)
    body = figure(number, title(name), drawn, how, data=data, found=found)
    return f'<div class="benchmark">{head}{body}</div>'


def _why_absent(name: str, document: Document) -> str:
    skipped = [entry for entry in document["skipped"] if entry["micro_benchmark"] == name]
    if skipped:
        reasons = sorted({entry["reason"] for entry in skipped})
        return f"Not measured: {'; '.join(reasons)}."
    if any(f"-{name}-" in run_id for run_id in document["missing"]):
        return "Not measured: the benchmark ended before its runs."
    return "Not measured: it was not part of the plan."


def figure(
    number: int, name: str, svg: str, how_to_read: str, *, data: str = "", found: str = ""
) -> str:
    """A numbered figure with its caption, its finding and its data; empty without a drawing."""
    if not svg:
        return ""
    here = f'<p class="finding">{escape(found)}</p>' if found else ""
    fallback = (
        f"<details><summary>Data of figure {number}</summary>{data}</details>" if data else ""
    )
    return (
        f'<figure id="figure-{number}"><div class="plate" tabindex="0">{svg}</div>'
        f"<figcaption><b>Figure {number}. {escape(name)}.</b> {escape(how_to_read)}{here}"
        f"</figcaption>{fallback}</figure>"
    )


def summary(document: Document, _traces: Traces) -> str:
    """A row per experiment."""
    table = tables.summary_table(document)
    intro = "<p>Where the mean response time of each experiment was lowest and highest.</p>"
    return intro + table if table else ""


def warnings(document: Document, _traces: Traces) -> str:
    """Doubts with their advice; that there are none is worth saying too."""
    if not document["warnings"]:
        return "<p>None: no check raised a doubt about these data.</p>"
    return "\n".join(_warning(warning) for warning in document["warnings"])


def _warning(warning: Mapping[str, Any]) -> str:
    runs = warning["numbers"].get("runs", [])
    listed = (
        f"<details><summary>{len(runs)} runs</summary><p class=note>{escape(', '.join(runs))}</p>"
        "</details>"
        if isinstance(runs, list) and len(runs) > 1
        else ""
    )
    return (
        f'<div class="warning"><p><b>{escape(warning["message"])}</b> '
        f"<code>{escape(warning['code'])}</code></p>"
        f'<p class="advice">→ {escape(warning["advice"])}</p>{listed}</div>'
    )


def skipped(document: Document, _traces: Traces) -> str:
    """What was not run, and why."""
    parts = []
    if document["skipped"]:
        parts.append("<p>This device cannot do the following runs of the plan.</p>")
        parts.append(tables.skipped_table(document["skipped"]))
    if missing := document["missing"]:
        parts.append(
            f"<p>{len(missing)} planned runs did not finish before the benchmark ended.</p>"
        )
        listed = escape(", ".join(missing))
        parts.append(f"<details><summary>Their names</summary><p class=note>{listed}</p></details>")
    return "\n".join(parts) or "<p>None: every run of the plan was made.</p>"


def provenance(document: Document, _traces: Traces) -> str:
    """Everything needed to judge, and to repeat."""
    results = {
        key: document[key]
        for key in (
            "format_version", "uflip_version", "status", "created_utc", "finished_utc",
            "elapsed_s", "scale", "seed", "pause_ns", "durability", "runs_planned", "runs_finished",
        )
    }  # fmt: skip
    facts = (
        ("Device", document["device"]),
        ("Host", document["host"]),
        ("Results", results),
        ("Harness", document["harness"]),
    )
    columns = "".join(
        f'<div class="facts-table">{tables.facts_table(values, name)}</div>'
        for name, values in facts
        if values
    )
    every = tables.every_run_table(document)
    return (
        f'<div class="columns">{columns}</div>'
        f"<details><summary>Every run with its pattern specification</summary>{every}</details>"
    )
