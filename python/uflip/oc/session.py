"""The execution of jobs on a device, and the block that may be worn out."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from uflip import _native
from uflip.data.device import DeviceInfo
from uflip.errors import RefusedError, UsageError
from uflip.experiment import PlannedRun
from uflip.microbench.open_channel import oc0
from uflip.microbench.open_channel.jobs import SCALES, Block, JobScope, Scale
from uflip.native_wait import OnProgress
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

    Parameters
    ----------
    info : DeviceInfo
        The device.
    named : str or None
        CHANNEL:LUN:BLOCK.

    Raises
    ------
    RefusedError
        If no block is named for a device that is not simulated.
    UsageError
        If the device has no such block.

    Examples
    --------
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
    """Refuse to sacrifice a block that holds data, or that the other micro-benchmarks use.

    Parameters
    ----------
    device : FlashDevice
        The device before the first job.
    scope : JobScope
        The blocks that the jobs may use.

    Raises
    ------
    RefusedError
        If the block is in use.
    """
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
