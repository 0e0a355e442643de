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
    """What holds for all zones of a device; known before it is opened.

    Attributes
    ----------
    zone_bytes : int
        From the beginning of a zone to that of the next [bytes].
    zone_count : int
        How many there are.
    zone_capacity_bytes : int or None
        What each can hold, where it is known for all of them [bytes].
    max_open_zones, max_active_zones : int
        How many can be open, and open or closed, at a time; 0: all of them.
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
        Where it begins, what it can hold, and where it is written next, all in addresses of the
        device [bytes].
    state : str
        One of `ZoneState`.
    resets : int or None
        How often it was reset; None where unknown.
    """

    start_bytes: Count
    capacity_bytes: Count
    write_pointer_bytes: Count
    state: ZoneState
    resets: Count | None = None

    @property
    def written_bytes(self) -> int:
        """How much of it has been written, or finished [bytes]."""
        return self.write_pointer_bytes - self.start_bytes

    @property
    def is_active(self) -> bool:
        """Whether it is open or closed, which counts against the limits of the device."""
        return self.state in ("implicitly_open", "explicitly_open", "closed")


class ZoneReport(Struct, frozen=True):
    """All zones of a device, and what holds for them.

    Attributes
    ----------
    zone_bytes, max_open_zones, max_active_zones : int
        As `ZoneLimits`.
    zones : tuple of Zone
        Each of them, in order.
    """

    zone_bytes: Positive
    max_open_zones: Count
    max_active_zones: Count
    zones: tuple[Zone, ...]

    @property
    def states(self) -> dict[str, int]:
        """How many zones are in each state, of those that there are."""
        return dict(Counter(zone.state for zone in self.zones))

    @property
    def resets(self) -> int | None:
        """How often zones were reset in all; None where unknown."""
        each = [zone.resets for zone in self.zones]
        return None if None in each else sum(one or 0 for one in each)


def read_zones(text: str) -> ZoneReport:
    """Read what the native part says of the zones of a device.

    Parameters
    ----------
    text : str
        JSON.
    """
    return msgspec.json.decode(text, type=ZoneReport)
