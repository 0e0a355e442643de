"""Costs of a configuration: spare flash, and memory of the controller.

**Source** DFTL (ASPLOS 2009) §2 for the map's share of a controller's memory.
**Faithful** Spare capacity: flash size minus the size that the host can address.
**Simplified** Memory is that of the map and of the write cache; buffers of pages in flight are
small in comparison.
**Ambiguous** Size of a map entry: 4 bytes if the whole page map is in memory, indexed by address;
otherwise the memory that the profile gives to a map cache, or to map pages. Profiles do not give
the tables of a hybrid FTL: its memory is unknown.
"""

from dataclasses import dataclass

from uflip.data.device import DeviceInfo

# Entry of a map that is an array of physical addresses.
ENTRY_BYTES = 4


@dataclass(frozen=True)
class Costs:
    """Bytes of spare flash, and of memory; None if unknown."""

    spare_bytes: int | None
    memory_bytes: int | None


def costs(info: DeviceInfo) -> Costs:
    """Return the costs of a simulated device.

    Examples
    --------
    >>> from uflip.device.catalogue import inspect_device
    >>> costs(inspect_device("sim:demo?write_cache_bytes=1MiB"))
    Costs(spare_bytes=759169024, memory_bytes=5242880)
    """
    flash_bytes = info.details.flash_bytes
    spare = flash_bytes - info.capacity_bytes if flash_bytes is not None else None
    profile = info.profile_table
    map_bytes = None
    if "stripes" in profile:
        map_bytes = int(profile["stripes"]["map_memory_bytes"])
    elif "mapping" in profile:
        map_bytes = int(profile["mapping"]["mapping_cache_bytes"])
    elif profile["ftl"]["ftl"] == "page_map":
        pages = info.capacity_bytes // int(profile["geometry"]["page_bytes"])
        map_bytes = ENTRY_BYTES * pages
    if map_bytes is None:
        return Costs(spare, None)
    return Costs(spare, map_bytes + int(profile["cache"]["write_cache_bytes"]))
