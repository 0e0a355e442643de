"""Has a run left the start-up of the device behind, as far as the baselines show it?

256 writes of 4 KiB on a device with 2 MiB of free blocks are quick from the first I/O to the last:
the run looks steady and is wrong (uFLIP §4.2). It cannot be found in the run; it can in a baseline.

**Source** uFLIP (CIDR 2009) §4.2: with an IOCount that is too low, "only the start-up phase" is
measured.
**Faithful** The start-up of the baselines is carried over to every other run.
**Simplified** The unit is that of `uflip.startup`, whatever the pattern.
**Ambiguous** How much start-up is too much. Here: more than `AGREEMENT` of what is measured; and a
run that looks for its start-up itself must be twice as long as that of the baselines.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from uflip.data.manifest import PlanEntry
from uflip.data.phases import Phases
from uflip.data.spec import Basic, Spec
from uflip.results.agreement import AGREEMENT
from uflip.startup import Startup, in_rows, longest_of, startup_of

# Runs that show the start-up themselves.
BASELINE, INTERFERENCE = "baseline", "interference"


@dataclass(frozen=True)
class Length:
    """A run: the specification as it was made, and whether it looked for its own length."""

    run_id: str
    spec: Spec
    is_found: bool
    baseline: str | None = None  # which of them, if it is one


@dataclass(frozen=True)
class Inside:
    """A run that is not clear of the start-up: which share of what is measured is start-up."""

    run_id: str
    share: float
    startup_ios: int
    io_count: int
    io_ignore: int


def carried_over(phases: Phases, plan: Sequence[PlanEntry]) -> Startup | None:
    """Return the start-up that the runs of a plan show; None where nothing shows it."""
    for name in (BASELINE, INTERFERENCE):
        for entry in plan:
            if (
                entry.micro_benchmark == name
                and isinstance(entry.spec, Basic)
                and entry.spec.io_size
            ):
                return startup_of(phases, entry.spec.io_size)
    return None


def all_inside(
    runs: Sequence[Length], phases: Phases | None, plan: Sequence[PlanEntry]
) -> list[Inside]:
    """Return the runs that are not clear of the start-up; a baseline is judged by its own."""
    startup = None if phases is None else carried_over(phases, plan)
    if phases is None or startup is None:
        return []
    found = []
    for run in runs:
        known = startup
        if run.baseline is not None:
            own = [
                (label, seen) for label, seen in phases["patterns"].items() if label == run.baseline
            ]
            known = longest_of(own, startup.io_size)
        found.append(inside_startup(run, known))
    return [inside for inside in found if inside is not None]


def inside_startup(run: Length, startup: Startup) -> Inside | None:
    """Say how much of what a run measures is start-up; None if it is clear of it."""
    if run.spec.io_count is None:
        return None  # patterns side by side have lengths of their own
    count, ignored = run.spec.ios, run.spec.ignored_ios
    rows = in_rows(run.spec, startup)
    knows_its_own = run.is_found and count >= 2 * rows
    within = 0 if knows_its_own else rows - ignored
    share = min(within / max(count - ignored, 1), 1.0)
    return Inside(run.run_id, share, rows, count, ignored) if share > AGREEMENT else None
