"""The zones of a device as it reports them: one frozen document."""

from collections import Counter
from typing import Literal

import msgspec
from msgspec import Struct

from uflip.data.document import Count, Positive

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
    """The zone limits of a device; known before it is opened.

    Attributes
    ----------
    zone_bytes : int
        Distance between the begins of two zones [bytes].
    zone_count : int
        Number of zones.
    zone_capacity_bytes : int or None
        Capacity of each zone, if it is known and the same for all [bytes].
    max_open_zones, max_active_zones : int
        Limits of open zones, and of open or closed ones; 0: no limit.
    """

    zone_bytes: Positive
    zone_count: Count
    zone_capacity_bytes: Positive | None = None
    max_open_zones: Count = 0
    max_active_zones: Count = 0


class Zone(Struct, frozen=True):
    """One zone.

    Attributes
    ----------
    start_bytes, capacity_bytes, write_pointer_bytes : int
        Begin, end of capacity relative to it, and write pointer, in addresses of the device
        [bytes].
    state : str
        One of `ZoneState`.
    resets : int or None
        Number of resets; None if unknown.
    """

    start_bytes: Count
    capacity_bytes: Count
    write_pointer_bytes: Count
    state: ZoneState
    resets: Count | None = None

    @property
    def written_bytes(self) -> int:
        """Written or finished part of it [bytes]."""
        return self.write_pointer_bytes - self.start_bytes

    @property
    def is_active(self) -> bool:
        """Whether it is open or closed, which counts against the limits of the device."""
        return self.state in ("implicitly_open", "explicitly_open", "closed")


class ZoneReport(Struct, frozen=True):
    """All zones of a device, and their limits.

    Attributes
    ----------
    zone_bytes, max_open_zones, max_active_zones : int
        As in `ZoneLimits`.
    zones : tuple of Zone
        The zones, in order.
    """

    zone_bytes: Positive
    max_open_zones: Count
    max_active_zones: Count
    zones: tuple[Zone, ...]

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
    """Read the zones of a device from the native part.

    Parameters
    ----------
    text : str
        JSON.
    """
    return msgspec.json.decode(text, type=ZoneReport)
