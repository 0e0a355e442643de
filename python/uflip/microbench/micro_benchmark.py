"""What a micro-benchmark is: what it asks, how it is laid out, and how its numbers are read."""

from collections.abc import Callable
from dataclasses import dataclass

from uflip.experiment import Context, Experiment
from uflip.microbench.finding import Rule, largest_effect


@dataclass(frozen=True, slots=True)
class MicroBenchmark:
    """A micro-benchmark; each module here ends with its own, and the list is in `__init__`.

    Attributes
    ----------
    name, title
        As the command line knows it, and as a heading.
    experiments
        Lays its experiments out for a device.
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
    """

    name: str
    title: str
    experiments: Callable[[Context], list[Experiment]]
    question: str = ""
    how_to_read: str = ""
    finding: Rule = largest_effect
    figure: str = "sweep"
    levels: bool = True
