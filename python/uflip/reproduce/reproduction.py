"""What a reproduction is: it measures, compares, and draws, each a function of what came before."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from uflip.executors import OnStep, ignore
from uflip.reproduce.row import ReproductionRow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Data = TypeVar("Data")


@dataclass(frozen=True)
class Reproduction(Generic[Data]):
    """One figure or table of a paper.

    Attributes
    ----------
    id : str
        As on the command line: `uflip reproduce ID`.
    title : str
        What is reproduced, in one line.
    source : str
        The paper, section and figure.
    steps : int
        How often `measure` reports progress.
    measure : callable
        Runs the experiments; takes the function that is told of progress.
    rows : callable
        Puts what was measured beside what was published.
    draw : callable
        Draws what was measured in the manner of the paper.
    text : callable, optional
        Lays out what was measured as the paper does; then only the rows that miss are printed.
    """

    id: str
    title: str
    source: str
    steps: int
    measure: Callable[[OnStep], Data]
    rows: Callable[[Data], list[ReproductionRow]]
    draw: Callable[[Data], "Figure"]
    text: Callable[[Data], str] | None = None


@dataclass(frozen=True)
class ReproductionOutcome:
    """A reproduction that was carried out: its rows, and the series that its figure shows."""

    reproduction: Reproduction[Any]
    data: Any
    rows: list[ReproductionRow]


def carry_out(reproduction: Reproduction[Any], on_step: OnStep = ignore) -> ReproductionOutcome:
    """Measure, and compare with the paper.

    Parameters
    ----------
    reproduction : Reproduction
        One of `uflip.reproduce.REPRODUCTIONS`.
    on_step : callable, optional
        Called with (steps done, what the last one was).

    Returns
    -------
    Outcome
    """
    data = reproduction.measure(on_step)
    return ReproductionOutcome(reproduction, data, reproduction.rows(data))
