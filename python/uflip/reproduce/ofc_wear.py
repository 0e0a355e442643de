"""OFC's figures 1 and 4: bit errors of the pages of a block over erases and retention.

**Source**: OFC (2011) §I, figure 1, and §IV.C, figure 4, with their captions.
**Faithful**: two SLC parts with pages of 2112 and 4320 bytes, 64 pages in a block; the rate of a
page from the wrong bits of a read of it; 400 thousand erases, four times the rated ones.
**Simplified**: the wrong bits of a page are found by reading it behind codes of other strengths,
and those of many blocks are counted instead of those of one.
**Ambiguous**: the law of wear between its two ends, and the spread of the pages: those of the
profile `worn-mlc`. The caption of figure 4 does not say how long half of the pages were kept: here
they are read at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from uflip.executors import OnStep, on_all
from uflip.reproduce import figure
from uflip.reproduce.reproduction import (
    Reproduction,
    ReproductionRow,
    below,
    between,
    compare_stated,
)
from uflip.reproduce.simulated_device import SimulatedDevice, device_url
from uflip.spec import basic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATED_CYCLES, PAGES_PER_BLOCK, LIMIT = 100_000, 64, 1e-3
CYCLES = (25_000, 50_000, 100_000, 150_000, 200_000, 300_000, 400_000, 600_000, 800_000)
THOUSANDS = [cycles / 1000 for cycles in CYCLES]
YEAR_S = 31_557_600
AGES_S = {"at once": 0, "after a month": YEAR_S // 12, "after a year": YEAR_S}
DEVICES = {"X": (2048, 64), "Y": (4096, 224)}
"""Device of figure 1 -> data and spare bytes of a page."""
FRESH, EXPONENT = 1e-6, 0.7
LIFE_OF_HALF = 4
RATED = FRESH + (LIMIT - FRESH) / LIFE_OF_HALF**EXPONENT
"""Fitted: at four times the rated erases the median page is at the limit."""
RELIABILITY = {
    "rated_cycles": RATED_CYCLES, "rber_fresh": FRESH, "rber_rated": RATED,
    "wear_exponent": EXPONENT, "high_page_factor": 1.0, "retention_doubling_s": YEAR_S,
    "erase_step_cycles": 0, "read_retries": 0, "factory_bad_share": 0.0,
    "program_failures": 0.0, "erase_failures": 0.0, "retire": "nothing", "retire_rber": 0.4,
    "partial_blocks_max": 0, "usable_pages_min": 1,
}  # fmt: skip
WORST_SHARE = 1 - 0.5 ** (1 / PAGES_PER_BLOCK)
"""Share of pages that are worse than the median of the worst pages of the blocks."""


def failing_share(page: tuple[int, int], wrong_bits: int, cycles: int, age_s: int = 0) -> float:
    """Return the share of pages with more than some wrong bits after erases and an age."""
    keys = {
        "channels": 1, "dies_per_channel": 1, "blocks_per_die": 80, "state": "sequential",
        "page_bytes": page[0], "spare_bytes": page[1], "ecc_codeword_bytes": page[0],
        "ecc_correctable_bits": wrong_bits, "cycles_before": cycles, "data_age_s": age_s,
    }  # fmt: skip
    device = SimulatedDevice(device_url("worn-mlc", **RELIABILITY, **keys))
    pages = device.logical_pages
    read = device.run(basic("read", "sequential", io_size=page[0], io_count=pages))
    return read.counters["uncorrectable_reads"] / pages


def quantile(page: tuple[int, int], cycles: int, share: float) -> float:
    """Return the bit error rate that only this share of the pages exceeds."""
    low, high = 0, 256  # wrong bits that more pages have, and that no more have
    while high - low > 1:
        middle = (low + high) // 2
        if failing_share(page, middle, cycles) > share:
            low = middle
        else:
            high = middle
    return high / (8 * page[0])


@dataclass(frozen=True)
class PageErrors:
    """Bit error rates of the worst and of the median page over `CYCLES`, by device."""

    worst: dict[str, list[float]]
    median: dict[str, list[float]]


def measure_figure_1(on_step: OnStep) -> PageErrors:
    """Measure both devices."""
    points = [
        (page, cycles, share)
        for share in (WORST_SHARE, 0.5)
        for page in DEVICES.values()
        for cycles in CYCLES
    ]
    rates = on_all(_quantile, points, on_step, lambda point: f"{point[1]} erases")
    by_device = np.reshape(rates, (2, len(DEVICES), len(CYCLES))).tolist()
    worst, median = (dict(zip(DEVICES, rates, strict=True)) for rates in by_device)
    return PageErrors(worst, median)


def _quantile(point: tuple[tuple[int, int], int, float]) -> float:
    return quantile(*point)


def rows_figure_1(data: PageErrors) -> list[ReproductionRow]:
    """Compare the median page with the worst, at the rated erases."""
    rated = CYCLES.index(RATED_CYCLES)
    ratios = [data.median[device][rated] / data.worst[device][rated] for device in DEVICES]
    return [compare_stated("ofc/fig1/better", max(ratios), below(2 / 3))]


def draw_figure_1(data: PageErrors) -> Figure:
    """Draw the rates over the erases."""
    sheet, [axis] = figure.panels(height=4.2)
    for device, style in zip(DEVICES, ("-", "--"), strict=True):
        for name, pages, color in (
            ("worst", data.worst, figure.WRITES),
            ("median", data.median, figure.READS),
        ):
            per_mille = [1000 * rate for rate in pages[device]]
            axis.plot(THOUSANDS, per_mille, style, color=color, label=f"{device}, {name} page")
    axis.set_xlabel("thousand erases")
    figure.logarithmic(axis, "wrong bits of a page [‰]")
    figure.title(axis, "Bit errors of the pages of a block", "law and spread are assumed")
    axis.legend(loc="lower right")
    return sheet


@dataclass(frozen=True)
class UsablePages:
    """Pages of a block of 64 with less than a thousandth of wrong bits, over `CYCLES`, by age."""

    pages: dict[str, list[float]]


def measure_figure_4(on_step: OnStep) -> UsablePages:
    """Measure all ages."""
    points = [(cycles, age_s) for age_s in AGES_S.values() for cycles in CYCLES]
    shares = on_all(_usable, points, on_step, lambda point: f"{point[0]} erases")
    by_age = np.reshape(shares, (len(AGES_S), len(CYCLES))).tolist()
    return UsablePages(dict(zip(AGES_S, by_age, strict=True)))


def _usable(point: tuple[int, int]) -> float:
    page = DEVICES["X"]
    return PAGES_PER_BLOCK * (1 - failing_share(page, round(LIMIT * 8 * page[0]), *point))


def rows_figure_4(data: UsablePages) -> list[ReproductionRow]:
    """Compare the usable pages with the text."""
    pages = data.pages["at once"][CYCLES.index(LIFE_OF_HALF * RATED_CYCLES)]
    return [compare_stated("ofc/fig4/half", pages / PAGES_PER_BLOCK, between(0.45, 0.55))]


def draw_figure_4(data: UsablePages) -> Figure:
    """Draw the usable pages over the erases, a line for each age."""
    sheet, [axis] = figure.panels(height=4.2)
    for (age, pages), style in zip(data.pages.items(), ("-", "--", ":"), strict=True):
        axis.plot(THOUSANDS, pages, style, color=figure.READS, label=f"read {age}")
    figure.mark_printed(axis, [LIFE_OF_HALF * RATED_CYCLES / 1000], [PAGES_PER_BLOCK / 2])
    axis.set_xlabel("thousand erases")
    figure.from_zero(axis, "pages of a block below 1 ‰ wrong bits", 70, 16)
    figure.title(axis, "Usable pages of a block", "law and spread are assumed")
    axis.legend(loc="upper right")
    return sheet


OFC_FIGURE_1 = Reproduction(
    id="ofc-fig1",
    title="bit errors of the worst page of a block over erases",
    source="OFC (2011) Figure 1, §I",
    steps=2 * len(DEVICES) * len(CYCLES),
    measure=measure_figure_1,
    rows=rows_figure_1,
    draw=draw_figure_1,
)
OFC_FIGURE_4 = Reproduction(
    id="ofc-fig4",
    title="usable pages of a block over erases and retention",
    source="OFC (2011) Figure 4, §IV.C",
    steps=len(AGES_S) * len(CYCLES),
    measure=measure_figure_4,
    rows=rows_figure_4,
    draw=draw_figure_4,
)
