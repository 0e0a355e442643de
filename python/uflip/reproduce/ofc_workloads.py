"""OFC (2011), figures 6(b) and 7: mixed reads and writes, and nine workloads in a row."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from uflip.executors import OnStep, on_all
from uflip.reproduce import figure, ofc, simulated_device
from uflip.reproduce.reproduction import (
    Reproduction,
    ReproductionRow,
    above,
    below,
    compare_printed,
    compare_stated,
    same,
)
from uflip.reproduce.simulated_device import SimulatedDevice, Window, concatenate_windows
from uflip.spec import Spec

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# OFC figure 6(b): mixed random reads and writes.
#
# **Source**: OFC (2011) §V.E, figure 6(b).
# **Faithful**: a device "that initially was completely written using sequential writes"; the upper
# curve while collected blocks hold nothing valid, the lower one in the steady state of random
# writes.
# **Simplified**: the lower curve starts from the steady state of writes alone, which reads do not
# change.
# **Ambiguous**: the text prints no value of the curves. Their ends are printed elsewhere: random
# reads and random writes in §V.D and §V.F, writes that only erase in §V.F.


READ_PERCENT = (100, 90, 80, 70, 60, 50, 40, 30, 20, 10, 0)
MIX_IOS = 300_000
PRINTED_READS = 24.0
PRINTED_WRITES_THAT_ERASE = 17.0
PRINTED_WRITES = 8.5


@dataclass(frozen=True)
class ReadWriteMixCurves:
    """Rates of reads and writes together [kIOPS] for each share of writes."""

    write_share: tuple[float, ...]
    erases_only: tuple[float, ...]
    with_relocation: tuple[float, ...]


def measure_figure_6b(on_step: OnStep) -> ReadWriteMixCurves:
    """Measure both curves; every point has a copy of its state."""
    fresh = ofc.ofc_device(state="empty")
    # Twice the flash capacity: blocks collected from now on hold only overwritten pages.
    ofc.write_untimed(fresh, "sequential", 2 * ofc.BLOCKS * ofc.PAGES_PER_BLOCK)
    steady = fresh.clone()
    ofc.steady_random_writes(steady)
    points = [(state, percent) for state in (fresh, steady) for percent in READ_PERCENT]
    windows = on_all(_measure_mix_point, points, on_step, _name)
    kiops = [window.kiops for window in windows]
    return ReadWriteMixCurves(
        write_share=tuple(1 - percent / 100 for percent in READ_PERCENT),
        erases_only=tuple(kiops[: len(READ_PERCENT)]),
        with_relocation=tuple(kiops[len(READ_PERCENT) :]),
    )


def _name(point: tuple[SimulatedDevice, int]) -> str:
    return f"{point[1]} % reads"


def _measure_mix_point(point: tuple[SimulatedDevice, int]) -> Window:
    state, read_percent = point
    device = state.clone()
    if read_percent in (0, 100):
        return ofc.random(device, "read" if read_percent else "write", MIX_IOS, seed=31)
    return device.run(
        simulated_device.mixed_requests(
            read_percent,
            page_bytes=device.page_bytes,
            outstanding=ofc.OUTSTANDING,
            ios=MIX_IOS,
            seed=31,
        )
    )


def rows_figure_6b(data: ReadWriteMixCurves) -> list[ReproductionRow]:
    """Compare the ends of the curves, and their shape."""
    falls = [float(np.diff(curve).max()) for curve in (data.erases_only, data.with_relocation)]
    drops = [curve[0] - curve[-1] for curve in (data.erases_only, data.with_relocation)]
    share = [low / high for low, high in zip(data.with_relocation, data.erases_only, strict=True)]
    return [
        compare_printed(
            "ofc/random_reads",
            data.erases_only[0],
            what="random reads alone",
            wider=ofc.WHOLE_REQUESTS,
        ),
        compare_printed(
            "ofc/erasing_writes", data.erases_only[-1], what="writes alone, erases only"
        ),
        compare_printed(
            "ofc/random_writes_45", data.with_relocation[-1], what="writes alone, with relocation"
        ),
        compare_stated(
            "ofc/mix_falls",
            max(falls),
            below(0),
            note="the upper curve falls least from 3 writes in 4 on: writes alone keep six "
            "requests on six dies in turn, while a few reads among them wait for dies that program",
        ),
        compare_stated("ofc/mix_below", max(share[1:]), below(1)),
        compare_stated("ofc/mix_drop", drops[1] / drops[0], above(1)),
    ]


def draw_figure_6b(data: ReadWriteMixCurves) -> Figure:
    """Draw both curves against the share of writes."""
    sheet, [axis] = figure.panels(height=4.2)
    share = [100 * value for value in data.write_share]
    axis.plot(
        share,
        data.erases_only,
        color=figure.SEQUENTIAL_WRITES,
        marker="^",
        label="simulated, blocks only erased",
    )
    axis.plot(
        share,
        data.with_relocation,
        color=figure.WRITES,
        marker="D",
        label="simulated, pages relocated (steady state)",
    )
    figure.mark_printed(
        axis,
        [0, 100, 100],
        [PRINTED_READS, PRINTED_WRITES_THAT_ERASE, PRINTED_WRITES],
        "printed in the report for pure loads",
    )
    figure.title(
        axis, "Mixed random reads and writes", "OFC figure 6(b): reads and writes together"
    )
    axis.set_xlabel("share of writes [%]")
    axis.set_xlim(-3, 103)
    figure.from_zero(axis, "kIOPS", 30)
    axis.legend(loc="lower left")
    return sheet


OFC_FIGURE_6B = Reproduction(
    id="ofc-fig6b",
    title="mixed random reads and writes",
    source="OFC (2011) §V.E, figure 6(b)",
    steps=2 * len(READ_PERCENT),
    measure=measure_figure_6b,
    rows=rows_figure_6b,
    draw=draw_figure_6b,
)


# OFC figure 7: nine consecutive workloads on one device, each in the state of the previous one.
#
# **Source**: OFC (2011) §V.F, figure 7.
# **Faithful**: one device from first to last, 5.5 million I/Os a step (Table II), all of them
# timed; values for each second of virtual time; a second without I/O between two steps, in which
# the device collects a few blocks ahead; all random steps draw the same addresses in the same
# order, as OFC's generator did, so that step 6 reads pages in the order in which step 4 wrote them.
# **Simplified**: the numbers are not those of the Super Fast Hash.
# **Ambiguous**: the length of each step; the report gives one number of I/Os "per experiment".


STEPS = (
    ("sequential", "write"), ("sequential", "read"), ("random", "read"),
    ("random", "write"), ("sequential", "read"), ("random", "read"),
    ("sequential", "write"), ("sequential", "read"), ("random", "read"),
)  # fmt: skip
PAUSE_NS = 10**9
SEED = 4000
"""Of all random steps: the generator starts anew at each of them."""
# The steady value of a step is the mean of its last quarter.
STEADY_SHARE = 0.25
# "Initially": these seconds, after the blocks that were collected ahead are used up.
INITIAL_SECONDS = slice(2, 12)
SAME_TOLERANCE = 0.05
SIMILAR_TOLERANCE = 0.10

COLORS = {
    ("sequential", "write"): figure.SEQUENTIAL_WRITES,
    ("sequential", "read"): figure.SEQUENTIAL_READS,
    ("random", "read"): figure.READS,
    ("random", "write"): figure.WRITES,
}


@dataclass(frozen=True)
class Step:
    """One of the nine workloads."""

    number: int
    location: str
    mode: str
    kiops: tuple[float, ...]
    """In each whole second."""
    relocated_pages: float
    """Per collected block, over the whole step."""

    @property
    def steady(self) -> float:
        """Mean of the last quarter [kIOPS]."""
        return float(np.mean(self.kiops[-int(len(self.kiops) * STEADY_SHARE) :]))


@dataclass(frozen=True)
class WorkloadSequence:
    """All steps, in order."""

    steps: tuple[Step, ...]

    def step(self, number: int) -> Step:
        """Return a step by its number in the report, from 1."""
        return self.steps[number - 1]


def measure_figure_7(on_step: OnStep) -> WorkloadSequence:
    """Run the nine steps on one device."""
    device = ofc.ofc_device(state="empty")
    steps = []
    for number, (location, mode) in enumerate(STEPS, start=1):
        if number > 1:
            device.idle(PAUSE_NS)
        window = concatenate_windows(device.run(run) for run in _runs(device, location, mode))
        steps.append(_step(number, location, mode, window))
        on_step(number, f"step {number}: {location} {mode}s")
    return WorkloadSequence(tuple(steps))


def _runs(device: SimulatedDevice, location: str, mode: str) -> list[Spec]:
    if location == "sequential":
        runs = simulated_device.sequential_requests(
            mode,
            logical_pages=device.logical_pages,
            page_bytes=device.page_bytes,
            outstanding=ofc.OUTSTANDING,
            ios=ofc.IOS,
        )
    else:
        runs = simulated_device.random_requests(
            mode,
            page_bytes=device.page_bytes,
            outstanding=ofc.OUTSTANDING,
            ios=ofc.IOS,
            seed=SEED,
        )
    return list(runs)


def _step(number: int, location: str, mode: str, window: Window) -> Step:
    kiops = tuple(window.kiops_each_second().tolist())
    return Step(number, location, mode, kiops, window.relocated_pages)


def rows_figure_7(data: WorkloadSequence) -> list[ReproductionRow]:
    """Compare with the text about each step."""
    return [*_first_three(data), *_next_three(data), *_last_three(data)]


def _first_three(data: WorkloadSequence) -> list[ReproductionRow]:
    first, second, third = (data.step(number) for number in (1, 2, 3))
    drop = 100 * (1 - third.steady / second.steady)
    return [
        compare_printed(
            "ofc/clean_writes", first.kiops[1], what="#1 sequential writes, clean device"
        ),
        compare_printed("ofc/erasing_writes", first.steady, what="#1 sequential writes, steady"),
        compare_printed("ofc/sequential_reads", second.steady, what="#2 sequential reads"),
        compare_printed(
            "ofc/random_reads", third.steady, what="#3 random reads", wider=ofc.WHOLE_REQUESTS
        ),
        compare_printed(
            "ofc/step_3_below_2",
            drop,
            note="five requests instead of six would give 12 %, and too few writes",
        ),
    ]


def _next_three(data: WorkloadSequence) -> list[ReproductionRow]:
    sequential, write, read, random_again = (data.step(number) for number in (2, 4, 5, 6))
    rise = 100 * (random_again.kiops[-1] / random_again.kiops[1] - 1)
    return [
        compare_stated(
            "ofc/step_4_first",
            write.kiops[0] / write.steady,
            above(1.5),
            note="lasts until the blocks behind the last sequential round are used up, 45 % of all",
        ),
        compare_printed("ofc/step_4_slowest", min(write.kiops)),
        compare_printed("ofc/random_writes_45", write.steady, what="#4 random writes, steady"),
        compare_stated("ofc/step_5", read.steady / sequential.steady, below(1)),
        compare_stated("ofc/step_6", random_again.kiops[1] / read.steady, same(SAME_TOLERANCE)),
        compare_stated(
            "ofc/step_6_rises",
            rise,
            above(SAME_TOLERANCE * 100),
            note="the last pages are read in the order in which they were written, so that "
            "successive reads alternate between dies",
        ),
    ]


def _last_three(data: WorkloadSequence) -> list[ReproductionRow]:
    first, sequential, random, steady = (data.step(number) for number in (1, 2, 3, 4))
    write, read, last = (data.step(number) for number in (7, 8, 9))
    initially = float(np.mean(write.kiops[INITIAL_SECONDS]))
    return [
        compare_stated("ofc/step_7", initially / steady.steady, same(SIMILAR_TOLERANCE)),
        compare_stated("ofc/step_7_steady", write.steady / first.steady, same(SAME_TOLERANCE)),
        compare_stated("ofc/step_8", read.steady / sequential.steady, same(SIMILAR_TOLERANCE)),
        compare_stated("ofc/step_9", last.steady / random.steady, same(SIMILAR_TOLERANCE)),
    ]


def draw_figure_7(data: WorkloadSequence) -> Figure:
    """Draw all steps along one time axis."""
    sheet, [axis] = figure.panels(height=4.4)
    lengths = [len(step.kiops) for step in data.steps]
    begins = [0, *accumulate(lengths)]
    for step, begin in zip(data.steps, begins, strict=False):
        minutes = (begin + np.arange(len(step.kiops))) / 60
        axis.plot(
            minutes,
            step.kiops,
            color=COLORS[step.location, step.mode],
            linewidth=1.4,
            label=f"{step.location} {step.mode}s" if step.number in (1, 2, 3, 4) else None,
        )
        axis.text(
            (begin + len(step.kiops) / 2) / 60,
            30.3,
            f"#{step.number}",
            ha="center",
            fontweight="bold",
            color=COLORS[step.location, step.mode],
        )
        if step.number > 1:
            axis.axvline(begin / 60, color=figure.FAINT, linewidth=0.6, linestyle=":")
    x, y = _printed(data, begins)
    figure.mark_printed(axis, x, y)
    figure.title(
        axis,
        "Nine workloads on one device",
        "OFC figure 7: 5.5 million requests of 4 KiB each; state carries over",
    )
    axis.grid(visible=False, axis="x")
    axis.set_xlabel("virtual time [minutes]")
    axis.set_xlim(0, begins[-1] / 60)
    figure.from_zero(axis, "kIOPS", 32.5)
    sheet.legend(loc="outside lower center", ncols=5)
    return sheet


def _printed(data: WorkloadSequence, begins: list[int]) -> tuple[list[float], list[float]]:
    """Return the positions of the printed values: the end of a step, or its slowest second."""

    def end(number: int) -> float:
        return begins[number - 1] + 0.85 * len(data.step(number).kiops)

    slowest = begins[3] + int(np.argmin(data.step(4).kiops))
    marks = [
        (begins[0] + 28, 18.0), (end(1), 17.0), (end(2), 27.0), (end(3), 24.0),
        (slowest, 5.0), (end(4), 8.5), (end(7), 17.0), (end(8), 27.0), (end(9), 24.0),
    ]  # fmt: skip
    return [second / 60 for second, _ in marks], [kiops for _, kiops in marks]


OFC_FIGURE_7 = Reproduction(
    id="ofc-fig7",
    title="nine workloads in a row on one device",
    source="OFC (2011) §V.F, figure 7",
    steps=len(STEPS),
    measure=measure_figure_7,
    rows=rows_figure_7,
    draw=draw_figure_7,
)
