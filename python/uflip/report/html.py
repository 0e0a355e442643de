"""The report of a block device: one self-contained HTML page.

The page uses no network and no scripts: it embeds its figures and its style, and its
Content-Security-Policy forbids loading anything. It follows the reader's light or dark theme,
prints in light colours, and has the numbers of every figure in a table. The same results give the
same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from uflip.data.document import plain
from uflip.data.inference import StoredInference
from uflip.data.manifest import Interference, PhasesOfPattern
from uflip.data.summary import ExperimentSummary, RepetitionSummary, Summary
from uflip.data.summary import WarningSummary as Doubt
from uflip.durability import CACHED, describe_durability
from uflip.hints import advise
from uflip.microbench import MICRO_BENCHMARKS, suite_of, varied_micro_benchmarks
from uflip.report import figures, key_row, tables
from uflip.report.blocks import (
    Benchmark,
    Block,
    Collapsible,
    Facts,
    Figure,
    Heading,
    Paragraph,
    Table,
    Tiles,
    WarningBlock,
)
from uflip.report.comparison import describe_verdicts, select_rows, table
from uflip.report.data import Document, Traces, is_simulated
from uflip.report.drive_counters import drive_facts, runs_table
from uflip.report.energy import causes_table, energy_table
from uflip.report.findings import headline
from uflip.report.inside import inside
from uflip.report.labels import anchor, format_ms, title
from uflip.report.page import ReportPage, Section, render, render_page
from uflip.report.tables import scale_note, tiles
from uflip.results.comparison import ResultComparison
from uflip.results.summary_document import describe_device
from uflip.stats import SUPPORT
from uflip.units import format_count, format_duration_ns, format_size

# Sections: functions (summary, baseline I/Os) → blocks, possibly none.

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
    words = Paragraph(" ".join(key_row.in_words(characteristics)))
    return [words, row, Paragraph(key_row.note(), "note")]


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


def energy(document: Document, _traces: Traces) -> Blocks:
    """Return the energy of each experiment, and of the baselines by cause."""
    each = (energy_table(document, full=True), causes_table(document))
    return [table for table in each if table is not None]


def drive_counters(document: Document, _traces: Traces) -> Blocks:
    """Return what the counters of a real drive say about all runs, and about each experiment."""
    facts = drive_facts(document)
    if not facts:
        return []
    rows = [[label, text] for label, text in facts]
    runs = runs_table(document)
    return [Table(["", "over all runs"], rows, "ll"), *([] if runs is None else [runs])]


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


# The section *Method*: a heading, a figure and text for state, phases, pause, run length, plan.

Experiments = Mapping[str, Sequence[ExperimentSummary]]


def method_section(document: Document, traces: Traces) -> list[Block]:
    """Return the blocks of the section."""
    if document["device"].null:
        # A null device has no state, no phases and no after-effects.
        return _timing(document) + _lengths(document)
    return [
        *_timing(document),
        *_state(document),
        *_phases(document, traces),
        *_pause(document),
        *_lengths(document),
        *_plan(document),
    ]


def _drawn(figure: Figure | None) -> list[Block]:
    return [figure] if figure else []


def _paragraphs(*lines: str) -> list[Block]:
    return [Paragraph(line) for line in lines if line]


def _timing(document: Document) -> list[Block]:
    device, harness = document["device"], document["harness"]
    clock = "virtual time of the simulator" if is_simulated(document) else "the monotonic clock"
    cost = harness.get("null_ns_per_io")
    polled = "; a queue is polled" if device.completion == "polled" else ""
    timed = (
        f"Every I/O was timed from submission to completion on {clock}. Each process has one I/O "
        f"in flight, unless a queue depth is given{polled}. I/O mode: "
        f"{device.io or 'not stated'}; data written: {device.data or 'not stated'}."
    )
    itself = (
        f"The harness itself takes {format_duration_ns(cost)} per I/O on this host, measured on a "
        "device that does nothing."
        if cost is not None and not is_simulated(document)
        else ""
    )
    statistics = (
        "Std is the sample standard deviation. A percentile is the smallest observed time that "
        f"covers its share, and is stated only where at least {SUPPORT} I/Os lie beyond it."
    )
    return [Heading("One I/O"), *_paragraphs(timed, _durability(document), itself, statistics)]


def _durability(document: Document) -> str:
    durability, buffered = document["durability"], document["device"].buffered
    caches = ""
    if durability == CACHED:
        caches = (
            " The work of a device with a volatile cache after that shows in these times only when "
            "the cache is full; --durability fua and flush:N measure it."
        )
    return (
        f"Durability: {durability}, {describe_durability(durability, buffered=buffered)}.{caches}"
    )


STATES = {
    "enforced": "was enforced (the device was preconditioned) right before the first run",
    "record": "had been enforced by an earlier command, and nothing else wrote to the device since",
    "profile": "is the initial state of the simulated device",
    "snapshot": "is that of the snapshot of the simulated device",
}


def _state(document: Document) -> list[Block]:
    state = document["state"]
    known_from = state.known_from
    if state.state_id is None or known_from is None:
        text = (
            "The device was measured in an unknown state. Earlier writes to it change its "
            "performance (uFLIP §4.1)."
        )
    else:
        text = f"The state ({state.state}, id {state.state_id}) {STATES[known_from]}."
    request = state.request
    if request is not None:
        text += (
            f" It covers {format_size(request['target_size'])} from offset "
            f"{format_size(request['target_offset'])}, in writes of up to "
            f"{format_size(request['io_size_max'])}."
        )
    return [Heading("State"), Paragraph(text)]


def _phases(document: Document, traces: Traces) -> list[Block]:
    phases = document["phases"]
    if not phases or not phases["patterns"]:
        return []
    rows = [
        _phase_row(label, phases_of_pattern)
        for label, phases_of_pattern in phases["patterns"].items()
    ]
    head = ("pattern", "phase", "start-up", "period", "levels and shares", "mean [ms]", "doubts")
    bounds = (
        f"The upper bounds across the patterns: start-up {format_count(phases['startup_ios'])} "
        f"I/Os, period {format_count(phases['period_ios'])}."
    )
    use = (
        " No run with a stop rule ends before twice the start-up and ten periods."
        if document["method"] == "auto"
        else " Runs leave out the start-up before they measure: reads that of reads, in I/Os; "
        "writes that of writes, in I/Os and in bytes written."
        if document["method"] == "startup"
        else " The lengths of the runs are fixed, and do not depend on them."
    )
    return [
        Heading("Phases"),
        *_drawn(figures.phases.figure(document, traces)),
        Table(head, rows, "llrrlrl", "Phases of the long baseline runs (uFLIP §4.2)"),
        Paragraph(bounds + use),
    ]


def _phase_row(label: str, phases: PhasesOfPattern) -> tuple[str, ...]:
    levels = ", ".join(f"{level.mean_ns / 1e6:.3g} ms {level.share:.0%}" for level in phases.levels)
    half = phases.half_width_ns
    mean = f"{phases.mean_ns / 1e6:.3g}" + (f" ± {half / 1e6:.2g}" if half is not None else "")
    doubts = ", ".join(reason.replace("_", " ") for reason in phases.reasons)
    return (
        label,
        phases.phase,
        format_count(phases.startup_ios),
        format_count(phases.period_ios) if phases.period_ios > 1 else "none",
        levels,
        mean,
        doubts or "none",
    )


def _pause(document: Document) -> list[Block]:
    effect = document["interference"]
    planned = format_duration_ns(document["pause_ns"])
    if effect is None:
        return [
            Heading("Pause between runs"),
            Paragraph(
                f"Before each run the device was idle for {planned}. The duration of after-effects "
                "on this device is unknown."
            ),
        ]
    lingering = (
        f"After a batch of random writes {format_count(effect['reads_affected'])} sequential reads "
        f"were slower than before it, for {format_duration_ns(effect['lingering_ns'])}"
        + ("." if effect["over"] else ", and still were at the end of the reads.")
        if effect["reads_affected"]
        else "A batch of random writes left no lasting trace in the sequential reads after it"
        f"{_slowest(effect)}."
    )
    busy = effect["device_busy_ns"]
    background = (
        f" Without the reads, the device itself would have been busy for "
        f"{format_duration_ns(busy)}: "
        + (
            "background work that continued after the reads were as fast as before."
            if busy > effect["lingering_ns"]
            else "the reads were slower for longer, because they share the device with that work."
        )
        if busy is not None
        else ""
    )
    gap = effect["gap_ns"]
    idle = (
        f" Between two batches the device was idle for {format_duration_ns(gap)} at most."
        if gap
        else ""
    )
    return [
        Heading("Pause between runs"),
        *_drawn(figures.interference.figure(document)),
        *_paragraphs(
            lingering + background + idle,
            f"The pause before each run is {format_duration_ns(effect['pause_ns'])}"
            + (
                ": twice as long."
                if effect["pause_ns"] > document["pause_ns"]
                else ", that of the plan: twice as long as the effect, or longer."
                if effect["lingering_ns"]
                else ", that of the plan."
            ),
        ),
    ]


def _slowest(interference: Interference) -> str:
    """Return the slowest reads before and after the writes, as a sentence."""
    windows = interference["windows"]
    before, after = (max(windows[batch]["max_ns"], default=0) for batch in ("before", "after"))
    return (
        f"; the slowest of them took {format_duration_ns(after)}, of those before it "
        f"{format_duration_ns(before)}"
    )


def _lengths(document: Document) -> list[Block]:
    experiments = {"baseline": document["baselines"], **document["micro_benchmarks"]}
    every = [each for runs in experiments.values() for run in runs for each in run["repetitions"]]
    if not every:
        return []
    analysed = [each for each in every if each["converged"] is not None]
    converged = sum(bool(each["converged"]) for each in analysed)
    together = [run["together"] for runs in experiments.values() for run in runs]
    repeated = [verdict for each in together if (verdict := each["converged"]) is not None]
    how = (
        "Each run ended when the 95 % interval of its mean was within 5 %, or a quarter beyond the "
        "shortest length that the baselines allow."
        if document["method"] == "auto"
        else "Runs have the fixed lengths of their scale"
        + (", after the start-up" if document["method"] == "startup" else "")
        + "; the intervals of their means were computed afterwards."
    )
    return [
        Heading("Run length"),
        *_paragraphs(
            how,
            f"{converged} of {len(analysed)} runs have converged, and "
            f"{sum(map(bool, repeated))} of {len(repeated)} experiments. An experiment has "
            "converged if its analysis raises no doubt, and the interval over all repetitions, "
            "from their own intervals and their scatter, is at most 5 % of the mean or 2 % of the "
            "slowest baseline.",
        ),
        *_drawn(figures.convergence.figure(document, experiments)),
        Collapsible("Lengths and intervals by experiment", [_length_table(experiments)]),
        *_repetitions(document, experiments),
    ]


def _length_table(experiments: Experiments) -> Table:
    rows = []
    for name, runs in experiments.items():
        for pattern in dict.fromkeys(run["pattern"] for run in runs):
            chosen = [run for run in runs if run["pattern"] == pattern]
            each = [one for run in chosen for one in run["repetitions"]]
            rows.append(
                (
                    f"{name} {pattern}",
                    _range([run["io_count"] for run in chosen]),
                    _range([run["io_ignore"] for run in chosen]),
                    f"{sum(one['converged'] is True for one in each)} of {len(each)}",
                    _widest(each),
                    f"{sum(run['together']['converged'] is True for run in chosen)} "
                    f"of {len(chosen)}",
                )
            )
    head = ("experiment", "IOCount", "IOIgnore", "runs converged", "widest ± [%]", "experiments")
    return Table(head, rows, "lrrrrr", "Lengths of the runs, start-up included, and intervals")


def _range(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return format_count(low) if low == high else f"{format_count(low)} … {format_count(high)}"


def _widest(each: Sequence[RepetitionSummary]) -> str:
    relative = [
        one["half_width_ns"] / one["mean_ns"]
        for one in each
        if one["half_width_ns"] is not None and one["mean_ns"]
    ]
    return f"{100 * max(relative):.2g}" if relative else ""


def _repetitions(document: Document, experiments: Experiments) -> list[Block]:
    disagreements = [
        run["disagreement"]
        for runs in experiments.values()
        for run in runs
        if run["disagreement"] is not None
    ]
    if not disagreements:
        return []
    agree = sum(value <= 0.05 for value in disagreements)
    return _paragraphs(
        f"Each run was made {_times(document, experiments)}. In {agree} of {len(disagreements)} "
        "experiments the means of the repetitions lie within 5 % of each other, as uFLIP found "
        f"(§5.1); at worst {max(disagreements):.0%} apart."
    )


def _times(document: Document, experiments: Experiments) -> str:
    """Return the number of runs: more than planned if their intervals were too wide."""
    most = max(len(run["repetitions"]) for runs in experiments.values() for run in runs)
    planned = document["repetitions"]
    further = f", and up to {most} times if the interval was too wide" if most > planned else ""
    return f"{planned} times{further}"


def _plan(document: Document) -> list[Block]:
    spaces = document["target_spaces"]
    resets = sum(space["reset_before"] for space in spaces)
    noun = "reset" if resets == 1 else "resets"
    return [
        Heading("Plan"),
        Paragraph(
            "Runs without sequential writes come first; sequential writes get target spaces of "
            f"their own (uFLIP §4.2). The plan uses {len(spaces)} of them, with {resets} {noun} of "
            "the state."
        ),
        *_drawn(figures.target_spaces.figure(document)),
    ]


Body = Callable[[Document, Traces], Sequence[Block]]

# The page from top to bottom: anchor, heading, and function of the body; a section with an empty
# body is omitted.
SECTIONS: list[tuple[str, str, Body]] = [
    ("key-figures", "Key figures", key_figures),
    ("key-characteristics", "Key characteristics", key_characteristics),
    ("design-hints", "Design hints", design_hints),
    ("baselines", "The baselines, every I/O", baselines),
    ("micro-benchmarks", "The micro-benchmarks", micro_benchmarks),
    ("summary", "Summary", summary),
    ("energy", "Energy", energy),
    ("drive-counters", "Counters of the drive", drive_counters),
    ("warnings", "Warnings", warnings),
    ("skipped", "Skipped and missing runs", skipped),
    ("method", "Method", method_section),
    ("provenance", "Provenance", provenance),
]

SOURCE = (
    "The benchmark is uFLIP: Bouganim, Jónsson, Bonnet, “uFLIP: Understanding Flash IO Patterns”, "
    "CIDR 2009."
)


def build_page(document: Document, traces: Traces, inference: StoredInference | None = None) -> str:
    """Return the page of a summary, the I/Os of the baselines, and the inference if it was made."""
    device = describe_device(document["device"])
    runs = f"{document['runs_finished']} of {document['runs_planned']} runs"
    finished = document["status"] == "complete"
    page = ReportPage(
        benchmark="uFLIP",
        source=SOURCE,
        version=str(document["uflip_version"]),
        created_utc=str(document["created_utc"]),
        device=device,
        title=f"{device}: uFLIP report",
        badge=_badge(document),
        facts=_facts(document, runs),
        simulated=is_simulated(document),
        unfinished=None if finished else (document["status"], runs),
        warnings=len(document["warnings"]),
        abstract=headline(document),
        sections=[
            Section("inside", "What is inside", inside(inference)),
            *(Section(at, heading, body(document, traces)) for at, heading, body in SECTIONS),
        ],
    )
    return render_page(page)


def _badge(document: Document) -> str:
    if is_simulated(document):
        return "simulated"
    return "null device" if document["device"].null else ""


def _facts(document: Document, runs: str) -> list[str]:
    elapsed = document["elapsed_s"]
    return [
        document["device"].url,
        document["device"].profile.description,
        f"durability {document['durability']}" if document["durability"] != CACHED else "",
        f"scale {document['scale']}",
        f"seed {document['seed']}",
        runs,
        str(document["created_utc"]).replace("T", " ").replace("Z", " UTC"),
        f"measured in {format_duration_ns(elapsed * 1e9)}" if elapsed else "",
    ]


# Results in a notebook: the tables of the report, without its page.


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
