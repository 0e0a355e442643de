"""Device properties: one frozen document, from the native part to every manifest.

The native part creates it (`crates/core/src/device.rs`), results store it, and all code in between
reads its fields. Capabilities are fields too, so that no code tests the kind of a device:

| kind | simulated | real | null | outlives the process | has a state |
|---|---|---|---|---|---|
| `sim` | yes | | | | yes |
| `file`, `block` | | yes | | yes | yes |
| `null` | | | yes | | |

A simulated open-channel device has physical addresses; all others have sectors.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from uflip.data.document import Count, Name, Positive, Seed, Table, Text
from uflip.data.zones import ZoneLimits

OPEN_CHANNEL = "open_channel"
"""Interface of a device whose host places data."""

DeviceKind = Literal["sim", "file", "block", "nbd", "null"]

Narrow = Annotated[int, Meta(ge=1, le=256)]
"""A part of an address; see `uflip.oc.FlashDevice`."""
Wide = Annotated[int, Meta(ge=1, le=1 << 24)]


class Geometry(Struct, frozen=True):
    """The geometry of an open-channel device."""

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
        """Number of sectors that are written together: a page of every plane."""
        return self.planes * self.sectors_per_page

    @property
    def page_bytes(self) -> int:
        """Size of a page of every plane [bytes]."""
        return self.page_sectors * self.sector_bytes


class DeviceWear(Struct, frozen=True):
    """The wear of a device, as far as known.

    Attributes
    ----------
    percentage_used : float or None
        Used share of the rated endurance [%]; above 100 the device is beyond it.
    bytes_written : int or None
        Bytes written by the host so far [bytes].
    endurance_bytes : float or None
        Total bytes that the host may write [bytes].
    bound : str
        Relation between the share of `endurance_bytes` that a plan writes and the share of the
        endurance that it uses: "about", "less than" or "at least".
    unknown : str
        Reason for missing values; empty otherwise.
    available_spare_percent : float or None
        Remaining spare blocks [%].
    temperature_celsius : float or None
        Temperature from the SMART log [°C].
    """

    percentage_used: float | None = None
    bytes_written: Count | None = None
    endurance_bytes: int | float | None = None
    bound: Text = "about"
    unknown: Text = ""
    available_spare_percent: float | None = None
    temperature_celsius: float | None = None

    def share(self, size_bytes: int) -> float | None:
        """Return the share of the rated endurance that these bytes use; None if unknown."""
        return None if self.endurance_bytes is None else size_bytes / self.endurance_bytes


class FlashGeometry(Struct, frozen=True):
    """The geometry in a profile, as far as it is used here."""

    page_bytes: Positive | None = None
    channels: Count = 0
    dies_per_channel: Count = 0
    blocks_per_die: Count = 0
    pages_per_block: Count = 0


class Mapping(Struct, frozen=True):
    """The mapping of host addresses in a profile."""

    mapping_unit_bytes: Positive | None = None


class ProfileState(Struct, frozen=True):
    """The initial state of a simulated device."""

    state: Text = ""
    seed: Seed = 1
    random_overwrites: float = 0.0


class Reliability(Struct, frozen=True):
    """The rated erases of a block."""

    rated_cycles: Positive


class RecoveryOptions(Struct, frozen=True):
    """The earlier erases of a block."""

    cycles_before: Count | None = None


class Controller(Struct, frozen=True):
    """Completion of writes on an open-channel device: before or after programming."""

    write_back: bool | None = None


class Profile(Struct, frozen=True):
    """The used part of a simulated device's profile; its keys are in `docs/reference`."""

    description: str = ""
    geometry: FlashGeometry = FlashGeometry()
    ftl: Mapping = Mapping()
    state: ProfileState = ProfileState()
    reliability: Reliability | None = None
    recovery: RecoveryOptions | None = None
    controller: Controller = Controller()


class DeviceDetails(Struct, frozen=True, omit_defaults=True):
    """Properties that only some devices have; None for the others.

    `profile` and `history` belong to simulated devices; the profile has all of its keys.
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
    """The properties of a device before any I/O.

    Attributes
    ----------
    url : str
        Its name.
    kind : str
        "sim", "file", "block", "nbd" or "null".
    simulated : bool
        Whether a simulator answers: time is virtual, and every I/O has its causes.
    model, serial, firmware : str
        From the device, or its profile; empty if missing.
    capacity_bytes, sector_bytes : int
        Addressable size, and the unit of offsets and sizes [bytes].
    clock : str
        "virtual" or "monotonic".
    io, data : str
        The kind of I/O, and the written data: "random", "zeros" or "none".
    details : DeviceDetails
        Properties of some devices.
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
            raise ValueError(f"a device of kind {self.kind} with simulated = {self.simulated}")
        if self.addresses == "physical" and self.details.geometry is None:
            raise ValueError("an open-channel device without geometry")
        if self.details.profile is not None:
            msgspec.convert(self.details.profile, Profile)

    @property
    def real(self) -> bool:
        """Hardware answers, or a file on it: time is the host's, and other load may disturb."""
        return self.kind in ("file", "block", "nbd")

    @property
    def null(self) -> bool:
        """It answers at once: the harness is measured."""
        return self.kind == "null"

    @property
    def outlives_process(self) -> bool:
        """It persists after the process: its state is recorded, its medium may be exchanged."""
        # An NBD export has no persistent identity.
        return self.real and self.kind != "nbd"

    @property
    def deepest_queue(self) -> int:
        """Deepest queue of one process (`crates/engine/src/spec.rs`)."""
        return 1 if self.kind == "nbd" else 1024

    @property
    def has_state(self) -> bool:
        """Earlier writes affect its response times: a state can be enforced."""
        return self.real or self.simulated

    @property
    def addresses(self) -> Literal["sectors", "physical"]:
        """Sectors; or physical addresses, if the host places data."""
        return "physical" if self.details.interface == OPEN_CHANNEL else "sectors"

    @property
    def zoned(self) -> bool:
        """Whether it is written in zones, each sequentially and reset as a whole."""
        return self.details.zones is not None

    @property
    def buffered(self) -> bool:
        """Whether its I/Os go through the page cache of the host."""
        return "buffered" in self.io

    @property
    def completion(self) -> str:
        """How completions of queued I/Os are detected: "polled" or "interrupt"."""
        return self.details.completion or "interrupt"

    @property
    def geometry(self) -> Geometry:
        """The geometry of a device with physical addresses."""
        assert self.details.geometry is not None, "it has physical addresses"
        return self.details.geometry

    @property
    def profile_table(self) -> Table:
        """The profile of a simulated device, every key; empty for any other device."""
        return self.details.profile or {}

    @property
    def profile(self) -> Profile:
        """The used part of the profile."""
        return msgspec.convert(self.profile_table, Profile)

    @property
    def page_bytes(self) -> int | None:
        """Unit of the counters [bytes]: a flash page or a smaller unit; None if unknown."""
        return self.profile.ftl.mapping_unit_bytes or self.profile.geometry.page_bytes


def read_info(text: str, **changes: Any) -> DeviceInfo:
    """Read the properties of a device from the native part.

    Parameters
    ----------
    text : str
        JSON.
    **changes
        Fields to replace.

    Examples
    --------
    >>> text = '{"url": "null", "kind": "null", "simulated": false, "capacity_bytes": 4096, '
    >>> read_info(text + '"sector_bytes": 512}').outlives_process
    False
    """
    return msgspec.structs.replace(msgspec.json.decode(text, type=DeviceInfo), **changes)


def with_details(info: DeviceInfo, **details: Any) -> DeviceInfo:
    """Return a device with more details."""
    merged = msgspec.structs.replace(info.details, **details)
    return msgspec.structs.replace(info, details=merged)
