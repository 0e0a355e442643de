"""uFLIP's statements about its seven devices outside of Table 3: mixes, parallelism, alignment.

**Source**: uFLIP (CIDR 2009) §5.2 "Other Results", and §5.3, hints 1, 3, 6 and 7.
**Faithful**: the micro-benchmarks over their whole ranges with the settings of §5.1, by the same
plan and execution as `uflip run`.
**Simplified**: hints 4 and 5 repeat the columns Locality and Partitions of Table 3, and are not
tested again; hint 2 is a conclusion from prices, not a measurement.
**Ambiguous**: "significantly" is read as a factor that does not round to "=" on the scale of Table
3; "no improvement" as none beyond the 5 % by which the paper's repetitions differed; a workload
"degenerates to partitioned writes" if it costs the same as these, within the same step.
"""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from uflip.executors import OnStep, on_all
from uflip.hints import REPEATS, Lines, lines_of
from uflip.hints.means import MAX_PROCESSES, cost_of_small, degenerated, gains, mixes, pauses
from uflip.reproduce import figure, table3
from uflip.reproduce.full_benchmark import benchmark
from uflip.reproduce.reproduction import (
    Reproduction,
    ReproductionRow,
    above,
    at_least,
    below,
    between,
    compare_printed,
    compare_stated,
)
from uflip.results.key_characteristics import LIKE_FACTOR

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MICRO_BENCHMARKS = (
    "baseline",
    "granularity",
    "alignment",
    "pause",
    "mix",
    "parallelism",
    "partitioning",
)
DEGREES = (1, 2, 4, 8, 16)
MIN_RATIO = 0.95
"""Two costs are the same from here to `REPEATS`: the paper's repetitions differed by this much."""
OFF_BYTES = 512

ONE_STREAM_NOTE = (
    "the writers' places differ from those of the partitions, and each gives way more often"
)
MIX_NOTES = {
    "SR/RR": "a sequential read behind a random one costs what that does: its part of the map is "
    "loaded anew",
    "SW/RW": "a random write closes the unit that sequential writes had open, which costs one more",
}
UNALIGNED_NOTE = (
    "what is off the 16 KB merges its unit alone, in the 33 ms that SR and SW of the table make"
)


@dataclass(frozen=True)
class HintMeasurements:
    """Profile -> measurements."""

    lines: dict[str, Lines]


def measure_hints(on_step: OnStep) -> HintMeasurements:
    """Run the needed micro-benchmarks on all seven devices, several in parallel."""
    profiles = [published.profile for published in table3.TABLE]
    documents = on_all(partial(benchmark, only=MICRO_BENCHMARKS), profiles, on_step)
    return HintMeasurements(
        {name: lines_of(document) for name, document in zip(profiles, documents, strict=True)}
    )


def rows_hints(data: HintMeasurements) -> list[ReproductionRow]:
    """Compare each device with statements about all, and Samsung with those about it."""
    comparisons = []
    for profile, lines in data.lines.items():
        small, cost = cost_of_small(lines), degenerated(lines)
        assert small is not None
        assert cost is not None
        gain = max(gains(lines, pattern)[MAX_PROCESSES].value for pattern in ("SR", "RR"))
        mix, pattern = max((one.value, parts) for (parts, _), one in mixes(lines).items())
        least = min(total.value for total in pauses(lines).values())
        comparisons += [
            compare_stated(f"uflip/hints/{profile}/larger", small.value, above(REPEATS)),
            compare_stated(
                f"uflip/hints/{profile}/mix", mix, below(LIKE_FACTOR),
                note=MIX_NOTES.get(pattern, "") * (mix >= LIKE_FACTOR),
            ),
            compare_stated(f"uflip/hints/{profile}/parallel", gain, below(REPEATS)),
            compare_stated(
                f"uflip/hints/{profile}/degenerate", cost.value,
                between(round(1 / LIKE_FACTOR, 2), LIKE_FACTOR),
                note=ONE_STREAM_NOTE * (not 1 / LIKE_FACTOR <= cost.value <= LIKE_FACTOR),
            ),
            compare_stated(f"uflip/hints/{profile}/pauses", least, at_least(MIN_RATIO)),
        ]  # fmt: skip
    if "samsung" in data.lines:
        unaligned = data.lines["samsung"]["alignment RW"][OFF_BYTES].ns / 1e6
        comparisons.append(
            compare_printed("uflip/5.2/samsung/unaligned", unaligned, note=UNALIGNED_NOTE)
        )
    return comparisons


def draw_hints(data: HintMeasurements) -> "Figure":
    """Draw the gain of parallel reads, and the cost of parallel sequential writes."""
    sheet, [reads, writes] = figure.panels(1, 2, height=4.0)
    names = {published.profile: published.name for published in table3.TABLE}
    for profile, lines in data.lines.items():
        for axis, pattern in ((reads, "SR"), (writes, "SW")):
            gained = {degree: one.value for degree, one in gains(lines, pattern).items()}
            axis.plot(list(gained), list(gained.values()), marker=".", label=names[profile])
    for axis, heading in ((reads, "Sequential reads"), (writes, "Sequential writes")):
        axis.axhline(1.0, **figure.PRINTED_LEVEL)
        axis.set_xscale("log", base=2)
        axis.set_xticks(DEGREES, [str(degree) for degree in DEGREES])
        axis.set_xlabel("processes")
        figure.title(axis, heading, "throughput over that of one; dashed: as in the paper")
    figure.logarithmic(writes, "times")
    figure.from_zero(reads, "times", 2)
    reads.legend(loc="lower right", fontsize=7)
    return sheet


UFLIP_HINTS = Reproduction(
    id="uflip-hints",
    title="mixes, parallelism, alignment and pauses of seven devices",
    source="uFLIP (2009) §5.2, §5.3",
    steps=len(table3.TABLE),
    measure=measure_hints,
    rows=rows_hints,
    draw=draw_hints,
)
