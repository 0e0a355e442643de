"""Data rate of a flash channel: one die at a time, and several dies interleaved.

The bus of a channel carries a page in B/R, then the die is busy for T with its cells. With one die
the bus idles meanwhile; with n dies their cell times overlap and only the transfers queue::

    one die     |xfer|---- cell time T ----|xfer|---- cell time T ----|
    two dies    |xfer|---- cell time T ----|xfer|---- ...
                     |xfer|---- cell time T ----|xfer|---- ...

**Source**: Pletka et al., "OFC: An Optimized Flash Controller for Enterprise Storage Systems", IBM
RZ 3795 (2011), section III (the two rates, the pipelining rule in words, typical values, 100 MB/s a
bus) and Table II (4 channels, 2 dies a channel).
**Faithful**: `channel_rate` is the report's RB/(B + R T), with T = T_R for reads, T_W for writes.
**Simplified**: commands, ECC and firmware cost nothing; cell times are constant; erases are
omitted (spread T_E over the pages of a block and add it to the cell time to include them).
**Ambiguous**: the report gives no formula for pipelining, only that commands run at once on several
chips "as long as non overlapping data transfers are guaranteed". `pipelined_channel_rate` is the
bound that follows: n dies give n times the rate of one, up to R. It is met when each die starts its
next page as soon as its turn on the bus comes. B counts the whole page, spare bytes included (4320,
not 4096).
"""

import math

from uflip.models import _checks

NS_PER_S = 1e9


def channel_rate(*, interface_bytes_per_s: float, page_bytes: float, cell_ns: float) -> float:
    """Return the largest data rate of a channel that works on one die at a time, RB/(B + R T).

    Parameters
    ----------
    interface_bytes_per_s : float
        Data rate R at the flash interface [bytes/s].
    page_bytes : float
        Bytes B of a flash page with its spare area [bytes].
    cell_ns : float
        Time T to read a page from the cells or to program it [ns]; 0 gives R.

    Returns
    -------
    float
        Data rate [bytes/s], spare bytes included.

    Raises
    ------
    UsageError
        A rate or size that is not positive, or a negative time.

    Notes
    -----
    OFC §III. Valid for constant cell times and no overlap between a cell time and a transfer.

    Examples
    --------
    The report's typical SLC values, reads then writes, in MB/s:

    >>> slc = dict(interface_bytes_per_s=166e6, page_bytes=4320)
    >>> [round(channel_rate(**slc, cell_ns=t) / 1e6, 2) for t in (25_000, 200_000)]
    [84.67, 19.11]
    """
    _checks.positive(interface_bytes_per_s=interface_bytes_per_s, page_bytes=page_bytes)
    _checks.not_negative(cell_ns=cell_ns)
    page_s = page_bytes / interface_bytes_per_s + cell_ns / NS_PER_S
    return page_bytes / page_s


def pipelined_channel_rate(
    *, interface_bytes_per_s: float, page_bytes: float, cell_ns: float, dies: int
) -> float:
    """Return the bound on a channel that interleaves its dies, min(R, n RB/(B + R T)).

    Parameters
    ----------
    interface_bytes_per_s, page_bytes, cell_ns : float
        As in `channel_rate` [bytes/s, bytes, ns].
    dies : int
        Dies n on the channel, at least 1; with 1 this is `channel_rate`.

    Returns
    -------
    float
        Data rate [bytes/s], spare bytes included.

    Raises
    ------
    UsageError
        A rate, size, time or number of dies out of range.

    Notes
    -----
    Derived from OFC §III (see Ambiguous above). One die repeats after B/R + T, the bus serves n
    pages in n B/R, and a round lasts as long as the longer of the two.

    Examples
    --------
    Two dies a channel, as in OFC's Table II: reads fill the bus, writes double. [MB/s]

    >>> ofc = dict(interface_bytes_per_s=166e6, page_bytes=4320, dies=2)
    >>> [round(pipelined_channel_rate(**ofc, cell_ns=t) / 1e6, 1) for t in (25_000, 200_000)]
    [166.0, 38.2]
    """
    _checks.count("dies", dies)
    one = channel_rate(
        interface_bytes_per_s=interface_bytes_per_s, page_bytes=page_bytes, cell_ns=cell_ns
    )
    return min(interface_bytes_per_s, dies * one)


def dies_to_fill(*, interface_bytes_per_s: float, page_bytes: float, cell_ns: float) -> int:
    """Return the number of dies from which the bus is the limit, ceil(1 + R T/B).

    Parameters
    ----------
    interface_bytes_per_s, page_bytes, cell_ns : float
        As in `channel_rate` [bytes/s, bytes, ns].

    Returns
    -------
    int
        Dies; one more makes the channel no faster.

    Raises
    ------
    UsageError
        A rate or size that is not positive, or a negative time.

    Notes
    -----
    The n at which n RB/(B + R T) reaches R.

    Examples
    --------
    >>> dies_to_fill(interface_bytes_per_s=166e6, page_bytes=4320, cell_ns=200_000)
    9
    """
    _checks.positive(interface_bytes_per_s=interface_bytes_per_s, page_bytes=page_bytes)
    _checks.not_negative(cell_ns=cell_ns)
    return math.ceil(1 + interface_bytes_per_s * cell_ns / (page_bytes * NS_PER_S))


def device_rate(
    *, channel_bytes_per_s: float, channels: int, bus_bytes_per_s: float, buses: int
) -> float:
    """Return the rate of all channels together behind shared internal buses.

    Parameters
    ----------
    channel_bytes_per_s : float
        Rate of one channel, from `channel_rate` or `pipelined_channel_rate` [bytes/s].
    channels : int
        Channels, shared evenly by the buses.
    bus_bytes_per_s : float
        Rate of one internal bus [bytes/s].
    buses : int
        Internal buses, at least 1.

    Returns
    -------
    float
        Data rate [bytes/s].

    Raises
    ------
    UsageError
        A rate or a count that is not positive.

    Notes
    -----
    OFC §III: two PLB buses of 100 MB/s each "limit the maximum achievable data rate". Firmware is
    no part of this: the report measured 30 kIOPS read and 20 kIOPS write at 4 KiB, less than the
    46 and 35 thousand pages a second that its buses and dies allow.

    Examples
    --------
    >>> write = dict(interface_bytes_per_s=166e6, page_bytes=4320, cell_ns=200_000, dies=2)
    >>> one = pipelined_channel_rate(**write)
    >>> rate = device_rate(channel_bytes_per_s=one, channels=4, bus_bytes_per_s=100e6, buses=2)
    >>> round(rate / 4320)  # pages a second
    35394
    """
    _checks.positive(channel_bytes_per_s=channel_bytes_per_s, bus_bytes_per_s=bus_bytes_per_s)
    _checks.count("channels", channels)
    _checks.count("buses", buses)
    return min(channels * channel_bytes_per_s, buses * bus_bytes_per_s)
