"""What is known about a device: one frozen document, from the native part to every manifest.

The native part says it (`crates/core/src/device.rs`), results keep it, and everything in between
asks its fields. What a device can is a field too, so that nobody asks what kind of device it is:

| kind | simulated | real | null | outlives the process | has a state |
|---|---|---|---|---|---|
| `sim` | yes | | | | yes |
| `file`, `block` | | yes | | yes | yes |
| `null` | | | yes | | |

A simulated device whose host places data itself has physical addresses; all others have sectors.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from uflip.data.document import Count, Name, Positive, Seed, Table, Text
from uflip.data.zones import ZoneLimits

OPEN_CHANNEL = "open_channel"
"""Interface of a device whose host places data itself."""

DeviceKind = Literal["sim", "file", "block", "nbd", "null"]

Narrow = Annotated[int, Meta(ge=1, le=256)]
"""Of an address; see `uflip.oc.FlashDevice`."""
Wide = Annotated[int, Meta(ge=1, le=1 << 24)]


class Geometry(Struct, frozen=True):
    """How many of what an open-channel device has."""

    channels: Narrow
    luns_per_channel: Narrow
    planes: Narrow
    blocks_per_plane: Wide
    pages_per_block: Wide
    sectors_per_page: Narrow
    sector_bytes: Wide
    vector_max: Narrow

    def __post_init__(self) -> None:
        if self.vector_max < self.page_sectors:
            raise ValueError("a vector that holds no page of all planes")

    @property
    def page_sectors(self) -> int:
        """Sectors that are written together: a page of every plane."""
        return self.planes * self.sectors_per_page

    @property
    def page_bytes(self) -> int:
        """What is written together [bytes]."""
        return self.page_sectors * self.sector_bytes


class DeviceWear(Struct, frozen=True):
    """What is known about the wear of a device.

    Attributes
    ----------
    percentage_used : float or None
        Of the rated endurance [%]; beyond 100 the device has outlived it.
    bytes_written : int or None
        By the host, until now [bytes].
    endurance_bytes : float or None
        What the host may write in all [bytes].
    bound : str
        What the share of `endurance_bytes` that a plan writes is of the share of the endurance
        that it uses up: "about", "less than" or "at least".
    unknown : str
        Why nothing is known; empty where something is.
    available_spare_percent : float or None
        What is left of the blocks that stand in for failed ones [%].
    temperature_celsius : float or None
        What the device says of its own [°C].
    """

    percentage_used: float | None = None
    bytes_written: Count | None = None
    endurance_bytes: int | float | None = None
    bound: Text = "about"
    unknown: Text = ""
    available_spare_percent: float | None = None
    temperature_celsius: float | None = None

    def share(self, size_bytes: int) -> float | None:
        """Return the share of the rated endurance that so many bytes use up; None if unknown."""
        return None if self.endurance_bytes is None else size_bytes / self.endurance_bytes


class FlashGeometry(Struct, frozen=True):
    """Of a profile, as far as it is read here."""

    page_bytes: Positive | None = None
    channels: Count = 0
    dies_per_channel: Count = 0
    blocks_per_die: Count = 0
    pages_per_block: Count = 0


class Mapping(Struct, frozen=True):
    """How a profile maps what the host addresses."""

    mapping_unit_bytes: Positive | None = None


class ProfileState(Struct, frozen=True):
    """The state in which a simulated device is made."""

    state: Text = ""
    seed: Seed = 1
    random_overwrites: float = 0.0


class Reliability(Struct, frozen=True):
    """How many erases a block is rated for."""

    rated_cycles: Positive


class RecoveryOptions(Struct, frozen=True):
    """How many of them a block had before."""

    cycles_before: Count | None = None


class Controller(Struct, frozen=True):
    """When the controller of an open-channel device answers a write: before it is programmed."""

    write_back: bool | None = None


class Profile(Struct, frozen=True):
    """What is read of the profile of a simulated device; its keys are in `docs/reference`."""

    description: str = ""
    geometry: FlashGeometry = FlashGeometry()
    ftl: Mapping = Mapping()
    state: ProfileState = ProfileState()
    reliability: Reliability | None = None
    recovery: RecoveryOptions | None = None
    controller: Controller = Controller()


class DeviceDetails(Struct, frozen=True, omit_defaults=True):
    """What only some devices say of themselves; None where this one does not.

    `profile` and `history` are those of a simulated device, the profile with all of its keys.
    """

    allocated_bytes: Count | None = None
    backing_file: Text | None = None
    boot_id: Text | None = None
    deallocates: bool = True
    brand: Text | None = None
    brand_is_new: bool = False
    completion: Literal["polled"] | None = None
    direct_io_alignment_bytes: Positive | None = None
    discard_granularity: Text | None = None
    diskseq: Text | None = None
    file_system: Text | None = None
    file_system_device: int | None = None
    flash_bytes: Count | None = None
    geometry: Geometry | None = None
    history: Table | None = None
    inode: int | None = None
    interface: Text | None = None
    physical_block_size: Text | None = None
    profile: Table | None = None
    rotational: Text | None = None
    scheduler: Text | None = None
    snapshot: Text | None = None
    write_cache: Text | None = None
    to_be_written_bytes: Count | None = None
    wear: DeviceWear | None = None
    zones: ZoneLimits | None = None


class DeviceInfo(Struct, frozen=True, kw_only=True):
    """What is known about a device before any I/O.

    Attributes
    ----------
    url : str
        How it was named.
    kind : str
        "sim", "file", "block", "nbd" or "null".
    simulated : bool
        A simulator answers: time is virtual, and every I/O has its causes.
    model, serial, firmware : str
        As the device, or its profile, gives them; empty where there is none.
    capacity_bytes, sector_bytes : int
        Addressable size, and what offsets and sizes are multiples of [bytes].
    clock : str
        "virtual" or "monotonic".
    io, data : str
        How I/Os are made, and what is written: "random", "zeros" or "none".
    details : Details
        What only some devices say.
    """

    url: Name
    kind: DeviceKind
    simulated: bool
    model: Text = ""
    serial: Text = ""
    firmware: Text = ""
    capacity_bytes: Count
    sector_bytes: Positive
    clock: Text = ""
    io: Text = ""
    data: Text = ""
    details: DeviceDetails = DeviceDetails()

    def __post_init__(self) -> None:
        if self.simulated != (self.kind == "sim"):
            raise ValueError(f"a device of kind {self.kind} that says simulated = {self.simulated}")
        if self.addresses == "physical" and self.details.geometry is None:
            raise ValueError("an open-channel device without geometry")
        if self.details.profile is not None:
            msgspec.convert(self.details.profile, Profile)

    @property
    def real(self) -> bool:
        """Hardware answers, or a file on it: time is the host's, and others may disturb."""
        return self.kind in ("file", "block", "nbd")

    @property
    def null(self) -> bool:
        """It answers at once: what is measured is the harness."""
        return self.kind == "null"

    @property
    def outlives_process(self) -> bool:
        """It is there when the process is gone: its state is noted, its medium may be exchanged."""
        # An NBD export has no name of its own by which it would be known again.
        return self.real and self.kind != "nbd"

    @property
    def deepest_queue(self) -> int:
        """How many I/Os of one process it takes at a time (`crates/engine/src/spec.rs`)."""
        return 1 if self.kind == "nbd" else 1024

    @property
    def has_state(self) -> bool:
        """What was written decides what it takes: a state can be enforced."""
        return self.real or self.simulated

    @property
    def addresses(self) -> Literal["sectors", "physical"]:
        """Sectors; or physical ones, where the host places data."""
        return "physical" if self.details.interface == OPEN_CHANNEL else "sectors"

    @property
    def zoned(self) -> bool:
        """Whether it is written in zones, each in order and reset as a whole."""
        return self.details.zones is not None

    @property
    def buffered(self) -> bool:
        """Whether its I/Os go through the page cache of the host."""
        return "buffered" in self.io

    @property
    def completion(self) -> str:
        """How the end of an I/O in a queue is learned of: "polled" or "interrupt"."""
        return self.details.completion or "interrupt"

    @property
    def geometry(self) -> Geometry:
        """How many of what a device with physical addresses has."""
        assert self.details.geometry is not None, "it has physical addresses"
        return self.details.geometry

    @property
    def profile_table(self) -> Table:
        """What a simulated device was made of, every key; of any other device nothing."""
        return self.details.profile or {}

    @property
    def profile(self) -> Profile:
        """What is read of it."""
        return msgspec.convert(self.profile_table, Profile)

    @property
    def page_bytes(self) -> int | None:
        """What counters count in [bytes]: a flash page or smaller unit; None where unknown."""
        return self.profile.ftl.mapping_unit_bytes or self.profile.geometry.page_bytes


def read_info(text: str, **changes: Any) -> DeviceInfo:
    """Read what the native part says of a device.

    Parameters
    ----------
    text : str
        JSON.
    **changes
        Fields that are known better here.

    Examples
    --------
    >>> text = '{"url": "null", "kind": "null", "simulated": false, "capacity_bytes": 4096, '
    >>> read_info(text + '"sector_bytes": 512}').outlives_process
    False
    """
    return msgspec.structs.replace(msgspec.json.decode(text, type=DeviceInfo), **changes)


def with_details(info: DeviceInfo, **details: Any) -> DeviceInfo:
    """Return a device with more details."""
    found = msgspec.structs.replace(info.details, **details)
    return msgspec.structs.replace(info, details=found)
