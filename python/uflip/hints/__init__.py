"""Design hints: advice for designers, from the measurements of a device (uFLIP §5.3)."""

import shlex

from msgspec import Struct
from msgspec.structs import replace

from uflip.data.summary import Summary
from uflip.errors import UsageError
from uflip.hints.classes import CLASSES, Classified, classify
from uflip.hints.means import ENTRY_BYTES, Lines, lines_of
from uflip.hints.rules import (
    CONFIRMED,
    CONTRADICTED,
    NOT_MEASURED,
    REPEATS,
    UNDECIDED,
    VERDICTS,
    Hint,
    alignment,
    block_size,
    focus,
    latency,
    mixing,
    partitions,
    waiting,
)
from uflip.results.statistics import Factor, Mean
from uflip.results.summary_document import key_row_of

__all__ = [
    "CLASSES",
    "CONFIRMED",
    "CONTRADICTED",
    "ENTRY_BYTES",
    "NOT_MEASURED",
    "REPEATS",
    "UNDECIDED",
    "VERDICTS",
    "Advice",
    "Classified",
    "Factor",
    "Hint",
    "Lines",
    "Mean",
    "advise",
    "lines_of",
]


class Advice(Struct, frozen=True, rename={"classified": "class"}):
    """The class of a device, and its seven hints in the paper's order."""

    classified: Classified
    hints: tuple[Hint, ...]


def advise(
    document: Summary,
    *,
    entry_bytes: int = ENTRY_BYTES,
    prices: tuple[float, float] | None = None,
) -> Advice:
    """Check the seven hints against the results of a device."""
    if document["device"].null:
        raise UsageError(
            "The null device does nothing, and has no properties to design for",
            where="RESULTS",
            got="results of null",
            allowed="results of a device",
            action="measure a device: `uflip devices` lists them",
        )
    lines, row = lines_of(document), key_row_of(document)
    hints = (
        latency(lines),
        block_size(lines, entry_bytes, prices),
        alignment(lines),
        focus(lines, row),
        partitions(lines, row),
        mixing(lines),
        waiting(lines),
    )
    return Advice(classify(document), tuple(_with_next_run(hint, document) for hint in hints))


# Further micro-benchmarks of a hint: mixes, pauses and processes are compared with baselines.
FURTHER_MICRO_BENCHMARKS = {"parallelism": ("parallelism", "pause")}


def _with_next_run(hint: Hint, document: Summary) -> Hint:
    """Remove the advice of an open hint, and name the run that decides it."""
    if hint.verdict not in (UNDECIDED, NOT_MEASURED):
        return hint
    if document.get("scale") == "imported":  # no device to measure
        return replace(hint, advice="")
    names = ",".join(
        ("baseline", *FURTHER_MICRO_BENCHMARKS.get(hint.micro_benchmark, (hint.micro_benchmark,)))
    )
    longer = "--repetitions 5" if document.get("scale") == "standard" else "--scale standard"
    run = f"uflip run {shlex.quote(document['device'].url)} --only {names} {longer}"
    return replace(hint, advice="", decided_by=run)
