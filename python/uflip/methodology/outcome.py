"""How a benchmark ends: complete, interrupted or failed, and what is said of what is there then.

However the work ends, the runs that were finished are kept, the manifest says how it ended, and the
error says how to see what is there. So it is for runs of patterns and for jobs alike.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from uflip.data.summary import WarningSummary
from uflip.errors import InterruptedRun, ResultsError, UflipError


class Finisher(Protocol):
    """Where finished runs go; `uflip.results.ResultsWriter` is one."""

    path: Path

    def finish(self, status: str, warnings: Sequence[WarningSummary] = ()) -> None:
        """Note how the plan ended: complete, interrupted or failed."""


@dataclass
class Tally:
    """How far a benchmark is; told by whoever carries it out.

    Attributes
    ----------
    finished : int
        Runs that are stored.
    planned : callable
        How many there are to be; a plan may grow.
    status : str
        How it ended, where nothing stopped it: "interrupted" if its time was over.
    warnings : sequence of mapping
        Doubts that come with that.
    """

    finished: int
    planned: Callable[[], int]
    status: str = "complete"
    warnings: Sequence[WarningSummary] = ()


@contextmanager
def ending(writer: Finisher, tally: Tally, runs: str = "runs") -> Iterator[None]:
    """Note how the work within ends, and say with an error what is kept.

    Parameters
    ----------
    writer : Finisher
        `finish` is called on it in every case.
    tally : Tally
        Kept up to date by the work.
    runs : str
        What it makes.

    Raises
    ------
    InterruptedRun
        After Ctrl-C.
    UflipError
        What the work raised, with what is kept.
    """
    try:
        yield
    except (KeyboardInterrupt, InterruptedRun):
        writer.finish("interrupted")
        raise InterruptedRun(
            f"Interrupted after {tally.finished} of {tally.planned()} {runs}",
            where=str(writer.path),
            action=_how_to_see(tally.finished, runs, writer.path),
        ) from None
    except BaseException as error:
        # The disk may be full: then there is no second error to tell, the first one says it.
        with suppress(ResultsError):
            writer.finish("failed")
        if isinstance(error, UflipError):
            parts = (error.action, _how_to_see(tally.finished, runs, writer.path))
            error.action = "\n".join(part for part in parts if part)
        raise
    writer.finish(tally.status, tally.warnings)


def _how_to_see(finished: int, runs: str, path: Path) -> str:
    one = runs.removesuffix("s")
    if not finished:
        return f"no {one} was finished"
    kept = f"the finished {one} is" if finished == 1 else f"the {finished} finished {runs} are"
    return f"{kept} kept, see `uflip show {path}`; `uflip run --resume {path}` makes the others"
