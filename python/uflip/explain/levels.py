"""Levels, start-up and period of the reads and of the writes, from the analysis of a series.

**Source** uFLIP (CIDR 2009) §4.2; the methods are those of `crates/method`.
**Faithful** The same functions as the stop rule of a run.
**Simplified** Reads and writes of a mixed trace are analysed apart.
**Ambiguous** A level that wanders at all time scales looks like a start-up if it begins low. Here a
start-up counts only if its batches are apart from all later batches of the same length.
"""

import numpy as np

from uflip.analysis import PHASES, Analysis
from uflip.explain.finding import ABSENT, FOUND, UNDECIDED, Finding, undecided
from uflip.explain.io_log import Floats, Integers, IoLog
from uflip.units import format_count, format_duration_ns, format_size

MIN_IOS = 32
# Fewer periods than this may be chance.
MIN_PERIODS = 5
APART_PIECES = 4
"""Pieces of a start-up whose means must all be apart from later ones."""
OVERLAP = 0.05
"""Share of later pieces that may overlap with those of the start-up."""


def describe_levels(subject: str, analysis: Analysis) -> Finding:
    """Return the levels of the response times in the running phase."""
    levels = analysis.levels
    numbers: dict[str, float | int | str | None] = {}
    for index, level in enumerate(levels, 1):
        numbers |= {f"level_{index}_ns": level.mean_ns, f"level_{index}_share": level.share}
    numbers["mean_ns"] = analysis.mean_ns
    if analysis.phase == "too-short":
        return undecided("levels", subject, PHASES["too-short"], **numbers)
    text = ", ".join(f"{format_duration_ns(each.mean_ns)} ({each.share:.1%})" for each in levels)
    if len(levels) < 2:
        return Finding(
            topic="levels",
            subject=subject,
            verdict=ABSENT,
            statement=f"one level, {text or format_duration_ns(analysis.mean_ns)}",
            numbers=numbers,
        )
    return Finding(
        topic="levels",
        subject=subject,
        verdict=FOUND,
        statement=f"{len(levels)} levels: {text}",
        numbers=numbers,
    )


def describe_startup(
    subject: str, analysis: Analysis, took: Floats, sizes: Integers | None
) -> Finding:
    """Return the start-up in I/Os and bytes."""
    topic = "start-up"
    startup = analysis.startup_ios
    if analysis.phase == "too-short" or "start_up_not_over" in analysis.reasons:
        reason = (
            PHASES["too-short"]
            if analysis.phase == "too-short"
            else "the level still changes where the file ends: a longer log would decide"
        )
        return undecided(topic, subject, reason, ios=analysis.ios)
    if not startup:
        verdict = UNDECIDED if analysis.phase in ("drifting", "never-steady") else ABSENT
        return Finding(
            topic=topic,
            subject=subject,
            verdict=verdict,
            statement="no start-up" if verdict == ABSENT else PHASES[analysis.phase],
            numbers={"ios": analysis.ios},
        )
    before, after = float(took[:startup].mean()), float(took[startup:].mean())
    written = None if sizes is None else int(sizes[:startup].sum())
    numbers = {
        "startup_ios": startup,
        "startup_bytes": written,
        "before_ns": before,
        "after_ns": after,
    }
    if not are_apart(took[:startup], took[startup:]):
        reason = "the beginning differs from the rest, but not by more than later parts differ"
        return undecided(topic, subject, reason, **numbers)
    bytes_text = "" if written is None else f" ({format_size(written)})"
    return Finding(
        topic=topic,
        subject=subject,
        verdict=FOUND,
        statement=f"the first {format_count(startup)} {subject}{bytes_text} take "
        f"{format_duration_ns(before)} on average, later ones {format_duration_ns(after)}",
        numbers=numbers,
    )


def are_apart(before: Floats, after: Floats) -> bool:
    """Return whether all pieces of a beginning are on one side of nearly all later ones.

    A level with long memory wanders: later pieces then reach the level of the beginning again.

    >>> import numpy as np
    >>> are_apart(np.full(40, 1.0), np.full(400, 2.0)), are_apart(np.ones(40), np.ones(400))
    (True, False)
    """
    length = max(1, len(before) // APART_PIECES)
    first = _means(before, length)
    later = _means(after, length)
    if not len(first) or len(later) < 2:
        return False
    share = max(float((later <= first.max()).mean()), 0.0)
    share_below = float((later >= first.min()).mean())
    return min(share, share_below) <= OVERLAP


def _means(values: Floats, length: int) -> Floats:
    count = len(values) // length
    means: Floats = values[: count * length].reshape(count, length).mean(axis=1)
    return means


def describe_period(subject: str, analysis: Analysis, sizes: Integers | None) -> Finding:
    """Return the period of an oscillation."""
    topic, period = "period", analysis.period_ios
    running = analysis.ios - analysis.startup_ios
    if analysis.phase == "too-short":
        return undecided(topic, subject, PHASES["too-short"], ios=analysis.ios)
    if period <= 1:
        longest = max(1, running // MIN_PERIODS)
        return Finding(
            topic=topic,
            subject=subject,
            verdict=ABSENT,
            statement=f"no period of up to {format_count(longest)} {subject}",
            numbers={"longest_ios": longest},
        )
    periods = running / period
    written = None
    if sizes is not None and len(sizes):
        written = float(np.median(_sums(sizes[analysis.startup_ios :], period)))
    numbers = {"period_ios": period, "period_bytes": written, "periods": periods}
    if periods < MIN_PERIODS or "too_few_periods" in analysis.reasons:
        return undecided(topic, subject, "fewer than five periods were seen", **numbers)
    bytes_text = "" if written is None else f", {format_size(round(written))}"
    return Finding(
        topic=topic,
        subject=subject,
        verdict=FOUND,
        statement=f"a period of {format_count(period)} {subject}{bytes_text}, seen "
        f"{format_count(int(periods))} times",
        numbers=numbers,
    )


def _sums(sizes: Integers, period: int) -> Integers:
    count = max(1, len(sizes) // period)
    whole = sizes[: count * period]
    sums: Integers = whole.reshape(count, -1).sum(axis=1)
    return sums


def sizes_of(log: IoLog, rows: Integers) -> Integers | None:
    """Return the sizes of some I/Os; None if the file has none."""
    return None if log.size is None else log.size[rows]
