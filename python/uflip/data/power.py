"""What a loss of power cost a simulated device, and how it came back (`crates/sim/src/device/`)."""

import msgspec
from msgspec import Struct

from uflip.data.document import Count


class Cut(Struct, frozen=True):
    """What was lost at the moment when power went."""

    at_ns: Count
    """On the clock of the device [ns]."""
    ios_under_way: Count
    """I/Os of whose end the host had not heard."""
    pages_in_cache: Count
    """Pages in the write cache that flash had not; capacitors save them."""
    pages_torn: Count
    """Flash pages that were being programmed, and cannot be read."""
    pages_not_begun: Count
    """Flash pages that were to be programmed, and waited for their die."""
    blocks_half_erased: Count
    """Blocks that were being erased, and have to be erased again."""
    pages_lost: Count
    """Pages of the host of which flash has not the newest version that had come to the device."""
    pages_come_back: Count
    """Pages that had been deallocated and can be read again."""


class RecoveryReport(Struct, frozen=True):
    """How the map was found again, and how long that took."""

    began_ns: Count
    """When power was back [ns]."""
    ready_ns: Count
    """When the device takes I/Os again [ns]."""
    reading_ns: Count
    """Time for spare areas and metadata pages [ns]."""
    erasing_ns: Count
    """Time for blocks that were half erased, and to list those that could not be [ns]."""
    merging_ns: Count
    """Time to finish merges that were cut short, and to erase what nobody needs [ns]."""
    putting_back_ns: Count
    """Time for data that capacitors had saved [ns]."""
    spare_areas_read: Count
    metadata_pages_read: Count
    """Those that said what their block holds, and lists of what is not to be used."""
    blocks_erased: Count
    pages_merged: Count
    """Pages that were copied for that."""
    blocks_dropped: Count
    """Blocks that were erased for that."""
    pages_put_back: Count
    pages_found: Count
    """Pages of the host that hold something."""

    @property
    def took_ns(self) -> int:
        """From power to ready [ns]."""
        return self.ready_ns - self.began_ns


class PowerLoss(Struct, frozen=True):
    """A loss of power from beginning to end."""

    ios_completed: Count
    """I/Os of whose end the host heard before."""
    cut: Cut
    recovery: RecoveryReport


def read_power_loss(text: str) -> PowerLoss:
    """Read what the native part says."""
    return msgspec.json.decode(text, type=PowerLoss)
