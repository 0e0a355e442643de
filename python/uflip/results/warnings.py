"""Warnings about the data, as stored values: the observation, its runs, and the next step.

A warning that is printed and forgotten misleads everybody who reads the numbers later. Here a
warning is a value with a code, a sentence, its numbers and an advice. It is stored in the manifest
and shown with the numbers.

A hundred similar runs raise the same warning: warnings are gathered by code, with the runs
concerned and the worst of them.
"""

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from uflip.data.device import DeviceInfo
from uflip.data.manifest import Phases, PlanEntry, StoredWarning
from uflip.data.run import About, metadata_of
from uflip.data.spec import read_spec
from uflip.data.summary import MeanSummary, WarningSummary
from uflip.flash_waits import writes_of
from uflip.results.columns import as_array, measured_column
from uflip.results.consistency import (
    BaselineKey,
    BaselineResult,
    baseline_key_of_run,
    count_comparisons,
    group_by_baseline,
    inconsistent_results,
    repeatability,
)
from uflip.results.rate_limit import RunRate, Trend, find_rate_limit, find_trend, steady_rate
from uflip.results.run_warnings import CHECKS, Numbers, RunArrays, RunCheck
from uflip.results.slow_traits import summarise_host
from uflip.results.startup_check import (
    BASELINE,
    INTERFERENCE,
    Checked,
    StartupInput,
    check_runs,
    map_waits_of,
    part_means,
)
from uflip.results.statistics import AGREEMENT, combined_mean, disagreement, run_convergence
from uflip.startup import LABELS_OF_WRITES, MAX_ROWS
from uflip.units import format_duration_ns, format_size

HOST_GAP = "host_gap_ns"
NOTHING = np.empty(0)
READS, WRITES = "reads", "writes"


def _describe_trend(kind: str, trend: Trend) -> str:
    label = trend.pattern.split()[0]
    first, last = (format_duration_ns(mean) for mean in (trend.first_ns, trend.last_ns))
    return (
        f"{kind} became {'slower' if trend.z > 0 else 'quicker'} by {abs(trend.change):.0%} "
        f"(most: {label}, measured {trend.measurements} times, {first} at first, {last} at last; "
        f"{abs(trend.z):.1f} standard errors)"
    )


def drifting_kinds(warnings: Iterable[WarningSummary]) -> set[str]:
    """Return which of `READS` and `WRITES` changed by more than `AGREEMENT`, as stored."""
    numbers = [warning["numbers"] for warning in warnings if warning["code"] == "drift"]
    return {
        kind
        for kind in (READS, WRITES)
        for each in numbers
        if isinstance(trend := each.get(kind), dict) and abs(trend["change"]) > AGREEMENT
    }


@dataclass(slots=True)
class Examiner:
    """Gathers the warnings about many runs, one per code."""

    device: DeviceInfo
    harness: Mapping[str, float]
    runs_examined: int = 0
    _means: dict[tuple[Any, ...], list[float]] = field(default_factory=dict)
    _baseline_repeats: dict[tuple[BaselineKey, tuple[Any, ...]], list[MeanSummary]] = field(
        default_factory=dict
    )
    _doubts: dict[str, list[tuple[float, str, Numbers]]] = field(default_factory=dict)
    _startups: list[StartupInput] = field(default_factory=list)
    _run_rates: list[RunRate] = field(default_factory=list)
    _baseline_means: dict[BaselineKey, list[tuple[str, float]]] = field(default_factory=dict)

    def examine(self, entry: PlanEntry, trace: Any, about: About | None = None) -> None:
        """Apply every check to one run.

        `entry`: its entry in the plan. `trace`: its native trace, fresh or loaded. `about`:
        metadata of a fresh run; a loaded one contains it.
        """
        run_id, spec = entry.id, read_spec(trace.spec_json)
        counters = json.loads(trace.counters_json() or "{}")
        if about is None:
            stored = metadata_of(Path(run_id), trace.metadata_json)
            about = {"disturbed": stored.disturbed or {}}
            counters = counters or stored.counters or {}
            if stored.drive is not None:
                about["drive"] = stored.drive
            if stored.host is not None:
                about["host"] = stored.host
        drive, host = about.get("drive"), about.get("host")
        run = RunArrays(
            micro_benchmark=entry.micro_benchmark,
            spec=spec,
            device=self.device,
            harness=self.harness,
            stream=as_array(trace, "stream"),
            submit_ns=as_array(trace, "submit_ns"),
            response_time_ns=as_array(trace, "response_time_ns"),
            measured_ns=measured_column(trace),
            stop=None if trace.ended_json is None else json.loads(trace.ended_json),
            counters=counters,
            disturbed=about.get("disturbed", {}),
            counter_marks=() if drive is None else drive.marks,
            host_gap_ns=as_array(trace, HOST_GAP) if self._has_gaps(trace) else NOTHING,
            host=None if host is None else summarise_host(trace.column, len(trace), host),
        )
        self.runs_examined += 1
        is_long = entry.micro_benchmark in (BASELINE, INTERFERENCE)
        self._startups.append(
            StartupInput(
                run_id,
                spec,
                trace.ended_json is not None,
                entry.pattern if entry.micro_benchmark == BASELINE else None,
                entry.micro_benchmark,
                () if self.device.null or self.device.zoned else writes_of(trace, spec),
                run.response_time_ns if is_long else NOTHING,
                part_means(run.measured_ns),
                map_waits_of(trace, counters.get("mapping_pages_programmed", 0)),
            )
        )
        if len(run.measured_ns):
            key = (entry.micro_benchmark, entry.pattern, entry.parameter, entry.value)
            mean_ns = float(run.measured_ns.mean())
            self._means.setdefault(key, []).append(mean_ns)
            baseline = baseline_key_of_run(entry.micro_benchmark, spec, len(run.response_time_ns))
            if baseline is not None and entry.micro_benchmark != INTERFERENCE:
                summary: MeanSummary = {"mean_ns": mean_ns, **run_convergence(trace)}
                self._baseline_repeats.setdefault((baseline, key), []).append(summary)
                self._baseline_means.setdefault(baseline, []).append((run_id, mean_ns))
            if self.device.real:
                run_rate = steady_rate(run_id, spec, run.submit_ns, run.response_time_ns)
                self._run_rates += [] if run_rate is None else [run_rate]
        for check in CHECKS:
            if (doubt := check.check(run)) is not None:
                self._doubts.setdefault(check.code, []).append((doubt[0], run_id, doubt[1]))

    def _has_gaps(self, trace: Any) -> bool:
        """Return whether the host can delay I/Os: not in virtual time, nor without the column."""
        return self.device.real and HOST_GAP in trace.columns

    def warnings(self, phases: Phases | None, plan: Sequence[PlanEntry]) -> list[StoredWarning]:
        """Return one warning per code that was raised, in the order of `CHECKS`."""
        gathered = [
            self._gather(check, self._doubts[check.code])
            for check in CHECKS
            if check.code in self._doubts
        ]
        checked = check_runs(self._startups, phases, plan, self.device.capacity_bytes)
        inside = self._never_left_cache(checked) + self._inside_startup(checked)
        across_runs = self._limits() + self._trends(checked)
        return gathered + inside + across_runs + self._disagreements() + self._inconsistencies()

    def _limits(self) -> list[StoredWarning]:
        """Warn about a rate that reads and writes of several sizes share."""
        limit = find_rate_limit(self._run_rates)
        if limit is None:
            return []
        in_ios = limit.unit == "ios_per_s"
        rate = f"{limit.per_s:,.0f} I/Os" if in_ios else format_size(round(limit.per_s))
        return [
            StoredWarning(
                "rate_limited",
                f"{len(limit.runs)} runs, reads and writes of several sizes, all reach {rate} per "
                "second: something other than the device limits their rate",
                {"unit": limit.unit, "per_s": round(limit.per_s, 3), "runs": list(limit.runs)},
                "these runs show the limit, not the device: look for it (io.max "
                "of a control group, the class of a virtual disk, the link), and measure without "
                "it; a virtual disk with burst credit is faster until the credit is used up",
            )
        ]

    def _trends(self, checked: Checked) -> list[StoredWarning]:
        """Warn about reads, or writes, that became slower or quicker with each measurement."""
        if self.device.null:
            return []
        marked = {*checked.never_left, *(mark.run_id for mark in checked.inside)}
        trends = {
            kind: trend
            for kind in (READS, WRITES)
            if (trend := find_trend(self._repeated_means(kind, marked))) is not None
        }
        if not trends:
            return []
        return [
            StoredWarning(
                "drift",
                f"Repeated measurements changed during the benchmark: "
                f"{'; '.join(_describe_trend(kind, trend) for kind, trend in trends.items())}",
                {
                    kind: {
                        "change": round(trend.change, 4),
                        "z": round(trend.z, 3),
                        "pattern": trend.pattern,
                        "met": trend.measurements,
                        "first_ns": round(trend.first_ns),
                        "last_ns": round(trend.last_ns),
                    }
                    for kind, trend in trends.items()
                },
                "runs that lie far apart in the plan cannot be compared: enforce the state again "
                "before them (uFLIP §4.1), let the device cool down or fill up, or check whether "
                "a virtual disk has used up its burst credit",
            )
        ]

    def _repeated_means(self, kind: str, marked: Container[str]) -> dict[str, list[float]]:
        """Return the means of repeated patterns of reads or writes, without those of start-ups."""
        return {
            " ".join(map(str, pattern)): [mean for run_id, mean in means if run_id not in marked]
            for pattern, means in self._baseline_means.items()
            if (pattern[0] in LABELS_OF_WRITES) == (kind == WRITES)
        }

    def _never_left_cache(self, checked: Checked) -> list[StoredWarning]:
        """Warn about write runs that ended before a write waited for flash."""
        if not checked.never_left:
            return []
        cache, most = checked.cache_bytes, checked.most_bytes
        size = f"more than {format_size(most)}" if cache is None else format_size(cache)
        return [
            StoredWarning(
                "never_left_write_cache",
                f"{len(checked.never_left)} of {checked.write_runs} write runs never left the "
                f"write cache ({size}): no measured write waited for flash",
                {
                    "runs": checked.never_left,
                    "runs_examined": checked.write_runs,
                    "cache_bytes": cache,
                    "most_bytes_written": most,
                },
                "these runs measured the interface and the cache: quote them for bursts of their "
                "length only; for the long run measure in the standard scale, or with a larger "
                "io_count and io_ignore in a plan file (`uflip run DEVICE --suite today --only "
                "cache_cliff,steady_state` shows how large)",
            )
        ]

    def _inside_startup(self, checked: Checked) -> list[StoredWarning]:
        """Warn about runs inside the start-up that the baselines show."""
        marks, looked_at = checked.inside, checked.runs
        if not marks:
            return []
        worst = max(marks, key=lambda inside: inside.share)
        return [
            StoredWarning(
                "inside_startup",
                f"In {len(marks)} of {looked_at} runs start-up may change the mean by more than "
                f"{AGREEMENT:.0%} (worst: {worst.run_id}, {worst.share:.0%} of its measured I/Os: "
                f"it made {worst.io_count} I/Os and ignored {worst.io_ignore}; the baselines show "
                f"a start-up of {_ios(worst.startup_ios)})",
                {
                    "runs": [inside.run_id for inside in marks],
                    "runs_examined": looked_at,
                    "worst": asdict(worst),
                },
                "long runs would be slower, or faster, than these: measure longer ones, in the "
                "standard scale or with a larger io_count and io_ignore in a plan file",
            )
        ]

    def _inconsistencies(self) -> list[StoredWarning]:
        """Warn about repeats of a baseline that differ from it."""
        results = group_by_baseline(
            (baseline_key, _baseline_result(key, repetitions))
            for (baseline_key, key), repetitions in self._baseline_repeats.items()
        )
        inconsistent = inconsistent_results(results)
        if not inconsistent or self.device.null:
            return []
        factor, worst, baseline = inconsistent[0]
        means = [format_duration_ns(each.mean_ns) for each in (worst, baseline)]
        return [
            StoredWarning(
                "consistency",
                f"{len(inconsistent)} of {count_comparisons(results)} repeats of a baseline differ "
                f"from it beyond their intervals and {AGREEMENT:.0%} (worst: {worst.name}, "
                f"{means[0]}, baseline {means[1]})",
                {
                    "experiments": [each.name for _, each, _ in inconsistent],
                    "comparisons": count_comparisons(results),
                    "worst": {
                        "experiment": worst.name,
                        "mean_ns": round(worst.mean_ns),
                        "baseline_ns": round(baseline.mean_ns),
                        "factor": round(factor, 4),
                    },
                    "repeatability": repeatability(results),
                },
                f"ignore differences below {factor:.2g} times: something other than the pattern "
                "affected the runs. Possible causes: the runs before (use a longer --pause), a "
                "longer start-up, another target space, or other load (use an idle host, and a "
                "disk that is neither virtual nor throttled)",
            )
        ]

    def _disagreements(self) -> list[StoredWarning]:
        """Warn about repetitions whose means differ by more than the 5 % of uFLIP §5.1."""
        spreads = {key: disagreement(means) for key, means in self._means.items()}
        disagreeing = {key: value for key, value in spreads.items() if value and value > AGREEMENT}
        if not disagreeing:
            return []
        worst = max(disagreeing, key=lambda key: disagreeing[key])
        name = f"{worst[0]} {worst[1]} {worst[2]} {worst[3]}"
        repeated = sum(value is not None for value in spreads.values())
        return [
            StoredWarning(
                "repetitions_disagree",
                f"In {len(disagreeing)} of {repeated} experiments the repetitions differ by more "
                f"than {AGREEMENT:.0%} (worst: {name}, {disagreeing[worst]:.0%})",
                {
                    "experiments": [" ".join(map(str, key)) for key in disagreeing],
                    "worst": {"experiment": name, "disagreement": disagreeing[worst]},
                },
                "response times depend on the time and the target space of a run: quote the range "
                "of the repetitions, or make more of them (--repetitions)",
            )
        ]

    def _gather(
        self, check: RunCheck, doubts: Sequence[tuple[float, str, Numbers]]
    ) -> StoredWarning:
        _, worst_run, numbers = max(doubts, key=lambda doubt: doubt[0])
        worst = check.worst.format(**_readable(numbers))
        return StoredWarning(
            code=check.code,
            message=f"In {len(doubts)} of {self.runs_examined} runs {check.finding} "
            f"(worst: {worst_run}, {worst})",
            numbers={
                "runs": [run_id for _, run_id, _ in doubts],
                "runs_examined": self.runs_examined,
                "worst": {"run": worst_run, **numbers},
            },
            advice=check.advice,
        )


@dataclass(slots=True)
class FlashExaminer:
    """Gathers warnings about jobs: commands that failed unexpectedly."""

    runs_examined: int = 0
    _failed: list[tuple[int, str, str]] = field(default_factory=list)

    def examine(self, entry: PlanEntry, log: Any, _about: About | None = None) -> None:
        """Examine the log of a job."""
        self.runs_examined += 1
        if "status" not in log.columns or entry.parameter == "first_page":
            return  # a worn-out block fails, and so does a write out of order
        status = np.asarray(log.column("status"))
        failed = status[status > 0]
        if len(failed):
            name = log.statuses[int(np.bincount(failed).argmax())]
            self._failed.append((len(failed), entry.id, name))

    def warnings(self, _phases: Phases | None, _plan: Sequence[PlanEntry]) -> list[StoredWarning]:
        """Return one warning for all jobs with failed commands."""
        if not self._failed:
            return []
        count, worst, name = max(self._failed)
        return [
            StoredWarning(
                "failed_commands",
                f"In {len(self._failed)} of {self.runs_examined} jobs commands failed (worst: "
                f"{worst}, {count} commands, most of them {name})",
                {
                    "runs": [run for _, run, _ in self._failed],
                    "worst": {"run": worst, "count": count, "status": name},
                },
                "the throughput includes failed commands, which transferred no data: use a less "
                "worn device, or other blocks",
            )
        ]


def _baseline_result(key: tuple[Any, ...], repetitions: Sequence[MeanSummary]) -> BaselineResult:
    combined = combined_mean(repetitions)
    mean_ns = combined["mean_ns"] or 0.0
    return BaselineResult(key[0], " ".join(map(str, key)), mean_ns, combined["half_width_ns"])


def _ios(startup: int) -> str:
    return "unknown length" if startup >= MAX_ROWS else str(startup)


def _readable(numbers: Numbers) -> dict[str, str]:
    return {
        name.removesuffix("_ns"): format_duration_ns(value)
        if name.endswith("_ns") and isinstance(value, int | float)
        else str(value)
        for name, value in numbers.items()
    }
