"""What the execution of a plan tells whoever watches it."""

from dataclasses import dataclass

from uflip.experiment import PlannedRun
from uflip.methodology.plan import Plan


@dataclass(frozen=True)
class ResetProgress:
    """The state is being enforced again before a run."""

    index: int
    run: PlannedRun
    done: int
    total: int


@dataclass(frozen=True)
class RunStarted:
    """A run is about to start: the device is left alone first. `index` counts from 0."""

    index: int
    run: PlannedRun


@dataclass(frozen=True)
class RunProgress:
    """A run is under way."""

    index: int
    run: PlannedRun
    done: int
    total: int
    last_response_ns: int


@dataclass(frozen=True)
class RunFinished:
    """A run is over and stored. `taken_ns` is on the wall clock, with the pause before it."""

    index: int
    run: PlannedRun
    taken_ns: int


@dataclass(frozen=True)
class PlanGrew:
    """What is not known yet is repeated: the plan has more runs, none before what was made."""

    plan: Plan


Event = PlanGrew | ResetProgress | RunStarted | RunProgress | RunFinished


def ignore(_event: Event) -> None:
    """Tell nobody."""
