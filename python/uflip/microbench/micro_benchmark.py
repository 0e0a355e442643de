"""What a micro-benchmark is: what it asks, how it is laid out, and how its numbers are read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from uflip.experiment import Context, Experiment, PlannedRun
from uflip.microbench.finding import Rule, largest_effect
from uflip.microbench.open_channel.jobs import JobScope

Addresses = Literal["sectors", "physical"]
Suite = Literal["uflip", "today", "zones"]


def no_experiments(_context: Context) -> list[Experiment]:
    """Lay out nothing: of one whose device has no sectors."""
    return []


def no_jobs(_place: JobScope) -> list[PlannedRun]:
    """Lay out nothing: of one whose device has no physical addresses."""
    return []


@dataclass(frozen=True, slots=True)
class MicroBenchmark:
    """A micro-benchmark; each module here ends with its own, and the list is in `__init__`.

    Attributes
    ----------
    name, title
        As the command line knows it, and as a heading.
    experiments
        Lays its experiments out for a device with sectors.
    addresses
        What kind of device it needs, as `DeviceInfo.addresses` says it.
    jobs
        Lays its jobs out for a device with physical addresses.
    question
        What it asks (uFLIP §3.2).
    how_to_read
        How its figure is read.
    finding
        Says in a sentence what its numbers say.
    figure
        How it is drawn: a name of `uflip.report.figures.MICRO_BENCHMARKS`.
    levels
        Whether its runs can be compared with the baselines, which are drawn then: not where the
        I/O size is another one.
    suites
        Names of `uflip.benchmark_options.SUITES` that it belongs to.
    own_length
        Whether how long its runs are is a part of the question: no method changes it.
    in_turn
        Whether its runs are made once, by their value, behind all others, and where they say: each
        leaves the device as the next one wants it, and in no state for anything else.
    rounds
        Whether its runs are divided into rounds, and counters of a simulated device are sampled
        while they last (`uflip.results.steady_state`).
    """

    name: str
    title: str
    experiments: Callable[[Context], list[Experiment]] = no_experiments
    question: str = ""
    how_to_read: str = ""
    finding: Rule = largest_effect
    figure: str = "sweep"
    levels: bool = True
    addresses: Addresses = "sectors"
    jobs: Callable[[JobScope], list[PlannedRun]] = no_jobs
    suites: tuple[Suite, ...] = ("uflip",)
    own_length: bool = False
    in_turn: bool = False
    rounds: bool = False
