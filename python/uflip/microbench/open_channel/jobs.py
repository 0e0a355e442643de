"""What the four micro-benchmarks share: what a job may use, jobs by name, and who executes them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from uflip import _native
from uflip.data.device import Geometry
from uflip.data.spec import Job
from uflip.experiment import PlannedRun
from uflip.microbench.open_channel.series import ResponseSeries, mb_per_s

Block = tuple[int, int, int]
"""Channel, LUN, block."""


@dataclass(frozen=True)
class Scale:
    """How much is done; the device's geometry is a limit.

    Attributes
    ----------
    blocks : int
        Blocks that a job goes over; uFLIP-OC takes 64.
    cycles : int
        Erases of the sacrificed block; uFLIP-OC stopped after 17,000.
    wear_pages : int
        Pages of it that are written and read in each cycle.
    """

    blocks: int
    cycles: int
    wear_pages: int


SCALES = {"standard": Scale(64, 17_000, 1 << 20), "quick": Scale(4, 17_000, 32)}
"""`standard` is the paper's; `quick` takes a few seconds on a simulated device."""


@dataclass(frozen=True)
class JobScope:
    """What the jobs of a benchmark may use.

    Attributes
    ----------
    geometry : Geometry
        Of the device.
    scale : Scale
        How much is done.
    sacrifice : tuple of int or None
        The block that oc1 wears out.
    """

    geometry: Geometry
    scale: Scale
    sacrifice: Block | None = None

    @property
    def blocks(self) -> int:
        """Blocks that a job goes over."""
        return min(self.scale.blocks, self.geometry.blocks_per_plane)

    @property
    def vector_pages_max(self) -> int:
        """Most pages of all planes in one command."""
        return self.geometry.vector_max // self.geometry.page_sectors

    def job(
        self,
        micro_benchmark: str,
        name: str,
        pattern: str,
        varied: tuple[str, int, str],
        **options: Any,
    ) -> PlannedRun:
        """Lay out a job over the first blocks, of the mix `pattern`.

        Parameters
        ----------
        micro_benchmark : str
            Which it belongs to.
        name : str
            What it is called behind that.
        pattern : str
            Letters W and R.
        varied : tuple
            What distinguishes it: name of a parameter, its value, its unit.
        **options
            What it does not take from the others; see docs/reference/open-channel.md.
        """
        whole = Job(blocks=self.blocks, pages=self.geometry.pages_per_block, mix=pattern)
        named = f"{micro_benchmark}-{name}"
        return PlannedRun(named, micro_benchmark, pattern, *varied, whole.but(**options))


def reads_percent(mix: str) -> tuple[str, int, str]:
    """What distinguishes a mix: its share of reads.

    Examples
    --------
    >>> reads_percent("WWWR")
    ('reads_percent', 25, '%')
    """
    return "reads_percent", round(100 * mix.count("R") / len(mix)), "%"


class Bench(Protocol):
    """Who has the logs of jobs: a device, or a folder that keeps them."""

    @property
    def place(self) -> JobScope:
        """What the jobs may use."""

    def run(self, job: PlannedRun) -> _native.FlashTrace:
        """Return the log of a job."""


def throughput(bench: Bench, job: PlannedRun) -> float:
    """Return what was read and written in the time of a job [MB/s]."""
    return mb_per_s(bench.run(job), bench.place.geometry.sector_bytes)


def measure_each(
    bench: Bench, jobs: Mapping[str, PlannedRun]
) -> tuple[dict[str, ResponseSeries], dict[str, float]]:
    """Return the response times of jobs by name, and their throughput [MB/s]."""
    found, rates = {}, {}
    for name, job in jobs.items():
        trace = bench.run(job)
        found[name] = ResponseSeries.of(trace)
        rates[name] = mb_per_s(trace, bench.place.geometry.sector_bytes)
    return found, rates
