"""The type of a micro-benchmark: its question, its layout, and the reading of its results."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from uflip.microbench.experiment import Context, Experiment, PlannedRun
from uflip.microbench.finding import Rule, largest_effect
from uflip.microbench.open_channel.jobs import JobScope

Addresses = Literal["sectors", "physical"]
Suite = Literal["uflip", "today", "iq", "zones", "streams", "inside"]


def no_experiments(_context: Context) -> list[Experiment]:
    """Return no experiments: for one without sectors."""
    return []


def no_jobs(_scope: JobScope) -> list[PlannedRun]:
    """Return no jobs: for one without physical addresses."""
    return []


@dataclass(frozen=True, slots=True)
class MicroBenchmark:
    """A micro-benchmark; each module here defines one, and `__init__` lists them.

    Attributes
    ----------
    name, title
        Name on the command line, and heading.
    experiments
        Lays out its experiments for a device with sectors.
    addresses
        The kind of addresses that it needs, as in `DeviceInfo.addresses`.
    jobs
        Lays out its jobs for a device with physical addresses.
    question
        Its question (uFLIP §3.2).
    how_to_read
        Explanation of its figure.
    finding
        Returns a sentence about its results.
    figure
        Kind of its figure: a name of `uflip.report.figures.MICRO_BENCHMARKS`.
    levels
        Whether its figure shows the levels of the baselines: not if its I/O size differs.
    suites
        Names of its suites in `uflip.benchmark_options.SUITES`.
    own_length
        Whether the length of its runs is part of the question: no method changes it.
    fixed_order
        Whether its runs are made once, by their value, after all others, in fixed target spaces:
        each prepares the device for the next one, and for no other run.
    overwrites
        Whether each of its runs in a fixed order writes so much that it needs no reset before it.
    durability
        Durability of its writes; None: that of the plan.
    resets
        Whether each of its runs in a fixed order begins in the state of the device.
    rounds
        Whether its runs are divided into rounds, with samples of a simulated device's counters
        (`uflip.results.steady_state`).
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
    fixed_order: bool = False
    overwrites: bool = False
    durability: str | None = None
    resets: bool = False
    rounds: bool = False
