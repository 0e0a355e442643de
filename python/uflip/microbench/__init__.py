"""The micro-benchmarks of uFLIP, one file each: the list of what exists.

Each module says which part of Table 1 it implements, holds the ranges as data (`STANDARD`, `QUICK`)
and lays out its experiments for a device (`experiments`); its `MICRO_BENCHMARK` has the words and
the finding of a report. Adding one is a file and a line here.

=====================  =======================================================================
`layout`               what they share: target spaces, an experiment value by value
`micro_benchmark`      what a micro-benchmark is
`finding`              rules that say in a sentence what was measured
`words`                names of patterns and parameters, values as people write them
=====================  =======================================================================
"""

from uflip.errors import unknown_name
from uflip.microbench import (
    alignment,
    baseline,
    bursts,
    granularity,
    locality,
    mix,
    order,
    parallelism,
    partitioning,
    pause,
)
from uflip.microbench.micro_benchmark import MicroBenchmark

BASELINE = baseline.MICRO_BENCHMARK.name

MICRO_BENCHMARKS: dict[str, MicroBenchmark] = {
    module.MICRO_BENCHMARK.name: module.MICRO_BENCHMARK
    for module in (
        baseline,
        granularity,
        alignment,
        locality,
        partitioning,
        order,
        parallelism,
        mix,
        pause,
        bursts,
    )
}
"""By name, in the order of the paper. `baseline` comes first and varies nothing: it holds the long
runs of the four baseline patterns that every other number is compared with."""


def varied() -> dict[str, MicroBenchmark]:
    """Return those that vary a parameter: all but the baseline."""
    return {name: one for name, one in MICRO_BENCHMARKS.items() if name != BASELINE}


def check_names(names: list[str]) -> list[str]:
    """Return micro-benchmark names without repetition, in the order of the registry.

    Raises
    ------
    UsageError
        For an unknown name; lists the known ones.

    Examples
    --------
    >>> check_names(["mix", "granularity", "mix"])
    ['granularity', 'mix']
    """
    for name in names:
        if name not in MICRO_BENCHMARKS:
            raise unknown_name("micro-benchmark", name, MICRO_BENCHMARKS, where="--only")
    return [name for name in MICRO_BENCHMARKS if name in names]
