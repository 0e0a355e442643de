"""The claims and headlines of a result, and their distance from long runs.

A *claim* is an experiment whose mean is reported as converged. A *headline* is a number at the top
of a report: the four baselines, the key characteristics (uFLIP Table 3), the IOPS of `steady_state`
and the knees of `queue_depth`. A headline is *marked* if one of its experiments has not converged;
it is not compared, as it is not claimed.

Headlines that are computed from several experiments are computed again, by the same rule, from the
long runs of these. A long run that never settles has no mean to compare with: then a claim is right
within the range of the means of its parts, and 1.3 times the highest is off by 30 %.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from uflip.accuracy.long_run import LongRun, LongRunSpec
from uflip.data.spec import Pattern, typed_spec
from uflip.data.summary import (
    CHARACTERISTICS,
    CharacteristicVerdict,
    ExperimentSummary,
    KeyCharacteristics,
    Summary,
)
from uflip.microbench import MICRO_BENCHMARKS
from uflip.microbench.today import queue_depth, steady_state
from uflip.results.key_characteristics import VERDICTS, characteristics, rests_on
from uflip.results.statistics import KEEPS_HEADLINE
from uflip.results.summary_document import experiments_of
from uflip.units import format_size

MAX_CLAIM_ERROR, MAX_HEADLINE_ERROR = 0.10, 0.15
"""A claim, or a headline, is off if it differs from the long run by more than this share."""
STATED = ("found", "none", "everywhere")
"""Verdicts that make a statement about the device."""
Key = tuple[str, str, int | float | None]
"""Micro-benchmark, pattern, value of the varying parameter."""


@dataclass(frozen=True)
class ClaimComparison:
    """A claim or headline and the result of long runs, both as text."""

    name: str
    claimed: str
    true: str
    ratio: float | None  #: Claimed over true; None for words that differ.
    marks: tuple[str, ...] = ()  #: Reasons for doubt in the result itself.
    settled: bool = True  #: Whether its long runs settled.

    def is_off(self, tolerance: float) -> bool:
        """Return whether both differ by more than `tolerance`, relative to the true one."""
        return self.ratio is None or not 1 - tolerance <= self.ratio <= 1 + tolerance

    @property
    def distance(self) -> float:
        """The distance as a factor, for sorting."""
        if self.ratio is None or self.ratio <= 0:
            return float("inf")
        return max(self.ratio, 1 / self.ratio)


@dataclass(frozen=True)
class Accuracy:
    """The comparison of one result with long runs."""

    claims: list[ClaimComparison] = field(default_factory=list)
    headlines: list[ClaimComparison] = field(default_factory=list)

    @property
    def claims_off(self) -> list[ClaimComparison]:
        """Claims that are off, the worst first."""
        return _worst_first(each for each in self.claims if each.is_off(MAX_CLAIM_ERROR))

    @property
    def headlines_off(self) -> list[ClaimComparison]:
        """Unmarked headlines that are off, the worst first."""
        return _worst_first(
            each for each in self.headlines if not each.marks and each.is_off(MAX_HEADLINE_ERROR)
        )

    def __add__(self, other: "Accuracy") -> "Accuracy":
        return Accuracy(self.claims + other.claims, self.headlines + other.headlines)


def _worst_first(some: Iterable[ClaimComparison]) -> list[ClaimComparison]:
    return sorted(some, key=lambda each: each.distance, reverse=True)


def key_of(name: str, run: ExperimentSummary) -> Key:
    """Return the key of an experiment of a summary."""
    return name, run["pattern"], run["value"]


def long_run_specs(document: Summary) -> dict[Key, LongRunSpec]:
    """Return the long runs for the claims of a summary, by experiment."""
    state = document["state"]
    request = state.request if state.known_from == "enforced" else None
    pause = document["pause_ns"]
    if document["interference"] is not None:
        pause = max(pause, int(document["interference"]["pause_ns"]))
    return {
        key_of(name, run): LongRunSpec(
            url=document["device"].url,
            state=request,
            pause_ns=pause,
            spec=_pattern(run),
            before=_preceding_trims(document, name, run),
            fixed_length=_is_of_fixed_length(name, run),
        )
        for name, run in experiments_of(document)
        if run["statistics"] is not None and (_is_claim(run) or _keeps_headline(run))
    }


def _pattern(run: ExperimentSummary) -> Pattern:
    spec: Any = typed_spec(run["spec"])
    return spec  # type: ignore[no-any-return]


def _is_claim(run: ExperimentSummary) -> bool:
    return run["together"]["converged"] is True


def _is_of_fixed_length(name: str, run: ExperimentSummary) -> bool:
    """Return whether the length of a run is part of its question: cache bursts, and trims."""
    return name == "cache_cliff" or any(part.is_trim for part in typed_spec(run["spec"]).parts)


def _preceding_trims(document: Summary, name: str, run: ExperimentSummary) -> tuple[Pattern, ...]:
    """Return the trims that precede a run with a fixed order."""
    benchmark, value = MICRO_BENCHMARKS.get(name), run["value"]
    if benchmark is None or not benchmark.fixed_order or value is None:
        return ()
    trims = [
        each
        for each in document["micro_benchmarks"][name]
        if any(part.is_trim for part in typed_spec(each["spec"]).parts)
        and each["value"] is not None
        and (each["value"] < value or (each["value"] == value and each is not run))
    ]
    if _is_of_fixed_length(name, run):
        trims = [each for each in trims if each["value"] != value]
    return tuple(map(_pattern, trims))


def compare(document: Summary, answers: Mapping[Key, LongRun]) -> Accuracy:
    """Compare the claims and headlines of a summary with long runs."""
    claims = [
        _compare_mean(_experiment_name(name, run), run, answers[key_of(name, run)])
        for name, run in experiments_of(document)
        if run["statistics"] is not None and _is_claim(run)
    ]
    corrected = _with_long_run_means(document, answers)
    headlines = [
        *_baselines(document, answers),
        *_key_characteristics(document, corrected, answers),
        *_steady_states(document, answers),
        *_knees(document, corrected, answers),
    ]
    return Accuracy(claims, headlines)


def _experiment_name(name: str, run: ExperimentSummary) -> str:
    value = run["value"]
    text = format_size(int(value)) if run["unit"] == "bytes" and value is not None else value
    return f"{name} {run['pattern']} {text}{' ns' if run['unit'] == 'ns' else ''}"


def _mean_ns(run: ExperimentSummary) -> float:
    assert run["statistics"] is not None, "as chosen"
    return float(run["statistics"]["mean_ns"])


def _compare_mean(name: str, run: ExperimentSummary, true: LongRun) -> ClaimComparison:
    mean = _mean_ns(run)
    nearest = _nearest(mean, true)
    text = _ms(true.mean_ns)
    if not true.settled:
        text = f"{_ms(true.low_ns)} to {_ms(true.high_ns)}"
    return ClaimComparison(name, _ms(mean), text, mean / nearest, _marks([run]), true.settled)


def _nearest(mean: float, true: LongRun) -> float:
    """Return the true mean, or the nearest of its range if it never settled [ns]."""
    return true.mean_ns if true.settled else min(max(mean, true.low_ns), true.high_ns)


def _ms(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e6:.4g} ms"


def _marks(runs: Iterable[ExperimentSummary]) -> tuple[str, ...]:
    """Return the reasons for doubt about some experiments in the result."""
    reasons: set[str] = set()
    for run in runs:
        if run["together"]["converged"] is not True and not _keeps_headline(run):
            reasons.add("not_converged")
            for each in run["repetitions"]:
                reasons.update(each["reasons"] or ())
    return tuple(sorted(reasons))


def _keeps_headline(run: ExperimentSummary) -> bool:
    """Return whether there are reasons for doubt, and none of them marks a headline."""
    reasons = {reason for each in run["repetitions"] for reason in each["reasons"] or ()}
    return bool(reasons) and reasons <= KEEPS_HEADLINE


def _with_long_run_means(
    document: Summary, answers: Mapping[Key, LongRun]
) -> dict[Key, ExperimentSummary]:
    """Return experiments with the means and rates of their long runs, where available."""
    corrected: dict[Key, ExperimentSummary] = {}
    for name, run in experiments_of(document):
        key = key_of(name, run)
        if key in answers and run["statistics"] is not None:
            true = answers[key]
            other = corrected[key] = deepcopy(run)
            assert other["statistics"] is not None, "a copy of one with statistics"
            nearest = _nearest(_mean_ns(run), true)
            other["statistics"]["mean_ns"] = nearest
            other["ios_per_s"] = true.ios_per_s * true.mean_ns / nearest
    return corrected


def _baselines(document: Summary, answers: Mapping[Key, LongRun]) -> list[ClaimComparison]:
    return [
        _headline(f"baseline {run['pattern']}", run, answers.get(key_of("baseline", run)))
        for run in document["baselines"]
        if run["statistics"] is not None
    ]


def _headline(name: str, run: ExperimentSummary, true: LongRun | None) -> ClaimComparison:
    if true is None:
        return ClaimComparison(name, _ms(_mean_ns(run)), "", None, _marks([run]))
    return _compare_mean(name, run, true)


def _key_characteristics(
    document: Summary, corrected: Mapping[Key, ExperimentSummary], answers: Mapping[Key, LongRun]
) -> list[ClaimComparison]:
    reported = document["key_characteristics"]
    if reported is None:
        return []
    means = {
        run["pattern"]: _mean_ns(corrected.get(key_of("baseline", run), run)) / 1e6
        for run in document["baselines"]
        if run["statistics"] is not None
    }
    benchmarks = {
        name: [corrected.get(key_of(name, run), run) for run in runs]
        for name, runs in document["micro_benchmarks"].items()
    }
    true = characteristics(means, benchmarks)
    comparisons = []
    for name in CHARACTERISTICS:
        if reported[name]["verdict"] in STATED:
            experiments = rests_on(name, document["baselines"], document["micro_benchmarks"])
            keys = [key_of(where, run) for where, run in experiments]
            settled = all(answers[key].settled for key in keys if key in answers)
            marks = _marks(run for _, run in experiments)
            comparisons.append(_characteristic(name, reported, true, marks, settled=settled))
    return comparisons


def _characteristic(
    name: str,
    reported: KeyCharacteristics,
    true: KeyCharacteristics,
    marks: tuple[str, ...],
    *,
    settled: bool,
) -> ClaimComparison:
    ours, theirs = reported[name], true[name]  # type: ignore[literal-required]
    texts = _verdict_text(ours), _verdict_text(theirs)
    ratio: float | None = None
    if ours["verdict"] == theirs["verdict"]:
        pairs = [
            (float(one), float(other))
            for field_name in ("pause_ns", "locality_bytes", "partitions", "factor")
            if (one := ours.get(field_name)) and (other := theirs.get(field_name))
        ]
        ratios = [one / other for one, other in pairs]
        ratio = max(ratios, key=lambda each: max(each, 1 / each), default=1.0)
    return ClaimComparison(name, *texts, ratio, marks, settled)


def _verdict_text(verdict: CharacteristicVerdict) -> str:
    assert verdict["verdict"] in VERDICTS or verdict["verdict"], "a word"
    words = [str(verdict["verdict"])]
    if value := verdict.get("pause_ns"):
        words.append(_ms(value))
    if value := verdict.get("locality_bytes"):
        words.append(format_size(int(value)))
    if value := verdict.get("partitions"):
        words.append(f"{value:.0f}")
    if value := verdict.get("factor"):
        words.append(f"x{value:.3g}")
    return " ".join(words)


def _steady_states(document: Summary, answers: Mapping[Key, LongRun]) -> list[ClaimComparison]:
    name = steady_state.VARYING.micro_benchmark
    return [
        _headline(
            f"steady_state {format_size(int(run['value'] or 0))}",
            run,
            answers.get(key_of(name, run)),
        )
        for run in document["micro_benchmarks"].get(name, ())
        if run["statistics"] is not None
    ]


def _knees(
    document: Summary, corrected: Mapping[Key, ExperimentSummary], answers: Mapping[Key, LongRun]
) -> list[ClaimComparison]:
    name = queue_depth.VARYING.micro_benchmark
    comparisons = []
    patterns: dict[str, list[ExperimentSummary]] = {}
    for run in document["micro_benchmarks"].get(name, ()):
        if run["statistics"] is not None:
            patterns.setdefault(run["pattern"], []).append(run)
    for pattern, runs in patterns.items():
        ours = _knee(runs)
        theirs = _knee([corrected.get(key_of(name, run), run) for run in runs])
        if ours is None or theirs is None:
            continue
        keys = [key_of(name, run) for run in runs]
        settled = all(answers[key].settled for key in keys if key in answers)
        texts = f"{ours:.3g}", f"{theirs:.3g}"
        comparisons.append(ClaimComparison(
            f"queue_depth knee {pattern}", *texts, ours / theirs, _marks(runs), settled
        ))  # fmt: skip
    return comparisons


def _knee(runs: Sequence[ExperimentSummary]) -> float | None:
    measured: Any = runs
    return queue_depth.knee(measured)
