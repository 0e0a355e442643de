"""Predictions: formulas of workloads evaluated with the prices of a device."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from uflip.cost.workloads import WORKLOADS, Parameters, Part, Prices, Workload
from uflip.data.summary import Summary
from uflip.errors import UsageError, unknown_name
from uflip.spec import BASELINES
from uflip.units import format_size

KIB, MIB = 1 << 10, 1 << 20
DATA, MEMORY, BLOCK, PAGE, OPERATIONS = 256 * MIB, 16 * MIB, 128 * KIB, 4 * KIB, 4000
AREA, GROWTH = 8 * MIB, 4
SPACE_FACTOR = 4
"""Space of a workload, in multiples of its data: merged data is written elsewhere."""


@dataclass(frozen=True)
class Prediction:
    """The predicted cost of a workload on a device."""

    workload: Workload  #: The workload.
    parameters: Parameters  #: Its parameters.
    parts: list[Part]  #: Its steps.
    missing: tuple[str, ...] = ()  #: Patterns without a price; nothing is predicted then.

    @property
    def time_ns(self) -> float | None:
        """Total time [ns]; None if a price is missing."""
        if self.missing:
            return None
        return sum(count * price for _, count, price in self.parts)

    def error(self, took_ns: int) -> float | None:
        """Return the relative error against a measured time; None without a prediction."""
        return None if self.time_ns is None else self.time_ns / took_ns - 1


def parameters(capacity: int, **options: int | None) -> Parameters:
    """Return parameters; missing ones are chosen by the size of the device [bytes].

    >>> parameters(4 << 30).data >> 20, parameters(128 << 20, growth=8).data >> 20
    (256, 32)
    """
    defaults = Parameters(
        data=min(
            DATA, capacity // SPACE_FACTOR // MIB * MIB or capacity // SPACE_FACTOR // BLOCK * BLOCK
        ),
        memory=MEMORY,
        block=BLOCK,
        page=PAGE,
        operations=OPERATIONS,
        area=AREA,
        growth=GROWTH,
    )
    chosen = {name: value for name, value in options.items() if value is not None}
    if "memory" not in chosen:
        defaults = replace(defaults, memory=max(min(MEMORY, defaults.data // 8), BLOCK))
    complete = replace(defaults, **chosen)
    _check(complete, capacity)
    return complete


def _check(chosen: Parameters, capacity: int) -> None:
    # Check the sizes of I/Os first: the others are multiples of them.
    limits = (
        ("page", 512, capacity, 512),
        ("block", 512, capacity, 512),
        ("data", chosen.block, capacity // SPACE_FACTOR, chosen.block),
        ("memory", chosen.block, chosen.data, chosen.block),
        ("area", chosen.page, capacity, chosen.page),
        ("page", 512, chosen.data, 512),
    )
    for name, least, most, step in limits:
        value = getattr(chosen, name)
        if least > most:
            raise UsageError(
                "The device is too small for this",
                where=f"--{name}",
                got=f"at most {format_size(most)}, on a device of {format_size(capacity)}",
                allowed=f"space for {format_size(least)}",
                action="use a smaller --block and --page, or results of a larger device",
            )
        if not least <= value <= most or value % step:
            raise UsageError(
                "The value does not fit the device or the other options",
                where=f"--{name}",
                got=f"{value} bytes ({format_size(value)})",
                allowed=f"multiples of {format_size(step)} from {format_size(least)} "
                f"to {format_size(most)}",
                action=f"choose another --{name}",
            )


def check_priced(document: Summary, where: str) -> None:
    """Reject results that have no price for any workload."""
    prices = Prices.from_summary(document)
    if not any(map(prices.has_price, BASELINES)):
        raise UsageError(
            "Granularity was not measured",
            where=where,
            got="results without the price of any I/O",
            allowed="results of the micro-benchmark granularity",
            action="measure it: `uflip run DEVICE --only granularity`",
        )


def predict(
    document: Summary, parameters: Parameters, names: Sequence[str] | None = None
) -> list[Prediction]:
    """Return predictions of workloads on the device of a result.

    `document`: from `uflip.results.summary`. `parameters`: parameters of the workloads. `names`:
    names of workloads; by default all.
    """
    prices = Prices.from_summary(document)
    for name in names or ():
        if name not in WORKLOADS:
            raise unknown_name("workload", name, WORKLOADS, where="--workload")
    predictions = []
    for workload in WORKLOADS.values():
        if names and workload.name not in names:
            continue
        missing = tuple(each for each in workload.needs if not prices.has_price(each))
        parts = [] if missing else workload.parts(prices, parameters)
        predictions.append(Prediction(workload, parameters, parts, missing))
    return predictions
