"""Outcome of a benchmark: complete, interrupted or failed.

However the work ends, the finished runs are stored, the manifest contains the outcome, and the
error explains how to see them. The same holds for runs of patterns and for jobs.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from uflip.data.summary import WarningSummary
from uflip.errors import InterruptedRun, ResultsError, UflipError


class Finisher(Protocol):
    """Storage of finished runs; `uflip.results.ResultsWriter` is one."""

    path: Path

    def finish(self, status: str, warnings: Sequence[WarningSummary] = ()) -> None:
        """Store the outcome of the plan: complete, interrupted or failed."""


@dataclass
class Tally:
    """The progress of a benchmark, updated by its execution.

    Attributes
    ----------
    finished : int
        Number of stored runs.
    planned : callable
        Returns the number of planned runs; a plan may grow.
    status : str
        The outcome without an exception: "interrupted" if its time was over.
    warnings : sequence of mapping
        Warnings about the outcome.
    """

    finished: int
    planned: Callable[[], int]
    status: str = "complete"
    warnings: Sequence[WarningSummary] = ()


@contextmanager
def store_outcome(writer: Finisher, tally: Tally, runs: str = "runs") -> Iterator[None]:
    """Store the outcome of the enclosed work, and add the finished runs to an error message.

    Parameters
    ----------
    writer : Finisher
        `finish` is called on it in every case.
    tally : Tally
        Updated by the work.
    runs : str
        The word for its runs.

    Raises
    ------
    InterruptedRun
        After Ctrl-C.
    UflipError
        The error of the work, with a note on the finished runs.
    """
    try:
        yield
    except (KeyboardInterrupt, InterruptedRun):
        writer.finish("interrupted")
        raise InterruptedRun(
            f"Interrupted after {tally.finished} of {tally.planned()} {runs}",
            where=str(writer.path),
            action=_next_step(tally.finished, runs, writer.path),
        ) from None
    except BaseException as error:
        # The disk may be full: the first error then names the cause, and a second one adds nothing.
        with suppress(ResultsError):
            writer.finish("failed")
        if isinstance(error, UflipError):
            parts = (error.action, _next_step(tally.finished, runs, writer.path))
            error.action = "\n".join(part for part in parts if part)
        raise
    writer.finish(tally.status, tally.warnings)


def _next_step(finished: int, runs: str, path: Path) -> str:
    one = runs.removesuffix("s")
    if not finished:
        return f"no {one} was finished"
    subject = f"the finished {one} is" if finished == 1 else f"the {finished} finished {runs} are"
    return f"{subject} kept, see `uflip show {path}`; `uflip run --resume {path}` makes the others"
