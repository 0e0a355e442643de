"""The best block size: for reads by the five-minute rule, and for writes by their cost per byte.

A page of an index resolves log₂ of its entries of the way to a record, and costs one random read
and its space in memory. Larger pages resolve more for a longer read, and fill memory with entries
that were not requested.

**Source** Gray & Graefe, "The five-minute rule ten years later" (1997): utility of an index page
log₂(entries), entries of 20 bytes, pages filled to 70 %; its size is best where utility over the
time of a read is largest. G. Graefe, "The five-minute rule twenty years later, and how flash memory
changes the rules" (DaMoN 2007), which uFLIP (2009) §5.3 applies.
**Faithful** The utility, and the break-even interval: pages that are read again sooner than it
belong in memory.
**Simplified** Only sizes that were measured are compared.
**Ambiguous** The best size for writes, for which the paper says "large": the smallest size whose
cost per byte is within `LIKE_FACTOR` of the lowest measured. "A good trade-off": a size between the
two, so that no larger page is more useful (`larger_reads`) and no smaller write nearly as cheap
(`smaller_writes`), each beyond the intervals of the compared values.
"""

from dataclasses import dataclass
from math import log2

from uflip.hints.means import Curve, Factor, Mean, mean_ratio
from uflip.results.key_characteristics import LIKE_FACTOR

ENTRY_BYTES = 20
FILL_SHARE = 0.7
MIB = 1 << 20


@dataclass(frozen=True)
class BlockSizes:
    """The best sizes for reads and for writes, and a size in between.

    Attributes
    ----------
    reads, writes : int
        Best size for each [bytes].
    between : int
        The power of two nearest to their geometric mean [bytes].
    """

    reads: int
    writes: int
    between: int


def block_sizes(reads: Curve, writes: Curve, entry_bytes: int = ENTRY_BYTES) -> BlockSizes | None:
    """Return the best sizes from random reads and writes over size; None with too few sizes.

    Examples
    --------
    >>> flat = {2**power: Mean(100_000 + 2**power * 10) for power in range(9, 20)}
    >>> merged = {2**power: Mean(5e6) for power in range(9, 20)}
    >>> block_sizes(flat, merged)
    BlockSizes(reads=2048, writes=524288, between=32768)
    """
    if len(reads) < 2 or len(writes) < 2:
        return None
    best_read = max(reads, key=lambda size: usefulness(size, reads[size], entry_bytes))
    cost_per_byte = {size: mean.ns / size for size, mean in writes.items()}
    lowest = min(cost_per_byte.values())
    best_write = min(size for size, cost in cost_per_byte.items() if cost <= LIKE_FACTOR * lowest)
    between = 2 ** round((log2(best_read) + log2(best_write)) / 2)
    return BlockSizes(best_read, best_write, between)


def larger_reads(
    reads: Curve, limit: int, entry_bytes: int = ENTRY_BYTES
) -> dict[int, Factor] | None:
    """Return the usefulness of each page above a size, relative to the best up to that size.

    None if no page up to that size was measured.

    Examples
    --------
    >>> larger_reads({4096: Mean(100.0), 65536: Mean(300.0)}, 32768)[65536].value < 1
    True
    """
    small = [size for size in reads if size <= limit]
    if not small:
        return None
    best = max(small, key=lambda size: usefulness(size, reads[size], entry_bytes))
    utility = _utility(best, entry_bytes)
    if not utility:
        return None
    return {
        size: mean_ratio(reads[best].times(_utility(size, entry_bytes) / utility), mean)
        for size, mean in reads.items()
        if size > limit
    }


def smaller_writes(writes: Curve, limit: int) -> dict[int, Factor]:
    """Return the lowest cost per byte of all writes, relative to that of each write below a size.

    Examples
    --------
    >>> smaller_writes({16384: Mean(100.0), 32768: Mean(100.0)}, 32768)
    {16384: Factor(value=0.5, low=None, high=None, mark=None)}
    """
    cost_per_byte = {size: mean.times(1 / size) for size, mean in writes.items()}
    cheapest = min(cost_per_byte, key=lambda size: cost_per_byte[size].ns)
    lowest = cost_per_byte[cheapest]
    return {
        # Its ratio to itself is exact.
        size: mean_ratio(lowest, mean) if size != cheapest else Factor(1.0, 1.0, 1.0)
        for size, mean in cost_per_byte.items()
        if size < limit
    }


def usefulness(size: int, read: Mean, entry_bytes: int = ENTRY_BYTES) -> float:
    """Return the utility of an index page divided by the time to read it [1/ns].

    Examples
    --------
    >>> usefulness(4096, Mean(100.0)) > usefulness(4096, Mean(200.0)) > 0
    True
    """
    return _utility(size, entry_bytes) / read.ns


def _utility(size: int, entry_bytes: int) -> float:
    """Return how much of a lookup a page resolves: log₂ of its entries."""
    entries = FILL_SHARE * size / entry_bytes
    return log2(entries) if entries > 1 else 0.0


def break_even_s(size: int, read: Mean, device_price: float, price_of_memory: float) -> float:
    """Return the interval below which a page that is read again belongs in memory [s].

    Parameters
    ----------
    size : int
        Size of the page [bytes].
    read : Mean
        Mean of a random read of this size.
    device_price, price_of_memory : float
        Price of the device, and of a GiB of memory, in the same currency.

    Examples
    --------
    Gray & Putzolu (1987): 15 accesses a second for $15,000 of disk and as much of processor and
    channel, and a KB of memory for $5.

    >>> round(break_even_s(1024, Mean(1e9 / 15), 30_000, 5 * 2**20))
    400
    """
    pages_per_gib = (1 << 30) / size
    reads_per_s = 1e9 / read.ns
    return pages_per_gib / reads_per_s * device_price / price_of_memory
