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
    """A micro-benchmark; each module here defines one, and `__init__` lists them."""

    #: Name on the command line, and heading.
    name: str
    title: str
    #: Lays out its experiments for a device with sectors.
    experiments: Callable[[Context], list[Experiment]] = no_experiments
    question: str = ""  #: Its question (uFLIP §3.2).
    how_to_read: str = ""  #: Explanation of its figure.
    finding: Rule = largest_effect  #: Returns a sentence about its results.
    figure: str = "sweep"  #: Kind of its figure: a name of `uflip.report.figures.MICRO_BENCHMARKS`.
    #: Whether its figure shows the levels of the baselines: not if its I/O size differs.
    levels: bool = True
    #: The kind of addresses that it needs, as in `DeviceInfo.addresses`.
    addresses: Addresses = "sectors"
    #: Lays out its jobs for a device with physical addresses.
    jobs: Callable[[JobScope], list[PlannedRun]] = no_jobs
    #: Names of its suites in `uflip.benchmark_options.SUITES`.
    suites: tuple[Suite, ...] = ("uflip",)
    #: Whether the length of its runs is part of the question: no method changes it.
    own_length: bool = False
    #: Whether its runs are made once, by their value, after all others, in fixed target spaces:
    #: each prepares the device for the next one, and for no other run.
    fixed_order: bool = False
    #: Whether each of its runs in a fixed order writes so much that it needs no reset before it.
    overwrites: bool = False
    durability: str | None = None  #: Durability of its writes; None: that of the plan.
    #: Patterns whose runs are divided into rounds, with samples of a simulated device's counters
    #: (`uflip.results.steady_state`).
    rounds: tuple[str, ...] = ()
