"""What a write waits for: a named condition of every measurement, as `crates/core` defines it.

`cached` is uFLIP's own benchmark: I/O is synchronous in that it blocks (§4.3), and what the device
does with the data behind its interface is the device's business. `fua` is what Myers & Sinclair
measured (2010, §4): "the time it takes to perform the write *and* flush that write to the disk".
"""

from contextlib import suppress

from uflip import _native
from uflip.errors import UsageError, native_errors, unknown_name
from uflip.units import parse_count

CACHED, FUA, FLUSH = "cached", "fua", "flush:"
UNKNOWN = "unknown"
"""Of what others measured: nobody has said."""
FORMS = "cached|fua|flush:N"


def chosen(given: str | None, *, buffered: bool = False) -> str:
    """Return the durability that somebody asked for, or what goes without saying.

    Parameters
    ----------
    given : str or None
        One of `FORMS`; None: nobody said.
    buffered : bool
        Writes go through the page cache: unless each is durable, memory is all that is measured.

    Raises
    ------
    UsageError
        For any other form.

    Examples
    --------
    >>> chosen(None), chosen(None, buffered=True), chosen("flush:32"), chosen("flush:2k")
    ('cached', 'fua', 'flush:32', 'flush:2000')
    """
    if given is None:
        return FUA if buffered else CACHED
    if not isinstance(given, str):
        raise unknown_name("durability", given, FORMS.split("|"))
    if given.startswith(FLUSH):
        # What is no count is no form at all, and is told below.
        with suppress(UsageError):
            given = f"{FLUSH}{parse_count(given.removeprefix(FLUSH), FLUSH)}"
    with native_errors():
        _native.check_durability(given)
    return given


def meaning(durability: str, *, buffered: bool = False) -> str:
    """Say when a write is over.

    Examples
    --------
    >>> meaning("flush:1")
    'a write is over when the flush that follows it is'
    """
    if durability == UNKNOWN:
        return "nobody has said when a write was over"
    if durability == FUA:
        return "a write is over when its data would survive a loss of power"
    taker = "the page cache of the host" if buffered else "the device"
    if durability == CACHED:
        return f"a write is over when {taker} has taken the data, in a volatile cache or not"
    every = int(durability.removeprefix(FLUSH))
    if every == 1:
        return "a write is over when the flush that follows it is"
    return (
        f"a write is over when {taker} has taken the data, and every {every:,} writes when the "
        "flush that follows them is: its time is part of the last one's response time"
    )


def of_old(kind: object, io: object) -> str:
    """Return the durability of a measurement from before it was chosen.

    Files and block devices were opened with O_DSYNC; simulated devices answered from their cache.

    Examples
    --------
    >>> of_old("file", "pread/pwrite O_DIRECT|O_DSYNC"), of_old("sim", "virtual")
    ('fua', 'cached')
    """
    return FUA if kind in ("file", "block") and (io is None or "O_DSYNC" in str(io)) else CACHED


def of_open_channel(write_back: bool | None) -> str:
    """Return the durability of writes to an open-channel device, whose controller decides it.

    Parameters
    ----------
    write_back : bool or None
        Writes are answered when their data has arrived, and not when it is in the cells; None:
        nobody has said.

    Examples
    --------
    >>> of_open_channel(True), of_open_channel(False), of_open_channel(None)
    ('cached', 'fua', 'unknown')
    """
    return UNKNOWN if write_back is None else CACHED if write_back else FUA
