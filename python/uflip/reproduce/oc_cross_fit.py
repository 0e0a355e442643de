"""uFLIP-OC's Tables 2 and 3, each predicted by constants that were fitted to the other one alone.

The eight times and rates of `sim:dfc` were fitted to both tables together, so that no cell of the
two tests the model. Here all eight start from values that no table influenced, are searched with
one table, and predict the other.

**Source**: uFLIP-OC (2017) §5.2, Tables 2 and 3; cross-validation (Stone 1974).
**Faithful**: the search and its score see the rates of one table only; the jobs of µOC2 and µOC3.
**Simplified**: four blocks a job instead of 64, at which the rates of the profile differ by less
than 0.1 %. The structure of the model stays, and was thought out with both tables in view. Scaling
factors are quotients of rates, and not counted again.
**Ambiguous**: the start values. The rate of a channel is that of a timing mode of ONFI: mode 5 of
asynchronous NAND, or of ONFI 2 as the second start. The times are round ones of MLC NAND and of a
processor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from statistics import fmean, median
from typing import TYPE_CHECKING

from uflip.executors import OnStep, on_all
from uflip.microbench.open_channel import oc2, oc3
from uflip.microbench.open_channel.jobs import SCALES, throughput
from uflip.oc.device import open_flash_device
from uflip.oc.session import Session
from uflip.reproduce import figure
from uflip.reproduce.coordinate_search import Constants, Number, minimise, short
from uflip.reproduce.oc import DEVICE, name_of
from uflip.reproduce.published import ALL_LUNS, PUBLISHED, TABLE_2, TABLE_3
from uflip.reproduce.reproduction import Reproduction, ReproductionRow, compare_printed
from uflip.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rates = Mapping[str, float]
"""Id of a published value -> the rate [MB/s]."""

START: dict[str, Number] = {
    "channel_bytes_per_s": 50_000_000,
    "program_low_ns": 1_000_000,
    "program_high_ns": 2_400_000,
    "lun_switch_ns": 50_000,
    "queue_thread_ns": 5_000,
    "submission_thread_ns": 5_000,
    "media_completion_thread_ns": 20_000,
    "host_completion_thread_ns": 20_000,
}
"""All constants whose sources name Tables 2 and 3, at the start of each search."""
ONFI_2 = {"channel_bytes_per_s": 166_000_000}
FITS: tuple[tuple[str, dict[str, Number]], ...] = (
    ("table2", START), ("table3", START), ("table2", START | ONFI_2),
)  # fmt: skip
"""Fitted table, and start of the search. The third shows how much depends on the start."""
OTHER = {"table2": "table3", "table3": "table2"}
NAMES = {"table2": "Table 2", "table3": "Table 3"}
FACTORS = (4.0, 2.0, 1.4, 1.15, 1.05, 1.02)
BUDGET = 300
CLOSE = 0.08
"""The tolerance of the profile, whose constants were fitted to both tables."""
OVERLAP = (
    "the profile, fitted to both tables, misses this rate most as well: on the card one thread "
    "gained less from its second LUN"
)


@dataclass(frozen=True)
class CrossFit:
    """Constants that were fitted to one table, and the rates of both."""

    fitted: str  #: "table2" or "table3".
    #: Key -> value at the start and at the end of the search.
    start: dict[str, Number]
    constants: dict[str, Number]
    devices: int  #: Number of devices that the search made.
    rates: dict[str, float]  #: Id of a published value -> simulated rate [MB/s], of both tables.

    def ratios(self, table: str) -> list[float]:
        """Return simulated over printed rates of a table."""
        return [ratio(key, rate) for key, rate in self.rates.items() if f"/{table}/" in key]


@dataclass(frozen=True)
class CrossFits:
    """All fits, in the order of `FITS`."""

    fits: tuple[CrossFit, ...]


def ratio(value_id: str, rate: float) -> float:
    """Return a rate over the printed one."""
    printed = PUBLISHED[value_id].number
    assert printed is not None, "the tables print numbers"
    return rate / printed


def open_quick(constants: Constants) -> Session:
    """Open a new card with changed constants, at the small scale."""
    query = "&".join(f"{key}={value}" for key, value in constants.items())
    device = open_flash_device(f"{DEVICE}?{query}")
    return Session(device, SCALES["quick"], on_step=lambda _name, _share: None)


def rates_of_table_2(constants: Constants) -> dict[str, float]:
    """Measure every rate of Table 2."""
    scaling = oc2.measure(open_quick(constants))
    return {
        f"oc/{name_of('table2', kind, luns)}": scaling[kind].mb_per_s[luns]
        for kind, by_luns in TABLE_2.items()
        for luns in by_luns
    }


def rates_of_table_3(constants: Constants) -> dict[str, float]:
    """Measure every rate of Table 3, and the two of 32 threads."""
    session = open_quick(constants)
    jobs = oc3.scalings(session.scope)
    rates = {
        f"oc/{name_of('table3', kind, degree)}": throughput(session, jobs[kind][1][degree])
        for kind, by_degree in TABLE_3.items()
        for degree in by_degree
    }
    return rates | {
        f"oc/table3/32_threads/{word}": throughput(session, job)
        for word, job in oc3.all_luns(session.scope).items()
        if word in ALL_LUNS
    }


MEASURE = {"table2": rates_of_table_2, "table3": rates_of_table_3}


def fit(point: tuple[str, dict[str, Number]]) -> CrossFit:
    """Fit all constants to one table, and measure both with the result."""
    table, start = point

    def loss(constants: Constants) -> float:
        if min(constants.values()) < 1:
            return float("inf")
        rates = MEASURE[table](constants)
        return fmean(log(ratio(key, rate)) ** 2 for key, rate in rates.items())

    constants, devices = minimise(start, list(start), loss, FACTORS, BUDGET)
    rates = {key: rate for measure in MEASURE.values() for key, rate in measure(constants).items()}
    return CrossFit(table, dict(start), constants, devices, rates)


def measure(on_step: OnStep) -> CrossFits:
    """Make all fits."""
    return CrossFits(tuple(on_all(fit, FITS, on_step, lambda point: f"fit to {NAMES[point[0]]}")))


def rows(data: CrossFits) -> list[ReproductionRow]:
    """Compare the rates of the table that a fit did not see."""
    return [
        compare_printed(
            key, rate, device=f"dfc?{'&'.join(f'{name}={one.constants[name]}' for name in START)}",
            note=OVERLAP if key.endswith("writes_one_thread/2") else "",
        )
        for one in data.fits[:2]
        for key, rate in one.rates.items()
        if f"/{OTHER[one.fitted]}/" in key
    ]  # fmt: skip


def score(ratios: list[float]) -> str:
    """Describe the deviations of a table's rates.

    >>> score([1.0, 0.95, 1.2])
    '2 of 3 within 8 %, median 5.0 %, worst 20.0 %'
    """
    misses = [abs(one - 1) for one in ratios]
    within = sum(miss <= CLOSE for miss in misses)
    return (
        f"{within} of {len(misses)} within {100 * CLOSE:g} %, median {100 * median(misses):.1f} %, "
        f"worst {100 * max(misses):.1f} %"
    )


def text(data: CrossFits) -> str:
    """Format the fits: their scores, then their constants."""
    scores = Table(
        ("fitted to", "channel at the start", "the fitted table", "the other table"),
        [
            (NAMES[one.fitted], f"{one.start['channel_bytes_per_s'] / 1e6:g} MB/s",
             score(one.ratios(one.fitted)), score(one.ratios(OTHER[one.fitted])))
            for one in data.fits
        ],
    )  # fmt: skip
    constants = Table(
        ("constant", "start", *(f"fitted to {NAMES[one.fitted]}" for one in data.fits)),
        [
            (key, short(START[key]), *(short(one.constants[key]) for one in data.fits))
            for key in START
        ],
    )
    return f"{scores.text()}\n\n{constants.text()}"


def draw(data: CrossFits) -> Figure:
    """Draw predicted over printed rates of the tables that the fits did not see."""
    sheet, [axis] = figure.panels(height=4.2)
    colors = (figure.WRITES, figure.READS, figure.SEQUENTIAL_WRITES)
    for number, one in enumerate(data.fits):
        held_out = {key: rate for key, rate in one.rates.items() if f"/{OTHER[one.fitted]}/" in key}
        printed = [rate / ratio(key, rate) for key, rate in held_out.items()]
        start = one.start["channel_bytes_per_s"] / 1e6
        axis.plot(
            printed, list(held_out.values()), "o", color=colors[number], markersize=4,
            label=f"fitted to {NAMES[one.fitted]}, from {start:g} MB/s",
        )  # fmt: skip
    axis.plot([10, 420], [10, 420], label="equal", **figure.EQUATION)
    for scale in (axis.set_xscale, axis.set_yscale):
        scale("log")
    axis.set_xlabel("printed [MB/s]")
    axis.set_ylabel("predicted [MB/s]")
    figure.title(axis, "Each table predicted from the other", "uFLIP-OC Tables 2 and 3")
    axis.legend()
    return sheet


REPRODUCTION = Reproduction(
    id="oc-tables",
    title="Tables 2 and 3, each predicted by constants fitted to the other",
    source="uFLIP-OC (2017) §5.2, Tables 2 and 3",
    steps=len(FITS),
    measure=measure,
    rows=rows,
    draw=draw,
    text=text,
)
