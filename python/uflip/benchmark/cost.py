"""Assumed cost of an I/O before the first measurement: estimates, each with its reason."""

from dataclasses import dataclass

from uflip.units import format_duration_ns


@dataclass(frozen=True)
class Cost:
    """Assumed cost of an I/O, on the wall clock."""

    read_ns: float
    write_ns: float
    ns_per_byte: float
    pauses: bool = True
    """Whether pauses take time: in virtual time they do not."""
    state_ns_per_byte: float = 0.0
    """Cost of enforcing a state per byte, where it differs from that of other writes."""
    run_ns: float = 0.0
    """Overhead of a run beside its I/Os."""

    def describe(self) -> str:
        """Return the assumptions in words."""
        per_mib = format_duration_ns(self.ns_per_byte * 2**20)
        return (
            f"a read takes {format_duration_ns(self.read_ns)}, "
            f"a write {format_duration_ns(self.write_ns)}, and each MiB {per_mib} more"
        )

    def run_time_ns(self, reads: float, writes: float, size_bytes: int, pauses_ns: int) -> int:
        """Return the time of a run with these I/Os and bytes, pauses included [ns]."""
        time_ns = reads * self.read_ns + writes * self.write_ns + size_bytes * self.ns_per_byte
        return round(self.run_ns + time_ns + (pauses_ns if self.pauses else 0))

    def state_ns(self, ios: int, size_bytes: int) -> int:
        """Return the time for enforcing a state [ns]."""
        if self.state_ns_per_byte:
            return round(size_bytes * self.state_ns_per_byte)
        return round(ios * self.write_ns + size_bytes * self.ns_per_byte)


# A current SSD behind direct, synchronous I/O, through a file system.
_REAL = Cost(read_ns=100_000, write_ns=600_000, ns_per_byte=1.5)
_COSTS = {
    "file": _REAL,
    "block": _REAL,
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
