"""A power loss of a simulated device: lost data, and recovery (`crates/sim/src/device/`)."""

import msgspec
from msgspec import Struct

from uflip.data.document import Count


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
