"""Comparability: report the conditions that differ between two results, with their values.

**Source** uFLIP (CIDR 2009) §4: state, phases, pauses and how I/O is made decide what is measured.
**Faithful** Each of these conditions is checked where a result contains it.
**Simplified** Devices are not checked: their difference is the purpose of a comparison. Nor are
warnings: a result that has any is doubtful in every comparison.
**Ambiguous** Which differences matter. A different condition is reported, and the means are still
compared. But replays of other I/Os are other experiments (`is_different_replay`), whatever the
names of their traces, and three differences leave a single experiment without a verdict (see
`missing_verdict_reason`). Runs with a stop rule end where the data decides: an earlier end is not
another condition. Runs of fixed length measured the same section where three quarters of either are
in both: a start-up is planned with a margin of a quarter, so that a smaller difference is within
the plan's own tolerance.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set, Sized
from dataclasses import dataclass
from typing import Any

from uflip.data.manifest import IMPORTED, StoredWarning
from uflip.data.summary import ExperimentSummary, Summary
from uflip.durability import UNKNOWN, describe_durability
from uflip.results.statistics import INSIDE_STARTUP, MARKS, STARTUP_IN_MEAN
from uflip.results.summary_document import experiments_of
from uflip.startup import STARTUP_NOT_OVER
from uflip.units import format_duration_ns, format_size

Document = Summary
FITTED = ("trace_moved", "trace_widened")
"""Warnings about a trace whose I/Os were changed to fit the device."""
SAME_WINDOW_SHARE = 0.75
"""The share of two windows that must lie in both for them to be the same section of a run."""
ONE_REPETITION, STARTUP, WINDOW, NO_INTERVAL = (
    "one_repetition",
    INSIDE_STARTUP,
    "different_window",
    "no_interval",
)
UNKNOWN_REASONS = {
    NO_INTERVAL: "one of the means has no interval",
    ONE_REPETITION: "one of the results has a single repetition, which does not show the "
    "scatter of repetitions",
    STARTUP: "in one of the results the device may have been inside its start-up, or never left "
    "its write cache",
    WINDOW: "the runs measured different sections: they ignored or made other numbers of I/Os",
}
"""Reason for a missing verdict on two means -> its explanation."""


@dataclass(frozen=True)
class Condition:
    """A condition that two comparable results share.

    With `only_if_both`, a result that lacks the value (no replayed I/Os) does not differ by that.
    """

    name: str
    value_of: Callable[[Document], Any]
    advice: str
    only_if_both: bool = False

    def differs(self, first: Document, second: Document) -> bool:
        """Return whether it differs; an unknown value differs from every other."""
        one, other = self.value_of(first), self.value_of(second)
        if self.only_if_both and None in (one, other):
            return False
        return bool(one != other or one == UNKNOWN)


def _buffered(document: Document) -> bool:
    return bool(document["device"].buffered)


def _host(document: Document) -> Any:
    """Return the machine of a real device; None for a simulated one."""
    if document["device"].simulated:
        return None
    return " with ".join(str(document["host"].get(name)) for name in ("cpu_model", "kernel"))


def _io_size(document: Document) -> str | None:
    """Return the I/O size where it does not vary: that of the baselines, or of most experiments."""
    sizes = Counter(
        run["spec"]["io_size"]
        for _, run in experiments_of(document)
        if run["parameter"] != "io_size" and "io_size" in run["spec"]
    )
    size = document["baseline_io_size_bytes"] or next(iter(sizes.most_common(1)), (None, 0))[0]
    return None if size is None else format_size(size)


def _target_size(document: Document) -> str:
    """Return the used part of the device; the device facts hold its whole size."""
    size = document["target_size_bytes"]
    whole = size is None or size == document["device"].capacity_bytes
    return "the whole device" if whole else format_size(size or 0)


def _state(document: Document) -> str:
    """Return the state before the runs; jobs of an open-channel device prepare their own.

    Its wear is in the profile, which is among the device facts.
    """
    if document["device"].addresses == "physical":
        return "prepared by each job"
    return document["state"].state


def _replayed(document: Document) -> Iterator[Any]:
    """Yield the records of the replayed lists of I/Os.

    Imported lists are left out: they log a job, which draws its addresses anew each time.
    """
    if document["scale"] != IMPORTED:
        yield from (run["spec"]["list"] for _, run in experiments_of(document) if _is_list(run))


def _is_list(run: ExperimentSummary) -> bool:
    return "list" in run["spec"]


def _digests(document: Document) -> str | None:
    return ", ".join(str(each["ios"])[:16] for each in _replayed(document)) or None


def _speed(document: Document) -> str | None:
    """Return the time spans in which the I/Os of the replays arrived."""
    spans = [each.get("span") for each in _replayed(document)]
    descriptions = (
        "each after the one before" if ns is None else format_duration_ns(ns) for ns in spans
    )
    return ", ".join(descriptions) or None


def _pause(document: Document) -> str | None:
    """Return the idle time between runs."""
    pause_ns = document["pause_ns"]
    return None if pause_ns is None else format_duration_ns(pause_ns)


CONDITIONS = (
    Condition(
        "io_size",
        _io_size,
        "response times depend on the I/O size: measure both with one --io-size",
        only_if_both=True,
    ),
    Condition(
        "target_size",
        _target_size,
        "response times depend on the size of the written part: measure both with one "
        "--target-size",
    ),
    Condition(
        "replayed",
        _digests,
        "other I/Os were replayed, at other times or on a device that they were fitted to: replay "
        "one trace on both, with the same options",
        only_if_both=True,
    ),
    Condition(
        "speed",
        _speed,
        "I/Os that arrive faster wait longer for each other: replay both with one --speed",
        only_if_both=True,
    ),
    Condition(
        "durability",
        lambda document: document["durability"],
        "writes waited for different things: compare reads only, or measure one of them again",
    ),
    Condition(
        "page_cache",
        _buffered,
        "one went through the page cache of the host, the other did not: do not compare them",
    ),
    Condition(
        "completion",
        lambda document: document["device"].completion,
        "one was polled, the other interrupted: compare runs with one I/O in flight, or "
        "measure both with one --completion",
    ),
    Condition(
        "data",
        lambda document: document["device"].data,
        "a device that compresses writes less of one than of the other: measure with one --data",
    ),
    Condition(
        "scale",
        lambda document: document["scale"],
        "the runs are of different lengths and sizes: measure both with one --scale",
    ),
    Condition(
        "seed",
        lambda document: document["seed"],
        "random addresses differ: measure both with one --seed, or expect small differences",
    ),
    Condition(
        "state",
        _state,
        "earlier writes affect response times: give both one --state",
    ),
    Condition(
        "method",
        lambda document: document["method"],
        "runs end by different rules: measure both with one --method",
    ),
    Condition(
        "pause",
        _pause,
        "the device rested for different times between runs: measure both with one --pause",
    ),
    Condition(
        "host",
        _host,
        "part of a response time is the host's: measure both on one machine, or expect differences",
    ),
    Condition(
        "version",
        lambda document: document["uflip_version"],
        "uflip itself may have changed what it does: measure both with one version",
    ),
)


def differences(first: Document, second: Document) -> list[StoredWarning]:
    """Return the conditions under which two results differ.

    Returns one warning per condition, in the order of `CONDITIONS`; empty for results that may be
    compared. An unknown condition counts as different.
    """
    return [
        _difference(condition, first, second)
        for condition in CONDITIONS
        if condition.differs(first, second)
    ]


def _difference(condition: Condition, first: Document, second: Document) -> StoredWarning:
    one, other = condition.value_of(first), condition.value_of(second)
    message = "The results were not measured under the same conditions"
    values = f"{condition.name} {one} and {other}"
    if one == other:  # neither is known
        message = "It is unknown whether the results were measured under the same conditions"
        values = f"{condition.name} of both {one}"
        if condition.name == "durability":
            values += f": {describe_durability(one, buffered=_buffered(first))}"
    elif condition.name == "durability":
        meanings = (
            describe_durability(each["durability"], buffered=_buffered(each))
            for each in (first, second)
        )
        values = ". ".join(
            f"{name}: {each}" for name, each in zip((one, other), meanings, strict=True)
        )
    return StoredWarning(
        f"different_{condition.name}",
        f"{message}. {values}",
        {"first": one, "second": other},
        condition.advice,
    )


def is_different_replay(
    first: Document, second: Document, one: ExperimentSummary, other: ExperimentSummary
) -> bool:
    """Return whether experiments of one name are replays of other I/Os, or at other times.

    A trace that was fitted to a smaller device or to larger sectors counts as that trace, if the
    same number of I/Os arrives within the same time; a condition reports it (`replayed`).
    """
    if not (_is_list(one) and _is_list(other)) or IMPORTED in (first["scale"], second["scale"]):
        return False
    ours, theirs = one["spec"]["list"], other["spec"]["list"]
    if ours["ios"] == theirs["ios"]:
        return False
    fitted = any(each["code"] in FITTED for each in (*first["warnings"], *second["warnings"]))
    return not fitted or any(ours.get(name) != theirs.get(name) for name in ("io_count", "span"))


def unmatched_warnings(only_in_first: Sized, only_in_second: Sized) -> list[StoredWarning]:
    """Return a warning about experiments that only one result has."""
    first, second = len(only_in_first), len(only_in_second)
    if not first + second:
        return []
    return [
        StoredWarning(
            "only_in_one",
            f"Experiments that only one result has are not compared: {first} of the first, "
            f"{second} of the second",
            {"first": first, "second": second},
            "measure both with the same options; --json lists them",
        )
    ]


def startup_runs(document: Summary) -> set[str]:
    """Return the runs of a result that may have measured the device's start-up."""
    runs = {
        str(run)
        for each in document["warnings"]
        if each["code"] in MARKS
        for run in each["numbers"].get("runs", ())
    }
    return runs | {
        run["run"]
        for _, experiment in experiments_of(document)
        for run in experiment["repetitions"]
        if not {*MARKS, STARTUP_NOT_OVER, STARTUP_IN_MEAN}.isdisjoint(run["reasons"] or ())
    }


def cannot_repeat(experiment: ExperimentSummary, *, jobs: bool = False) -> bool:
    """Return whether an experiment cannot be repeated: a job, a replay, or an imported log."""
    return jobs or _is_list(experiment)


def missing_verdict_reason(
    first: ExperimentSummary,
    second: ExperimentSummary,
    early: Set[str] = frozenset(),
    *,
    jobs: bool = False,
) -> str | None:
    """Return why two means of one experiment have no verdict (`UNKNOWN_REASONS`), or None."""
    both = (first, second)
    if any(each["together"]["half_width_ns"] is None for each in both):
        return NO_INTERVAL
    once = cannot_repeat(first, jobs=jobs)
    if not once and any(len(each["repetitions"]) < 2 for each in both):
        return ONE_REPETITION
    if not (once or same_window(first, second)):
        return WINDOW
    early_here = any(run["run"] in early for each in both for run in each["repetitions"])
    return STARTUP if early_here else None


def same_window(first: ExperimentSummary, second: ExperimentSummary) -> bool:
    """Return whether the runs of an experiment measured the same section in both results.

    If either has a stop rule, the overlap is taken relative to the shorter run, else to the longer.
    """
    one, other = ((each["io_ignore"], each["io_count"]) for each in (first, second))
    common = min(one[1], other[1]) - max(one[0], other[0])
    lengths = one[1] - one[0], other[1] - other[0]
    finds_its_end = any(each["spec"].get("stop") is not None for each in (first, second))
    needed = min(lengths) if finds_its_end else max(lengths)
    return common >= SAME_WINDOW_SHARE * needed


def window_warnings(
    named: Sequence[tuple[str, str | None, ExperimentSummary, ExperimentSummary]],
) -> list[StoredWarning]:
    """Return a warning about experiments whose runs measured different sections.

    `named`: for each experiment: name, reason for a missing verdict, and the experiment in either
    result.
    """
    rows = [row for row in named if row[1] == WINDOW]
    if not rows:
        return []
    name, _, first, second = rows[0]
    windows = [[each["io_ignore"], each["io_count"]] for each in (first, second)]
    sections = " and ".join(f"{begin:,} to {end:,}" for begin, end in windows)
    return [
        StoredWarning(
            "different_window",
            f"{len(rows)} of {len(named)} experiments have no verdict: {UNKNOWN_REASONS[WINDOW]} "
            f"({name}: I/Os {sections})",
            {
                "experiments": len(rows),
                "of": len(named),
                "example": name,
                "first": windows[0],
                "second": windows[1],
            },
            "make both with one plan file: `uflip plan --out`, then `uflip run --plan`",
        )
    ]


def single_run_warnings(
    repetitions: Sequence[int], *, exist_once: bool = False
) -> list[StoredWarning]:
    """Return a warning about single runs: their intervals exclude the scatter of repetitions.

    Jobs over physical addresses, replays and imported logs exist once, and have verdicts.
    """
    once = sum(each < 2 for each in repetitions)
    if not once:
        return []
    return [
        StoredWarning(
            "one_repetition",
            f"{once} of {len(repetitions)} experiments were run once in one of the results: their "
            "intervals exclude the scatter of repetitions",
            {"experiments": once, "of": len(repetitions)},
            "measure one of the devices twice, and compare the two results: they show how much "
            "single runs differ"
            if exist_once
            else "they have no verdict; measure both with --repetitions 3 or more",
        )
    ]
