"""Zone finish: what it costs to have a zone count as full, by how much of it was written.

**Source**: uFLIP-OC (2017) §5.2, what a block that is not full keeps busy; K. Doekemeijer et al.
(IEEE CLUSTER 2023) find finishes that cost the more the emptier a zone is.
**Faithful**: each finish is an I/O like any other, and timed.
**Simplified**: one at a time, with nothing beside it.
**Ambiguous**: what is left of the zone. A device may fill it with nothing, or note where it ends.
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
        "ZF finish zones of which so much was written by SW just before. Where they take as long "
        "as what is left would take to be written, the device fills it up; a flat line is a device "
        "that leaves the rest as it is."
    ),
    finding=finding_of(FINISHES, "finish"),
    levels=False,
    suites=("zones",),
    own_length=True,
    in_turn=True,
)
