"""The result folder of an open-channel benchmark: its results, computed from the stored logs."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import msgspec
import numpy as np
from msgspec import Struct

from uflip import _native
from uflip.data import manifest
from uflip.data.document import Count, check
from uflip.data.spec import Job, table_of, typed_spec
from uflip.data.summary import ExperimentSummary, Rule, Summary
from uflip.microbench import micro_benchmarks_for
from uflip.microbench.experiment import PlannedRun
from uflip.microbench.open_channel import oc1
from uflip.microbench.open_channel.jobs import SCALES, Block, JobScope
from uflip.oc.benchmark import OpenChannelFindings, document, layout, measure, name_of
from uflip.oc.contract import evaluate_rules
from uflip.results import Results, StoredRun
from uflip.results.reader import damaged_run_error
from uflip.results.summary_document import PATTERNS, experiment, with_common_fields


@dataclass(frozen=True)
class Logs:
    """Returns stored logs of jobs; see `uflip.microbench.open_channel.jobs.Bench`."""

    scope: JobScope
    runs: Mapping[str, StoredRun]

    def run(self, job: PlannedRun) -> _native.FlashTrace:
        """Return the log of a job."""
        stored = self.runs[job.id]
        log = stored.log()
        if (problem := _problem(job, log)) is not None:
            raise damaged_run_error(stored.path, problem)
        return log


def _problem(job: PlannedRun, log: _native.FlashTrace) -> str | None:
    """Return why a log is not that of a job; None if it is."""
    logged = table_of(typed_spec(msgspec.json.decode(log.job_json)))
    others = [key for key, value in table_of(job.spec).items() if logged.get(key) != value]
    if others:
        return f"the log of another job, by its '{others[0]}'"
    wears_out = "erase_ns" in log.columns
    if wears_out != (isinstance(job.spec, Job) and job.spec.wears_out):
        return "the log of a job of another kind"
    if log.elapsed_ns() == 0 or not (wears_out or np.asarray(log.column("addresses")).any()):
        return "a log in which nothing happens"
    return None


class _WornBlock(Struct, frozen=True):
    """The block of a wear job."""

    first_channel: Count
    first_lun: Count
    first_block: Count


class OpenChannelResult:
    """A result folder of uFLIP-OC."""

    def __init__(self, results: Results) -> None:
        self.results = results

    @cached_property
    def scope(self) -> JobScope:
        """Return the blocks that its jobs may use."""
        stored, path = self.results.manifest, self.results.path / manifest.FILE_NAME
        if stored.scale not in SCALES:
            raise manifest.KIND.unreadable(path, f"scale {stored.scale}", ", ".join(SCALES))
        worn = [entry.spec for entry in stored.plan if entry.micro_benchmark == oc1.NAME]
        sacrifice: Block | None = None
        if worn:
            job = check(path, manifest.KIND, "plan", table_of(worn[0]), _WornBlock)
            sacrifice = job.first_channel, job.first_lun, job.first_block
        return JobScope(stored.device.geometry, SCALES[stored.scale], sacrifice)

    @cached_property
    def measured(self) -> OpenChannelFindings:
        """Return the results of the micro-benchmarks whose logs are complete."""
        runs = {name_of(run.id): run for run in self.results.runs}
        planned = {entry.micro_benchmark for entry in self.results.manifest.plan}
        whole = [
            name
            for name in micro_benchmarks_for("physical")
            if name in planned
            and all(name_of(job.id) in runs for job in layout(self.scope, [name]))
        ]
        return measure(Logs(self.scope, runs), whole)

    @cached_property
    def rules(self) -> list[Rule]:
        """Return the verdicts on the unwritten contract."""
        return evaluate_rules(self.measured, self.scope.geometry)

    def summary(self) -> Summary:
        """Return the summary of the folder, as of any benchmark, with `open_channel` added."""
        benchmarks: dict[str, list[ExperimentSummary]] = {}
        for run in self.results.runs:
            row = experiment(self.results.summary_of([run]))
            benchmarks.setdefault(run.micro_benchmark, []).append(row)
        return with_common_fields(
            self.results,
            {
                "baselines_ms": dict.fromkeys(PATTERNS),
                "baseline_io_size_bytes": None,
                "repeatability": {},
                "key_characteristics": None,
                "baselines": [],
                "micro_benchmarks": benchmarks,
                "open_channel": {**document(self.measured), "contract": self.rules},
            },
            [],
        )
