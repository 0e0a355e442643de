"""What micro-benchmarks of zones share: how large zones are, and why a device cannot do one."""

from uflip.data.zones import ZoneLimits
from uflip.experiment import Context, IoCounts
from uflip.microbench.layout import WhyNot
from uflip.spec import Spec

PRETENDED = 16
"""So many zones are laid out where there are none, to say of each run why it is skipped."""
MOST = 64
"""More zones at a time say nothing more about a device."""
IGNORED_PART = 8


def zones_of(context: Context) -> ZoneLimits:
    """Return the zones of a device; of one without any as if it had some."""
    limits = context.info.details.zones
    if limits is not None:
        return limits
    size = max(context.capacity // PRETENDED // context.io_size, 1) * context.io_size
    return ZoneLimits(zone_bytes=size, zone_count=PRETENDED)


def capacity_of(context: Context) -> int:
    """Return what is used of each zone [bytes]: all it can hold, or half of it where unknown."""
    limits = zones_of(context)
    # ZNS drives hold half of a zone's addresses, or more.
    return limits.zone_capacity_bytes or max(limits.zone_bytes // 2, context.io_size)


def at_once(context: Context) -> int:
    """Return how many zones may be written at a time, `MOST` at most."""
    limits = zones_of(context)
    given = [limits.max_open_zones, limits.max_active_zones]
    return min([limits.zone_count, MOST, *(most for most in given if most)])


def powers_up_to(most: int) -> tuple[int, ...]:
    """Return 1, 2, 4, ... up to `most`."""
    return tuple(2**k for k in range(most.bit_length()) if 2**k <= most)


def counts_within(context: Context, pattern: str, room: int) -> IoCounts:
    """Return the ordinary length of a run, but no more I/Os than fit into so many bytes."""
    ios = max(min(context.plain_counts(pattern).io_count, room // context.io_size), 1)
    return IoCounts(ios, ios // IGNORED_PART)


def why_not(*others: WhyNot) -> WhyNot:
    """Say why a device cannot do a run: it has no zones, its I/Os do not fit, or others say."""

    def reason(context: Context, spec: Spec) -> str | None:
        limits = context.info.details.zones
        if limits is None:
            return "the device has no zones"
        if limits.zone_bytes % context.io_size:
            return f"zones of {limits.zone_bytes} bytes are no whole I/Os of {context.io_size}"
        told = (other(context, spec) for other in others)
        return next((why for why in told if why is not None), None)

    return reason
