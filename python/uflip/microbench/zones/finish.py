"""Zone finish: cost of marking a zone as full, by its written share.

**Source**: uFLIP-OC (2017) §5.2, the cost of a block that is not full; K. Doekemeijer et al. (IEEE
CLUSTER 2023) find that finishes cost more the emptier a zone is.
**Faithful**: each finish is an I/O like any other, and timed.
**Simplified**: one at a time, without other I/Os.
**Ambiguous**: the rest of the zone. A device may fill it with padding, or only record its end.
"""

from uflip.microbench.micro_benchmark import MicroBenchmark
from uflip.microbench.zones.partly_written import finding_of, layout_of

FINISHES = "ZF"

MICRO_BENCHMARK = MicroBenchmark(
    name="zone_finish",
    title="Zone finish",
    experiments=layout_of("finish", FINISHES),
    question="What does it cost to finish a zone?",
    how_to_read=(
        "ZF finish zones that SW wrote up to this share just before. Where a finish takes as long "
        "as writing the remaining space, the device fills the zone with padding; a flat line is a "
        "device that only records its end."
    ),
    finding=finding_of(FINISHES, "finish"),
    levels=False,
    suites=("zones",),
    own_length=True,
    fixed_order=True,
)
