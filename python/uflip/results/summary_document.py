"""A result folder as one document: the output of `uflip show --json` and the report's input.

The document holds numbers and names only, no arrays over I/Os: a standard run of nine
micro-benchmarks comes to a few hundred kilobytes of JSON.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import exp
from pathlib import Path
from types import MappingProxyType
from typing import cast

from msgspec import UNSET

from uflip.data import manifest
from uflip.data.counters import DriveSummary, combine
from uflip.data.device import DeviceInfo
from uflip.data.document import plain
from uflip.data.run_summary import RunSummary
from uflip.data.spec import Basic, Spec, typed_spec
from uflip.data.summary import (
    BenchmarkSummary,
    CharacteristicVerdict,
    ExperimentSummary,
    KeyCharacteristics,
    Summary,
    TargetSpace,
    Together,
)
from uflip.footprint import FEW_AT_ONE_PLACE, NEARLY_ALL, reads_few_addresses
from uflip.results.consistency import (
    BaselineKey,
    BaselineResult,
    baseline_key_of_run,
    group_by_baseline,
    repeatability,
    withdraw_unrepeatable,
)
from uflip.results.key_characteristics import REQUIRED_EXPERIMENTS, characteristics, rests_on
from uflip.results.reader import Results, repeated
from uflip.results.startup_check import has_free_space, mark_of, marks_of
from uflip.results.statistics import (
    AGREEMENT,
    COLD_READS,
    DEVICE_CHANGED,
    FEW_PLACES,
    FREE_SPACE_LEFT,
    Mark,
    combined_mean,
    peers_by_sort,
)
from uflip.results.steady_state import steadiness
from uflip.results.warnings import READS, WRITES, drifting_kinds
from uflip.startup import startup_of, steady_bytes
from uflip.units import format_size

BASELINE = "baseline"  # the long runs of the four patterns; not one of the nine micro-benchmarks
INTERFERENCE = "interference"  # measures the pause between runs; not one of the nine either
PATTERNS = ("SR", "RR", "SW", "RW")
NO_MARKS: Mapping[str, Mark] = MappingProxyType({})
WARM_VISITS = 8
WARM_SHARE = 0.8


def summary(results: Results) -> Summary:
    """Summarise a result folder.

    Returns ``device``; ``baselines_ms`` (pattern → mean [ms], null if not measured) with
    ``baseline_io_size_bytes``; ``repeatability`` (`uflip.results.consistency`);
    ``key_characteristics`` (`uflip.results.key_characteristics`); ``baselines`` and
    ``micro_benchmarks`` (name → list of runs), a run being pattern, parameter, value, unit,
    ``io_count``, ``io_ignore``, ``statistics`` [ns] of all repetitions, ``repetitions``,
    ``disagreement``, ``together``, ``components`` of a mix, ``time_spent_ns`` (mean per I/O and
    cause; simulated devices), ``counters``, ``write_amplification``, ``drive`` (counters of a real
    drive), resolved ``spec`` and ``run`` (its id); ``drive`` over all runs; ``missing`` runs,
    ``skipped``, ``warnings``, and the provenance.
    """
    marks = marks_of(results.warnings)
    runs = [
        (group[0].micro_benchmark, experiment(results.summary_of(group), marks))
        for group in repeated(results.runs)
    ]
    baselines = sorted((run for name, run in runs if name == BASELINE), key=_pattern_rank)
    benchmarks: dict[str, list[ExperimentSummary]] = {}
    for name, document in runs:
        if name not in (BASELINE, INTERFERENCE):
            benchmarks.setdefault(name, []).append(document)
    means = _baseline_means(baselines)
    slowest_ns = max((ms * 1e6 for ms in means.values() if ms), default=None)
    _judge_convergence(results, runs, baselines, slowest_ns, marks)
    repeated_to = repeatability(
        group_by_baseline(_baseline_result(name, run) for name, run in runs)
    )
    row = characteristics(means, benchmarks)
    reported = withdraw_unrepeatable(
        _decided_characteristics(row, baselines, benchmarks), repeated_to
    )
    return with_common_fields(
        results,
        {
            "baselines_ms": means,
            "baseline_io_size_bytes": _io_size(baselines),
            "repeatability": repeated_to,
            "key_characteristics": reported,
            "baselines": baselines,
            "micro_benchmarks": benchmarks,
        },
        _target_spaces(results.manifest.plan),
    )


def _judge_convergence(
    results: Results,
    runs: Sequence[tuple[str, ExperimentSummary]],
    baselines: Sequence[ExperimentSummary],
    slowest_ns: float | None,
    marks: Mapping[str, Mark],
) -> None:
    """Combine the repetitions of each experiment, and add the reasons why it has not converged."""
    content = results.manifest
    others = [(name, run) for name, run in runs if name not in (BASELINE, INTERFERENCE)]
    peers = peers_by_sort(
        (((name, run["pattern"]), run["repetitions"]) for name, run in others), slowest_ns
    )
    baseline_specs = [typed_spec(run["spec"]) for run in baselines]
    drifting = drifting_kinds(results.warnings)
    random_reads = next((run for run in baselines if run["pattern"] == "RR"), None)
    cold = _cold_reads(random_reads, (run for _, run in others), _capacity(content))
    io_size = _io_size(baselines) or 0
    for name, run in runs:
        run["together"] = combined_mean(
            run["repetitions"], slowest_ns, peers.get((name, run["pattern"]))
        )
        if any(each["run"] in marks for each in run["repetitions"]):
            run["together"]["converged"] = False
        if _has_free_space(name, run, baseline_specs, content):
            _doubt(run, FREE_SPACE_LEFT)
        if _kinds_of(run) & drifting:
            _doubt(run, DEVICE_CHANGED)
        if run["run"] in cold:
            _doubt(run, COLD_READS)
        if len(run["repetitions"]) == 1 and reads_few_addresses(
            typed_spec(run["spec"]), FEW_AT_ONE_PLACE
        ):
            _doubt(run, FEW_PLACES)
        _judge_steadiness(run, content, io_size)


def _cold_reads(
    baseline: ExperimentSummary | None, experiments: Iterable[ExperimentSummary], capacity: int
) -> set[str]:
    """Return the runs that name the experiments whose mean is that of first visits of addresses.

    ::

        RR within    4 MiB  0.74 ▇▇▃▂▁▁▁▁▁▁▁▁▁▁▁▁   128 addresses, each read ten times
        RR within  512 MiB  0.74 ▇▇▇▇▇▇▇▇▇▆▇▇▇▇▇▇   16,384 addresses, most read once: warm later
        RR, all of it       0.74 ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇   as for a device in use

    A controller without memory for its whole map loads map entries from flash (DFTL). The first
    read of an address then costs more than later ones, and a run that is too short to visit
    addresses again does not show what its pattern costs in the long run.

    **Source** Gupta et al. (ASPLOS 2009): entries of the map are loaded on demand.
    **Faithful** Judged are random reads in a part of the target. Reads of all of it are not: their
    addresses are as cold as those of a large device in use.
    **Simplified** An address that was read once is taken to be warm, however many follow.
    **Ambiguous** What cold and warm reads cost. A cold read costs what the baseline RR costs. The
    price of a warm one is the lowest mean of runs that visited each address `WARM_VISITS` times. It
    must be less than `WARM_SHARE` of the baseline: where its addresses lie on the flash changes the
    mean of nine of them by less, and another page read on the way changes it by more. A run is cold
    if the share of first visits changes its mean by more than `AGREEMENT`.

    `baseline`: random reads over the whole target. `experiments`: all others; judged are random
    reads of the same size. `capacity`: size of the target [bytes].
    """
    if baseline is None or baseline["statistics"] is None:
        return set()
    size, cold_ns = typed_spec(baseline["spec"]), baseline["statistics"]["mean_ns"]
    assert isinstance(size, Basic), "a baseline"
    judged = [
        (run, _first_visits(spec), run["statistics"]["mean_ns"])
        for run in experiments
        if run["statistics"] is not None
        and isinstance(spec := typed_spec(run["spec"]), Basic)
        and _is_judged(spec, size.io_bytes, capacity)
    ]
    often = (mean_ns for _, share, mean_ns in judged if share <= 1 / WARM_VISITS)
    warm_ns = min(often, default=None)
    if warm_ns is None or warm_ns >= WARM_SHARE * cold_ns:
        return set()
    return {
        run["run"]
        for run, share, mean_ns in judged
        if share * (cold_ns - warm_ns) > AGREEMENT * mean_ns
    }


def _is_judged(spec: Basic, io_bytes: int, capacity: int) -> bool:
    """Return whether a run reads at random in a part of the target, several addresses."""
    return (
        spec.mode == "read"
        and spec.location == "random"
        and spec.io_bytes == io_bytes
        and spec.depth == 1
        and spec.target_bytes < NEARLY_ALL * capacity
        and not reads_few_addresses(spec)
    )


def _first_visits(spec: Basic) -> float:
    """Return the expected share of first visits among the measured I/Os of random reads."""
    addresses = spec.target_bytes / spec.io_bytes
    all_ios, ignored = (each * spec.processes for each in (spec.ios, spec.ignored_ios))
    visited = exp(-ignored / addresses) - exp(-all_ios / addresses)
    return addresses * visited / max(all_ios - ignored, 1)


def _capacity(content: manifest.Manifest) -> int:
    """Return the size of the measured part of the device [bytes]."""
    return content.target_size_bytes or content.device.capacity_bytes


def _decided_characteristics(
    row: KeyCharacteristics,
    baselines: Sequence[ExperimentSummary],
    benchmarks: Mapping[str, Sequence[ExperimentSummary]],
) -> KeyCharacteristics:
    """Replace the verdicts that depend on runs of the start-up or of the write cache.

    A marked baseline leaves a verdict undecided, and so do marks on most of the other experiments.
    A single marked point among many does not move the end of an area or of a pause.
    """
    decided = row.copy()
    for name in REQUIRED_EXPERIMENTS:
        if row[name]["verdict"] == "not_measured":
            continue
        used = rests_on(name, baselines, benchmarks)
        marked = [where for where, run in used if mark_of(run)]
        if BASELINE in marked or 2 * len(marked) > len(used):
            blank = cast(CharacteristicVerdict, dict.fromkeys(row[name]))
            decided[name] = {**blank, "verdict": "undecided"}
    return decided


def experiment(stored: RunSummary, marks: Mapping[str, Mark] = NO_MARKS) -> ExperimentSummary:
    """Return the stored summary of a run, and of its repetitions, as a row of a summary.

    A run inside the start-up has not converged, whatever its own analysis; `marks` holds these runs
    and the reasons.
    """
    row = plain(stored)
    if stored.drive is not UNSET:
        row["drive"] = stored.drive
    for each in row["repetitions"]:
        if (mark := marks.get(each["run"])) is not None:
            each["converged"] = False
            each["reasons"] = sorted({*(each["reasons"] or ()), mark})
    row["together"] = {name: row["repetitions"][0][name] for name in Together.__annotations__}
    return cast(ExperimentSummary, row)


def _doubt(document: ExperimentSummary, reason: str) -> None:
    """Add a reason to an experiment, which then has not converged."""
    document["together"]["converged"] = False
    for each in document["repetitions"]:
        each["converged"] = False
        each["reasons"] = sorted({*(each["reasons"] or ()), reason})


def _has_free_space(
    name: str,
    document: ExperimentSummary,
    baselines: Sequence[Spec],
    content: manifest.Manifest,
) -> bool:
    """Return whether an experiment did not use up the free space of a flash device."""
    if name == INTERFERENCE or content.device.null or content.device.zoned:
        return False
    spec = typed_spec(document["spec"])
    return has_free_space(name, document["value"], spec, baselines, _capacity(content))


def _kinds_of(document: ExperimentSummary) -> set[str]:
    """Return whether an experiment reads, writes, or both."""
    parts = typed_spec(document["spec"]).parts
    return {WRITES if part.is_write else READS for part in parts if not part.is_trim}


def _is_uniform(spec: Spec, capacity: int) -> bool:
    """Return whether a pattern writes all addresses equally often, as the state was made."""
    return all(
        part.location == "random" and (part.target_size or 0) > capacity - part.io_bytes
        for part in spec.parts
    )


def _judge_steadiness(
    document: ExperimentSummary, content: manifest.Manifest, io_size: int
) -> None:
    """Add the verdict on steady state of random writes; without it they have not converged.

    `io_size` is that of the baselines [bytes].
    """
    if "rounds" not in document:
        return
    startup = 0
    if content.phases is not None:
        startup = startup_of(content.phases, io_size).writes * io_size
    capacity = _capacity(content)
    needed = steady_bytes(
        capacity,
        startup,
        overwritten=content.state.state == "random",
        uniform=_is_uniform(typed_spec(document["spec"]), capacity),
    )
    verdict = steadiness(document["rounds"], needed)
    if verdict is None:
        return
    document["steadiness"] = verdict
    if not verdict["steady"]:
        document["together"]["converged"] = False


def with_common_fields(
    results: Results, benchmark: BenchmarkSummary, target_spaces: Sequence[TargetSpace]
) -> Summary:
    """Add the fields common to all summaries to the results of one kind of benchmark."""
    content = results.manifest
    stored = plain(content)
    return {
        "format": "uflip-summary",
        "format_version": content.format_version,
        "uflip_version": content.uflip_version,
        "status": results.status,
        "device": content.device,
        "created_utc": content.created_utc,
        "finished_utc": content.finished_utc,
        "elapsed_s": content.elapsed_s,
        "scale": content.scale,
        "seed": content.seed,
        "pause_ns": content.pause_ns,
        "target_size_bytes": content.target_size_bytes,
        "repetitions": content.repetitions,
        "method": content.method,
        "durability": content.durability,
        "phases": content.phases,
        "interference": stored["interference"],
        "state": content.state,
        **benchmark,
        "drive": _drive(results, benchmark["baselines"]),
        "runs_planned": len(content.plan),
        "runs_finished": len(results.runs),
        "missing": results.missing,
        "target_spaces": list(target_spaces),
        "skipped": list(content.skipped),
        "warnings": results.warnings,
        "harness": stored["harness"],
        "host": stored["host"],
    }


def _drive(results: Results, baselines: Sequence[ExperimentSummary]) -> DriveSummary | None:
    """Return the counters of a real drive, and what follows from them, or from rates."""
    content = results.manifest
    if not content.device.real or content.scale == manifest.IMPORTED:
        return None
    change = combine([run.meta.drive for run in results.runs if run.meta.drive is not None])
    implied = None
    if change is None or change.physical_written is None:
        rates = {run["pattern"]: run["ios_per_s"] for run in baselines}
        sequential, random = rates.get("SW"), rates.get("RW")
        implied = sequential / random if sequential and random else None
    return DriveSummary(manifest.host_of(content.host).counters, change, implied)


def _baseline_result(
    name: str, run: ExperimentSummary
) -> tuple[BaselineKey | None, BaselineResult]:
    """Return the baseline pattern that a run repeats, or None, and its result."""
    statistics = run["statistics"]
    key = None
    if statistics is not None and name != INTERFERENCE:
        key = baseline_key_of_run(name, typed_spec(run["spec"]), run["io_count"])
    mean_ns = 0.0 if statistics is None else float(statistics["mean_ns"])
    named = f"{name} {run['pattern']} {run['parameter']} {run['value']}"
    return key, BaselineResult(name, named, mean_ns, run["together"]["half_width_ns"])


def _target_spaces(plan: Sequence[manifest.PlanEntry]) -> list[TargetSpace]:
    """Return the spaces of sequential writes, with the resets between them."""
    return [
        {
            "run": run.id,
            "micro_benchmark": run.micro_benchmark,
            "begin_bytes": begin,
            "end_bytes": end,
            "reset_before": run.reset_before,
        }
        for run in plan
        for begin, end in run.spec.sequential_targets
    ]


def experiments_of(document: Summary) -> Iterator[tuple[str, ExperimentSummary]]:
    """Yield every experiment of a summary with its micro-benchmark, the baselines first."""
    for run in document["baselines"]:
        yield BASELINE, run
    for name, runs in document["micro_benchmarks"].items():
        for run in runs:
            yield name, run


def baseline_of(document: Summary, pattern: str) -> ExperimentSummary | None:
    """Return the baseline run of a pattern in a summary, or None if it was not measured."""
    for run in document["baselines"]:
        if run["pattern"] == pattern:
            return run
    return None


def key_row_of(document: Summary) -> KeyCharacteristics:
    """Return the key characteristics of a benchmark of patterns; one of jobs has no such row."""
    row = document["key_characteristics"]
    assert row is not None, "a benchmark of patterns"
    return row


def describe_device(device: DeviceInfo) -> str:
    """Return one line about a device: model (for a file its name), and capacity.

    >>> from uflip.device.opener import open_device
    >>> describe_device(open_device("null").info)
    'null, 64 GiB'
    """
    file_name = Path(device.url.removeprefix("file:")).name
    name = f"file {file_name}" if device.kind == "file" else device.model or device.url
    return f"{name}, {format_size(device.capacity_bytes)}"


def _pattern_rank(run: ExperimentSummary) -> int:
    """Return the rank of a pattern in the paper's order SR RR SW RW; plans use another order."""
    return PATTERNS.index(run["pattern"]) if run["pattern"] in PATTERNS else len(PATTERNS)


def _baseline_means(baselines: Sequence[ExperimentSummary]) -> dict[str, float | None]:
    means: dict[str, float | None] = dict.fromkeys(PATTERNS)
    for run in baselines:
        if run["pattern"] in means and run["statistics"] is not None:
            means[run["pattern"]] = run["statistics"]["mean_ns"] / 1e6
    return means


def _io_size(baselines: Sequence[ExperimentSummary]) -> int | None:
    """Return the I/O size of the last measured baseline that has one [bytes]."""
    sizes: list[int] = [
        run["spec"]["io_size"]
        for run in baselines
        if run["pattern"] in PATTERNS and run["statistics"] is not None and "io_size" in run["spec"]
    ]
    return sizes[-1] if sizes else None
