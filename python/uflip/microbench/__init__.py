"""The micro-benchmarks of uFLIP and uFLIP-OC, one file each: the list of what exists.

Each module says which part of Table 1 it implements, holds the ranges as data (`STANDARD`, `QUICK`)
and lays out its experiments for a device (`experiments`); its `MICRO_BENCHMARK` has the words and
the finding of a report. Adding one is a file and a line here. Those of uFLIP-OC (`open_channel`)
need a device with physical addresses, all others one with sectors: each says so.

=====================  =======================================================================
`layout`               what they share: target spaces, an experiment value by value
`micro_benchmark`      what a micro-benchmark is
`finding`              rules that say in a sentence what was measured
`open_channel`         those of uFLIP-OC: jobs over physical addresses
`words`                names of patterns and parameters, values as people write them
=====================  =======================================================================
"""

from collections.abc import Iterable

from uflip.errors import UsageError, unknown_name
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
from uflip.microbench.micro_benchmark import Addresses, MicroBenchmark
from uflip.microbench.open_channel import oc0, oc1, oc2, oc3

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
        oc0,
        oc1,
        oc2,
        oc3,
    )
}
"""By name, in the order of the papers. `baseline` comes first and varies nothing: it holds the long
runs of the four baseline patterns that every other number is compared with."""


def suited(addresses: Addresses) -> dict[str, MicroBenchmark]:
    """Return those that a device with such addresses can do, in the order of the registry."""
    return {name: one for name, one in MICRO_BENCHMARKS.items() if one.addresses == addresses}


def varied() -> dict[str, MicroBenchmark]:
    """Return those of uFLIP that vary a parameter: all but the baseline."""
    return {name: one for name, one in suited("sectors").items() if name != BASELINE}


def check_names(only: Iterable[str] | None, addresses: Addresses) -> list[str]:
    """Return the micro-benchmarks to run, without repetition, in the order of the registry.

    Parameters
    ----------
    only : iterable of str or None
        Names; None: all that the device can do.
    addresses : str
        What kind of device it is, see `DeviceInfo.addresses`.

    Raises
    ------
    UsageError
        For an unknown name, or one that needs another kind of device; lists the known ones.

    Examples
    --------
    >>> check_names(["mix", "granularity", "mix"], "sectors")
    ['granularity', 'mix']
    >>> check_names(None, "physical")
    ['oc0', 'oc1', 'oc2', 'oc3']
    """
    known = suited(addresses)
    names = [*known] if only is None else [*only]
    for name in names:
        if name in known:
            continue
        if name in MICRO_BENCHMARKS:
            raise UsageError(
                "This micro-benchmark needs another kind of device",
                where="--only",
                got=f"{name}, which needs {MICRO_BENCHMARKS[name].addresses} addresses",
                allowed=", ".join(known),
                action="leave it out, or name a device of that kind; `uflip info DEVICE` lists "
                "what a device can do",
            )
        raise unknown_name("micro-benchmark", name, known, where="--only")
    return [name for name in known if name in names]
