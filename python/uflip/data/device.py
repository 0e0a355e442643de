"""Device properties: one frozen document, from the native part to every manifest.

The native part creates it (`crates/core/src/device.rs`), results store it, and all code in between
reads its fields. Capabilities are fields too, so that no code tests the kind of a device:

| kind | simulated | real | null | outlives the process | has a state |
|---|---|---|---|---|---|
| `sim` | yes | | | | yes |
| `file`, `block` | | yes | | yes | yes |
| `null` | | | yes | | |

A simulated open-channel device has physical addresses; all others have sectors.

The twin of a device has errors: how far its predictions are from the device, measured on patterns.
`uflip infer` writes the profile of a twin with a table `[twin_errors]`, and `uflip infer --check`
fills it. Simulated devices carry the table, so that each prediction can show it.
"""

from collections import Counter
from statistics import median
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import msgspec
from msgspec import Meta, Struct

from uflip.data.document import Count, DeviceUrl, Positive, Seed, Table, Text


class TwinPattern(Struct, frozen=True):
    """The error of a twin on a pattern that no probe uses: the twin's over the device's, - 1."""

    pattern: Text  #: The pattern.
    #: Of the mean response time, and of its 99th percentile.
    mean_error: float
    p99_error: float


class TwinErrors(Struct, frozen=True):
    """The errors of a twin."""

    device: DeviceUrl  #: The device that the twin represents.
    patterns: tuple[TwinPattern, ...] = ()  #: Empty: the error is unknown.


def twin_text(errors: TwinErrors) -> str:
    """Return the error of a twin as a sentence.

    Examples
    --------
    >>> twin_text(TwinErrors("sim:demo"))
    'a twin of sim:demo; its error is unknown'
    >>> twin_text(TwinErrors("sim:demo", (TwinPattern("random writes", -0.02, 0.1),)))
    'a twin of sim:demo; its error on 1 pattern that no probe used: mean 2.0 % (at most 2.0 %), \
p99 10.0 % (at most 10.0 %)'
    """
    if not errors.patterns:
        return f"a twin of {errors.device}; its error is unknown"
    numbers = twin_numbers(errors)
    parts = ", ".join(
        f"{name} {100 * numbers[f'{name}_error']:.1f} % "
        f"(at most {100 * numbers[f'largest_{name}_error']:.1f} %)"
        for name in ("mean", "p99")
    )
    count = len(errors.patterns)
    patterns = f"{count} pattern{'s' if count > 1 else ''} that no probe used"
    return f"a twin of {errors.device}; its error on {patterns}: {parts}"


def twin_numbers(errors: TwinErrors) -> dict[str, float]:
    """Return the median and the largest error of mean and p99; empty if they are unknown."""
    if not errors.patterns:
        return {}
    values = {
        "mean": [abs(one.mean_error) for one in errors.patterns],
        "p99": [abs(one.p99_error) for one in errors.patterns],
    }
    medians = {f"{name}_error": median(each) for name, each in values.items()}
    return medians | {f"largest_{name}_error": max(each) for name, each in values.items()}


def twin_advice(errors: TwinErrors) -> str:
    """Return what a reader of a prediction should do."""
    if errors.patterns:
        return "expect errors of this size in these numbers; confirm decisions on the device"
    return f"measure it: uflip infer --check {errors.device} TWIN.toml"


# The zones of a device.


ZoneState = Literal[
    "conventional",
    "empty",
    "implicitly_open",
    "explicitly_open",
    "closed",
    "read_only",
    "full",
    "offline",
]


class ZoneLimits(Struct, frozen=True, kw_only=True):
    """The zone limits of a device; known before it is opened."""

    zone_bytes: Positive  #: Distance between the begins of two zones [bytes].
    zone_count: Count  #: Number of zones.
    #: Capacity of each zone, if it is known and the same for all [bytes].
    zone_capacity_bytes: Positive | None = None
    #: Limits of open zones, and of open or closed ones; 0: no limit.
    max_open_zones: Count = 0
    max_active_zones: Count = 0


class Zone(Struct, frozen=True):
    """One zone."""

    #: Begin, end of capacity relative to it, and write pointer, in addresses of the device [bytes].
    start_bytes: Count
    capacity_bytes: Count
    write_pointer_bytes: Count
    state: ZoneState  #: One of `ZoneState`.
    resets: Count | None = None  #: Number of resets; None if unknown.

    @property
    def written_bytes(self) -> int:
        """Written or finished part of it [bytes]."""
        return self.write_pointer_bytes - self.start_bytes


class ZoneReport(Struct, frozen=True):
    """All zones of a device, and their limits."""

    #: As in `ZoneLimits`.
    zone_bytes: Positive
    max_open_zones: Count
    max_active_zones: Count
    zones: tuple[Zone, ...]  #: The zones, in order.

    @property
    def states(self) -> dict[str, int]:
        """Number of zones in each state that occurs."""
        return dict(Counter(zone.state for zone in self.zones))

    @property
    def resets(self) -> int | None:
        """Total number of zone resets; None if unknown."""
        each = [zone.resets for zone in self.zones]
        return None if None in each else sum(one or 0 for one in each)


def read_zones(text: str) -> ZoneReport:
    """Read the zones of a device from the native part."""
    return msgspec.json.decode(text, type=ZoneReport)


OPEN_CHANNEL = "open_channel"
"""Interface of a device whose host places data."""

DeviceKind = Literal["sim", "file", "block", "nvme", "nbd", "null"]

DEEPEST_QUEUE = 1024
"""Largest queue depth of one process (`crates/engine/src/spec.rs`)."""

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
    """The wear of a device, as far as known."""

    #: Used share of the rated endurance [%]; above 100 the device is beyond it.
    percentage_used: float | None = None
    bytes_written: Count | None = None  #: Bytes written by the host so far [bytes].
    endurance_bytes: int | float | None = None  #: Total bytes that the host may write [bytes].
    #: Relation between the share of `endurance_bytes` that a plan writes and the share of the
    #: endurance that it uses: "about", "less than" or "at least".
    bound: Text = "about"
    unknown: Text = ""  #: Reason for missing values; empty otherwise.
    available_spare_percent: float | None = None  #: Remaining spare blocks [%].
    temperature_celsius: float | None = None  #: Temperature from the SMART log [°C].

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


class NvmeNamespace(Struct, frozen=True, omit_defaults=True):
    """A namespace of an NVMe drive, as its commands see it."""

    nsid: Count  #: Its number on the drive.
    #: The largest command, by the drive and the kernel; longer I/Os are sent in pieces [bytes].
    command_bytes_max: Positive
    append_bytes_max: Count = 0  #: The largest zone append [bytes]; 0 without zones.
    #: Number of placement handles (Flexible Data Placement); 0 without them.
    placement_handles: Count = 0


class DeviceDetails(Struct, frozen=True, omit_defaults=True):
    """Properties that only some devices have; None for the others.

    `profile` and `history` belong to simulated devices; the profile has all of its keys. A twin has
    its errors in `twin`.
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
    namespace: NvmeNamespace | None = None
    physical_block_size: Text | None = None
    profile: Table | None = None
    rotational: Text | None = None
    scheduler: Text | None = None
    snapshot: Text | None = None
    write_cache: Text | None = None
    to_be_written_bytes: Count | None = None
    twin: TwinErrors | None = None
    wear: DeviceWear | None = None
    zones: ZoneLimits | None = None


class DeviceInfo(Struct, frozen=True, kw_only=True):
    """The properties of a device before any I/O."""

    url: DeviceUrl  #: Its name.
    kind: DeviceKind  #: "sim", "file", "block", "nvme", "nbd" or "null".
    simulated: bool  #: Whether a simulator answers: time is virtual, and every I/O has its causes.
    #: From the device, or its profile; empty if missing.
    model: Text = ""
    serial: Text = ""
    firmware: Text = ""
    #: Addressable size, and the unit of offsets and sizes [bytes].
    capacity_bytes: Count
    sector_bytes: Positive
    clock: Text = ""  #: "virtual" or "monotonic".
    #: The kind of I/O, and the written data: "random", "zeros" or "none".
    io: Text = ""
    data: Text = ""
    details: DeviceDetails = DeviceDetails()  #: Properties of some devices.

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
        return self.kind in ("file", "block", "nvme", "nbd")

    @property
    def is_disk(self) -> bool:
        """A block device of this machine, by its kernel interface or by commands of the drive."""
        return self.kind in ("block", "nvme")

    @property
    def appends(self) -> bool:
        """Whether zone append is possible: Linux has no system call for it on block devices."""
        return self.zoned and self.kind != "block"

    @property
    def write_streams(self) -> int:
        """Number of write streams that the host can name; 1 if there is nothing to choose."""
        if self.details.namespace is not None:
            return max(self.details.namespace.placement_handles, 1)
        table = self.profile_table
        streams = table.get("ftl", {}).get("write_streams", 1)
        return 1 if "hot_cold" in table else int(streams)

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


# A power loss of a simulated device: lost data, and recovery (`crates/sim/src/device/`).


class Cut(Struct, frozen=True):
    """The losses at the moment of the power cut."""

    at_ns: Count
    """Time on the clock of the device [ns]."""
    ios_under_way: Count
    """I/Os that were not completed to the host."""
    pages_in_cache: Count
    """Pages in the write cache that were not in flash; capacitors save them."""
    pages_torn: Count
    """Flash pages that were being programmed, and cannot be read."""
    pages_not_begun: Count
    """Flash pages that waited for their die before programming."""
    blocks_half_erased: Count
    """Blocks that were being erased, and have to be erased again."""
    pages_lost: Count
    """Host pages whose newest version on the device is not in flash."""
    pages_come_back: Count
    """Deallocated pages that can be read again."""


class RecoveryReport(Struct, frozen=True):
    """The recovery of the map, and its duration."""

    began_ns: Count
    """Return of power [ns]."""
    ready_ns: Count
    """Time when the device accepts I/Os again [ns]."""
    reading_ns: Count
    """Time for reading spare areas and metadata pages [ns]."""
    erasing_ns: Count
    """Time for erasing half-erased blocks, and for listing those that failed [ns]."""
    merging_ns: Count
    """Time for finishing interrupted merges, and for erasing unused blocks [ns]."""
    putting_back_ns: Count
    """Time for writing data that capacitors had saved [ns]."""
    spare_areas_read: Count
    metadata_pages_read: Count
    """Pages with the content of their block, and lists of unusable blocks."""
    blocks_erased: Count
    pages_merged: Count
    """Pages copied by these merges."""
    blocks_dropped: Count
    """Unused blocks that were erased."""
    pages_put_back: Count
    pages_found: Count
    """Host pages with data."""

    @property
    def took_ns(self) -> int:
        """Time from power to ready [ns]."""
        return self.ready_ns - self.began_ns


class PowerLoss(Struct, frozen=True):
    """A power loss from beginning to end."""

    ios_completed: Count
    """I/Os that were completed to the host before."""
    cut: Cut
    recovery: RecoveryReport


def read_power_loss(text: str) -> PowerLoss:
    """Read a power loss from the native part."""
    return msgspec.json.decode(text, type=PowerLoss)


# Reports about available devices (`uflip devices --json`), and about served ones (`uflip serve
# --json`): plain data. Sizes are in bytes.


Identity = dict[str, str | int]
"""The identity of a device, to compare two descriptions: fields by name."""


class BlockReport(TypedDict):
    """The user of a block device ("" if free), its content, and the token for --destroy."""

    in_use: Text
    holds: list[Text]
    token: Text


class KnownDevice(TypedDict):
    """An available device; `capacity_bytes` not for null, the fields after it for block devices."""

    url: Text
    kind: Text
    description: Text
    verb: NotRequired[Text]
    capacity_bytes: NotRequired[Count]
    model: NotRequired[Text]
    serial: NotRequired[Text]
    in_use: NotRequired[Text]
    holds: NotRequired[list[Text]]
    token: NotRequired[Text]


class Quantiles(TypedDict):
    """Quantiles of durations [ns], null without any; `span_ns`: length of the last interval."""

    count: Count
    mean_ns: Count | None
    p50_ns: Count | None
    p90_ns: Count | None
    p99_ns: Count | None
    p999_ns: Count | None
    max_ns: Count | None
    span_ns: NotRequired[Count]


class ServedExport(TypedDict):
    """Statistics of a served device: `simulated` is its own latency, `lag` that of the host."""

    name: Text
    reads: Count
    writes: Count
    flushes: Count
    trims: Count
    write_zeroes: Count
    failed: Count
    bytes_read: Count
    bytes_written: Count
    bytes_zeroed: Count
    response_time: Quantiles
    simulated: Quantiles
    lag: Quantiles
    recent: Quantiles
    held_ns: Count
    counters: dict[str, Count] | None
    flash: NotRequired[dict[str, Count]]


class ServerClients(TypedDict):
    """Clients of a server: now, since it began, and rejected because of the limit."""

    now: Count
    in_all: Count
    turned_away: Count


class ServedDocument(TypedDict):
    """The statistics of `uflip serve`."""

    elapsed_ns: Count
    clients: ServerClients
    exports: list[ServedExport]
    twins: NotRequired[dict[str, TwinErrors]]
