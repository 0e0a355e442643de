"""The section *Method*: state, phases, pause, run length, plan.

Each part is a function of the summary that returns a heading, a figure and text.
"""

from collections.abc import Mapping, Sequence

from uflip.data.manifest import Interference, PhasesOfPattern
from uflip.data.summary import ExperimentSummary, RepetitionSummary
from uflip.durability import CACHED, describe_durability
from uflip.report import figures
from uflip.report.blocks import Block, Collapsible, Figure, Heading, Paragraph, Table
from uflip.report.data import Document, Traces, is_simulated
from uflip.stats.summary import SUPPORT
from uflip.units import format_count, format_duration_ns, format_size

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
    levels = ", ".join(
        f"{level['mean_ns'] / 1e6:.3g} ms {level['share']:.0%}" for level in phases["levels"]
    )
    half = phases["half_width_ns"]
    mean = f"{phases['mean_ns'] / 1e6:.3g}" + (f" ± {half / 1e6:.2g}" if half is not None else "")
    doubts = ", ".join(reason.replace("_", " ") for reason in phases["reasons"])
    return (
        label,
        phases["phase"],
        format_count(phases["startup_ios"]),
        format_count(phases["period_ios"]) if phases["period_ios"] > 1 else "none",
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
