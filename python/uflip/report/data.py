"""Input of figures beyond the summary: the I/Os of the baseline runs, as plain arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from uflip.data.summary import Summary
from uflip.results.columns import as_array
from uflip.results.reader import Results, StoredRun, repeated
from uflip.results.summary_document import BASELINE, PATTERNS

Times = NDArray[np.float64]
Document = Summary
"""The summary of a result folder, the source of everything on a page."""


def is_simulated(document: Document) -> bool:
    """Return whether the device was simulated."""
    return bool(document["device"].simulated)


@dataclass(frozen=True)
class BaselineTrace:
    """Response times of one baseline run (n,) [ms] in order of submission.

    `ignored` (n,) is true inside `io_ignore`; `causes_ms` holds arrays (n,) [ms] that sum to the
    response time, and is empty if the device does not report causes. `repetition` counts from 1.
    """

    pattern: str
    response_time_ms: Times
    ignored: NDArray[np.bool_]
    causes_ms: Mapping[str, Times] = field(default_factory=dict)
    repetition: int = 1

    @property
    def io_ignore(self) -> int:
        """Number of I/Os of the start-up."""
        return int(self.ignored.sum())

    @property
    def measured_ms(self) -> Times:
        """Response times without the start-up [ms]."""
        return self.response_time_ms[~self.ignored]

    def mean_by_cause_ms(self, slowest: float = 1.0) -> dict[str, float]:
        """Return the mean time per I/O and cause [ms], without the start-up.

        `slowest`: share of the I/Os to include, the slowest first; at least one I/O.
        """
        count = max(round(len(self.measured_ms) * slowest), 1)
        picked = np.argsort(self.measured_ms)[-count:]
        return {
            cause: float(times[~self.ignored][picked].mean())
            for cause, times in self.causes_ms.items()
        }


Traces = Sequence[BaselineTrace]
"""All repetitions of the baselines, pattern by pattern."""


def baseline_traces(results: Results) -> list[BaselineTrace]:
    """Read the baseline runs of a folder in the order SR RR SW RW, if present."""
    groups = repeated([run for run in results.runs if run.micro_benchmark == BASELINE])
    by_pattern = {group[0].pattern: group for group in reversed(groups)}
    return [_read(run) for pattern in PATTERNS for run in by_pattern.get(pattern, [])]


def _read(run: StoredRun) -> BaselineTrace:
    trace = run.trace()
    return BaselineTrace(
        pattern=run.pattern,
        response_time_ms=as_array(trace, "response_time_ns") / 1e6,
        ignored=as_array(trace, "ignored") != 0,
        causes_ms={cause: as_array(trace, cause) / 1e6 for cause in trace.causes},
        repetition=run.repetition,
    )


def pooled(traces: Traces) -> list[BaselineTrace]:
    """Return the I/Os of all repetitions of a pattern together, as the statistics use them."""
    groups: dict[str, list[BaselineTrace]] = {}
    for trace in traces:
        groups.setdefault(trace.pattern, []).append(trace)
    return [_pool(group) for group in groups.values()]


def _pool(group: Traces) -> BaselineTrace:
    return BaselineTrace(
        pattern=group[0].pattern,
        response_time_ms=np.concatenate([each.response_time_ms for each in group]),
        ignored=np.concatenate([each.ignored for each in group]),
        causes_ms={
            cause: np.concatenate([each.causes_ms[cause] for each in group])
            for cause in group[0].causes_ms
        },
    )


def first_runs(traces: Traces) -> list[BaselineTrace]:
    """Return the first repetition of each pattern, for drawings of single I/Os."""
    return [trace for trace in traces if trace.repetition == 1]


def are_repeated(traces: Traces) -> bool:
    """Return whether a pattern has more than one run."""
    return any(trace.repetition > 1 for trace in traces)
