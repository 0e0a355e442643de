"""Limits of a plan: how much it may write, how long it may take."""

from dataclasses import replace

from uflip.benchmark.estimate import estimate
from uflip.benchmark.interference import group_unpaused
from uflip.benchmark.plan import Plan
from uflip.errors import UsageError
from uflip.experiment import PlannedRun, Skipped
from uflip.units import format_duration_ns, format_size

# Prefix of skip reasons that are limits.
MAY = "the plan may "


def within_limits(plan: Plan, max_bytes_written: int | None, max_time_ns: int | None) -> Plan:
    """Leave out runs that exceed a limit.

    Runs are taken in their order as long as they fit. One that does not is skipped with the reason,
    and a smaller one after it may still be made. Runs that follow each other at once (the batches
    of the interference experiment) are taken or left together. A reset that is left out with its
    run is done before the next run that writes sequentially.

    Parameters
    ----------
    plan : Plan
        The whole plan.
    max_bytes_written : int or None
        Of all runs and resets [bytes]; the state before the first run not included.
    max_time_ns : int or None
        By the estimate [ns]. During execution the clock decides, see `execute`.

    Returns
    -------
    Plan
    """
    if max_bytes_written is None and max_time_ns is None:
        return plan
    included: list[PlannedRun] = []
    skipped = list(plan.skipped)
    written, time_ns, reset_due = 0, 0, False
    costs = estimate(plan).each
    for group in group_unpaused(enumerate(plan.runs)):
        first = group[0][1]
        reset_due = reset_due or first.reset_before
        resets = reset_due and first.spec.writes_sequentially
        # The cost of a postponed reset belongs to the run that it now precedes.
        postponed_reset = plan.state if resets and not first.reset_before else None
        more_bytes = written + sum(costs[index].bytes_written for index, _ in group)
        more_time_ns = time_ns + sum(costs[index].time_ns for index, _ in group)
        more_bytes += postponed_reset.bytes_written if postponed_reset else 0
        more_time_ns += postponed_reset.time_ns if postponed_reset else 0
        reason = None
        if max_bytes_written is not None and more_bytes > max_bytes_written:
            reason = f"{MAY}write {format_size(max_bytes_written)} at most"
        elif max_time_ns is not None and more_time_ns > max_time_ns:
            reason = f"{MAY}take {format_duration_ns(max_time_ns)} at most"
        if reason is not None:
            skipped += [
                Skipped(run.micro_benchmark, run.pattern, run.parameter, run.value, reason)
                for _, run in group
            ]
            continue
        included += [replace(first, reset_before=resets), *(run for _, run in group[1:])]
        reset_due = reset_due and not resets
        written, time_ns = more_bytes, more_time_ns
    return replace(plan, runs=tuple(included), skipped=tuple(skipped))


# A day: a longer pause is probably a typing error.
LONGEST_PAUSE_NS = 86_400 * 10**9


def check_worth_running(plan: Plan) -> None:
    """Refuse a plan that would end at once, or never.

    Raises
    ------
    UsageError
        If no run is left, or the pause before each run is longer than a day.
    """
    if not plan.runs:
        raise _nothing_left(plan)
    if plan.pause_ns > LONGEST_PAUSE_NS:
        raise UsageError(
            "The pause between runs is too long",
            where="--pause",
            got=format_duration_ns(plan.pause_ns),
            allowed=f"up to {format_duration_ns(LONGEST_PAUSE_NS)}",
            action="give a shorter --pause",
        )


def _nothing_left(plan: Plan) -> UsageError:
    """Return the error for a plan without runs, with the reasons and remedies."""
    reasons = sorted({skip.reason for skip in plan.skipped})
    limited = any(reason.startswith(MAY) for reason in reasons)
    others = "choose other micro-benchmarks (--only, --suite), or another device"
    return UsageError(
        "The plan has no runs",
        where=plan.device.url,
        got=f"{len(plan.skipped)} runs skipped: {'; '.join(reasons)}" if reasons else "no run",
        allowed="a plan of one run or more",
        action=f"raise --max-time or --max-bytes-written, or {others}" if limited else others,
    )
