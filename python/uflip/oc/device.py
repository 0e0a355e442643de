"""An open-channel device: executes jobs over physical addresses, and returns their logs."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from uflip import _native
from uflip.data.device import DeviceInfo, Geometry
from uflip.data.spec import Job, JobTotals, Spec, text_of
from uflip.device.handle import Saved
from uflip.device.opener import inspect_sim, open_flash
from uflip.device.url import parse_url
from uflip.errors import InterruptedRun, UsageError, native_errors
from uflip.native_wait import OnProgress, run_native

Address = tuple[int, int, int, int, int, int]
"""Channel, LUN, block, plane, page, sector."""


class ResolvedJob(NamedTuple):
    """A job with every default filled in, and its totals."""

    job: Job
    totals: JobTotals


class FlashDevice(Saved):
    """An open open-channel device: runs jobs one after another, and keeps its state between them.

    Made by `open_flash_device`.
    """

    def __init__(self, native: _native.FlashDevice, info: DeviceInfo) -> None:
        self._native = native
        self.url = info.url
        self.info = info
        """The description of the device."""
        self.looks_inside = False  # whether each job records the device's internal operations

    def _opened(self) -> _native.FlashDevice:
        return self._native

    @property
    def geometry(self) -> Geometry:
        """Return the numbers of channels, LUNs, blocks, ..."""
        return self.info.geometry

    @property
    def page_bytes(self) -> int:
        """Return the unit of writes [bytes]."""
        return self.geometry.page_bytes

    def resolve(self, job: Spec) -> ResolvedJob:
        """Check a job and fill in the defaults, without any I/O.

        >>> open_flash_device("sim:dfc").resolve(Job(pages=8)).totals.pages_read
        8
        """
        with native_errors():
            text = self._native.resolve(text_of(job))
        content = msgspec.json.decode(text)
        totals = msgspec.convert(content.pop("totals"), JobTotals)
        return ResolvedJob(msgspec.convert(content, Job), totals)

    def run(
        self,
        job: Spec,
        *,
        prepare: bool = True,
        verify: bool = False,
        on_progress: OnProgress | None = None,
    ) -> _native.FlashTrace:
        """Execute a job and return its log: every command, or every cycle of a wear job.

        `prepare`: before the job, erase the blocks that it writes, and write the pages that it only
        reads; the log has neither. `verify`: compare the data of reads with what was written;
        different data is the status "mismatch". `on_progress`: called about ten times a second with
        (done, total, last_response_ns).
        """
        try:
            text, inside = text_of(job), self.looks_inside
            return run_native(
                lambda: self._native.start(text, prepare, inside, verify), on_progress
            )
        except KeyboardInterrupt:
            raise InterruptedRun(
                "The job was interrupted", where=self.url, action="start it again"
            ) from None

    def command(self, op: str, addresses: Sequence[Address]) -> tuple[int, list[str]]:
        """Execute one vector command, and wait for it.

        Returns the response time [ns], and the status of every address by name.

        >>> open_flash_device("sim:dfc").command("read", [(0, 0, 5, 0, 0, 0)])[1]
        ['unwritten']
        """
        with native_errors():
            return self._native.command(op, [_clamp_address(address) for address in addresses])

    def block_state(self, channel: int, lun: int, block: int) -> tuple[int, int, bool]:
        """Return erases, pages written, and whether it is retired."""
        with native_errors():
            channel, lun, block, *_ = _clamp_address((channel, lun, block, 0, 0, 0))
            return self._native.block_state(channel, lun, block)


def _clamp_address(address: Address) -> Address:
    """Return an address whose numbers fit 64 bits; larger ones are outside of every device."""
    channel, lun, block, plane, page, sector = (min(max(n, -1), 1 << 62) for n in address)
    return channel, lun, block, plane, page, sector


def open_flash_device(url: str) -> FlashDevice:
    """Open an open-channel device.

    `url`: `sim:NAME` with a profile of an open-channel device, with or without overrides; or
    `sim:FILE.snapshot`, written by `FlashDevice.save`.

    >>> open_flash_device("sim:dfc").page_bytes
    32768
    """
    target = parse_url(url)
    if target.kind != "sim":
        raise UsageError(
            "Only simulated open-channel devices can be opened",
            where="DEVICE",
            got=url,
            allowed="sim:dfc, or a profile of your own",
            action="Linux has removed LightNVM; use a simulated device",
        )
    return FlashDevice(open_flash(target), inspect_sim(target, any_interface=True))
