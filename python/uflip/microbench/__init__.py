"""The micro-benchmarks of uFLIP and uFLIP-OC, and newer ones, one file each, and their registry.

Each module names the part of Table 1 that it implements, holds the ranges as data (`STANDARD`,
`QUICK`), describes the run of each value, and ends with its `MICRO_BENCHMARK`: the layout, the
texts and the finding of a report. A new one needs a file and a line here. Those of uFLIP-OC
(`open_channel`) need a device with physical addresses, all others one with sectors. Those of the
papers are one suite, the newer ones (`today`) another, those of SSD-iq (`iq`) a third, those of
zones (`zones`) a fourth, those of write streams (`streams`) a fifth, the probes of `uflip infer`
(`inside`) a sixth. A plan uses one suite.

=====================  =======================================================================
`experiment`           planned runs, and the context in which micro-benchmarks define them
`layout`               shared: target spaces, an experiment value by value
`micro_benchmark`      the type of a micro-benchmark
`finding`              rules that summarise the results in a sentence
`open_channel`         those of uFLIP-OC: jobs over physical addresses
`today`                extensions: queues, caches, reads under writes
`iq`                   write amplification and latency under load
`zones`                those of zoned devices: appends, resets, several zones at once
`streams`              those of write streams: placement handles, hot data apart
`inside`               probes that identify the properties of a device
`labels`               names of patterns and parameters, formatted values
=====================  =======================================================================
"""

from collections.abc import Iterable

from uflip.benchmark_options import SUITE, SUITES
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
from uflip.microbench.experiment import PlannedRun
from uflip.microbench.inside import (
    cache_burst,
    clear,
    fill,
    overwrite,
    overwrite_part,
    read_arrivals,
    read_beside_writes,
    read_bursts,
    read_deallocated,
    read_each,
    read_range,
    read_size,
    rewrite,
    write_bursts,
    write_size,
)
from uflip.microbench.iq import (
    content,
    fill_level,
    hot_zone,
    initial_state,
    offered_load,
    open_zones,
    read_only,
    skew,
    zone_size,
)
from uflip.microbench.micro_benchmark import Addresses, MicroBenchmark
from uflip.microbench.open_channel import oc0, oc1, oc2, oc3
from uflip.microbench.streams import each_stream, hot_stream
from uflip.microbench.today import (
    cache_cliff,
    cache_refill,
    deallocate,
    mixed_sizes,
    odd_stride,
    queue_depth,
    read_under_write,
    steady_state,
    write_rate,
)
from uflip.microbench.zones import append as zone_append
from uflip.microbench.zones import distance as zone_distance
from uflip.microbench.zones import finish as zone_finish
from uflip.microbench.zones import parallelism as zone_parallelism
from uflip.microbench.zones import reset as zone_reset
from uflip.microbench.zones import wear as zone_wear

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
        queue_depth,
        read_under_write,
        write_rate,
        cache_cliff,
        cache_refill,
        odd_stride,
        mixed_sizes,
        steady_state,
        deallocate,
        skew,
        hot_zone,
        read_only,
        fill_level,
        zone_size,
        open_zones,
        content,
        initial_state,
        offered_load,
        zone_parallelism,
        zone_append,
        zone_distance,
        zone_reset,
        zone_finish,
        zone_wear,
        each_stream,
        hot_stream,
        clear,
        read_size,
        read_each,
        read_bursts,
        read_arrivals,
        read_deallocated,
        write_size,
        write_bursts,
        read_beside_writes,
        cache_burst,
        fill,
        read_range,
        rewrite,
        overwrite,
        overwrite_part,
    )
}
"""By name, in the order of the papers, then of today, SSD-iq, zones and streams, and the probes.

`baseline` comes first and varies nothing: it contains the long runs of the four baseline patterns
that all other results are compared with.
"""


def micro_benchmarks_for(addresses: Addresses, suite: str = SUITE) -> dict[str, MicroBenchmark]:
    """Return the micro-benchmarks of a suite that support these addresses, in order."""
    return {
        name: micro_benchmark
        for name, micro_benchmark in MICRO_BENCHMARKS.items()
        if micro_benchmark.addresses == addresses and suite in micro_benchmark.suites
    }


def varied_micro_benchmarks(suite: str = SUITE) -> dict[str, MicroBenchmark]:
    """Return those of a suite over sectors that vary a parameter: all but the baseline."""
    return {
        name: micro_benchmark
        for name, micro_benchmark in micro_benchmarks_for("sectors", suite).items()
        if name != BASELINE
    }


def suite_of(names: Iterable[str]) -> str:
    """Return the suite of results, from the micro-benchmarks in them.

    >>> suite_of(["mix"]), suite_of(["cache_cliff"]), suite_of([])
    ('uflip', 'today', 'uflip')
    """
    name_set = set(names)
    return next(
        (suite for suite in SUITES[::-1] if name_set & set(varied_micro_benchmarks(suite))), SUITE
    )


def has_own_length(run: PlannedRun) -> bool:
    """Return whether the length of a run is part of its question, and fixed for every method."""
    benchmark = MICRO_BENCHMARKS.get(run.micro_benchmark)
    return benchmark is not None and benchmark.own_length


def has_rounds(run: PlannedRun) -> bool:
    """Return whether a run is divided into rounds, for rate and write amplification over time."""
    benchmark = MICRO_BENCHMARKS.get(run.micro_benchmark)
    return benchmark is not None and run.pattern in benchmark.rounds


def own_durability(run: PlannedRun) -> str | None:
    """Return the durability of the writes of a run, whatever its plan; None: that of the plan."""
    benchmark = MICRO_BENCHMARKS.get(run.micro_benchmark)
    return None if benchmark is None else benchmark.durability


def has_fixed_order(run: PlannedRun) -> bool:
    """Return whether a run comes last, once, with a fixed order and a fixed target space."""
    benchmark = MICRO_BENCHMARKS.get(run.micro_benchmark)
    return benchmark is not None and benchmark.fixed_order


def is_reset_before(run: PlannedRun) -> bool:
    """Return whether a run with a fixed order needs the device in its state."""
    return has_fixed_order(run) and not MICRO_BENCHMARKS[run.micro_benchmark].overwrites


def check_names(only: Iterable[str] | None, addresses: Addresses, suite: str = SUITE) -> list[str]:
    """Return the micro-benchmarks to run, without repetition, in the order of the registry.

    `only`: names; None: all that the device supports. `addresses`: addresses of the device, see
    `DeviceInfo.addresses`. `suite`: one of `SUITES`.

    >>> check_names(["mix", "granularity", "mix"], "sectors")
    ['granularity', 'mix']
    >>> check_names(None, "physical")
    ['oc0', 'oc1', 'oc2', 'oc3']
    """
    if suite not in SUITES:
        raise unknown_name("suite", suite, SUITES, where="--suite")
    supported = micro_benchmarks_for(addresses, suite)
    if not supported:
        raise UsageError(
            "The suite does not support this kind of device",
            where="--suite",
            got=suite,
            allowed=", ".join(name for name in SUITES if micro_benchmarks_for(addresses, name)),
            action="name another suite, or a device whose addresses are sectors",
        )
    names = [*supported] if only is None else [*only]
    for name in names:
        if name not in supported:
            raise _unavailable_error(name, addresses, suite)
    return [name for name in supported if name in names]


def _unavailable_error(name: str, addresses: Addresses, suite: str) -> UsageError:
    supported, micro_benchmark = micro_benchmarks_for(addresses, suite), MICRO_BENCHMARKS.get(name)
    if micro_benchmark is None:
        return unknown_name("micro-benchmark", name, supported, where="--only")
    if micro_benchmark.addresses != addresses:
        return UsageError(
            "This micro-benchmark needs another kind of device",
            where="--only",
            got=f"{name}, which needs {micro_benchmark.addresses} addresses",
            allowed=", ".join(supported),
            action="omit it, or name a device of that kind; `uflip info DEVICE` lists "
            "what a device can do",
        )
    return UsageError(
        "This micro-benchmark belongs to another suite",
        where="--only",
        got=f"{name} with --suite {suite}",
        allowed=", ".join(supported),
        action=f"give --suite {micro_benchmark.suites[0]}; a plan contains one suite only",
    )
