"""Going on with a plan that was cut short: what is left of it, on a device that has a past.

A run that was under way may have written to its place, nobody knows how much. On a real device its
sequential writes therefore get another place, or a reset where there is none left. A simulated
device has gone with its process: it is rebuilt, and the finished runs are made on it again, which
brings it to exactly where it was.

**Source**: uFLIP (CIDR 2009) §4.1, §4.2: target spaces of sequential writes are used once.
**Faithful**: nothing is reused from a target space that was written; the state is not enforced
again before the space is used up.
**Simplified**: a run that was under way counts as begun even if it had not written yet.
**Ambiguous**: the paper knows no resumption.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from uflip.experiment import PlannedRun
from uflip.footprint import all_but_written_sequentially, together, written_sequentially
from uflip.methodology.plan import Plan
from uflip.methodology.target_spaces import APART, BLOCK, Places
from uflip.microbench import in_turn


def what_is_left(plan: Plan, done: Collection[str], *, just_reset: bool) -> Plan:
    """Return the plan as it goes on, on a real device.

    Parameters
    ----------
    plan : Plan
        The plan as it was made.
    done : collection of str
        Ids of the runs that were finished.
    just_reset : bool
        Whether the state was enforced again after the last of them.

    Returns
    -------
    Plan
        All of its runs; the first that is left has a fresh place, or a reset before it.
    """
    left = [number for number, run in enumerate(plan.runs) if run.id not in done]
    if not left:
        return plan
    number = left[0]
    run = plan.runs[number]
    if just_reset:
        run = replace(run, reset_before=False)
    if run.spec.writes_sequentially and not run.reset_before and not in_turn(run):
        run = _elsewhere(plan, number, run)
    runs = (*plan.runs[:number], run, *plan.runs[number + 1 :])
    return replace(plan, runs=runs)


def _elsewhere(plan: Plan, number: int, run: PlannedRun) -> PlannedRun:
    """Give a run a place that no run touches between the last reset and the next one."""
    before, after = _epoch(plan, number)
    # It may have begun to write to its own.
    disturbed = together(written_sequentially(each.spec) for each in (*before, run))
    to_come = [written_sequentially(each.spec) for each in after]
    # What later runs read, or write at random, must not be disturbed either.
    to_come += [all_but_written_sequentially(each.spec) for each in after]
    for block in (APART, BLOCK):
        places = Places(plan.target_size, block=block, disturbed=disturbed, taken=together(to_come))
        placed = places.move(run.spec)
        if placed.reset is None:
            return replace(run, spec=placed.spec)
    # No place is left; after a reset its own is as good as any, and nobody else's.
    return replace(run, reset_before=plan.state is not None)


def _epoch(plan: Plan, number: int) -> tuple[Sequence[PlannedRun], Sequence[PlannedRun]]:
    """Return the runs since the last reset before run `number`, and those up to the next one."""
    resets = [index for index, run in enumerate(plan.runs) if run.reset_before]
    begin = max((index for index in resets if index <= number), default=0)
    end = min((index for index in resets if index > number), default=len(plan.runs))
    return plan.runs[begin:number], plan.runs[number + 1 : end]
