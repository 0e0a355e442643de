"""µOC3: parallelism over channels: vectors against threads, and reads during writes.

**Source**: uFLIP-OC (2017) §3.2, Table 1, Table 3, Figure 5 and the text of §5.2.2.
**Faithful**: one LUN per channel; vectors of 1, 2, 4, 8 pages by one thread, each page of a vector
on another channel, channels in turn; 1, 2, 4, 8 threads with separate channels, in turn where a
thread has several; a thread for every LUN of the device; threads that only read, concurrent with
threads that only write.
**Simplified**: nothing.
**Ambiguous**: the shares of readers in Figure 5 are not in the text; here 0, 25, 50, 75 and 100 %,
as in µOC0, or the next lower share that the number of threads allows. Threads that read and threads
that write use separate channels: the paper says "a separate LUN", and with one thread per channel
that is the same.
"""

from dataclasses import dataclass
from math import gcd

from uflip.microbench.experiment import PlannedRun
from uflip.microbench.micro_benchmark import MicroBenchmark
from uflip.microbench.open_channel.jobs import (
    Bench,
    JobScope,
    measure_each,
    reads_percent,
    throughput,
)
from uflip.microbench.open_channel.scaling import Scaling
from uflip.microbench.open_channel.series import READ, WRITE, ResponseSeries, degrees

NAME = "oc3"
TITLE = "channels, by vectors and by threads"

READERS = (0, 25, 50, 75, 100)
"""Shares of reading threads, as far as the number of threads allows [%]."""
READS_ALONE = "100 % reads"


@dataclass(frozen=True)
class Oc3:
    """The result of µOC3."""

    #: "writes, vectors", "writes, threads", "reads, vectors", "reads, threads".
    scaling: dict[str, Scaling]
    all_luns: dict[str, float]  #: "writes" and "reads" with a thread for every LUN [MB/s].
    mixes: dict[str, ResponseSeries]  #: Response times by share of writers.
    throughput: dict[str, float]  #: Throughput by share of writers [MB/s].

    @property
    def halves(self) -> ResponseSeries | None:
        """The mix nearest to as many readers as writers; None without a mix of both."""
        both = {
            abs(len(series.times(WRITE)) - len(series.times(READ))): series
            for series in reversed(self.mixes.values())
            if len(series.times(WRITE)) and len(series.times(READ))
        }
        return both[min(both)] if both else None


def shares(threads: int) -> dict[str, str]:
    """Return the possible shares of writing threads -> the mix of each.

    >>> shares(8)["75 % writes"], shares(3)
    ('WWWR', {'100 % writes': 'W', '67 % writes': 'WWR', '33 % writes': 'WRR', '100 % reads': 'R'})
    """
    mixes = {}
    for percent in READERS:
        readers = threads * percent // 100
        common = gcd(readers, threads)
        mix = "W" * ((threads - readers) // common) + "R" * (readers // common)
        written = round(100 * (threads - readers) / threads)
        mixes[f"{written} % writes" if written else READS_ALONE] = mix
    return mixes


def scalings(scope: JobScope) -> dict[str, tuple[str, dict[int, PlannedRun]]]:
    """Lay out vectors and threads: "writes, vectors" -> name of the degree, jobs by degree."""
    channels = scope.geometry.channels
    base = {"channels": channels, "iteration": "round_robin"}
    laid_out = {}
    for word, mix in (("writes", "W"), ("reads", "R")):
        for key, over, max_degree in (
            ("vector", "pages", min(channels, scope.vector_pages_max)),
            ("threads", "threads", channels),
        ):
            jobs = {
                degree: scope.job(
                    NAME, f"{mix}-{over}-{degree}", mix, (key, degree, ""), **base, **{key: degree}
                )
                for degree in degrees(max_degree)
                if channels % degree == 0
            }
            laid_out[f"{word}, {'vectors' if key == 'vector' else 'threads'}"] = (over, jobs)
    return laid_out


def all_luns(scope: JobScope) -> dict[str, PlannedRun]:
    """Lay out writes and reads with a thread for every LUN."""
    channels, luns = scope.geometry.channels, scope.geometry.luns_per_channel
    job = {"channels": channels, "luns": luns, "threads": channels * luns,
           "iteration": "round_robin"}  # fmt: skip
    return {
        word: scope.job(NAME, f"{mix}-all", mix, ("luns", channels * luns, ""), **job)
        for word, mix in (("writes", "W"), ("reads", "R"))
    }


def mixes(scope: JobScope) -> dict[str, PlannedRun]:
    """Lay out concurrent readers and writers, a channel for each thread."""
    channels = scope.geometry.channels
    job = {"channels": channels, "threads": channels, "iteration": "isolated"}
    return {
        share: scope.job(NAME, f"isolated-{mix}", mix, reads_percent(mix), **job)
        for share, mix in shares(channels).items()
    }


def layout(scope: JobScope) -> list[PlannedRun]:
    """Lay out all jobs."""
    scaled = [job for _, jobs in scalings(scope).values() for job in jobs.values()]
    return [*scaled, *all_luns(scope).values(), *mixes(scope).values()]


def measure_scaling(bench: Bench) -> dict[str, Scaling]:
    """Return throughput by pages of a vector, and by threads."""
    return {
        name: Scaling(over, {n: throughput(bench, job) for n, job in jobs.items()})
        for name, (over, jobs) in scalings(bench.scope).items()
    }


def measure_all_luns(bench: Bench) -> dict[str, float]:
    """Return throughput with a thread for every LUN."""
    return {word: throughput(bench, job) for word, job in all_luns(bench.scope).items()}


def measure_mixes(bench: Bench) -> tuple[dict[str, ResponseSeries], dict[str, float]]:
    """Measure concurrent readers and writers, with a channel for each thread."""
    return measure_each(bench, mixes(bench.scope))


def measure(bench: Bench) -> Oc3:
    """Run all jobs."""
    scaling, all_luns_rates = measure_scaling(bench), measure_all_luns(bench)
    return Oc3(scaling, all_luns_rates, *measure_mixes(bench))


MICRO_BENCHMARK = MicroBenchmark(
    NAME,
    TITLE,
    addresses="physical",
    jobs=layout,
    question="What do several channels gain together, driven by the pages of one vector or by a "
    "thread each? What do reads on channels of their own feel of writes on others?",
)
