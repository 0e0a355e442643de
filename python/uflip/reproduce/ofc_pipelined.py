"""The OFC device with a pipelined processor, and its constants that are found by simulation.

The values are in `profiles/ofc-pipelined.toml` and below. After a change of the simulator's timing,
this computes new ones (a minute)::

    python -c "from uflip.reproduce.ofc_pipelined import main; main()"

**Source**: OFC (2011) §III, §V.F and §VI.
**Faithful**: the printed rate of a bus; one block collected on each channel; a relocated page costs
a read and a write, and no constant is fitted to relocation.
**Simplified**: constants are found by bisection, one after the other.
**Ambiguous**: the slow set-up of transfers by which buses of 100 MB/s carry 30 and 20 kIOPS; and
the division of a command's latency between its beginning and its end. So a relocated page has the
latency of one command: of the read, which delays the write, and not of the write.
"""

from uflip.reproduce import ofc
from uflip.reproduce.published import PUBLISHED

PIPELINED_PROFILE = "ofc-pipelined"

PIPELINED_OUTSTANDING = 12
"""Outstanding requests of the traffic generator: fitted to 24 kIOPS of random reads (§V.F)."""

RAW = {
    "command_read_ns": 0, "command_write_ns": 0,
    "command_read_latency_ns": 0, "command_write_latency_ns": 0,
}  # fmt: skip
"""\"When the additional processing overhead is minimized\" (§III)."""


PIPELINED_FITS = (
    ("command_read_latency_ns", "ofc/sequential_reads", ofc.sequential_reads, 1_000_000),
    ("collect_ns", "ofc/erasing_writes", ofc.sequential_writes, 2_000_000),
)
"""Constant, the printed number that it is fitted to, the measurement, and its upper limit."""

AS_READS = ("command_write_latency_ns", "relocate_latency_ns")
"""Constants that are inferred from the latency of a read."""


def solve_pipelined(outstanding: int, fitted: int = len(PIPELINED_FITS)) -> dict[str, int]:
    """Find the first `fitted` constants in order, for a number of outstanding requests."""
    constants: dict[str, int] = {}
    for constant, value_id, measured, upper in PIPELINED_FITS[:fitted]:
        published = PUBLISHED[value_id].number
        assert published is not None, "constants are fitted to numbers"
        low, high = 0, upper
        while high - low > max(10, high // 500):
            middle = (low + high) // 2
            candidate = constants | {constant: middle}
            if measured(outstanding, profile=PIPELINED_PROFILE, **candidate) < published:
                high = middle
            else:
                low = middle
        constants[constant] = low
        if constant == PIPELINED_FITS[0][0]:
            constants |= dict.fromkeys(AS_READS, low)
    return constants


def main() -> None:
    """Print all constants, then the results for other numbers of outstanding requests."""
    print(PIPELINED_OUTSTANDING, solve_pipelined(PIPELINED_OUTSTANDING))
    for outstanding in (6, 8, 10, 11, 12, 13, 14, 16):
        constants = solve_pipelined(outstanding, fitted=1)
        reads = ofc.random_reads(outstanding, profile=PIPELINED_PROFILE, **constants)
        writes = ofc.clean_writes(outstanding, profile=PIPELINED_PROFILE, **constants)
        print(f"{outstanding} requests: {constants[PIPELINED_FITS[0][0]]} ns,", end=" ")
        print(f"random reads {reads:.2f} kIOPS, clean writes {writes:.2f} kIOPS")


if __name__ == "__main__":
    main()
