"""The statistics of one job over physical addresses, as FOX prints them."""

from dataclasses import dataclass

import numpy as np

from uflip import _native
from uflip.data.open_channel import OpTimes
from uflip.microbench.open_channel.series import ERASE, READ, WRITE, ResponseSeries, mb_per_s
from uflip.oc.benchmark import times_summary

OPERATIONS = ("read", "write", "erase")
"""Names of the numbers in the column `op`."""


@dataclass(frozen=True)
class FailedCommand:
    """A failed command: time, address, thread, number of addresses, and status."""

    thread: int
    submit_ns: int
    op: str
    channel: int
    lun: int
    block: int
    page: int
    failed: int
    status: str


@dataclass(frozen=True)
class JobStatistics:
    """The statistics of a job.

    Attributes
    ----------
    elapsed_ns : int
        From the first submission to the last completion [ns].
    commands : int
        Number of commands.
    mb_per_s, ios_per_s : float
        Throughput: reads and writes over the time of all commands, erases included.
    commands_per_s : float
        Rate of all commands, erases included.
    reads, writes, erases : OpTimes or None
        Response times; None without such commands.
    failed : int
        Commands with a failed address.
    failures : dict
        Status -> commands that ended with it.
    first_failure : FailedCommand or None
        The first failed command.
    """

    elapsed_ns: int
    commands: int
    mb_per_s: float
    ios_per_s: float
    commands_per_s: float
    reads: OpTimes | None
    writes: OpTimes | None
    erases: OpTimes | None
    failed: int
    failures: dict[str, int]
    first_failure: FailedCommand | None


def job_statistics(trace: _native.FlashTrace, sector_bytes: int) -> JobStatistics:
    """Return the statistics of the log of a job.

    Parameters
    ----------
    trace : FlashTrace
        The log of a job over pages.
    sector_bytes : int
        Sector size of its device [bytes].
    """
    series = ResponseSeries.from_trace(trace)
    numbers = np.asarray(trace.column("status"))
    names, counts = np.unique(numbers[numbers > 0], return_counts=True)
    failures = {trace.statuses[n]: int(c) for n, c in zip(names, counts, strict=True)}
    return JobStatistics(
        elapsed_ns=trace.elapsed_ns(),
        commands=len(trace),
        mb_per_s=mb_per_s(trace, sector_bytes),
        ios_per_s=int(np.count_nonzero(series.op != ERASE)) / trace.elapsed_ns() * 1e9,
        commands_per_s=len(trace) / trace.elapsed_ns() * 1e9,
        reads=times_summary(series, READ),
        writes=times_summary(series, WRITE),
        erases=times_summary(series, ERASE),
        failed=series.failed,
        failures=failures,
        first_failure=_first_failure(trace) if failures else None,
    )


def _first_failure(trace: _native.FlashTrace) -> FailedCommand:
    """Return the first failed command."""
    failed = np.flatnonzero(np.asarray(trace.column("failed")))
    row = int(failed[np.argmin(np.asarray(trace.column("submit_ns"))[failed])])

    def value(name: str) -> int:
        return int(np.asarray(trace.column(name))[row])

    return FailedCommand(
        thread=value("thread"),
        submit_ns=value("submit_ns"),
        op=OPERATIONS[value("op")],
        channel=value("channel"),
        lun=value("lun"),
        block=value("block"),
        page=value("page"),
        failed=value("failed"),
        status=trace.statuses[value("status")],
    )
