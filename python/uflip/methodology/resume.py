"""Resuming an interrupted plan: the remaining runs, on a device that earlier runs have written.

An interrupted run may have written an unknown amount to its target space. On a real device its
sequential writes therefore get another space, or a reset if no space is left. A simulated device
ended with its process: it is rebuilt, and the finished runs are repeated on it, which restores its
exact state.

**Source**: uFLIP (CIDR 2009) §4.1, §4.2: target spaces of sequential writes are used once.
**Faithful**: no written target space is reused; the state is not enforced again before the space is
used up.
**Simplified**: an interrupted run counts as begun even if it had not written yet.
**Ambiguous**: the paper does not cover resumption.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from uflip.experiment import PlannedRun
from uflip.footprint import all_but_written_sequentially, union, written_sequentially
from uflip.methodology.plan import Plan
from uflip.methodology.target_spaces import BLOCK, SPACING, SpaceAllocator
from uflip.microbench import has_fixed_order


def remaining_plan(plan: Plan, done: Collection[str], *, just_reset: bool) -> Plan:
    """Return the plan for resuming on a real device.

    Parameters
    ----------
    plan : Plan
        The original plan.
    done : collection of str
        Ids of the finished runs.
    just_reset : bool
        Whether the state was enforced again after the last of them.

    Returns
    -------
    Plan
        All of its runs; the first remaining one has an unused space, or a reset before it.
    """
    remaining = [number for number, run in enumerate(plan.runs) if run.id not in done]
    if not remaining:
        return plan
    number = remaining[0]
    run = plan.runs[number]
    if just_reset:
        run = replace(run, reset_before=False)
    if run.spec.writes_sequentially and not run.reset_before and not has_fixed_order(run):
        run = _move_to_unused_space(plan, number, run)
    runs = (*plan.runs[:number], run, *plan.runs[number + 1 :])
    return replace(plan, runs=runs)


def _move_to_unused_space(plan: Plan, number: int, run: PlannedRun) -> PlannedRun:
    """Move a run to a space that no run touches between the last reset and the next one."""
    before, after = _runs_between_resets(plan, number)
    # It may have begun to write to its own space.
    disturbed = union(written_sequentially(each.spec) for each in (*before, run))
    later_spaces = [written_sequentially(each.spec) for each in after]
    # Spaces that later runs read, or write at random, must not be disturbed either.
    later_spaces += [all_but_written_sequentially(each.spec) for each in after]
    for block in (SPACING, BLOCK):
        allocator = SpaceAllocator(
            plan.target_size, block=block, disturbed=disturbed, reserved=union(later_spaces)
        )
        placed = allocator.move(run.spec)
        if placed.reset is None:
            return replace(run, spec=placed.spec)
    # No space is left; after a reset its own is unused again.
    return replace(run, reset_before=plan.state is not None)


def _runs_between_resets(
    plan: Plan, number: int
) -> tuple[Sequence[PlannedRun], Sequence[PlannedRun]]:
    """Return the runs since the last reset before run `number`, and those up to the next one."""
    resets = [index for index, run in enumerate(plan.runs) if run.reset_before]
    begin = max((index for index in resets if index <= number), default=0)
    end = min((index for index in resets if index > number), default=len(plan.runs))
    return plan.runs[begin:number], plan.runs[number + 1 : end]
