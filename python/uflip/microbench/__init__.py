"""The micro-benchmarks of uFLIP, one file each: the list of what exists.

Each module says which part of Table 1 it implements, holds the ranges as data (`STANDARD`, `QUICK`)
and lays out its experiments for a device (`experiments`). Adding one is a file and a line here.
"""

from collections.abc import Callable

from uflip.errors import unknown_name
from uflip.experiment import Context, Experiment
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

MICRO_BENCHMARKS: dict[str, Callable[[Context], list[Experiment]]] = {
    "baseline": baseline.experiments,
    "granularity": granularity.experiments,
    "alignment": alignment.experiments,
    "locality": locality.experiments,
    "partitioning": partitioning.experiments,
    "order": order.experiments,
    "parallelism": parallelism.experiments,
    "mix": mix.experiments,
    "pause": pause.experiments,
    "bursts": bursts.experiments,
}
"""Name -> its layout, in the order of the paper. `baseline` comes first and is not one of the nine:
it holds the long runs of the four baseline patterns that every other number is compared with."""


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
