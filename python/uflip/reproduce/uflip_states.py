"""The effect of a device's initial state on the results of uFLIP: §4.1's future work.

Each micro-benchmark begins on a copy of the device in the state in question, so that differences
come from the state alone, and not from earlier measurements.

**Source**: uFLIP (CIDR 2009) §4.1.
**Faithful**: all nine micro-benchmarks over their whole ranges with IOIgnore and IOCount of §5.1;
random and sequential state as the section defines them.
**Simplified**: simulated devices, so that the states are exact and the copies too.
**Ambiguous**: "fresh" is a device that was never written to. "Aged" is the random state and then
`AGED` times as much again. Two means are equal within `REPEATABILITY`, by which the paper's own
repetitions differed. "Significantly" is what does not round to "=" on the scale of Table 3, as in
`uflip_figures`. A state is disturbed in each of the three ways that the section names, each with as
many writes as write `DISTURBED_PART` of the capacity.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import geometric_mean
from typing import TYPE_CHECKING

import numpy as np

from uflip.benchmark import Choices, make_plan
from uflip.benchmark_options import SEED
from uflip.data.summary import CHARACTERISTICS, Summary
from uflip.device.handle import Device
from uflip.device.opener import open_device
from uflip.executors import OnStep, on_all
from uflip.microbench import micro_benchmarks_for
from uflip.microbench.experiment import BASELINE_IO_SIZE
from uflip.report.key_row import COLUMNS, cells
from uflip.reproduce import figure
from uflip.reproduce.reproduction import (
    Reproduction,
    ReproductionRow,
    at_least,
    below,
    between,
    compare_printed,
    compare_stated,
)
from uflip.reproduce.table3 import REPEATABILITY
from uflip.reproduce.uflip_table3 import benchmark_on, idle_before_run_ns
from uflip.results.key_characteristics import LIKE_FACTOR
from uflip.results.summary_document import key_row_of
from uflip.spec import Spec, baseline
from uflip.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEVICES = ("mtron", "samsung", "kingston-dti", "demo")
"""Two disks with logs, a stick with a few open units, and a disk with a map of pages."""

AGED = 5
STATES = {
    "fresh": "state=empty",
    "sequential": "state=sequential",
    "random": "state=random&random_overwrites=1",
    "aged": f"state=random&random_overwrites={1 + AGED}",
}
REFERENCE = "random"

DISTURBED_PART, KIB = 1 / 4, 1 << 10
DISTURBANCES: dict[str, dict[str, int]] = {
    "random writes": {},
    "badly aligned": {"io_shift": 512},
    "other sizes": {"io_size": 4 * KIB},
}
"""The three ways of §4.1, as parameters of random writes."""
PROBES = {"SR": 1024, "RR": 1024, "SW": 1024, "RW": 5120}
PATTERNS = tuple(PROBES)

FRESH_SIZE = 16 * KIB
FRESH_IOS = 2000

ALMOST_TEN = (5, 10)
NOTHING_TO_COPY = (
    "a merge of pages that were never written copies nothing, so this is the cost of the log "
    "itself; what else the drive does is unknown"
)
WHOLE_UNITS = (
    "in the model a random write of 16 KB merges as much as one of 32 KB, which takes 18 ms in "
    "Table 3; §4.1 has about 8 ms in mind, for which the paper shows no measurement"
)
MEMORYLESS = (
    "the model's log holds a few units only: merged data is in order again, whatever "
    "the order of its writes, so the device has no state that random writes could spoil"
)

Means = dict[str, float]


@dataclass(frozen=True)
class InitialStateEffects:
    """The measurements."""

    #: Device -> state -> "micro-benchmark pattern value" -> mean [ms].
    means: dict[str, dict[str, Means]]
    #: Device -> state -> the cells of a row of Table 3.
    characteristics: dict[str, dict[str, list[str]]]
    #: Device -> state -> disturbance -> pattern -> mean afterwards over that before.
    disturbed: dict[str, dict[str, dict[str, Means]]]
    small_writes: Means  #: State -> mean of random writes of 16 KiB on Samsung's disk [ms].


@dataclass(frozen=True)
class _StateMeasurement:
    means: Means
    characteristics: list[str]
    disturbed: dict[str, Means]
    small_writes: float | None


def measure(on_step: OnStep) -> InitialStateEffects:
    """Measure all devices in all states, several at a time."""
    points = [(device, state) for device in DEVICES for state in STATES]
    measured = on_all(_measure_state, points, on_step, name=" ".join)
    by_point = dict(zip(points, measured, strict=True))
    return InitialStateEffects(
        {device: {state: by_point[device, state].means for state in STATES} for device in DEVICES},
        {
            device: {state: by_point[device, state].characteristics for state in STATES}
            for device in DEVICES
        },
        {
            device: {state: by_point[device, state].disturbed for state in ("random", "sequential")}
            for device in DEVICES
        },
        {
            state: small
            for (_, state), measurement in by_point.items()
            if (small := measurement.small_writes) is not None
        },
    )


def _measure_state(point: tuple[str, str]) -> _StateMeasurement:
    profile, state = point
    documents = []
    with open_device(f"sim:{profile}?{STATES[state]}") as device:
        for micro_benchmark in micro_benchmarks_for("sectors"):
            with device.clone() as copy:
                only = ("baseline", micro_benchmark)
                choices = Choices(
                    only,
                    pause_ns=idle_before_run_ns(profile),
                    repetitions=1,
                    method="paper",
                    state="as-is",
                )
                plan = make_plan(copy.info, "standard", SEED, choices)
                documents.append(benchmark_on(copy, plan))
        disturbed = {}
        if state in ("random", "sequential"):
            before = _probe_means(device)
            disturbed = {
                kind: _means_after_disturbance(device, before, changes)
                for kind, changes in DISTURBANCES.items()
            }
        small = _mean_of_small_writes(device) if profile == "samsung" else None
    return _StateMeasurement(*_merge_summaries(documents), disturbed, small)


def _merge_summaries(documents: list[Summary]) -> tuple[Means, list[str]]:
    """Merge the summaries of the micro-benchmarks, with the baselines of the first."""
    baselines = documents[0]["baselines_ms"].items()
    means = {f"baseline {pattern}": mean for pattern, mean in baselines if mean is not None}
    row = key_row_of(documents[0]).copy()
    for document in documents:
        for name, runs in document["micro_benchmarks"].items():
            for run in runs:
                if (statistics := run["statistics"]) is not None:
                    means[f"{name} {run['pattern']} {run['value']}"] = statistics["mean_ns"] / 1e6
        measured = key_row_of(document)
        for name in CHARACTERISTICS:
            # A characteristic comes from the micro-benchmark whose runs it needs.
            if measured[name]["verdict"] != "not_measured":
                row[name] = measured[name]
    return means, cells(row)


def _means_after_disturbance(device: Device, before: Means, changes: Mapping[str, int]) -> Means:
    """Disturb a copy with writes, and return each baseline relative to before."""
    with device.clone() as copy:
        ios = int(DISTURBED_PART * device.info.capacity_bytes) // BASELINE_IO_SIZE
        copy.apply(baseline("RW", io_count=ios, seed=SEED + 1, **changes))
        return {pattern: mean / before[pattern] for pattern, mean in _probe_means(copy).items()}


def _probe_means(device: Device) -> Means:
    """Return the mean of each baseline, each on a copy [ms]."""
    means = {}
    for pattern, count in PROBES.items():
        with device.clone() as copy:
            means[pattern] = _mean_after_idle(copy, baseline(pattern, io_count=count))
    return means


def _mean_of_small_writes(device: Device) -> float:
    with device.clone() as copy:
        spec = baseline("RW", io_size=FRESH_SIZE, io_count=FRESH_IOS)
        return _mean_after_idle(copy, spec)


def _mean_after_idle(device: Device, spec: Spec) -> float:
    """Return the mean of the second half of a run on an idle device [ms]."""
    device.idle(10**10)
    times = np.asarray(device.run(spec).column("response_time_ns"))
    return float(times[len(times) // 2 :].mean()) / 1e6


def rows(data: InitialStateEffects) -> list[ReproductionRow]:
    """Compare with the statements of the section; the text shows further differences."""
    fresh, random = data.small_writes["fresh"], data.small_writes["random"]
    comparisons = [
        compare_printed("uflip/4.1/samsung/fresh", fresh, note=NOTHING_TO_COPY),
        compare_stated(
            "uflip/4.1/samsung/decrease", random / fresh, between(*ALMOST_TEN), note=WHOLE_UNITS
        ),
    ]
    for device, states in data.disturbed.items():
        stable, unstable = _largest_change(states["random"]), _largest_change(states["sequential"])
        comparisons += [
            compare_stated(f"uflip/4.1/{device}/stable", stable, below(LIKE_FACTOR)),
            compare_stated(
                f"uflip/4.1/{device}/less_stable", unstable, at_least(LIKE_FACTOR),
                note=MEMORYLESS * (unstable < LIKE_FACTOR),
            ),
        ]  # fmt: skip
    return comparisons


def _largest_change(disturbed: Mapping[str, Means]) -> float:
    """Return the largest factor by which a baseline changes, in either direction.

    >>> _largest_change({"random writes": {"SR": 1.1, "RW": 0.5}, "other sizes": {"SR": 1.5}})
    2.0
    """
    ratios = [ratio for means in disturbed.values() for ratio in means.values()]
    return max(max(ratio, 1 / ratio) for ratio in ratios)


@dataclass(frozen=True)
class Difference:
    """Comparison of the experiments of a kind from one state with those from the random state."""

    #: Number of experiments, and of those with the same mean within `REPEATABILITY`.
    experiments: int
    equal: int
    #: Geometric mean, minimum and maximum of the ratios.
    mean: float
    least: float
    largest: float
    most: str  #: The experiment that changes most.


def difference(ours: Means, reference: Means) -> Difference:
    """Compare experiment by experiment; experiments of only one state are omitted.

    >>> difference({"a": 2.0, "b": 1.01}, {"a": 1.0, "b": 1.0, "c": 1.0})
    Difference(experiments=2, equal=1, mean=1.4212670403551895, least=1.01, largest=2.0, most='a')
    """
    ratios = {
        at: mean / reference[at] for at, mean in ours.items() if mean and reference.get(at)
    }  # fmt: skip
    return Difference(
        len(ratios),
        sum(abs(ratio - 1) <= REPEATABILITY for ratio in ratios.values()),
        geometric_mean(ratios.values()), min(ratios.values()), max(ratios.values()),
        max(ratios, key=lambda at: abs(math.log(ratios[at]))),
    )  # fmt: skip


def text(data: InitialStateEffects) -> str:
    """Format the characteristics of each state, and the differences from the random one."""
    rows_of_table = [
        Table(
            (f"sim:{device}", *COLUMNS), [(f"  {state}", *row) for state, row in states.items()]
        ).text()
        for device, states in data.characteristics.items()
    ]
    return "\n\n".join([*rows_of_table, _differences(data), _disturbances(data)])


def _differences(data: InitialStateEffects) -> str:
    head = (
        "means over those from the random state", "experiments",
        f"within {100 * REPEATABILITY:g} %", "geometric mean", "least", "largest", "changes most",
    )  # fmt: skip
    rows: list[tuple[str, ...]] = []
    for device, by_state in data.means.items():
        for state, means in by_state.items():
            if state != REFERENCE:
                one = difference(means, by_state[REFERENCE])
                factors = (f"{value:.2f}" for value in (one.mean, one.least, one.largest))
                counts = (str(one.experiments), str(one.equal))
                rows.append((f"sim:{device} {state}", *counts, *factors, one.most))
    return Table(head, rows).text()


def _disturbances(data: InitialStateEffects) -> str:
    head = ("baselines after a disturbance, over before", "state", *PATTERNS)
    rows: list[tuple[str, ...]] = []
    for device, states in data.disturbed.items():
        for state, kinds in states.items():
            for kind, ratios in kinds.items():
                factors = (f"{ratios[pattern]:.2f}" for pattern in PATTERNS)
                rows.append((f"sim:{device} {kind}", state, *factors))
    return Table(head, rows).text()


def draw(data: InitialStateEffects) -> "Figure":
    """Draw each experiment's mean over that from the random state, sorted, a panel per device."""
    sheet, axes = figure.panels(2, 2, height=6.4)
    colors = {"fresh": figure.READS, "sequential": figure.SEQUENTIAL_WRITES, "aged": figure.WRITES}
    for axis, (device, by_state) in zip(axes, data.means.items(), strict=True):
        reference = by_state[REFERENCE]
        for state, color in colors.items():
            means = by_state[state].items()
            ratios = sorted(mean / reference[at] for at, mean in means if reference.get(at))
            axis.plot(np.linspace(0, 100, len(ratios)), ratios, color=color, label=state)
        axis.axhspan(1 - REPEATABILITY, 1 + REPEATABILITY, color=figure.FAINT, alpha=0.25)
        figure.logarithmic(axis, "times the random state's")
        axis.set_xlabel("experiments, sorted [%]")
        figure.title(axis, f"sim:{device}")
    axes[0].legend(loc="upper left", fontsize=7)
    return sheet


REPRODUCTION = Reproduction(
    id="uflip-states",
    title="four devices from four initial states, and what differs",
    source="uFLIP (2009) §4.1, and its future work",
    steps=len(DEVICES) * len(STATES),
    measure=measure,
    rows=rows,
    draw=draw,
    text=text,
)
