"""Which runs of a plan are made next, and which follow each other without a rest.

A plan goes from stage to stage (`order`): what hardly disturbs the state of the device, what writes
at random within a part of it, what writes sequentially. When a stage is over, what is not known by
then is repeated further (`rounds`), before the next one begins; the plan grows. On a device with a
past nothing is put before what was made already. What is made in turn comes behind all stages.

    plan      | stage 0 ......... | stage 1 .... | stage 2 ........... |
    made      | stage 0 .... more | stage 1 more | stage 2 .... more   |
    groups      [1] [2] [3 4 5] [6] ...       3 4 5: the batches of the interference experiment
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Protocol

from uflip.experiment import PlannedRun
from uflip.methodology import interference
from uflip.methodology.calibration import Calibration
from uflip.methodology.events import Event, PlanGrew
from uflip.methodology.order import SEQUENTIAL, STAGES, ends_of_stages
from uflip.methodology.plan import Plan
from uflip.methodology.rounds import RepetitionSource, next_round

Numbered = tuple[int, PlannedRun]
"""A run with its place in the plan, from 0."""


class Growing(RepetitionSource, Protocol):
    """Who is told that the plan has more runs; `uflip.results.ResultsWriter` is one."""

    def grow(self, plan: Sequence[PlannedRun]) -> None:
        """Note that the plan has more runs."""


def to_be_made(plan: Plan, done: Collection[str], *, all_of_them: bool) -> list[Numbered]:
    """Return the runs that are not stored, or all of them, with their numbers."""
    return [
        (index, run)
        for index, run in enumerate(plan.runs)
        if all_of_them or run.id not in done or _is_needed_again(run, plan, done)
    ]


def without_a_rest(runs: Iterable[Numbered]) -> list[list[Numbered]]:
    """Put runs together that must follow each other at once: the batches of one experiment."""
    groups: list[list[Numbered]] = []
    for index, run in runs:
        before = groups[-1][-1][1] if groups else None
        if before is not None and interference.follows_at_once(before, run):
            groups[-1].append((index, run))
        else:
            groups.append([(index, run)])
    return groups


def _is_needed_again(run: PlannedRun, plan: Plan, done: Collection[str]) -> bool:
    """Whether a batch must be made again because others of its experiment are missing."""
    if run.micro_benchmark != interference.NAME:
        return False
    return any(
        each.id not in done for each in plan.runs if each.micro_benchmark == interference.NAME
    )


def groups(
    plan: Plan,
    left: list[Numbered],
    writer: Growing,
    found: Calibration,
    on_event: Callable[[Event], None],
    *,
    closed: bool,
) -> Iterator[list[Numbered]]:
    """Go through the plan, and through what is repeated for what is not known by then.

    That is looked at when all of a stage are done: what hardly disturbs the state, what writes at
    random within a part of the device, what writes sequentially.
    """
    made = 0
    for stage in STAGES:
        while True:
            end = ends_of_stages(plan.runs, plan.target_size)[stage]
            yield from without_a_rest([each for each in left if made <= each[0] < end])
            made = end
            grown = next_round(plan, made, writer, found.once_more)
            if grown is None or (closed and stage != SEQUENTIAL):
                break
            added = len(grown.runs) - len(plan.runs)
            later = [(index + added, run) for index, run in left if index >= made]
            left = [*list(enumerate(grown.runs))[made : made + added], *later]
            plan = grown
            found.grown(plan)
            writer.grow(plan.runs)
            on_event(PlanGrew(plan))
    yield from without_a_rest([each for each in left if each[0] >= made])


def disturbing(plan: Plan) -> Sequence[PlannedRun]:
    """Return the first run that disturbs the state, and all that come behind it."""
    disturbing = (at for at, run in enumerate(plan.runs) if run.spec.writes_sequentially)
    return plan.runs[next(disturbing, len(plan.runs)) :]
