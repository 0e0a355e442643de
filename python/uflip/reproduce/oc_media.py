"""The role of the medium, uFLIP-OC's future work: its benchmark and verdicts on other media.

**Source**: uFLIP-OC (2017) §6, §7: "the role of media characteristics"; times of cells from the
sources below.
**Faithful**: µOC0 to µOC3 and the rules of the unwritten contract, on the card of the paper with
other cells, and with a channel and a controller of today.
**Simplified**: a card of 32 small blocks a plane, since no result depends on the capacity. High and
low pages of other media take the same time. No more erases succeed than on the card, in multiples
of the rated ones.
**Ambiguous**: error rates of other media: all have those of the card's MLC at their own number of
rated erases, so that a stronger code shifts the first failing read, and the medium its scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from uflip.executors import OnStep, on_all
from uflip.microbench import micro_benchmarks_for
from uflip.microbench.open_channel import oc1
from uflip.microbench.open_channel.jobs import Scale
from uflip.microbench.open_channel.series import READ
from uflip.oc.benchmark import measure as measure_benchmarks
from uflip.oc.contract import evaluate_rules
from uflip.oc.device import open_flash_device
from uflip.oc.session import Session
from uflip.reproduce import figure
from uflip.reproduce.published import PUBLISHED
from uflip.reproduce.reproduction import Reproduction, ReproductionRow, cell
from uflip.reproduce.simulated_device import device_url
from uflip.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CARD = "MLC"
"""The medium of the paper's card."""


def _one_time(read_ns: int, program_ns: int, erase_ns: int, rated_cycles: int) -> dict[str, int]:
    return {
        "read_ns": read_ns, "program_low_ns": program_ns, "program_high_ns": program_ns,
        "quick_low_pages": 0, "erase_ns": erase_ns, "rated_cycles": rated_cycles,
        "erase_step_cycles": rated_cycles // 3,
    }  # fmt: skip


MEDIA: Mapping[str, Mapping[str, int]] = {
    # Z-NAND: Cheong et al., ISSCC 2018; the erase time of SLC.
    "low-latency": _one_time(3_000, 100_000, 1_500_000, 50_000),
    # Data sheet of Samsung K9K8G08.
    "SLC": _one_time(25_000, 200_000, 1_500_000, 100_000),
    CARD: {},
    # FEMU and SimpleSSD; see the profile tlc-nvme.
    "TLC": _one_time(56_500, 700_000, 5_000_000, 3_000),
    # Chen et al., ICCD 2022; see the profile qlc-nvme.
    "QLC": _one_time(47_900, 1_860_000, 6_340_000, 1_000),
}
"""Medium -> its keys; the card's own without any."""
CONTROLLERS: Mapping[str, Mapping[str, int]] = {
    "card": {},
    # NV-DDR3 (ONFI 4.1); no switch, and a hundredth of the card's time for a command.
    "of today": {
        "channel_bytes_per_s": 1_200_000_000, "lun_switch_ns": 0, "queue_thread_ns": 350,
        "submission_thread_ns": 50, "media_completion_thread_ns": 200,
        "host_completion_thread_ns": 200,
    },
}  # fmt: skip
"""Channel and controller -> their keys."""
ECC_BITS = (40, 80)
"""Correctable bits of 1 KiB: BCH of the card, and twice as many."""
AGES = (1, 2, 3, 4, 5, 6)
"""Multiples of the rated erases at which reads are tested."""
RATED_OF_CARD = 3_000
SMALL = {"pages_per_block": 64, "blocks_per_plane": 32}
SCALE = Scale(blocks=16, cycles=30, wear_pages=8)
SACRIFICE = (7, 3, 31)
POINTS = [(medium, controller) for controller in CONTROLLERS for medium in MEDIA]
RULES = {
    "Request scale": "oc/contract/request_scale", "Locality": "oc/contract/locality",
    "Aligned sequentiality": "oc/contract/sequentiality",
    "Grouping by death time": "oc/contract/death_time",
    "Uniform data lifetime": "oc/contract/lifetime",
}  # fmt: skip
"""Rule -> id of the paper's verdict on it."""


@dataclass(frozen=True)
class MediumFindings:
    """The findings on one medium behind one controller."""

    medium: str  #: One of `MEDIA`.
    controller: str  #: One of `CONTROLLERS`.
    #: "reads" and "writes" of one thread for a LUN, and for each of all LUNs [MB/s].
    one_lun: dict[str, float]
    all_luns: dict[str, float]
    alone_ms: float  #: 95th percentile of reads of a LUN that is only read [ms].
    beside_ms: float  #: The same of a LUN that is also written [ms].
    #: Correctable bits -> erases, in multiples of the rated ones, at which a read fails; None if
    #: none does.
    failing: dict[int, int | None]
    verdicts: dict[str, str]  #: Rule -> verdict.


@dataclass(frozen=True)
class MediaStudy:
    """Findings of every medium behind every controller."""

    found: tuple[MediumFindings, ...]


def measure_medium(point: tuple[str, str]) -> MediumFindings:
    """Run the four micro-benchmarks on a card with another medium, new and worn."""
    medium, controller = point
    keys = {**SMALL, **MEDIA[medium], **CONTROLLERS[controller]}
    device = open_flash_device(device_url("dfc", **keys))
    session = Session(device, SCALE, SACRIFICE)
    found = measure_benchmarks(session, [*micro_benchmarks_for("physical")])
    assert found.oc0 is not None, "all micro-benchmarks ran"
    assert found.oc2 is not None, "all micro-benchmarks ran"
    assert found.oc3 is not None, "all micro-benchmarks ran"
    mixes = found.oc0.mixes
    slowest = {name: float(np.percentile(mixes[name].times(READ), 95)) for name in ("RRRR", "WRWR")}
    return MediumFindings(
        medium,
        controller,
        {word: found.oc2[f"{word}, one thread"].mb_per_s[1] for word in ("reads", "writes")},
        dict(found.oc3.all_luns),
        slowest["RRRR"],
        slowest["WRWR"],
        {bits: first_failing_age(keys, bits) for bits in ECC_BITS},
        {rule.name: rule.verdict for rule in evaluate_rules(found, device.geometry)},
    )


def first_failing_age(keys: Mapping[str, int], ecc_bits: int) -> int | None:
    """Return the first of `AGES` at which a read of a worn block fails."""
    rated = keys.get("rated_cycles", RATED_OF_CARD)
    for age in AGES:
        url = device_url("dfc", **keys, ecc_correctable_bits=ecc_bits) + f"&erases={age * rated}"
        worn = oc1.measure(Session(open_flash_device(url), SCALE, SACRIFICE))
        if worn.first_failure() is not None:
            return age
    return None


def measure(on_step: OnStep) -> MediaStudy:
    """Measure all media."""
    return MediaStudy(tuple(on_all(measure_medium, POINTS, on_step, " ".join)))


def rows(data: MediaStudy) -> list[ReproductionRow]:
    """Compare the verdicts on the card's own medium with the paper's."""
    [ours] = [one.verdicts for one in data.found if (one.medium, one.controller) == (CARD, "card")]
    return [
        cell(
            value_id, PUBLISHED[value_id].printed, ours[rule], deviation=None, tolerance="the same",
            within=ours[rule] == PUBLISHED[value_id].printed,
        )
        for rule, value_id in RULES.items()
    ]  # fmt: skip


def text(data: MediaStudy) -> str:
    """Format the findings and the verdicts by medium."""
    rates = Table(
        ("medium", "controller", "reads, one LUN", "all LUNs", "writes, one LUN", "all LUNs",
         "95 % of reads alone", "beside writes", *(f"fails, {bits} bits" for bits in ECC_BITS)),
        [
            (one.medium, one.controller,
             f"{one.one_lun['reads']:.1f} MB/s", f"{one.all_luns['reads']:.0f} MB/s",
             f"{one.one_lun['writes']:.1f} MB/s", f"{one.all_luns['writes']:.0f} MB/s",
             f"{one.alone_ms:.2f} ms", f"{one.beside_ms:.2f} ms",
             *("never" if age is None else f"{age} x rated" for age in one.failing.values()))
            for one in data.found
        ],
    )  # fmt: skip
    verdicts = Table(
        ("medium", "controller", *RULES),
        [
            (one.medium, one.controller, *(one.verdicts[rule] for rule in RULES))
            for one in data.found
        ],
    )
    return f"{rates.text()}\n\n{verdicts.text()}"


def draw(data: MediaStudy) -> Figure:
    """Draw the throughput of all LUNs, and reads beside writes, by medium."""
    sheet, axes = figure.panels(2, height=3.6)
    of_card = [one for one in data.found if one.controller == "card"]
    places, names = np.arange(len(of_card)), [one.medium for one in of_card]
    series: tuple[list[tuple[str, str | None, str]], ...] = (
        [("all_luns", "reads", "reads"), ("all_luns", "writes", "writes")],
        [("alone_ms", None, "reads alone"), ("beside_ms", None, "beside writes")],
    )
    for axis, bars, label in zip(axes, series, ("MB/s", "95 % of reads [ms]"), strict=True):
        for number, (field, word, legend) in enumerate(bars):
            values = [getattr(one, field) for one in of_card]
            heights = [value[word] for value in values] if word else values
            color = (figure.READS, figure.WRITES)[number]
            axis.bar(places + 0.4 * number - 0.2, heights, 0.38, label=legend, color=color)
        axis.set_xticks(places, names)
        axis.set_ylabel(label)
        axis.legend()
    figure.title(axes[0], "All LUNs", "uFLIP-OC's card with other media")
    figure.title(axes[1], "One LUN", "reads that wait for programs")
    return sheet


REPRODUCTION = Reproduction(
    id="oc-media",
    title="µOC0 to µOC3 and the verdicts on five media and two ECC strengths",
    source="uFLIP-OC (2017) §6, §7",
    steps=len(POINTS),
    measure=measure,
    rows=rows,
    draw=draw,
    text=text,
)
