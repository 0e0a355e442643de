"""One run in a dozen numbers: the paper's four statistics and the percentiles the sample supports.

**Source** Bouganim, Jónsson, Bonnet: "uFLIP: Understanding Flash IO Patterns", CIDR 2009, §4.2:
each run is represented by min, max, mean and standard deviation of its running phase.

**Faithful** The four statistics, over the I/Os that the caller did not leave out as start-up.

**Simplified** Nothing.

**Ambiguous** The paper does not say which standard deviation: here the sample's (n − 1). It has no
percentiles; response times of flash devices have two or more modes, so a mean alone may be a
response time that never happens. A percentile here is the nearest rank (the smallest observed
response time that at least a share q of the I/Os does not exceed), never an interpolation between
two modes.
"""

from dataclasses import asdict, dataclass, fields

import numpy as np
from numpy.typing import ArrayLike

# A percentile is stated only if at least this many I/Os lie on its thinner side. With fewer, its
# sampling error is of the order of the number itself: p99 of 100 I/Os is decided by a single one.
SUPPORT = 10

PERCENTILES: dict[str, float] = {
    "p5_ns": 0.05,
    "p50_ns": 0.50,
    "p90_ns": 0.90,
    "p95_ns": 0.95,
    "p99_ns": 0.99,
    "p99_9_ns": 0.999,
}


@dataclass(frozen=True, slots=True)
class Summary:
    """Statistics of response times.

    Attributes
    ----------
    count : int
        How many there are.
    min_ns, max_ns : int
        The shortest and the longest [ns].
    mean_ns, std_ns : float
        Mean, and standard deviation of the sample, None for a single I/O [ns].
    p5_ns, p50_ns, p90_ns, p95_ns, p99_ns, p99_9_ns : int or None
        Percentiles, observed ones; None where the sample is too small [ns].
    """

    count: int
    min_ns: int
    max_ns: int
    mean_ns: float
    std_ns: float | None
    p5_ns: int | None
    p50_ns: int | None
    p90_ns: int | None
    p95_ns: int | None
    p99_ns: int | None
    p99_9_ns: int | None

    def as_dict(self) -> dict[str, int | float | None]:
        """Return plain numbers for JSON, in the order of the fields."""
        return asdict(self)


STATISTICS = tuple(field.name for field in fields(Summary))
"""Their names."""


def summarise(response_time_ns: ArrayLike) -> Summary:
    """Summarise the response times of one run.

    Parameters
    ----------
    response_time_ns
        Response times (n,) [ns] with the start-up already left out, n ≥ 1.

    Returns
    -------
    Summary
        The sample standard deviation is None for a single I/O; a percentile q is None where
        fewer than `SUPPORT` I/Os lie on its thinner side.

    Raises
    ------
    ValueError
        If the array is empty or not one-dimensional.

    Examples
    --------
    >>> summary = summarise([100, 100, 100, 500])
    >>> summary.mean_ns, summary.std_ns, summary.max_ns, summary.p50_ns
    (200.0, 200.0, 500, None)
    """
    x = np.sort(np.asarray(response_time_ns))
    if x.ndim != 1 or len(x) == 0:
        raise ValueError(f"response times must be one-dimensional and not empty, got {x.shape}")
    percentiles = {name: _percentile(x, q) for name, q in PERCENTILES.items()}
    return Summary(
        count=len(x),
        min_ns=int(x[0]),
        max_ns=int(x[-1]),
        mean_ns=float(x.mean(dtype=np.float64)),
        std_ns=float(x.std(ddof=1, dtype=np.float64)) if len(x) > 1 else None,
        **percentiles,
    )


def supports(count: int, q: float) -> bool:
    """Say whether so many values tell a percentile: `SUPPORT` lie on its thinner side.

    Parameters
    ----------
    count : int
        How many values there are.
    q : float
        Which percentile: the share of values that it is not exceeded by, 0 < q < 1.

    Returns
    -------
    bool

    Examples
    --------
    >>> supports(1000, 0.99), supports(999, 0.99)
    (True, False)
    """
    # Rounded first: in binary 1000 × (1 − 0.99) is 10.000000000000009, and others are 9.99….
    return round(count * min(q, 1 - q), 6) >= SUPPORT


def _percentile(ordered: np.ndarray, q: float) -> int | None:
    """Nearest rank in an ascending array (n,); None where the sample does not support it."""
    n = len(ordered)
    if not supports(n, q):
        return None
    rank = int(np.ceil(round(n * q, 6)))
    return int(ordered[rank - 1])
