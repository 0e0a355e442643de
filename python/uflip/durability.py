"""When a write is complete: a condition of every measurement, as `crates/core` defines it.

`cached` is uFLIP's own benchmark: I/O is synchronous in that it blocks (§4.3); the device may still
hold the data in a volatile cache. `fua` is what Myers & Sinclair measured (2010, §4): "the time it
takes to perform the write *and* flush that write to the disk".
"""

from contextlib import suppress

from uflip import _native
from uflip.errors import UsageError, native_errors, unknown_name
from uflip.units import parse_count

CACHED, FUA, FLUSH = "cached", "fua", "flush:"
UNKNOWN = "unknown"
"""For measurements of others that do not report it."""
FORMS = "cached|fua|flush:N"


def durability_or_default(durability: str | None, *, buffered: bool = False) -> str:
    """Return the given durability, or the default.

    `durability`: one of `FORMS`; None: not given. `buffered`: writes go through the page cache:
    unless each is durable, only memory is measured.

    >>> durability_or_default(None), durability_or_default(None, buffered=True)
    ('cached', 'fua')
    >>> durability_or_default("flush:2k")
    'flush:2000'
    """
    if durability is None:
        return FUA if buffered else CACHED
    if not isinstance(durability, str):
        raise unknown_name("durability", durability, FORMS.split("|"))
    if durability.startswith(FLUSH):
        # An invalid count is reported by check_durability below.
        with suppress(UsageError):
            durability = f"{FLUSH}{parse_count(durability.removeprefix(FLUSH), FLUSH)}"
    with native_errors():
        _native.check_durability(durability)
    return durability


def describe_durability(durability: str, *, buffered: bool = False) -> str:
    """Return when a write is complete, as a sentence.

    >>> describe_durability("flush:1")
    'a write is complete when the flush that follows it is'
    """
    if durability == UNKNOWN:
        return "it is unknown when a write was complete"
    if durability == FUA:
        return "a write is complete when its data would survive a loss of power"
    taker = "the page cache of the host" if buffered else "the device"
    if durability == CACHED:
        return f"a write is complete when {taker} has taken the data, in a volatile cache or not"
    every = int(durability.removeprefix(FLUSH))
    if every == 1:
        return "a write is complete when the flush that follows it is"
    return (
        f"a write is complete when {taker} has taken the data; a flush follows every {every:,} "
        "writes, and its time is part of the last one's response time"
    )


def open_channel_durability(write_back: bool | None) -> str:
    """Return the durability of writes to an open-channel device, as its controller decides it.

    `write_back`: True: a write completes when its data has arrived; False: when it is in the cells;
    None: not reported.

    >>> open_channel_durability(True), open_channel_durability(False), open_channel_durability(None)
    ('cached', 'fua', 'unknown')
    """
    return UNKNOWN if write_back is None else CACHED if write_back else FUA
