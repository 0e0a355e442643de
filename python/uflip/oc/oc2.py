"""µOC2: parallelism within a channel: its LUNs by one thread in turn, and by a thread each.

**Source**: uFLIP-OC (2017) §3.2, Table 1, Table 2.
**Faithful**: 1, 2, 4 LUNs of one channel, a page of all planes an I/O; reads and writes.
**Simplified**: nothing.
**Ambiguous**: nothing.
"""

from uflip.oc.scaling import Scaling
from uflip.oc.series import degrees, mb_per_s
from uflip.oc.session import Session

NAME = "oc2"
TITLE = "LUNs of one channel"

KINDS = {
    "writes, a thread a LUN": ("W", True),
    "writes, one thread": ("W", False),
    "reads, a thread a LUN": ("R", True),
    "reads, one thread": ("R", False),
}
"""What is scaled over LUNs -> mix, and whether every LUN has its thread."""


def measure(session: Session) -> dict[str, Scaling]:
    """Return throughput by number of LUNs, for each of `KINDS`."""
    geometry = session.device.geometry
    found = {}
    for kind, (mix, threads) in KINDS.items():
        by_luns = {}
        for luns in degrees(geometry["luns_per_channel"]):
            job = {"mix": mix, "luns": luns, "iteration": "round_robin"}
            name = f"oc2-{mix}-{luns}-luns-{'threads' if threads else 'one-thread'}"
            trace = session.run(name, job | ({"threads": luns} if threads else {}))
            by_luns[luns] = mb_per_s(trace, geometry["sector_bytes"])
        found[kind] = Scaling("LUNs", by_luns)
    return found
