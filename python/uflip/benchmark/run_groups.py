"""Groups of runs: the next runs of a plan, and runs that follow each other without a pause.

A plan goes from stage to stage (`order`): runs that hardly disturb the state of the device, random
writes within a part of it, sequential writes. After each stage, experiments that have not converged
are repeated (`rounds`) before the next stage begins; the plan grows. On a device with earlier runs,
no run is inserted before them. Runs with a fixed order come after all stages.

    plan      | stage 0 ......... | stage 1 .... | stage 2 ........... |
    made      | stage 0 .... more | stage 1 more | stage 2 .... more   |
    groups      [1] [2] [3 4 5] [6] ...       3 4 5: the batches of the interference experiment
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Protocol

from uflip.benchmark import interference
from uflip.benchmark.calibration import Calibration
from uflip.benchmark.events import Event, PlanGrew
from uflip.benchmark.interference import Numbered, group_unpaused
from uflip.benchmark.order import SEQUENTIAL, STAGES, ends_of_stages
from uflip.benchmark.plan import Plan
from uflip.benchmark.rounds import RepetitionSource, next_round
from uflip.experiment import PlannedRun


class PlanStore(RepetitionSource, Protocol):
    """Storage of the growing plan; `uflip.results.ResultsWriter` is one."""

    def grow(self, plan: Sequence[PlannedRun]) -> None:
        """Store a plan with more runs."""


def runs_to_make(plan: Plan, done: Collection[str], *, all_of_them: bool) -> list[Numbered]:
    """Return the runs that are not stored, or all of them, with their indices."""
    return [
        (index, run)
        for index, run in enumerate(plan.runs)
        if all_of_them or run.id not in done or _is_needed_again(run, plan, done)
    ]


def _is_needed_again(run: PlannedRun, plan: Plan, done: Collection[str]) -> bool:
    """Return whether a batch must be repeated because others of its experiment are missing."""
    if run.micro_benchmark != interference.NAME:
        return False
    return any(
        each.id not in done for each in plan.runs if each.micro_benchmark == interference.NAME
    )


def groups(
    plan: Plan,
    remaining: list[Numbered],
    writer: PlanStore,
    calibration: Calibration,
    on_event: Callable[[Event], None],
    *,
    closed: bool,
) -> Iterator[list[Numbered]]:
    """Yield the groups of the plan, and of the rounds that are added after each stage.

    The stages: runs that hardly disturb the state, random writes within a part of the device,
    sequential writes.
    """
    made = 0
    for stage in STAGES:
        while True:
            end = ends_of_stages(plan.runs, plan.target_size)[stage]
            yield from group_unpaused([each for each in remaining if made <= each[0] < end])
            made = end
            grown = next_round(plan, made, writer, calibration.repetition_spec)
            if grown is None or (closed and stage != SEQUENTIAL):
                break
            added = len(grown.runs) - len(plan.runs)
            later_runs = [(index + added, run) for index, run in remaining if index >= made]
            remaining = [*list(enumerate(grown.runs))[made : made + added], *later_runs]
            plan = grown
            calibration.update_plan(plan)
            writer.grow(plan.runs)
            on_event(PlanGrew(plan))
    yield from group_unpaused([each for each in remaining if each[0] >= made])


def disturbing_runs(plan: Plan) -> Sequence[PlannedRun]:
    """Return the first run that disturbs the state, and all after it."""
    indices = (index for index, run in enumerate(plan.runs) if run.spec.writes_sequentially)
    return plan.runs[next(indices, len(plan.runs)) :]
