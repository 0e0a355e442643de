"""What the four micro-benchmarks share: a device, how much to do, and where logs go."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from uflip import _native
from uflip.device.info import DeviceInfo
from uflip.errors import RefusedError, UsageError
from uflip.oc.device import FlashDevice, Job

Keep = Callable[[str, _native.FlashTrace], None]
"""Takes the name of a job and its log."""

OnStep = Callable[[str, float], None]
"""Called with what is being done, and how much of it is [0 to 1]."""

Block = tuple[int, int, int]
"""Channel, LUN, block."""


@dataclass(frozen=True)
class Scale:
    """How much is done; the device's geometry is a limit.

    Attributes
    ----------
    blocks : int
        Blocks that a job goes over; uFLIP-OC takes 64.
    cycles : int
        Erases of the sacrificed block; uFLIP-OC stopped after 17,000.
    wear_pages : int
        Pages of it that are written and read in each cycle.
    """

    blocks: int
    cycles: int
    wear_pages: int


SCALES = {"standard": Scale(64, 17_000, 1 << 20), "quick": Scale(4, 17_000, 32)}
"""`standard` is the paper's; `quick` takes a few seconds on a simulated device."""


def _nothing(_name: str, _trace: _native.FlashTrace) -> None:
    """Keep no log."""


def _silent(_text: str, _share: float) -> None:
    """Show no progress."""


@dataclass(frozen=True)
class Session:
    """A device and how to go about it."""

    device: FlashDevice
    scale: Scale = SCALES["standard"]
    keep: Keep = field(default=_nothing)
    on_step: OnStep = field(default=_silent)

    @property
    def blocks(self) -> int:
        """Blocks that a job goes over."""
        return min(self.scale.blocks, self.device.geometry["blocks_per_plane"])

    def run(self, name: str, job: Job) -> _native.FlashTrace:
        """Run a job over the first blocks, and keep its log."""
        whole = {"blocks": self.blocks, "pages": self.device.geometry["pages_per_block"]}
        self.on_step(name, 0.0)
        trace = self.device.run(
            whole | job, on_progress=lambda done, total, _: self.on_step(name, done / total)
        )
        self.keep(name, trace)
        return trace


def choose_sacrifice(info: DeviceInfo, geometry: dict[str, int], named: str | None) -> Block:
    """Decide which block is worn out.

    On a simulated device that is the last one if none is named; anything else loses no block that
    nobody named.

    Parameters
    ----------
    info : DeviceInfo
        The device.
    geometry : dict
        Its geometry.
    named : str or None
        CHANNEL:LUN:BLOCK.

    Raises
    ------
    RefusedError
        If none is named for a device that is not simulated.
    UsageError
        If it is no block of the device.

    Examples
    --------
    >>> geometry = {"channels": 8, "luns_per_channel": 4, "blocks_per_plane": 1024}
    >>> choose_sacrifice({"simulated": True, "url": ""}, geometry, "0:3:77")
    (0, 3, 77)
    """
    counts = [geometry[key] for key in ("channels", "luns_per_channel", "blocks_per_plane")]
    last = ":".join(str(count - 1) for count in counts)
    if named is None:
        if not info["simulated"]:
            raise RefusedError(
                "Wearing out a block destroys it",
                where=info["url"],
                got="no --sacrifice",
                allowed="--sacrifice CHANNEL:LUN:BLOCK",
                action="name the block that may be lost, or leave out oc1",
            )
        named = last
    words = named.split(":")
    if len(words) == len(counts) and all(re.fullmatch("[0-9]{1,9}", word) for word in words):
        channel, lun, block = numbers = [int(word) for word in words]
        if all(number < count for number, count in zip(numbers, counts, strict=True)):
            return channel, lun, block
    raise UsageError(
        "This is no block of the device",
        where="--sacrifice",
        got=f"'{named}'",
        allowed=f"CHANNEL:LUN:BLOCK from 0:0:0 to {last}",
        action="`uflip info DEVICE` shows the geometry",
    )


def check_unused(session: Session, block: Block) -> None:
    """Refuse to sacrifice a block that holds data, or that the other micro-benchmarks use.

    Raises
    ------
    RefusedError
        If it is in use.
    """
    _, written, retired = session.device.block_state(*block)
    reason = ""
    if block[2] < session.blocks < session.device.geometry["blocks_per_plane"]:
        reason = f"the other micro-benchmarks use blocks 0 to {session.blocks - 1} of every LUN"
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
