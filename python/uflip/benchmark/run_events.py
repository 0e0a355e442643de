"""Progress events of the execution of a plan."""

from dataclasses import dataclass

from uflip.benchmark.plan import Plan
from uflip.experiment import PlannedRun


@dataclass(frozen=True)
class ResetProgress:
    """The state is being enforced again before a run."""

    index: int
    run: PlannedRun
    done: int
    total: int


@dataclass(frozen=True)
class RunStarted:
    """A run is about to start; the device idles first. `index` counts from 0."""

    index: int
    run: PlannedRun


@dataclass(frozen=True)
class RunProgress:
    """A run is in progress."""

    index: int
    run: PlannedRun
    done: int
    total: int
    last_response_ns: int


@dataclass(frozen=True)
class RunFinished:
    """A run is finished and stored. `taken_ns` is on the wall clock, with the pause before it."""

    index: int
    run: PlannedRun
    taken_ns: int


@dataclass(frozen=True)
class PlanGrew:
    """Experiments that have not converged are repeated: the plan has more runs at its end."""

    plan: Plan


Event = PlanGrew | ResetProgress | RunStarted | RunProgress | RunFinished
