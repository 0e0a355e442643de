"""Findings: computed sentences about a device, with the numbers that support them.

Each micro-benchmark has its rule (`uflip.microbench.finding`). A finding is dropped where the same
pattern differs by as much when it is measured again (`repeatability`), and a run that measured the
start-up of the device or its write cache supports no finding: it is *undecided*.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from uflip.data.summary import BaselineRepeats, ExperimentSummary, Summary
from uflip.microbench import MICRO_BENCHMARKS
from uflip.microbench.finding import Ratios, format_ms, largest_effect
from uflip.microbench.labels import PATTERN_NAMES, by_pattern, format_times, format_value
from uflip.results.consistency import is_within_repeatability, worst_repeatability
from uflip.results.startup_check import MARKED, mark_of
from uflip.results.statistics import AGREEMENT, MARKS, Mark
from uflip.units import format_duration_ns


def finding(micro_benchmark: str, document: Summary) -> str:
    """Return one or two sentences on a micro-benchmark; empty if there is too little data.

    `micro_benchmark`: its name; one without a rule of its own gets its largest effect. `document`:
    the summary of the results.
    """
    failed = _with_failed_commands(document)
    runs = document["micro_benchmarks"].get(micro_benchmark, [])
    if failed:
        runs = [
            run for run in runs if failed.isdisjoint(each["run"] for each in run["repetitions"])
        ]
    # A null device has no properties.
    if not runs or document["device"].null:
        return ""
    about, ratios = MICRO_BENCHMARKS.get(micro_benchmark), Ratios()
    rule = about.finding if about else largest_effect
    marked = {run["pattern"] for run in runs if mark_of(run)}
    text = ""
    if experiments := by_pattern([run for run in runs if run["pattern"] not in marked]):
        text = rule(experiments, _decided_means(document), ratios)
        text = _drop_unrepeatable(text, ratios, document.get("repeatability") or {})
    return " ".join(part for part in (text, _undecided(runs)) if part)


def _decided_means(document: Summary) -> dict[str, float | None]:
    """Return the means of the baselines [ms]; None of those that are marked."""
    marked = {run["pattern"] for run in document["baselines"] if mark_of(run)}
    return {name: None if name in marked else ms for name, ms in document["baselines_ms"].items()}


def _undecided(runs: Sequence[ExperimentSummary]) -> str:
    """Return the number of undecided experiments by pattern, with the reason; empty if none."""
    every = Counter(run["pattern"] for run in runs)
    sentences = []
    for mark in MARKS:
        marked = Counter(run["pattern"] for run in runs if mark_of(run) == mark)
        if marked:
            parts = [f"{name} ({count} of {every[name]})" for name, count in marked.items()]
            sentences.append(f"Undecided: {', '.join(parts)}; {MARKED[mark]}.")
    return " ".join(sentences)


def _with_failed_commands(document: Summary) -> set[str]:
    """Return the runs with failed commands: their times are not properties of the device."""
    return {
        run
        for warned in document.get("warnings", ())
        if warned["code"] == "failed_commands"
        for run in warned["numbers"]["runs"]
    }


def _drop_unrepeatable(
    text: str, ratios: Ratios, repeated: Mapping[str, BaselineRepeats | None]
) -> str:
    """Withdraw or qualify a finding that is smaller than the differences of one pattern."""
    small = [
        worst
        for ratio, labels in ratios.recorded
        if (worst := worst_repeatability(repeated, labels)) is not None
        and worst[1]["factor"] > 1 + AGREEMENT
        and is_within_repeatability(ratio, float(worst[1]["factor"]))
    ]
    if not small:
        return text
    label, same = max(small, key=lambda one: float(one[1]["factor"]))
    repeats = (
        f"{PATTERN_NAMES[label].capitalize()}s like those of the baseline took from "
        f"{format_duration_ns(same['smallest_ns'])} to {format_duration_ns(same['largest_ns'])} "
        f"when they were measured {same['experiments']} times"
    )
    if len(small) == len(ratios.recorded):
        return f"No effect exceeds the differences between equal runs. {repeats}."
    factor = format_times(float(same["factor"]))
    return f"{text} A factor below {factor} is not significant. {repeats}."


def headline(document: Summary) -> str:
    """Return the four baselines in one sentence; empty if none was measured."""
    means = {name: ms for name, ms in document["baselines_ms"].items() if ms}
    if not means:
        return ""
    if document["device"].null:
        least, most = (format_ms(end(means.values())) for end in (min, max))
        return (
            "The null device does nothing: these are the costs of the harness, not of a device. "
            f"An I/O takes {least} to {most}."
        )
    size = format_value(document["baseline_io_size_bytes"], "bytes")
    parts = [f"{PATTERN_NAMES.get(name, name)}s {format_ms(ms)}" for name, ms in means.items()]
    listed = parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + f" and {parts[-1]}"
    text = f"At {size} an I/O takes on average: {listed}."
    marked = {run["pattern"]: mark for run in document["baselines"] if (mark := mark_of(run))}
    if marked:
        text += f" {_undecided_baselines(marked)}"
    elif "SW" in means and "RW" in means:
        ratio = means["RW"] / means["SW"]
        worst = worst_repeatability(document.get("repeatability") or {}, ("SW", "RW"))
        limit = 1.0 if worst is None else float(worst[1]["factor"])
        if limit <= 1 + AGREEMENT or not is_within_repeatability(ratio, limit):
            text += f" A random write costs {format_times(ratio)} a sequential one."
    return text


def _undecided_baselines(marked: Mapping[str, Mark]) -> str:
    """Return the undecided baselines with reasons and advice."""
    sentences = []
    for mark in MARKS:
        names = [
            f"{PATTERN_NAMES.get(name, name)}s" for name, reason in marked.items() if reason == mark
        ]
        if names:
            sentences.append(f"Undecided for {' and '.join(names)}: {MARKED[mark]}.")
    return f"{' '.join(sentences)} Measure longer runs (--scale standard) before comparing them."
