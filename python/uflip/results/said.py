"""What finished runs say while a benchmark goes on: asked again after each round of repetitions.

A trace is read once; what is kept of it is what a repetition is in a summary.
"""

from collections.abc import Callable, Sequence
from typing import cast

from uflip import _native
from uflip.data import summary
from uflip.data.summary import Certainty, Repetition
from uflip.results.agreement import CLAIM, MANY, allowed_ns, begin_otherwise, student, together
from uflip.results.columns import measured
from uflip.results.ended import repetition


def with_certainty(repetitions: Sequence[summary.Said], slowest_ns: float | None) -> Certainty:
    """What repetitions say together, and what the next round is decided by.

    Returns
    -------
    dict
        As `together`; `allowed_ns`, the half width that is narrow enough; `expected_ns`, that which
        more repetitions narrow: with the confidence of a claim, as they scatter so far; `surely`,
        whether it has converged, and few repetitions begin alike; `hopeless`, whether something
        speaks against it that more repetitions do not change.
    """
    said = together(repetitions, slowest_ns)
    nothing = {"allowed_ns": None, "expected_ns": None, "surely": False, "hopeless": False}
    if said["mean_ns"] is None:
        return cast(Certainty, said | nothing)
    allowed, half_width = allowed_ns(said["mean_ns"], slowest_ns), said["half_width_ns"]
    means = [mean for each in repetitions if (mean := each["mean_ns"]) is not None]
    is_doubtful = 1 < len(means) < MANY and not _begin_alike(repetitions)
    is_narrow = half_width is not None and half_width <= allowed
    expected = half_width
    if half_width is not None and len(means) > 1:
        expected = max(half_width, student(means, CLAIM))
    return {
        **said,
        "allowed_ns": allowed,
        "expected_ns": expected,
        "surely": bool(said["converged"]) and not is_doubtful,
        "hopeless": is_narrow and begin_otherwise(repetitions, allowed),
    }


def _begin_alike(repetitions: Sequence[summary.Said]) -> bool:
    """Whether all of few repetitions have a start-up, or none.

    What only some of them show at their beginning may be a slow episode like any other, which is
    left out as start-up wherever a run happens to begin with it.
    """
    return len({bool(each.get("startup_ios")) for each in repetitions}) == 1


class Said:
    """Remembers what each run says of its mean.

    Parameters
    ----------
    trace_of : callable
        Returns the trace of a finished run; None where it is not there.
    """

    def __init__(self, trace_of: Callable[[str], _native.Trace | None]) -> None:
        self._trace_of = trace_of
        self._runs: dict[str, Repetition] = {}

    def together(self, run_ids: Sequence[str], slowest_ns: float | None) -> Certainty:
        """What repetitions say together, with what decides about the next round."""
        return with_certainty([self._of(run_id) for run_id in run_ids], slowest_ns)

    def ios_of(self, run_id: str) -> int:
        """How many I/Os a run made; 0 where it is not there."""
        return int(self._of(run_id)["io_count"])

    def hear(self, run_id: str, said: Repetition) -> None:
        """Take note of what a run says, where that is known already."""
        self._runs[run_id] = said

    def _of(self, run_id: str) -> Repetition:
        if run_id not in self._runs:
            self._runs[run_id] = self._look_at(run_id)
        return self._runs[run_id]

    def _look_at(self, run_id: str) -> Repetition:
        trace = self._trace_of(run_id)
        if trace is None:
            nothing = dict.fromkeys(Repetition.__annotations__)
            return cast(Repetition, nothing | {"run": run_id, "io_count": 0})
        return cast(Repetition, {"run": run_id} | repetition(trace, measured(trace)))
