"""What uFLIP says of its seven devices outside of Table 3: mixes, parallelism, alignment, pauses.

**Source**: uFLIP (CIDR 2009) §5.2 "Other Results", and §5.3, hints 1, 3, 6 and 7.
**Faithful**: the micro-benchmarks over their whole ranges with the settings of §5.1, by the same
plan and execution as `uflip run`.
**Simplified**: hints 4 and 5 say what the columns Locality and Partitions of Table 3 say, and are
not asked again; hint 2 is a conclusion from prices, and nothing that was measured.
**Ambiguous**: "significantly" is taken as what does not round to "=" on the scale of Table 3; "no
improvement" as none beyond the 5 % by which the paper's repetitions differed; a workload
"degenerates to partitioned writes" where it costs the same as these, within the same step.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uflip.cores import OnStep, on_all_cores
from uflip.reproduce import figure, table3
from uflip.reproduce.benchmarked import Stop, benchmark
from uflip.reproduce.criterion import above, at_least, below, between
from uflip.reproduce.reproduction import Reproduction
from uflip.reproduce.row import Row, printed, stated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

USED = ("baseline", "granularity", "alignment", "pause", "mix", "parallelism", "partitioning")
KIB = 1 << 10
MOST_PROCESSES = 16
DEGREES = (1, 2, 4, 8, 16)
STEP = 1.22
"""Where "=" ends and x1.5 begins on the scale of Table 3."""
REPEATS, LEAST = 1.05, 0.95
"""Two costs are the same between them: by so much the paper's repetitions differed (§5.1)."""
OFF_BYTES = 512

ONE_STREAM = (
    "the writers' places differ from those of the partitions, and each gives way more often"
)
MIXES = {
    "SR/RR": "a sequential read behind a random one costs what that does: its part of the map is "
    "loaded anew",
    "SW/RW": "a random write closes the unit that sequential writes had open, which costs one more",
}
ALONE = "what is off the 16 KB merges its unit alone, in the 33 ms that SR and SW of the table make"

Curve = dict[float, float]


@dataclass(frozen=True)
class Data:
    """Profile -> "micro-benchmark pattern" -> value of the parameter -> mean [ms]."""

    curves: dict[str, dict[str, Curve]]


def measure(on_step: OnStep) -> Data:
    """Run what is used of the benchmark on all seven, several at a time."""
    profiles = [published.profile for published in table3.TABLE]
    with Stop() as stopped:
        documents = on_all_cores(
            lambda name: benchmark(name, USED, stopped=stopped), profiles, on_step
        )
    return Data(
        {name: curves(document) for name, document in zip(profiles, documents, strict=True)}
    )


def curves(document: Mapping[str, Any]) -> dict[str, Curve]:
    """Take the means out of a summary; baselines are at 0."""
    found: dict[str, Curve] = {
        f"baseline {pattern}": {0: mean} for pattern, mean in document["baselines_ms"].items()
    }
    for micro_benchmark, runs in document["micro_benchmarks"].items():
        for run in runs:
            if run["statistics"] is not None:
                curve = found.setdefault(f"{micro_benchmark} {run['pattern']}", {})
                curve[run["value"]] = run["statistics"]["mean_ns"] / 1e6
    return found


def rows(data: Data) -> list[Row]:
    """Compare each device with what is said of all, and Samsung with what is said of it."""
    found = []
    for profile, lines in data.curves.items():
        gain = max(gains(lines, pattern)[MOST_PROCESSES] for pattern in ("SR", "RR"))
        (mix, pattern), cost = dearest_mix(lines), degenerated(lines)
        found += [
            stated(f"uflip/hints/{profile}/larger", cost_of_small(lines), above(1)),
            stated(
                f"uflip/hints/{profile}/mix", mix, below(STEP),
                note=MIXES.get(pattern, "") * (mix >= STEP),
            ),
            stated(f"uflip/hints/{profile}/parallel", gain, below(REPEATS)),
            stated(
                f"uflip/hints/{profile}/degenerate", cost, between(round(1 / STEP, 2), STEP),
                note=ONE_STREAM * (not 1 / STEP <= cost <= STEP),
            ),
            stated(f"uflip/hints/{profile}/pauses", least_total(lines), at_least(LEAST)),
        ]  # fmt: skip
    if "samsung" in data.curves:
        unaligned = data.curves["samsung"]["alignment RW"][OFF_BYTES]
        found.append(printed("uflip/5.2/samsung/unaligned", unaligned, note=ALONE))
    return found


def cost_of_small(lines: Mapping[str, Curve]) -> float:
    """Cost of a KiB in sequential reads of 4 KiB, over that in reads of 32 KiB."""
    reads = lines["granularity SR"]
    return (reads[4 * KIB] / 4) / (reads[32 * KIB] / 32)


def dearest_mix(lines: Mapping[str, Curve]) -> tuple[float, str]:
    """Largest cost of a mix over that of its I/Os by themselves, and which mix it is.

    Examples
    --------
    >>> dearest_mix({"mix SR/RW": {1: 6, 3: 3}, "baseline SR": {0: 1}, "baseline RW": {0: 9}})
    (1.2, 'SR/RW')
    """
    found = []
    for name, curve in lines.items():
        micro_benchmark, _, pattern = name.partition(" ")
        if micro_benchmark != "mix":
            continue
        often, seldom = (lines[f"baseline {part}"][0] for part in pattern.split("/"))
        for ratio, mean in curve.items():
            found.append((mean / ((ratio * often + seldom) / (ratio + 1)), pattern))
    return max(found)


def gains(lines: Mapping[str, Curve], pattern: str) -> Curve:
    """Throughput of so many processes over that of one.

    Examples
    --------
    >>> gains({"parallelism SR": {1: 2.0, 16: 24.0}, "baseline SR": {0: 2.0}}, "SR")
    {1: 1.0, 16: 1.3333333333333333}
    """
    alone = lines[f"baseline {pattern}"][0]
    parallel = lines[f"parallelism {pattern}"]
    return {degree: alone * degree / mean for degree, mean in parallel.items()}


def degenerated(lines: Mapping[str, Curve]) -> float:
    """Cost of a write of 16 sequential writers over that of one writer to 16 partitions."""
    written = lines["parallelism SW"][MOST_PROCESSES] / MOST_PROCESSES
    return written / lines["partitioning SW"][MOST_PROCESSES]


def least_total(lines: Mapping[str, Curve]) -> float:
    """Least time for a pause and its random write, over a random write without pauses."""
    random = lines["baseline RW"][0]
    return min(pause / 1e6 + mean for pause, mean in lines["pause RW"].items()) / random


def draw(data: Data) -> "Figure":
    """Draw what parallel reads gain, and what parallel sequential writes cost."""
    sheet, [reads, writes] = figure.panels(1, 2, height=4.0)
    names = {published.profile: published.name for published in table3.TABLE}
    for profile, lines in data.curves.items():
        for axis, pattern in ((reads, "SR"), (writes, "SW")):
            gained = gains(lines, pattern)
            axis.plot(list(gained), list(gained.values()), marker=".", label=names[profile])
    for axis, what in ((reads, "Sequential reads"), (writes, "Sequential writes")):
        axis.axhline(1.0, **figure.PRINTED_LEVEL)
        axis.set_xscale("log", base=2)
        axis.set_xticks(DEGREES, [str(degree) for degree in DEGREES])
        axis.set_xlabel("processes")
        figure.title(axis, what, "throughput over that of one; dashed: as in the paper")
    figure.logarithmic(writes, "times")
    figure.from_zero(reads, "times", 2)
    reads.legend(loc="lower right", fontsize=7)
    return sheet


REPRODUCTION = Reproduction(
    id="uflip-hints",
    title="mixes, parallelism, alignment and pauses of seven devices",
    source="uFLIP (2009) §5.2, §5.3",
    steps=len(table3.TABLE),
    measure=measure,
    rows=rows,
    draw=draw,
)
