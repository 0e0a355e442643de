"""Zone parallelism: an increasing number of zones is written at once. How far do they add up?

::

    1 zone     |▓▓▓▓>      |           |           |           |
    4 zones    |▓▓▓▓>      |▓▓▓▓>      |▓▓▓▓>      |▓▓▓▓>      |     one process each

**Source**: uFLIP-OC (2017) §5.3 asks how far LUNs and channels add up; K. Doekemeijer et al.
(*Performance Characterization of NVMe Flash Devices with Zoned Namespaces*, IEEE CLUSTER 2023) call
it inter-zone scalability.
**Faithful**: sequential writes, one in flight per zone, as a host that needs the order of its
writes has no more; throughput is that of the steady part of a run, in which all zones are written
(`uflip.results.run_statistics`).
**Simplified**: neighbouring zones, the choice of a host without knowledge of the device.
**Ambiguous**: the largest number. Up to the device's limit of open zones.
"""

from collections.abc import Sequence

from uflip.microbench.experiment import Context, Experiment
from uflip.microbench.finding import Experiments, Means, Ratios, Run
from uflip.microbench.layout import Varying, baseline_spec, lay_out
from uflip.microbench.micro_benchmark import MicroBenchmark
from uflip.microbench.zones import (
    capacity_of,
    counts_within,
    max_zones_at_once,
    powers_up_to,
    why_not,
    zones_of,
)
from uflip.spec import Spec
from uflip.units import format_size

VARYING = Varying("zone_parallelism", "parallel_degree", "")
PATTERN = "SW"
# A throughput this close to a multiple counts as adding up.
ADDITIVE_SHARE = 0.9


def experiments(context: Context) -> list[Experiment]:
    """Lay out sequential writes to an increasing number of zones at once."""
    values = powers_up_to(max_zones_at_once(context))
    if context.quick:
        values = values[::2]
    return [lay_out(context, VARYING, PATTERN, values, _describe, why_not=why_not())]


def _describe(context: Context, pattern: str, zones: int) -> Spec:
    return baseline_spec(
        context,
        pattern,
        counts=counts_within(context, pattern, capacity_of(context)),
        parallel_degree=zones,
        target_offset=0,
        target_size=zones * zones_of(context).zone_bytes,
    )


def bytes_per_s(run: Run) -> float:
    """Return the throughput over all zones [bytes per second]; 0 if no time passed."""
    return (run["ios_per_s"] or 0.0) * int(run["spec"]["io_size"])


def last_scaling_run(runs: Sequence[Run]) -> Run:
    """Return the run with the most zones of which each adds as much as the first one."""
    one = bytes_per_s(runs[0])
    scaling = [run for run in runs if bytes_per_s(run) >= ADDITIVE_SHARE * int(run["value"]) * one]
    return max(scaling, key=lambda run: int(run["value"]))


def finding(measured: Experiments, _baselines: Means, ratios: Ratios) -> str:
    """Return the sentence on one zone, the number that adds up, and the highest throughput."""
    runs = list(measured.get(PATTERN, ()))
    if len(runs) < 2 or runs[0]["value"] != 1 or not bytes_per_s(runs[0]):
        return ""
    best, last = max(runs, key=bytes_per_s), last_scaling_run(runs)
    factor = ratios.factor(bytes_per_s(best) / bytes_per_s(runs[0]), PATTERN)
    return (
        f"One zone takes {_rate(runs[0])}; each further one adds as much up to {last['value']} "
        f"zones ({_rate(last)}). The most is {_rate(best)}, with {best['value']} zones ({factor})."
    )


def _rate(run: Run) -> str:
    return f"{format_size(round(bytes_per_s(run)))}/s"


MICRO_BENCHMARK = MicroBenchmark(
    name=VARYING.micro_benchmark,
    title="Zone parallelism",
    experiments=experiments,
    question="How far do writes to several zones at once add up?",
    how_to_read=(
        "While the response time is flat, zones are on dies of their own and each adds what one "
        "takes. Where it doubles with the zones, they share something that is full: dies, "
        "channels, or the link to the host."
    ),
    finding=finding,
    levels=False,
    suites=("zones",),
    own_length=True,
    fixed_order=True,
)
