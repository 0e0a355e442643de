"""The cost of I/Os before the first measurement: their time, by assumption, and their wear.

**Source**: uFLIP (CIDR 2009) §4.2 asks what a benchmark costs before it is run; wear as reported by
the device (`uflip.device.counters`): used endurance, and bytes written by the host.
**Faithful**: a device's own figures, read when the plan is made.
**Simplified**: the writes of the plan are assumed to wear the device like all earlier writes.
**Ambiguous**: a percentage is a whole number. At 0 only an upper bound follows. A simulated device
has rated erases; the number of erases per write depends on its write amplification, so that the
result for 1 is a lower bound.
"""

from dataclasses import dataclass

import msgspec

from uflip.data.counters import HOST_BYTES, DriveCounters
from uflip.data.device import DeviceInfo, DeviceWear, Profile
from uflip.device.counters import CounterReader
from uflip.units import format_duration_ns, format_size

BOUNDS = ("about", "less than", "at least")


@dataclass(frozen=True)
class Cost:
    """Assumed cost of an I/O, on the wall clock."""

    read_ns: float
    write_ns: float
    ns_per_byte: float
    written_ns_per_byte: float | None = None
    """Cost of a written byte, where it differs from that of a byte that is read."""
    pauses: bool = True
    """Whether pauses take time: in virtual time they do not."""
    state_ns_per_byte: float = 0.0
    """Cost of enforcing a state per byte, where it differs from that of other writes."""
    filled_ns_per_byte: float | None = None
    """Cost of a byte that is written in sequence, where it differs."""
    overlaps: bool = False
    """Whether the I/Os of a queue share the time of a single one, and writes take either their time
    or that of their bytes."""
    run_ns: float = 0.0
    """Overhead of a run beside its I/Os."""

    @property
    def _written_ns_per_byte(self) -> float:
        written = self.written_ns_per_byte
        return self.ns_per_byte if written is None else written

    @property
    def _filled_ns_per_byte(self) -> float:
        filled = self.filled_ns_per_byte
        return self._written_ns_per_byte if filled is None else filled

    def describe(self) -> str:
        """Return the assumptions in words."""
        per_mib = format_duration_ns(self.ns_per_byte * 2**20)
        read, write = format_duration_ns(self.read_ns), format_duration_ns(self.write_ns)
        if not self.overlaps:
            return f"a read takes {read}, a write {write}, and each MiB {per_mib} more"
        written, filled = (
            format_size(round(1e9 / ns_per_byte))
            for ns_per_byte in (self._written_ns_per_byte, self._filled_ns_per_byte)
        )
        return (
            f"a read takes {read}, and each MiB {per_mib} more; a write takes {write}, but no more "
            f"than {written}/s are written, or {filled}/s in sequence"
        )

    def run_time_ns(
        self,
        ios: tuple[float, float],
        moved: tuple[int, int],
        pauses_ns: int,
        depth: int = 1,
        sequential_bytes: int = 0,
    ) -> int:
        """Return the time of a run, pauses included [ns].

        `ios`: reads, and writes. `moved`: bytes that they read, and write [bytes]. `pauses_ns`:
        idle time [ns]. `depth`: I/Os in flight. `sequential_bytes`: the part of the written bytes
        that is written in sequence.
        """
        read_ns, write_ns = ios[0] * self.read_ns, ios[1] * self.write_ns
        bytes_read_ns = moved[0] * self.ns_per_byte
        bytes_written_ns = (moved[1] - sequential_bytes) * self._written_ns_per_byte
        bytes_written_ns += sequential_bytes * self._filled_ns_per_byte
        time_ns = read_ns + bytes_read_ns + write_ns + bytes_written_ns
        if self.overlaps:
            time_ns = read_ns / depth + bytes_read_ns + max(write_ns / depth, bytes_written_ns)
        return round(self.run_ns + time_ns + (pauses_ns if self.pauses else 0))

    def state_ns(self, ios: int, size_bytes: int, filled_bytes: int) -> int:
        """Return the time for enforcing a state, of which a part is a sequential pass [ns]."""
        if self.state_ns_per_byte:
            return round(size_bytes * self.state_ns_per_byte)
        filled_bytes = min(filled_bytes, size_bytes)
        moved_ns = filled_bytes * self._filled_ns_per_byte
        moved_ns += (size_bytes - filled_bytes) * self._written_ns_per_byte
        ios_ns = ios * self.write_ns
        return round(max(ios_ns, moved_ns) if self.overlaps else ios_ns + moved_ns)


_MIB = 1 << 20
# A current SSD behind direct, synchronous I/O, through a file system. Rates of the slowest of the
# drives that Haas et al. (SSD-iq, PVLDB 2025) measured: uniform writes of 4 KiB in steady state 279
# MiB/s (PM9A3), sequential writes 1,389 MiB/s (7450 PRO).
_REAL = Cost(
    read_ns=100_000,
    write_ns=50_000,
    ns_per_byte=1.5,
    written_ns_per_byte=1e9 / (279 * _MIB),
    filled_ns_per_byte=1e9 / (1389 * _MIB),
    overlaps=True,
)
_COSTS = {
    "file": _REAL,
    "block": _REAL,
    "nvme": _REAL,
    "nbd": _REAL,
    # One core of a laptop: a simulated flash page of 4 KiB costs some 100 ns, with collection 400;
    # a run also has the cost of its trace and file.
    "sim": Cost(
        read_ns=1_000,
        write_ns=1_500,
        ns_per_byte=0.06,
        pauses=False,
        state_ns_per_byte=0.06,
        run_ns=20e6,
    ),
    "null": Cost(read_ns=100, write_ns=100, ns_per_byte=0.0, run_ns=5e6),
}


def cost_of(kind: str) -> Cost:
    """Return the cost of I/Os on a kind of device: file, block, nbd, sim or null."""
    return _COSTS[kind]


def wear_of(info: DeviceInfo) -> DeviceWear:
    """Return the wear of a device. Nothing is written."""
    if info.simulated:
        return wear_from_profile(info.profile)
    if info.null:
        return DeviceWear(unknown="the null device does not wear")
    return wear_from_counters(CounterReader(info).read())


def wear_from_counters(counters: DriveCounters) -> DeviceWear:
    """Return the wear of a drive from its counters.

    >>> wear_from_counters(DriveCounters(problem="vda is not an NVMe, ATA or eMMC drive")).unknown
    'vda is not an NVMe, ATA or eMMC drive'
    """
    used, written = counters.find("percentage_used"), counters.find(HOST_BYTES)
    if used is None:
        return DeviceWear(unknown=counters.problem or "the drive does not report its wear")
    spare, temperature = (
        counters.find(name) for name in ("available_spare_percent", "temperature_celsius")
    )
    return msgspec.structs.replace(
        wear_from_smart_log(used.value, 0 if written is None else written.value),
        available_spare_percent=None if spare is None else float(spare.value),
        temperature_celsius=None if temperature is None else float(temperature.value),
    )


def wear_from_smart_log(percentage_used: int, bytes_written: int) -> DeviceWear:
    """Return the wear of an NVMe device from its SMART log.

    >>> wear_from_smart_log(5, 10**12).endurance_bytes
    20000000000000
    >>> wear_from_smart_log(0, 10**12).bound
    'less than'
    """
    if not bytes_written:
        why = "the device does not report how much was written to it"
        return DeviceWear(float(percentage_used), None, None, unknown=why)
    # This amount used less than one per cent: the endurance is at least a hundred times as much.
    endurance = bytes_written * 100 // max(percentage_used, 1)
    bound = BOUNDS[0] if percentage_used else BOUNDS[1]
    return DeviceWear(float(percentage_used), bytes_written, endurance, bound)


def wear_from_profile(profile: Profile) -> DeviceWear:
    """Return the wear of a simulated device from its profile."""
    if profile.reliability is None:
        return DeviceWear(unknown="the profile has no rated erases (rated_cycles)")
    shape, rated = profile.geometry, profile.reliability.rated_cycles
    dies = shape.channels * shape.dies_per_channel
    pages = dies * shape.blocks_per_die * shape.pages_per_block
    before = (profile.recovery.cycles_before if profile.recovery else None) or 0
    endurance = rated * pages * (shape.page_bytes or 0)
    return DeviceWear(100 * before / rated, None, endurance, BOUNDS[2])


def describe_used(wear: DeviceWear) -> str:
    """Return the wear of a device in words.

    >>> describe_used(wear_from_smart_log(5, 10**12))
    '5 % of the rated endurance, after 931.32 GiB written'
    """
    if wear.percentage_used is None:
        return f"unknown: {wear.unknown}"
    after = f", after {format_size(wear.bytes_written)} written" if wear.bytes_written else ""
    return f"{wear.percentage_used:.4g} % of the rated endurance{after}"


def describe_wear(wear: DeviceWear, size_bytes: int) -> str:
    """Return the wear of a device in words, and the share that these bytes add.

    >>> describe_wear(wear_from_smart_log(5, 10**12), 10**11)
    '0.5 % of the rated endurance, for 93.13 GiB written; the device reports 5 % used'
    >>> describe_wear(wear_from_smart_log(0, 10**12), 10**11)
    'less than 0.1 % of the rated endurance, for 93.13 GiB written; the device reports 0 % used'
    >>> describe_wear(wear_from_smart_log(0, 10**9), 174 * 10**9)
    'less than 174 % of the rated endurance, for 162.05 GiB written; the device reports 0 % used'
    """
    used = ""
    if wear.percentage_used is not None:
        used = f"the device reports {wear.percentage_used:.4g} % used"
    share = wear.share(size_bytes)
    if share is None:
        return "; ".join(part for part in (f"unknown: {wear.unknown}", used) if part)
    bound = "" if wear.bound == BOUNDS[0] else f"{wear.bound} "
    written = format_size(size_bytes)
    percent = f"{100 * share:.2g}" if share < 1 else f"{100 * share:.0f}"
    return f"{bound}{percent} % of the rated endurance, for {written} written; {used}"
