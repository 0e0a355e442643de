"""Shared by the four micro-benchmarks: limits of jobs, jobs by name, and their execution."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from uflip import _native
from uflip.data.device import Geometry
from uflip.data.spec import Job
from uflip.microbench.experiment import PlannedRun
from uflip.microbench.open_channel.series import ResponseSeries, mb_per_s

Block = tuple[int, int, int]
"""Channel, LUN, block."""


@dataclass(frozen=True)
class Scale:
    """The amount of work; the device's geometry limits it."""

    blocks: int  #: Blocks per job; uFLIP-OC uses 64.
    cycles: int  #: Erases of the sacrificed block; uFLIP-OC stopped after 17,000.
    wear_pages: int  #: Pages of it that are written and read in each cycle.


SCALES = {"standard": Scale(64, 17_000, 1 << 20), "quick": Scale(4, 17_000, 32)}
"""`standard` is the paper's; `quick` takes a few seconds on a simulated device."""


@dataclass(frozen=True)
class JobScope:
    """The limits of a benchmark's jobs."""

    geometry: Geometry  #: Geometry of the device.
    scale: Scale  #: Amount of work.
    sacrifice: Block | None = None  #: The block that oc1 wears out.

    @property
    def blocks(self) -> int:
        """Number of blocks per job."""
        return min(self.scale.blocks, self.geometry.blocks_per_plane)

    @property
    def vector_pages_max(self) -> int:
        """Largest number of pages of all planes in one command."""
        return self.geometry.vector_max // self.geometry.page_sectors

    def job(
        self,
        micro_benchmark: str,
        name: str,
        pattern: str,
        varied: tuple[str, int, str],
        **options: Any,
    ) -> PlannedRun:
        """Return a job over the first blocks, of the mix `pattern`.

        `micro_benchmark`: its micro-benchmark. `name`: the rest of its name. `pattern`: letters W
        and R. `varied`: its identity: name of a parameter, its value, its unit. `**options`:
        options that differ from the others; see docs/reference/open-channel.md.
        """
        whole = Job(blocks=self.blocks, pages=self.geometry.pages_per_block, mix=pattern)
        named = f"{micro_benchmark}-{name}"
        return PlannedRun(named, micro_benchmark, pattern, *varied, whole.but(**options))


def reads_percent(mix: str) -> tuple[str, int, str]:
    """Return the identity of a mix: its share of reads.

    >>> reads_percent("WWWR")
    ('reads_percent', 25, '%')
    """
    return "reads_percent", round(100 * mix.count("R") / len(mix)), "%"


class Bench(Protocol):
    """Source of job logs: a device, or a folder."""

    @property
    def scope(self) -> JobScope:
        """The limits of the jobs."""

    def run(self, job: PlannedRun) -> _native.FlashTrace:
        """Return the log of a job."""


def throughput(bench: Bench, job: PlannedRun) -> float:
    """Return the throughput of a job, reads and writes [MB/s]."""
    return mb_per_s(bench.run(job), bench.scope.geometry.sector_bytes)


def measure_each(
    bench: Bench, jobs: Mapping[str, PlannedRun]
) -> tuple[dict[str, ResponseSeries], dict[str, float]]:
    """Return the response times of jobs by name, and their throughput [MB/s]."""
    series, rates = {}, {}
    for name, job in jobs.items():
        trace = bench.run(job)
        series[name] = ResponseSeries.from_trace(trace)
        rates[name] = mb_per_s(trace, bench.scope.geometry.sector_bytes)
    return series, rates
