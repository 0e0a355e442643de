"""The price of an I/O: means of a benchmark, interpolated for sizes and areas between.

**Source** uFLIP (CIDR 2009) §5.2, Figure 6: the cost of an I/O over its size is a line.
**Faithful** Between two measured sizes the price lies on the line through them.
**Simplified** Below the smallest size an I/O costs as much as that size; above the largest the last
line is extended. The gain of writes to a small area is measured at one I/O size, and applied to
all.
**Ambiguous** The paper does not define how prices combine. Here I/Os follow each other one by one,
and each costs as much as among I/Os of its own kind.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import log2

from uflip.data.summary import Summary
from uflip.hints.means import Curve, Lines, baseline, lines_of

BASELINE_IO_SIZE = 32 << 10
"""I/O size of experiments that vary something else [bytes], if no baseline reports it."""


@dataclass(frozen=True)
class Prices:
    """Prices of a device.

    Attributes
    ----------
    lines : mapping
        Micro-benchmark and pattern -> means, from `uflip.hints.means`.
    """

    lines: Lines

    @staticmethod
    def from_summary(document: Summary) -> "Prices":
        """Extract the prices from a summary of results."""
        return Prices(lines_of(document))

    def sizes(self, pattern: str) -> Curve:
        """Return the means over sizes."""
        return self.lines.get(f"granularity {pattern}", {})

    def has_price(self, pattern: str) -> bool:
        """Return whether a pattern has a price."""
        return len(self.sizes(pattern)) > 1

    def io_ns(self, pattern: str, size: int) -> float:
        """Return the price of an I/O of a size [bytes], in SR, RR, SW or RW [ns].

        Examples
        --------
        >>> from uflip.hints.means import Mean
        >>> prices = Prices({"granularity SR": {4096: Mean(100.0), 8192: Mean(140.0)}})
        >>> prices.io_ns("SR", 6144), prices.io_ns("SR", 12288), prices.io_ns("SR", 512)
        (120.0, 180.0, 100.0)
        """
        curve = self.sizes(pattern)
        sizes = list(curve)
        if size <= sizes[0]:
            return curve[sizes[0]].ns
        for small, large in pairwise(sizes):
            if size <= large or large == sizes[-1]:
                slope = (curve[large].ns - curve[small].ns) / (large - small)
                return curve[small].ns + slope * (size - small)
        return curve[sizes[-1]].ns

    def partition_factor(self, pattern: str, places: int) -> float:
        """Return the relative price of a sequential I/O that alternates between places."""
        return self._relative(f"partitioning {pattern}", pattern, places)

    def area_factor(self, pattern: str, area: int) -> float:
        """Return the relative price of a random I/O within an area [bytes]."""
        return self._relative(f"locality {pattern}", pattern, area)

    def _relative(self, line: str, pattern: str, value: int) -> float:
        curve, base = self.lines.get(line, {}), baseline(self.lines, pattern)
        if base is None:  # use the same I/O size of granularity
            base = self.sizes(pattern).get(BASELINE_IO_SIZE)
        if not curve or base is None:
            return 1.0
        return _between(curve, value) / base.ns


def _between(curve: Curve, value: int) -> float:
    """Return the mean at a value: log-linear between points, constant beyond the ends."""
    values = [each for each in curve if each > 0]
    if value <= values[0]:
        return curve[values[0]].ns
    for low, high in pairwise(values):
        if value <= high:
            share = log2(value / low) / log2(high / low)
            return curve[low].ns + share * (curve[high].ns - curve[low].ns)
    return curve[values[-1]].ns
