"""The execution of jobs on a device, statistics of one job, and the block that may be worn out."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from uflip import _native
from uflip.data.device import DeviceInfo
from uflip.data.summary import OpTimes
from uflip.errors import RefusedError, UsageError
from uflip.microbench.experiment import PlannedRun
from uflip.microbench.open_channel import oc0
from uflip.microbench.open_channel.jobs import SCALES, Block, JobScope, Scale
from uflip.microbench.open_channel.series import ERASE, READ, WRITE, ResponseSeries, mb_per_s
from uflip.native_wait import OnProgress
from uflip.oc.benchmark import times_summary
from uflip.oc.device import FlashDevice

OnStep = Callable[[str, float], None]
"""Called with the name of the current job, and its progress [0 to 1]."""


def _ignore_progress(_text: str, _share: float) -> None:
    """Show no progress."""


@dataclass(frozen=True)
class Session:
    """A device with its scale and sacrificed block; runs jobs and returns their logs."""

    device: FlashDevice
    scale: Scale = SCALES["standard"]
    sacrifice: Block | None = None
    on_step: OnStep = field(default=_ignore_progress)

    @property
    def scope(self) -> JobScope:
        """Return the blocks that the jobs may use."""
        return JobScope(self.device.geometry, self.scale, self.sacrifice)

    def run(self, job: PlannedRun) -> _native.FlashTrace:
        """Execute a job, and return its log."""
        self.on_step(job.id, 0.0)
        trace = execute(self.device, job, lambda done, total, _: self.on_step(job.id, done / total))
        self.on_step(job.id, 1.0)
        return trace


def execute(
    device: FlashDevice, job: PlannedRun, on_progress: OnProgress | None = None
) -> _native.FlashTrace:
    """Execute a planned job, and return its log.

    For `oc0.order` the block is only erased: otherwise the preparation would write the pages before
    the middle of the block, at which that job begins.
    """
    if job.parameter != oc0.FIRST_PAGE:
        return device.run(job.spec, on_progress=on_progress)
    device.command("erase", [(0, 0, 0, 0, 0, 0)])
    return device.run(job.spec, prepare=False, on_progress=on_progress)


def choose_sacrifice(info: DeviceInfo, named: str | None) -> Block:
    """Return the block to wear out.

    On a simulated device the default is the last block; on any other device the user must name one.

    `info`: the device. `named`: CHANNEL:LUN:BLOCK.

    >>> from uflip.oc.device import open_flash_device
    >>> choose_sacrifice(open_flash_device("sim:dfc").info, "0:3:77")
    (0, 3, 77)
    """
    shape = info.geometry
    counts = [shape.channels, shape.luns_per_channel, shape.blocks_per_plane]
    last = ":".join(str(count - 1) for count in counts)
    if named is None:
        if not info.simulated:
            raise RefusedError(
                "Wearing out a block destroys it",
                where=info.url,
                got="no --sacrifice",
                allowed="--sacrifice CHANNEL:LUN:BLOCK",
                action="name the block that may be lost, or omit oc1",
            )
        named = last
    words = named.split(":")
    if len(words) == len(counts) and all(re.fullmatch("[0-9]{1,9}", word) for word in words):
        channel, lun, block = numbers = [int(word) for word in words]
        if all(number < count for number, count in zip(numbers, counts, strict=True)):
            return channel, lun, block
    raise UsageError(
        "The device has no such block",
        where="--sacrifice",
        got=f"'{named}'",
        allowed=f"CHANNEL:LUN:BLOCK from 0:0:0 to {last}",
        action="`uflip info DEVICE` shows the geometry",
    )


def check_unused(device: FlashDevice, scope: JobScope) -> None:
    """Refuse to sacrifice a block that holds data, or that the other micro-benchmarks use."""
    block = scope.sacrifice
    if block is None:
        return
    _, written, retired = device.block_state(*block)
    reason = ""
    if block[2] < scope.blocks < scope.geometry.blocks_per_plane:
        reason = f"the other micro-benchmarks use blocks 0 to {scope.blocks - 1} of every LUN"
    elif written:
        reason = f"{written} pages of it are written"
    elif retired:
        reason = "it is retired already"
    if reason:
        raise RefusedError(
            "The block to sacrifice is in use",
            where="--sacrifice {}:{}:{}".format(*block),
            got=reason,
            allowed="a block that holds nothing",
            action="name another block, or erase it first",
        )


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
    """The statistics of a job."""

    elapsed_ns: int  #: From the first submission to the last completion [ns].
    commands: int  #: Number of commands.
    #: Throughput: reads and writes over the time of all commands, erases included.
    mb_per_s: float
    ios_per_s: float
    commands_per_s: float  #: Rate of all commands, erases included.
    #: Response times; None without such commands.
    reads: OpTimes | None
    writes: OpTimes | None
    erases: OpTimes | None
    failed: int  #: Commands with a failed address.
    failures: dict[str, int]  #: Status -> commands that ended with it.
    first_failure: FailedCommand | None  #: The first failed command.


def job_statistics(trace: _native.FlashTrace, sector_bytes: int) -> JobStatistics:
    """Return the statistics of the log of a job.

    `trace`: the log of a job over pages. `sector_bytes`: sector size of its device [bytes].
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
