"""Zone reset: what it costs to empty a zone, by how much of it was written.

**Source**: uFLIP-OC (2017) §5.2 asks what an erase costs; K. Doekemeijer et al. (*Performance
Characterization of NVMe Flash Devices with Zoned Namespaces*, IEEE CLUSTER 2023) find resets that
cost the more the fuller a zone is.
**Faithful**: each reset is an I/O like any other, and timed.
**Simplified**: one at a time, with nothing beside it. How often zones were reset, which is their
wear, `uflip zones` lists.
**Ambiguous**: when cells are erased. A device may do so when the zone is written again; then the
first writes after a reset are slow, and not the reset.
"""

from uflip.microbench.micro_benchmark import MicroBenchmark
from uflip.microbench.zones.partly_written import finding_of, layout_of

RESETS = "ZR"

MICRO_BENCHMARK = MicroBenchmark(
    name="zone_reset",
    title="Zone reset",
    experiments=layout_of("reset", RESETS),
    question="What does the reset of a zone cost?",
    how_to_read=(
        "ZR are resets of zones of which so much was written by SW just before. Steps are dies and "
        "blocks that have something to be erased; a flat line at a command's time is a device that "
        "erases later."
    ),
    finding=finding_of(RESETS, "reset"),
    levels=False,
    suites=("zones",),
    own_length=True,
    in_turn=True,
)
