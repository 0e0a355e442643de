"""The type of a reproduction: functions that measure, compare and draw."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from uflip.executors import OnStep, ignore
from uflip.reproduce.row import ReproductionRow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Measurement = TypeVar("Measurement")


@dataclass(frozen=True)
class Reproduction(Generic[Measurement]):
    """One figure or table of a paper.

    Attributes
    ----------
    id : str
        As on the command line: `uflip reproduce ID`.
    title : str
        Title in one line.
    source : str
        The paper, section and figure.
    steps : int
        Number of progress reports of `measure`.
    measure : callable
        Runs the experiments; takes a progress callback.
    rows : callable
        Compares the measurements with the published values.
    draw : callable
        Draws the measurements in the manner of the paper.
    text : callable, optional
        Formats the measurements as the paper does; then only the rows that miss are printed.
    """

    id: str
    title: str
    source: str
    steps: int
    measure: Callable[[OnStep], Measurement]
    rows: Callable[[Measurement], list[ReproductionRow]]
    draw: Callable[[Measurement], "Figure"]
    text: Callable[[Measurement], str] | None = None


@dataclass(frozen=True)
class ReproductionOutcome:
    """The outcome of a reproduction: its rows, and the series of its figure."""

    reproduction: Reproduction[Any]
    data: Any
    rows: list[ReproductionRow]


def carry_out(reproduction: Reproduction[Any], on_step: OnStep = ignore) -> ReproductionOutcome:
    """Run a reproduction, and compare with the paper.

    Parameters
    ----------
    reproduction : Reproduction
        One of `uflip.reproduce.REPRODUCTIONS`.
    on_step : callable, optional
        Called with (steps done, name of the last one).

    Returns
    -------
    ReproductionOutcome
    """
    data = reproduction.measure(on_step)
    return ReproductionOutcome(reproduction, data, reproduction.rows(data))
