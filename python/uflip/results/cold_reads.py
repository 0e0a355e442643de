"""Cold reads: does the first visit of an address decide the mean of a run of random reads?

    RR within    4 MiB  0.74 ▇▇▃▂▁▁▁▁▁▁▁▁▁▁▁▁   128 addresses, each read ten times
    RR within  512 MiB  0.74 ▇▇▇▇▇▇▇▇▇▆▇▇▇▇▇▇   16,384 addresses, most read once: warm later
    RR, all of it       0.74 ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇   as for a device in use

A controller without memory for its whole map loads map entries from flash (DFTL). The first read of
an address then costs more than later ones, and a run that is too short to visit addresses again
does not show what its pattern costs in the long run.

**Source** Gupta et al. (ASPLOS 2009): entries of the map are loaded on demand.
**Faithful** Judged are random reads in a part of the target. Reads of all of it are not: their
addresses are as cold as those of a large device in use.
**Simplified** An address that was read once is taken to be warm, however many follow.
**Ambiguous** What cold and warm reads cost. A cold read costs what the baseline RR costs. The price
of a warm one is the lowest mean of runs that visited each address `VISITS` times. It must be less
than `CHEAPER` of the baseline: where its addresses lie on the flash changes the mean of nine of
them by less, and another page read on the way changes it by more. A run is cold if the share of
first visits changes its mean by more than `AGREEMENT`.
"""

from collections.abc import Iterable, Sequence
from math import exp

from uflip.data.spec import Basic, typed_spec
from uflip.data.summary import ExperimentSummary
from uflip.footprint import NEARLY_ALL, reads_few_addresses
from uflip.results.agreement import AGREEMENT

VISITS = 8
CHEAPER = 0.8


def cold_reads(
    baseline: ExperimentSummary | None, experiments: Iterable[ExperimentSummary], capacity: int
) -> set[str]:
    """Return the runs that name the experiments whose mean is that of first visits of addresses.

    Parameters
    ----------
    baseline : dict or None
        Random reads over the whole target.
    experiments : iterable of dict
        All others; judged are random reads of the same size.
    capacity : int
        Size of the target [bytes].
    """
    if baseline is None or baseline["statistics"] is None:
        return set()
    size, cold_ns = typed_spec(baseline["spec"]), baseline["statistics"]["mean_ns"]
    assert isinstance(size, Basic), "a baseline"
    judged = [
        (run, _first_visits(spec), run["statistics"]["mean_ns"])
        for run in experiments
        if run["statistics"] is not None
        and isinstance(spec := typed_spec(run["spec"]), Basic)
        and _is_judged(spec, size.io_bytes, capacity)
    ]
    warm_ns = _warm_ns(judged)
    if warm_ns is None or warm_ns >= CHEAPER * cold_ns:
        return set()
    return {
        run["run"]
        for run, share, mean_ns in judged
        if share * (cold_ns - warm_ns) > AGREEMENT * mean_ns
    }


def _is_judged(spec: Basic, io_bytes: int, capacity: int) -> bool:
    """Return whether a run reads at random in a part of the target, several addresses."""
    return (
        spec.mode == "read"
        and spec.location == "random"
        and spec.io_bytes == io_bytes
        and spec.depth == 1
        and spec.target_bytes < NEARLY_ALL * capacity
        and not reads_few_addresses(spec)
    )


def _first_visits(spec: Basic) -> float:
    """Return the expected share of first visits among the measured I/Os of random reads."""
    addresses = spec.target_bytes / spec.io_bytes
    all_ios, ignored = (each * spec.processes for each in (spec.ios, spec.ignored_ios))
    visited = exp(-ignored / addresses) - exp(-all_ios / addresses)
    return addresses * visited / max(all_ios - ignored, 1)


def _warm_ns(judged: Sequence[tuple[ExperimentSummary, float, float]]) -> float | None:
    """Return the lowest mean of runs that visited each address `VISITS` times; None without one."""
    return min((mean_ns for _, share, mean_ns in judged if share <= 1 / VISITS), default=None)
