"""µOC2: parallelism within a channel: its LUNs by one thread in turn, and by a thread each.

**Source**: uFLIP-OC (2017) §3.2, Table 1, Table 2.
**Faithful**: 1, 2, 4 LUNs of one channel, a page of all planes an I/O; reads and writes.
**Simplified**: nothing.
**Ambiguous**: nothing.
"""

from uflip.microbench.experiment import PlannedRun
from uflip.microbench.micro_benchmark import MicroBenchmark
from uflip.microbench.open_channel.jobs import Bench, JobScope, throughput
from uflip.microbench.open_channel.scaling import Scaling
from uflip.microbench.open_channel.series import degrees

NAME = "oc2"
TITLE = "LUNs of one channel"

KINDS = {
    "writes, a thread per LUN": ("W", True),
    "writes, one thread": ("W", False),
    "reads, a thread per LUN": ("R", True),
    "reads, one thread": ("R", False),
}
"""Kind of scaling over LUNs -> mix, and whether every LUN has its own thread."""


def lay_out_kind(scope: JobScope, kind: str) -> dict[int, PlannedRun]:
    """Lay out one of `KINDS`, by number of LUNs."""
    mix, threads = KINDS[kind]
    driver = "threads" if threads else "one-thread"
    return {
        luns: scope.job(
            NAME,
            f"{mix}-{luns}-luns-{driver}",
            mix,
            (f"luns_by_{driver.replace('-', '_')}", luns, ""),
            luns=luns,
            iteration="round_robin",
            **({"threads": luns} if threads else {}),
        )
        for luns in degrees(scope.geometry.luns_per_channel)
    }


def layout(scope: JobScope) -> list[PlannedRun]:
    """Lay out all jobs."""
    return [job for kind in KINDS for job in lay_out_kind(scope, kind).values()]


def measure(bench: Bench) -> dict[str, Scaling]:
    """Return throughput by number of LUNs, for each of `KINDS`."""
    return {
        kind: Scaling(
            "LUNs",
            {luns: throughput(bench, job) for luns, job in lay_out_kind(bench.scope, kind).items()},
        )
        for kind in KINDS
    }


MICRO_BENCHMARK = MicroBenchmark(
    NAME,
    TITLE,
    addresses="physical",
    jobs=layout,
    question="What do the LUNs of one channel gain together, driven by one thread in turn or by a "
    "thread each?",
)
