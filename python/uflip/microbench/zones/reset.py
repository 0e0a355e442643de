"""Zone reset: cost of emptying a zone, by its written share.

**Source**: uFLIP-OC (2017) §5.2 asks for the cost of an erase; K. Doekemeijer et al. (*Performance
Characterization of NVMe Flash Devices with Zoned Namespaces*, IEEE CLUSTER 2023) find that resets
cost more the fuller a zone is.
**Faithful**: each reset is an I/O like any other, and timed.
**Simplified**: one at a time, without other I/Os. `uflip zones` lists the number of resets per
zone, which is their wear.
**Ambiguous**: when cells are erased. A device may erase when the zone is written again; then the
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
        "ZR are resets of zones that SW wrote up to this share just before. Steps are dies and "
        "blocks with data to erase; a flat line at a command's time is a device that "
        "erases later."
    ),
    finding=finding_of(RESETS, "reset"),
    levels=False,
    suites=("zones",),
    own_length=True,
    fixed_order=True,
)
