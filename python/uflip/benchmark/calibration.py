"""Calibration before the experiments of a plan: phases and pause; the cost of the harness.

Phases and pause are stored as soon as they are known, so that a resumed benchmark uses them. For
the cost of the measuring itself, the engine drives a device that does nothing, exactly as it drives
the device under test. The time per I/O is the error that every response time may contain.
"""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uflip import _native
from uflip._native import Trace
from uflip.benchmark import interference, run_lengths
from uflip.benchmark.plan import Plan
from uflip.benchmark.run_lengths import adapt_spec, find_phases, fixed_length_spec
from uflip.data.manifest import Interference, Phases
from uflip.device.handle import Device
from uflip.device.opener import open_device
from uflip.errors import native_errors
from uflip.flash_waits import quickest_ns
from uflip.microbench import BASELINE, has_own_length
from uflip.microbench.experiment import PlannedRun
from uflip.microbench.layout import LABELS
from uflip.results import ResultsWriter
from uflip.spec import Spec, baseline

RESPONSE = "response_time_ns"
# Enough to hide the granularity of the clock; takes some ten milliseconds.
IO_COUNT = 20_000
# The median of a few runs: one of them may meet an interruption by the system.
REPETITIONS = 5


class Calibration:
    """Phases and pause of the device of a plan."""

    def __init__(
        self,
        plan: Plan,
        writer: ResultsWriter,
        lingering: Interference | None = None,
    ) -> None:
        self._plan = plan
        self._number = {run.id: number for number, run in enumerate(plan.runs)}
        self._writer = writer
        self._phases: dict[tuple[str, ...], Phases | None] = {}
        self._lingering = lingering

    def update_plan(self, plan: Plan) -> None:
        """Use a plan with more runs."""
        self._plan = plan
        self._number = {run.id: number for number, run in enumerate(plan.runs)}

    @property
    def planned(self) -> int:
        """Current number of planned runs."""
        return len(self._plan.runs)

    @property
    def pause_ns(self) -> int:
        """Idle time of the device before a run [ns]."""
        if self._lingering is None:
            return self._plan.pause_ns
        return max(self._plan.pause_ns, int(self._lingering["pause_ns"]))

    def pause_before(self, run: PlannedRun, device: Device) -> int:
        """Return the idle time before a run that does not follow another at once [ns]."""
        number = self._number[run.id]
        before = self._plan.runs[number - 1] if number else None
        pause_ns = interference.pause_before(run, before, self.pause_ns, device.info)
        if not interference.rests_before(run, before, device.info):
            return pause_ns
        return interference.busy_ns(device, pause_ns) or pause_ns

    def phases(self, before: PlannedRun | None = None) -> Phases | None:
        """Return the phases that the long baseline runs show; None without any.

        `before`: use only baseline runs that are planned before this one: a resumed benchmark then
        decides as an uninterrupted one does.
        """
        runs = self._plan.runs if before is None else self._plan.runs[: self._number[before.id]]
        baselines = self._ids_of(BASELINE, runs)
        batches = self._ids_of(interference.NAME, runs)
        key = (*baselines, "", *batches)
        if key not in self._phases:
            self._phases[key] = self._find_phases(baselines, batches)
        return self._phases[key]

    def _ids_of(self, micro_benchmark: str, runs: Sequence[PlannedRun]) -> dict[str, str]:
        """Return the first run of each pattern in a micro-benchmark."""
        ours = [run for run in runs if run.micro_benchmark == micro_benchmark]
        return {run.pattern: run.id for run in reversed(ours) if run.repetition == 1}

    def adapted_spec(self, run: PlannedRun) -> Spec:
        """Return the specification of a run, adapted to the phases known by then."""
        if has_own_length(run):
            return run.spec
        is_calibration = run.micro_benchmark in (BASELINE, interference.NAME)
        if run.spec.stop is None and (is_calibration or self._plan.method != "startup"):
            return run.spec
        phases, io_size = self.phases(before=run), self._io_size()
        if run.micro_benchmark != BASELINE and run.spec.stop is not None:
            fixed = fixed_length_spec(run, phases, io_size)
            # A run of some thousand I/Os does not always show its start-up.
            if fixed.io_ignore:
                return fixed
        return adapt_spec(run, phases, io_size)

    def longer_baseline(self, run: PlannedRun, made: Sequence[Trace]) -> Spec | None:
        """Return the next longer baseline after others of the same run; None without one."""
        longest = self._plan.longer_baseline(run)
        if longest is None:
            return None
        reads = self._ids_of(BASELINE, self._plan.runs).get("RR")
        trace = None if reads is None else self._writer.trace_of(reads)
        read_ns = None if trace is None else quickest_ns(np.asarray(trace.column(RESPONSE)))
        if not run_lengths.was_buffered(made[0], read_ns):
            return None
        return run_lengths.next_length(longest, made[-1])

    def repetition_spec(self, run: PlannedRun) -> Spec:
        """Return the specification of a further repetition, by the phases known by then."""
        return fixed_length_spec(run, self.phases(before=run), self._io_size())

    def _io_size(self) -> int:
        """Return the I/O size of the runs that show the phases [bytes]."""
        sizes = (
            each.spec.parts[0].io_bytes
            for name in (BASELINE, interference.NAME)
            for each in self._plan.runs
            if each.micro_benchmark == name
        )
        return next(sizes, 0)

    def _find_phases(
        self, baselines: Mapping[str, str], batches: Mapping[str, str]
    ) -> Phases | None:
        first, again = self._times_of(baselines), self._times_of(batches)
        if not first and not again:
            return None
        phases = find_phases(first, again) if first else find_phases(again)
        self._writer.note("phases", phases)
        return phases

    def _times_of(self, ids: Mapping[str, str]) -> dict[str, NDArray[Any]]:
        traces = {label: self._writer.trace_of(ids[label]) for label in LABELS if label in ids}
        return {
            label: np.asarray(trace.column("response_time_ns"))
            for label, trace in traces.items()
            if trace is not None
        }

    def evaluate_batches(
        self,
        runs: Sequence[PlannedRun],
        parts: Sequence[tuple[int, Trace]],
        device_busy_ns: int | None,
    ) -> None:
        """Evaluate the batches of the interference experiment; a complete set gives the pause.

        `runs`, `parts`: the batches in order, and the result of `Device.run_series`.
        `device_busy_ns`: busy time that the device itself reports [ns].
        """
        if [run.pattern for run in runs] != list(interference.BATCHES):
            return
        before, writes, after = (trace for _, trace in parts)
        self._lingering = interference.lingering(
            np.asarray(before.column("response_time_ns")),
            np.asarray(after.column("response_time_ns")),
            np.asarray(after.column("submit_ns")),
            least_pause_ns=self._plan.pause_ns,
            writes_ns=np.asarray(writes.column("response_time_ns")),
            gap_ns=interference.longest_gap_ns(parts),
            device_busy_ns=device_busy_ns,
        )
        self._writer.note("interference", self._lingering)


def measure_harness() -> dict[str, float]:
    """Measure the cost of the harness on this machine, now.

    Returns null_ns_per_io: from one submission to the next on the null device [ns]; clock_ns: one
    reading of the clock [ns]; io_count: the number of I/Os measured.

    >>> measure_harness()["io_count"]
    100000
    """
    spec = baseline("RR", io_size=4096, io_count=IO_COUNT)
    with open_device("null") as device:
        elapsed_ns = [device.run(spec).elapsed_ns() for _ in range(REPETITIONS)]
    with native_errors():
        clock_ns = _native.clock_ns()
    return {
        "null_ns_per_io": median(elapsed_ns) / IO_COUNT,
        "clock_ns": clock_ns,
        "io_count": IO_COUNT * REPETITIONS,
    }
