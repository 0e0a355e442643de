"""Micro-benchmarks of zones: the questions of uFLIP-OC about LUNs and channels, for zones.

They need a zoned device (NVMe ZNS, or any other that Linux calls zoned). Before each run the zones
that it writes are reset, those that it only reads are filled, and no other is left open or closed
(`Device.prepare_zones`), so that runs are independent. They are a separate suite
(`uflip run DEVICE --suite zones`).

====================  ===========================================================================
`zone_parallelism`    writes to an increasing number of zones at once
`zone_append`         an increasing number of appends in flight to one zone, against single writes
`zone_distance`       reads of a zone while another is written, at increasing distance
`zone_reset`          cost of a reset, by the written share of the zone
`zone_finish`         cost of a finish, by the written share of the zone
`zone_wear`           effect of resets on a zone, by their number
`partly_written`      shared by reset and finish
====================  ===========================================================================
"""

from uflip.data.device import ZoneLimits
from uflip.microbench.experiment import Context, IoCounts
from uflip.microbench.layout import WhyNot
from uflip.spec import Spec

PLACEHOLDER_ZONES = 16
"""Number of zones laid out for a device without zones, so that each run has a skip reason."""
MAX_ZONES = 64
"""Most zones at a time: more do not add information about a device."""
IGNORED_PART = 8


def zones_of(context: Context) -> ZoneLimits:
    """Return the zones of a device; without zones, a placeholder."""
    limits = context.info.details.zones
    if limits is not None:
        return limits
    size = max(context.capacity // PLACEHOLDER_ZONES // context.io_size, 1) * context.io_size
    return ZoneLimits(zone_bytes=size, zone_count=PLACEHOLDER_ZONES)


def capacity_of(context: Context) -> int:
    """Return the used size of each zone [bytes]: its capacity, or half of it if unknown."""
    limits = zones_of(context)
    # On ZNS drives the capacity is at least half of a zone's addresses.
    return limits.zone_capacity_bytes or max(limits.zone_bytes // 2, context.io_size)


def max_zones_at_once(context: Context) -> int:
    """Return the number of zones that may be written at a time, at most `MAX_ZONES`."""
    limits = zones_of(context)
    device_limits = [limits.max_open_zones, limits.max_active_zones]
    return min([limits.zone_count, MAX_ZONES, *(limit for limit in device_limits if limit)])


def powers_up_to(limit: int) -> tuple[int, ...]:
    """Return 1, 2, 4, ... up to `limit`."""
    return tuple(2**k for k in range(limit.bit_length()) if 2**k <= limit)


def counts_within(context: Context, pattern: str, size: int) -> IoCounts:
    """Return the ordinary length of a run, limited to the I/Os that fit into `size` bytes."""
    ios = max(min(context.plain_counts(pattern).io_count, size // context.io_size), 1)
    return IoCounts(ios, ios // IGNORED_PART)


def why_not(*others: WhyNot) -> WhyNot:
    """Return a check for runs: no zones, I/Os that do not fit, or the reasons of `others`."""

    def reason(context: Context, spec: Spec) -> str | None:
        limits = context.info.details.zones
        if limits is None:
            return "the device has no zones"
        if limits.zone_bytes % context.io_size:
            zone_bytes, io_size = limits.zone_bytes, context.io_size
            return f"zones of {zone_bytes} bytes are not a multiple of the I/O size {io_size}"
        reasons = (other(context, spec) for other in others)
        return next((why for why in reasons if why is not None), None)

    return reason
