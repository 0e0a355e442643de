"""uFLIP's figures 6 to 8: response time against I/O size and against the size of the target.

**Source**: uFLIP (CIDR 2009) §5.2, figures 6, 7 and 8.
**Faithful**: the granularity and the locality micro-benchmark with the settings of §5.1, by the
same plan and execution as `uflip run`.
**Simplified**: nothing.
**Ambiguous**: the figures have no numbers; the rows compare with statements of the text.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from uflip.data.summary import Summary
from uflip.executors import OnStep
from uflip.microbench.labels import by_pattern
from uflip.report.figures.palette import CAUSES, look
from uflip.reproduce import figure, table3
from uflip.reproduce.full_benchmark import benchmark
from uflip.reproduce.reproduction import (
    Reproduction,
    ReproductionRow,
    above,
    at_least,
    below,
    compare_printed,
    compare_stated,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Curve = dict[int, float]
KIB, MIB = 1 << 10, 1 << 20


@dataclass(frozen=True)
class SweepCurves:
    """Name of a line → size [bytes] → mean; figures 6 and 7 in ms, figure 8 relative to SW."""

    lines: dict[str, Curve]


def _curve(document: Summary, micro_benchmark: str, pattern: str) -> Curve:
    runs = document["micro_benchmarks"][micro_benchmark]
    measured = by_pattern(runs).get(pattern, [])
    return {int(run["value"]): run["statistics"]["mean_ns"] / 1e6 for run in measured}


def measure_granularity(profile: str, patterns: tuple[str, ...], on_step: OnStep) -> SweepCurves:
    """Run the granularity micro-benchmark."""
    document = benchmark(profile, ["granularity"])
    on_step(1, f"granularity of sim:{profile}")
    return SweepCurves({pattern: _curve(document, "granularity", pattern) for pattern in patterns})


def rows_memoright(data: SweepCurves) -> list[ReproductionRow]:
    """Compare with the three observations of the text."""
    lines = data.lines
    rows = []
    for pattern in ("SR", "SW", "RR"):
        small, large = lines[pattern][4 * KIB], lines[pattern][32 * KIB]
        # The straight line through 4 and 32 KiB.
        latency = small - (large - small) / 7
        rows.append(
            compare_printed(f"uflip/fig6/memoright/latency_{pattern}", latency * 1e3, note=LATENCY)
        )
    ratio = lines["RW"][16 * KIB] / lines["RW"][4 * KIB]
    # "At least 5" is printed with one digit.
    return [
        *rows,
        compare_stated("uflip/fig6/memoright/RW", lines["RW"][32 * KIB], at_least(4.5)),
        compare_printed("uflip/fig6/memoright/small", ratio),
    ]


LATENCY = (
    "the processor's times stand between this and the means of Table 3 at 32 KiB, to which they "
    "were fitted as well; a line through both has another slope than the paper's"
)


def rows_dti_granularity(data: SweepCurves) -> list[ReproductionRow]:
    """Compare with the text's statements about small sequential writes and random ones."""
    lines = data.lines
    share = (lines["SW"][4 * KIB] / 4) / (lines["SW"][32 * KIB] / 32)
    random = lines["RW"]
    span = max(random.values()) / min(random.values())
    return [
        compare_stated("uflip/fig7/kingston-dti/SW", share, above(1.5)),
        compare_printed("uflip/fig7/kingston-dti/RW", random[32 * KIB]),
        compare_stated("uflip/fig7/kingston-dti/constant", span, below(1.5)),
    ]


DEVICES_8 = ("samsung", "memoright", "mtron")


def measure_locality(on_step: OnStep) -> SweepCurves:
    """Run the locality micro-benchmark and the baselines on three devices."""
    lines = {}
    for number, profile in enumerate(DEVICES_8, start=1):
        document = benchmark(profile, ["baseline", "locality"])
        sequential = document["baselines_ms"]["SW"] or math.nan
        curve = _curve(document, "locality", "RW")
        lines[profile] = {size: mean / sequential for size, mean in curve.items()}
        on_step(number, f"locality of sim:{profile}")
    return SweepCurves(lines)


def rows_locality(data: SweepCurves) -> list[ReproductionRow]:
    """Compare random writes within a small area with sequential writes."""
    rows = []
    for profile, curve in data.lines.items():
        small = max(mean for size, mean in curve.items() if size <= 4 * MIB)
        large = curve[max(curve)]
        rows += [
            compare_stated(f"uflip/fig8/{profile}/small", small, below(1.5)),
            compare_stated(f"uflip/fig8/{profile}/large", large / small, above(5)),
        ]
    return rows


def draw_sweeps(title: str, x: str, label: str, data: SweepCurves) -> "Figure":
    """Draw a line for each pattern or device, both axes logarithmic."""
    sheet, [axis] = figure.panels(height=3.8)
    names = {published.profile: published.name for published in table3.TABLE}
    colors = dict(zip(DEVICES_8, CAUSES, strict=False))
    for name, curve in data.lines.items():
        color = colors[name] if name in colors else look(name).color
        axis.plot(
            list(curve), list(curve.values()), marker=".", label=names.get(name, name), color=color
        )
    figure.sizes(axis, x)
    figure.logarithmic(axis, label)
    figure.title(axis, title)
    sheet.legend(loc="outside lower center", ncols=4)
    return sheet


FIGURE_6 = Reproduction(
    id="uflip-fig6",
    title="granularity of Memoright",
    source="uFLIP (2009) §5.2, figure 6",
    steps=1,
    measure=partial(measure_granularity, "memoright", ("SR", "RR", "SW", "RW")),
    rows=rows_memoright,
    draw=partial(draw_sweeps, "Granularity of Memoright", "I/O size", "response time [ms]"),
)
FIGURE_7 = Reproduction(
    id="uflip-fig7",
    title="granularity of Kingston DTI",
    source="uFLIP (2009) §5.2, figure 7",
    steps=1,
    measure=partial(measure_granularity, "kingston-dti", ("SR", "RR", "SW", "RW")),
    rows=rows_dti_granularity,
    draw=partial(draw_sweeps, "Granularity of Kingston DTI", "I/O size", "response time [ms]"),
)
FIGURE_8 = Reproduction(
    id="uflip-fig8",
    title="locality of Samsung, Memoright and Mtron",
    source="uFLIP (2009) §5.2, figure 8",
    steps=len(DEVICES_8),
    measure=measure_locality,
    rows=rows_locality,
    draw=partial(draw_sweeps, "Locality: random writes", "target size", "over sequential writes"),
)
