"""Channel rates against hand-made numbers, limits and a page-by-page schedule."""

from typing import Any

import pytest

from uflip.errors import UsageError
from uflip.models import channel

SLC = {"interface_bytes_per_s": 166e6, "page_bytes": 4320}
READ_NS, PROGRAM_NS = 25_000, 200_000


def schedule_rate(*, dies: int, cell_ns: float, read: bool, pages: int = 4000) -> float:
    """Serve pages one by one, die after die, each bus transfer after the one before [bytes/s]."""
    transfer_ns = SLC["page_bytes"] / SLC["interface_bytes_per_s"] * 1e9
    bus_ns = 0.0
    die_ns = [0.0] * dies
    for page in range(pages):
        die = page % dies
        if read:  # cells first, then the transfer; the die's register is busy until it is out
            bus_ns = max(bus_ns, die_ns[die] + cell_ns) + transfer_ns
            die_ns[die] = bus_ns
        else:  # transfer first, then the cells
            bus_ns = max(bus_ns, die_ns[die]) + transfer_ns
            die_ns[die] = bus_ns + cell_ns
    return pages * SLC["page_bytes"] / max(bus_ns, *die_ns) * 1e9


@pytest.mark.parametrize("dies", [1, 2, 3, 8, 9, 12])
@pytest.mark.parametrize(("cell_ns", "read"), [(READ_NS, True), (PROGRAM_NS, False)])
def test_pipelined_rate_matches_schedule(dies: int, cell_ns: float, read: bool) -> None:
    bound = channel.pipelined_channel_rate(**SLC, cell_ns=cell_ns, dies=dies)
    assert schedule_rate(dies=dies, cell_ns=cell_ns, read=read) == pytest.approx(bound, rel=3e-3)


def test_rates_match_hand_computed_ofc_values() -> None:
    # 4320 B at 166 MB/s take 26.024 us on the bus.
    read = 4320 / (26.0241e-6 + 25e-6)
    write = 4320 / (26.0241e-6 + 200e-6)
    assert channel.channel_rate(**SLC, cell_ns=READ_NS) == pytest.approx(read, rel=1e-5)
    assert channel.channel_rate(**SLC, cell_ns=PROGRAM_NS) == pytest.approx(write, rel=1e-5)


def test_rate_at_zero_cell_time_and_many_dies() -> None:
    assert channel.channel_rate(**SLC, cell_ns=0) == pytest.approx(166e6)
    one = channel.channel_rate(**SLC, cell_ns=PROGRAM_NS)
    assert channel.pipelined_channel_rate(**SLC, cell_ns=PROGRAM_NS, dies=1) == one
    many = channel.pipelined_channel_rate(**SLC, cell_ns=PROGRAM_NS, dies=1000)
    assert many == pytest.approx(166e6)


@pytest.mark.parametrize("cell_ns", [0, READ_NS, PROGRAM_NS, 1_300_000])
def test_dies_to_fill_is_minimal_at_bus_rate(cell_ns: float) -> None:
    dies = channel.dies_to_fill(**SLC, cell_ns=cell_ns)
    full = channel.pipelined_channel_rate(**SLC, cell_ns=cell_ns, dies=dies)
    assert full == pytest.approx(166e6)
    if dies > 1:
        fewer = channel.pipelined_channel_rate(**SLC, cell_ns=cell_ns, dies=dies - 1)
        assert fewer < 166e6


def test_internal_buses_limit_only_ofc_reads() -> None:
    for cell_ns, expected in ((READ_NS, 200e6), (PROGRAM_NS, 4 * 2 * 19.1130e6)):
        one = channel.pipelined_channel_rate(**SLC, cell_ns=cell_ns, dies=2)
        rate = channel.device_rate(
            channel_bytes_per_s=one, channels=4, bus_bytes_per_s=100e6, buses=2
        )
        assert rate == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    "wrong",
    [
        {"page_bytes": 0},
        {"interface_bytes_per_s": -1.0},
        {"interface_bytes_per_s": float("inf")},
        {"cell_ns": float("nan")},
        {"cell_ns": -1},
        {"dies": 0},
        {"dies": 1.5},
    ],
)
def test_values_out_of_range_are_usage_errors(wrong: dict[str, Any]) -> None:
    good: dict[str, Any] = {**SLC, "cell_ns": READ_NS, "dies": 2}
    with pytest.raises(UsageError) as caught:
        channel.pipelined_channel_rate(**(good | wrong))
    assert all(caught.value.parts().values())
    assert caught.value.where == next(iter(wrong))
