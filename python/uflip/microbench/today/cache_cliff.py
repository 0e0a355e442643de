"""Cache cliff: sequential writes of increasing length. How large a burst does a cache absorb?

::

    time │            ╱  y per byte    T(b) = x·b                 up to the cliff c
         │          ╱                  T(b) = x·c + y·(b − c)     beyond
         │ ______ ╱
         └───────c────── b bytes

**Source**: ours; the effect is a write buffer or an SLC cache (J. Kim et al.,
*Parameter-aware I/O management for SSDs*, IEEE TC 2012; *Queenie*, SYSTOR 2022).
**Faithful**: each length is a run of its own, after the pause that precedes every run.
**Simplified**: for a device with more than one step (SLC, then TLC, then collection) the first and
the last rate are reported, and the cliff between them.
**Ambiguous**: the size of a cache. A cache empties while it is written, so that a burst of c bytes
before the cliff is larger than the cache: it holds c × (1 − x / y). Both are reported.
"""

from collections.abc import Sequence
from typing import NamedTuple

from uflip.microbench.experiment import Context, IoCounts
from uflip.microbench.finding import Experiments, Means, Ratios, Run, mean_ns
from uflip.microbench.layout import Varying, baseline_spec, by_scale
from uflip.microbench.micro_benchmark import MicroBenchmark
from uflip.spec import Spec
from uflip.units import format_duration_ns, format_size

VARYING = Varying("cache_cliff", "target_size", "bytes")
PATTERN = "SW"
STANDARD = tuple(2**k for k in range(22, 35))
QUICK = tuple(2**k for k in range(22, 29))
# Large I/Os, as in a real burst: few commands [bytes].
IO_SIZE = 128 << 10
# All of them together are half of the device, so that they need no reset between them.
SHARE = 4
# A smaller step does not count: means of one pattern differ by as much. A burst that costs a little
# more than the cheapest has left the cache.
CLIFF, BEYOND_CACHE_FACTOR = 1.5, 1.1


def _describe(context: Context, pattern: str, size: int) -> Spec:
    io_size = max(context.io_size, IO_SIZE)
    counts = IoCounts(max(size // io_size, 1), 0)
    return baseline_spec(context, pattern, io_size=io_size, counts=counts, target_size=size)


def too_large(context: Context, spec: Spec) -> str | None:
    """Return why a burst is skipped, or None."""
    (part,) = spec.parts
    if part.target_bytes <= context.capacity // SHARE:
        return None
    return (
        f"{format_size(part.target_bytes)} are more than a quarter of the device of "
        f"{format_size(context.capacity)}"
    )


class CacheCliff(NamedTuple):
    """The result of bursts: costs [ns per byte], the cliff, its tolerance [bytes]."""

    fast: float
    slow: float
    at: float
    tolerance: float

    @property
    def holds(self) -> float:
        """Size of a cache that empties while it is written [bytes]."""
        return self.at * (1 - self.fast / self.slow)


def cliff(runs: Sequence[Run]) -> CacheCliff | None:
    """Return the two lines through bursts, in the order of their length; None for a single line.

    The cost beyond the cliff is that between the last two bursts; that before it is the least.
    """
    if len(runs) < 3:
        return None
    sizes = [int(run["value"]) for run in runs]
    times = [mean_ns(run) * run["io_count"] for run in runs]
    fast = min(time / size for time, size in zip(times, sizes, strict=True))
    slow = _slope(times, sizes, len(runs) - 1)
    if slow < CLIFF * fast:
        return None
    at = _intersection(fast, slow, times[-1], sizes[-1])
    beyond_cliff = [
        n for n in range(1, len(runs)) if times[n - 1] > BEYOND_CACHE_FACTOR * fast * sizes[n - 1]
    ]
    if not beyond_cliff:
        # The last two are on different sides: the cliff is somewhere between them.
        return CacheCliff(fast, slow, at, sizes[-1] - sizes[-2])
    # Each pair of bursts beyond gives an estimate; their spread is the tolerance.
    estimates = [
        _intersection(fast, _slope(times, sizes, n), times[n], sizes[n]) for n in beyond_cliff
    ]
    io_size = int(runs[0]["spec"]["io_size"])
    return CacheCliff(fast, slow, at, (max(estimates) - min(estimates)) / 2 + io_size)


def _slope(times: Sequence[float], sizes: Sequence[int], n: int) -> float:
    return (times[n] - times[n - 1]) / (sizes[n] - sizes[n - 1])


def _intersection(fast: float, slow: float, time: float, size: float) -> float:
    return (slow * size - time) / (slow - fast)


def finding(measured: Experiments, _baselines: Means, ratios: Ratios) -> str:
    """Return the sentence on the cliff, and the costs on both sides."""
    runs = measured.get(PATTERN, ())
    if len(runs) < 3:
        return ""
    result, longest = cliff(runs), format_size(int(runs[-1]["value"]))
    if result is None:
        return f"No cliff: bursts up to {longest} cost as much a byte as short ones."
    io_size = int(runs[0]["spec"]["io_size"])
    return (
        f"A burst is fast for {_about(result.at)} (± {_about(result.tolerance)}): an I/O of "
        f"{format_size(io_size)} takes {format_duration_ns(result.fast * io_size)} before and "
        f"{format_duration_ns(result.slow * io_size)} beyond "
        f"({ratios.factor(result.slow / result.fast, PATTERN)}). If that is a cache that empties "
        f"meanwhile, it holds {_about(result.holds)}."
    )


def _about(size: float) -> str:
    return format_size(round(size))


MICRO_BENCHMARK = MicroBenchmark(
    name=VARYING.micro_benchmark,
    title="Cache cliff",
    experiments=by_scale(VARYING, [PATTERN], STANDARD, QUICK, _describe, why_not=too_large),
    question="How many bytes can a burst write at cache speed?",
    how_to_read=(
        "Flat up to the cliff: the burst fits into a cache. Beyond it the mean climbs towards what "
        "the flash takes. The idle time before each burst is the pause between runs: a cache that "
        "needs longer appears smaller than it is (see cache refill)."
    ),
    finding=finding,
    levels=False,
    suites=("today",),
    own_length=True,
)
