"""Rate of flash channels in timed mode, against RB/(B + RT) and the bound for interleaved dies.

**Source**: OFC (2011) §III; `uflip.models.channel`.
**Faithful**: the report's typical values; one die per channel, and several whose cell times
overlap; enough outstanding requests that every die always has the next one waiting.
**Simplified**: no limits of buses, processing and link, no metadata pages, and a clean device for
writes, so that nothing is erased: the formulas have none of these.
**Ambiguous**: nothing.
"""

from functools import partial

from uflip.models.channel import pipelined_channel_rate
from uflip.reproduce import traffic
from uflip.reproduce.simulated_device import SimulatedDevice, device_url
from uflip.selftest.check import SelfTest

CHANNEL_TOLERANCE = 0.01

INTERFACE_BYTES_PER_S = 166_000_000
CELL_NS = {"read": 25_000, "write": 200_000}
# (channels, dies of each): one die, and numbers below, just below, just above and beyond that which
# fills a channel, 2 for reads and 9 for writes; one channel, and four in parallel.
LAYOUTS = ((1, 1), (4, 1), (1, 2), (4, 2), (1, 4), (1, 8), (1, 9), (4, 16))
REQUESTS_PER_DIE = 3
IOS = 40_000


def channel_checks() -> list[SelfTest]:
    """Return a check for reads and writes on every layout."""
    return [_channel_check(mode, channels, dies) for mode in CELL_NS for channels, dies in LAYOUTS]


def _channel_check(mode: str, channels: int, dies: int) -> SelfTest:
    device = device_url(
        "ofc",
        channels=channels,
        dies_per_channel=dies,
        blocks_per_die=8192 // (channels * dies),
        metadata_pages=0,
        buses=0,
        command_read_ns=0,
        command_write_ns=0,
        state="sequential" if mode == "read" else "empty",
    )
    layout = f"{channels} x {dies} die" + ("s" if dies > 1 else "")
    name = f"channel rate {mode}s, {layout} [MB/s]"
    return SelfTest(
        name, device, CHANNEL_TOLERANCE, partial(_measure_channels, mode, channels, dies)
    )


def _measure_channels(mode: str, channels: int, dies: int, url: str) -> tuple[float, float]:
    device = SimulatedDevice(url)
    page_bytes = device.page_bytes_with_spare
    one = pipelined_channel_rate(
        interface_bytes_per_s=INTERFACE_BYTES_PER_S,
        page_bytes=page_bytes,
        cell_ns=CELL_NS[mode],
        dies=dies,
    )
    window = device.run(
        *traffic.sequential(
            mode,
            logical_pages=device.logical_pages,
            page_bytes=device.page_bytes,
            outstanding=channels * dies * REQUESTS_PER_DIE,
            ios=IOS,
        )
    )
    return channels * one / 1e6, window.kiops * page_bytes / 1e3
