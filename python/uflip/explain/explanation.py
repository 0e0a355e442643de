"""All findings about a file, in one document."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import Struct

from uflip.analysis import Analysis, analyse
from uflip.analysis.files import SeriesSource
from uflip.explain.cliff import describe_cliff
from uflip.explain.finding import TOPICS, Finding, undecided
from uflip.explain.io_log import Integers, IoLog
from uflip.explain.levels import (
    MIN_IOS,
    describe_levels,
    describe_period,
    describe_startup,
    sizes_of,
)
from uflip.explain.nearest_device import Likeness, OnDevice, describe_device
from uflip.explain.rhythm import describe_rhythm
from uflip.explain.slow_ios import Property, describe_causes, describe_modes, describe_slow_ios

AVERAGES = "the file contains averages, not single I/Os"


class Explanation(Struct, frozen=True, kw_only=True):
    """The document of `uflip why --json`."""

    ios: int
    read_as: SeriesSource
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class ExplainedLog:
    """An explanation, with what its picture needs."""

    document: Explanation
    log: IoLog
    properties: dict[str, list[Property]]
    likenesses: list[Likeness]


def explain(
    log: IoLog, devices: Sequence[str] = (), on_device: OnDevice = lambda *_: None
) -> ExplainedLog:
    """Return all findings about the I/Os of a log.

    `log`: from `uflip.explain.io_log.read_io_log`. `devices`: simulated devices to compare with;
    none of them is simulated without any. `on_device`: called before each device.
    """
    findings: list[Finding] = []
    properties: dict[str, list[Property]] = {}
    is_averaged = log.source.averaged_ns is not None
    for subject, rows in log.subjects:
        analysis, of_series = _of_series(log, subject, rows, is_averaged=is_averaged)
        findings += of_series
        if is_averaged:
            findings += [undecided(topic, subject, AVERAGES) for topic in ("rhythm", "slow I/Os")]
            continue
        startup = 0 if analysis is None else analysis.startup_ios
        findings.append(describe_rhythm(log, subject, rows[startup:]))
        finding, properties[subject] = describe_slow_ios(log, subject, rows)
        findings.append(finding)
    if not is_averaged:
        findings.append(describe_cliff(log))
        findings += [each for each in (describe_modes(log),) if each is not None]
    findings += describe_causes(log)
    likenesses: list[Likeness] = []
    if devices:
        finding, likenesses = describe_device(log, devices, on_device)
        findings.append(finding)
    ordered = tuple(sorted(findings, key=lambda each: TOPICS.index(each.topic)))
    document = Explanation(ios=len(log), read_as=log.source, findings=ordered)
    return ExplainedLog(document, log, properties, likenesses)


def _of_series(
    log: IoLog, subject: str, rows: Integers, *, is_averaged: bool
) -> tuple[Analysis | None, list[Finding]]:
    """Return the analysis of a series, if it has one, and its findings."""
    took, sizes = log.took[rows], sizes_of(log, rows)
    topics = ("levels", "start-up", "period")
    if len(took) < MIN_IOS:
        reason = f"{len(took)} {subject}; {MIN_IOS} are needed"
        return None, [undecided(topic, subject, reason, ios=len(took)) for topic in topics]
    if np.ptp(took) == 0:
        reason = "all response times are equal, which no clock measures"
        return None, [undecided(topic, subject, reason, ios=len(took)) for topic in topics]
    analysis = analyse(took)
    levels = (
        undecided("levels", subject, AVERAGES)
        if is_averaged
        else describe_levels(subject, analysis)
    )
    return analysis, [
        levels,
        describe_startup(subject, analysis, took, sizes),
        describe_period(subject, analysis, sizes),
    ]
