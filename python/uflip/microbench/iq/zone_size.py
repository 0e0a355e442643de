"""Zone size: zones are written in order, and rewritten at random. Which size has no cost?

::

    zones     |▓▓▓▓▓▓▓▓|        |▓▓▓>    | discard |        |     one after another, at random

**Source**: Haas et al. (PVLDB 2025): sequential writes of 512 KiB, one at a time, within zones of
1 to 16 GiB and those of three ZNS drives; a zone is discarded before it is written again. A device
without write amplification here keeps a zone in erase blocks of its own.
**Faithful**: size and depth of the writes, zones in random order, discards.
**Simplified**: sizes are powers of four, from 64 MiB on. On a device of less than 128 GiB all are
smaller by the same power of two. A discard has at most 128 MiB, and a run at least `FEWEST_TRIMS`;
those of a large zone are spread over the writes of the zone before it, so that on average half a
zone more has no data.
**Ambiguous**: `long_writes`; the order of zones: drawn with equal chances, but never the same zone
twice in succession (location `zones`).
"""

from uflip.microbench.experiment import Context, Experiment
from uflip.microbench.iq.long_writes import LongWrites, long_enough, result_of_each
from uflip.microbench.layout import Varying, lay_out
from uflip.microbench.today.deallocate import MAX_TRIM_BYTES, without_trims
from uflip.microbench.today.steady_state import QUICK_BYTES
from uflip.spec import Mix, Spec, basic, mix
from uflip.units import format_size

VARYING = Varying("zone_size", "zone_bytes", "bytes")
PATTERN = "SW/ST"
MIB = 1 << 20
STANDARD = (64 * MIB, 256 * MIB, 1024 * MIB, 4096 * MIB, 16384 * MIB)
QUICK = (64 * MIB, 256 * MIB)
WRITE_SIZE = 512 << 10
# A device has at least this many of the largest zones, or all zones are smaller.
FEWEST_ZONES = 8
FEWEST_TRIMS = 64


def experiments(context: Context) -> list[Experiment]:
    """Lay out writes within zones, by the size of the zones."""
    values = [scaled(context, size) for size in (QUICK if context.quick else STANDARD)]
    possible = [size for size in values if size >= size_of_write(context)]
    return [lay_out(context, VARYING, PATTERN, possible, _describe, why_not=why_not)]


def _describe(context: Context, _pattern: str, zone_bytes: int) -> Spec:
    return zone_writes(context, zone_bytes, 1)


def scaled(context: Context, zone_bytes: int) -> int:
    """Return the size of a zone, for a device that may be small [bytes]."""
    parts = -(-FEWEST_ZONES * STANDARD[-1] // context.capacity)
    return zone_bytes >> (parts - 1).bit_length()


def size_of_write(context: Context) -> int:
    """Return the size of a write [bytes]."""
    return max(WRITE_SIZE, context.sector)


def _trim_limit(context: Context) -> int:
    """Return the largest power of two that a discard may have [bytes]."""
    written = QUICK_BYTES if context.quick else max(context.capacity, QUICK_BYTES)
    return min(1 << (written // FEWEST_TRIMS).bit_length() - 1, MAX_TRIM_BYTES)


def zone_writes(context: Context, zone_bytes: int, open_zones: int) -> Mix:
    """Return writes that fill open zones in turn, and the discards of those that are next."""
    write_size, trim_size = size_of_write(context), min(zone_bytes, _trim_limit(context))
    zones = max(context.capacity // zone_bytes, 1)
    write, trim = (
        basic(
            mode,
            "zones",
            io_size=size,
            zone_ios=zone_bytes // size,
            open_zones=open_zones,
            target_offset=0,
            target_size=zones * zone_bytes,
        )
        for mode, size in (("write", write_size), ("trim", trim_size))
    )
    pattern = mix(write, trim, trim_size // write_size)
    return long_enough(context, pattern, write_size, trim_size)


def why_not(context: Context, spec: Spec) -> str | None:
    """Return why a device does not support zones that are discarded and written; else None."""
    assert isinstance(spec, Mix)
    part = spec.first
    zone_bytes, open_zones = (part.zone_ios or 0) * part.io_bytes, part.open_zones or 1
    zones = context.capacity // zone_bytes
    if zones < FEWEST_ZONES // 2 * open_zones:
        return (
            f"{open_zones} open zones of {format_size(zone_bytes)} are more than a "
            f"{FEWEST_ZONES // 2}th of the {format_size(context.capacity)} that are measured"
        )
    return without_trims(context, spec)


MICRO_BENCHMARK = LongWrites(
    name=VARYING.micro_benchmark,
    title="Zone size",
    experiments=experiments,
    question="Which zones can be rewritten at random at the cost of sequential writes?",
    how_to_read=(
        "A line for each size of the zones. A device without write amplification stores a zone in "
        "erase blocks that hold no other data. The size from which on that is so is about that of "
        "its superblocks."
    ),
    finding=result_of_each(format_size, PATTERN),
    rounds=(PATTERN,),
)
