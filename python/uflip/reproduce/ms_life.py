"""Myers & Sinclair's open question: the performance of their two drives as cells wear out.

**Source**: Myers & Sinclair (2010) §7, "we do not know how SSD performance will change as cells in
the drive begin to wear out and fail"; §2.1 for the erases of a block.
**Faithful**: 4 KiB random reads, and their micro-benchmark, on the models of both drives at four
ages.
**Simplified**: pages are alike and data has no age, so that a closed form gives the number of read
retries.
**Ambiguous**: all constants of the flash but its rated erases: none is published for these drives,
so they are guesses of the order of data sheets of the time.
"""

import json
import tomllib
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from uflip.benchmark.myers_sinclair import IO_BYTES, batch
from uflip.device.opener import open_device
from uflip.durability import FUA
from uflip.executors import OnStep
from uflip.models.reliability import mean_retries, uncorrectable, wear_law
from uflip.profiles import read_profile
from uflip.reproduce import figure
from uflip.reproduce.reproduction import Reproduction, ReproductionRow, equation
from uflip.reproduce.simulated_device import device_url
from uflip.spec import basic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LIVES = (0.0, 0.5, 1.0, 1.5)
"""Ages, relative to the rated erases."""
READS, WRITES = 400_000, 20_000
RATED_CYCLES = 10_000
FRESH, RATED, EXPONENT = 1e-6, 1.5e-3, 0.7
CODEWORD_BYTES, CORRECTABLE = 512, 12
RETRIES, GAIN = 5, 0.8
REPLACEMENT_BLOCKS = 64
"""Blocks of a die that replace failed ones."""

RELIABILITY = {
    "wear_law": "power",
    "rated_cycles": RATED_CYCLES,
    "rber_fresh": FRESH,
    "rber_rated": RATED,
    "wear_exponent": EXPONENT,
    "page_spread": 0.0,
    "high_page_factor": 1.0,
    "retention_doubling_s": 0.0,
    "retention_exponent": 1.0,
    "ecc_codeword_bytes": CODEWORD_BYTES,
    "ecc_correctable_bits": CORRECTABLE,
    "erase_step_cycles": 2_000,
    "erase_step_ns": 500_000,
    "erase_steps_max": 20,
    "data_age_s": 0.0,
    "read_retries": RETRIES,
    "retry_gain": GAIN,
    "fail_uncorrectable": False,
    "factory_bad_share": 0.0,
    "program_failures": 1e-7,
    "erase_failures": 1e-5,
    "retire": "nothing",
    "retire_rber": 0.4,
    "partial_blocks_max": 0,
    "usable_pages_min": 1,
    "replacement_blocks": REPLACEMENT_BLOCKS,
}


@dataclass(frozen=True)
class Age:
    """A drive at one age."""

    life: float  #: Erases of every block over the rated ones.
    retries: float  #: Mean number of read retries per page read.
    #: Mean response times [ns].
    read_ns: float
    write_ns: float


def measure_age(drive: str, life: float) -> Age:
    """Measure a drive of an age."""
    profile = tomllib.loads(read_profile(drive)[1])
    blocks, spare = profile["geometry"]["blocks_per_die"], profile["ftl"]["spare_factor"]
    whole = blocks + REPLACEMENT_BLOCKS
    # The host sees the same capacity as without the replacement blocks.
    spare = 1 - (1 - spare) * blocks / whole
    overrides = RELIABILITY | {
        "cycles_before": round(life * RATED_CYCLES),
        "blocks_per_die": whole,
        "spare_factor": round(spare, 9),
        "state": "sequential",
    }
    with open_device(device_url(drive, **overrides), durability=FUA) as device:
        read = device.run(basic("read", "random", io_size=IO_BYTES, io_count=READS, seed=3))
        write = device.run(batch(0, batch_ios=WRITES))
        counters = json.loads(read.counters_json() or "{}")
        retried = counters["read_retries"]
        return Age(
            life,
            retried / (counters["pages_read"] - retried),
            float(np.mean(np.asarray(read.column("response_time_ns")))),
            float(np.mean(np.asarray(write.column("response_time_ns")))),
        )


@dataclass(frozen=True)
class DriveAging:
    """Both drives at every age of `LIVES`."""

    kingston: list[Age]
    intel: list[Age]

    def drives(self) -> list[tuple[str, list[Age]]]:
        """Return the names of the drives, and their measurements at every age."""
        return [("Kingston SNV125", self.kingston), ("Intel X25-M", self.intel)]


def measure(on_step: OnStep) -> DriveAging:
    """Measure both drives at every age."""
    kingston = [measure_age("kingston-snv125", life) for life in LIVES]
    on_step(1, f"the Kingston at {len(LIVES)} ages")
    intel = [measure_age("intel-x25m", life) for life in LIVES]
    on_step(2, f"the Intel at {len(LIVES)} ages")
    return DriveAging(kingston, intel)


def rows(data: DriveAging) -> list[ReproductionRow]:
    """Compare with the read retries of a binomial law, and their cost."""
    rber = wear_law(FRESH, RATED, EXPONENT)
    failing = partial(
        uncorrectable, page_bytes=IO_BYTES, codeword_bytes=CODEWORD_BYTES, correctable=CORRECTABLE
    )
    retry_rows = []
    for drive, ages in data.drives():
        for age in ages:
            if age.life < 1:
                continue
            expected = mean_retries(rber(age.life), max_retries=RETRIES, gain=GAIN, failing=failing)
            what = f"pages read again, {drive}, {100 * age.life:g} % of its erases"
            retry_rows.append(equation(what, "%", 100 * expected, 100 * age.retries))
    timing = tomllib.loads(read_profile("kingston-snv125")[1])["timing"]
    retry_ns = timing["read_ns"] + 1e9 * IO_BYTES / timing["channel_bytes_per_s"]
    new, *_, old = data.kingston
    # A host read reads one page here, and no mapping page.
    measured_ns = (old.read_ns - new.read_ns) / old.retries
    what = "a page read again, Kingston SNV125: cells and channel"
    return [*retry_rows, equation(what, "us", retry_ns / 1e3, measured_ns / 1e3)]


def draw(data: DriveAging) -> "Figure":
    """Draw the means over the erases, over those of a new drive."""
    sheet, [axis] = figure.panels(height=4.2)
    for (drive, ages), style in zip(data.drives(), ("-", "--"), strict=True):
        life = [100 * age.life for age in ages]
        reads = [age.read_ns / ages[0].read_ns for age in ages]
        writes = [age.write_ns / ages[0].write_ns for age in ages]
        axis.plot(life, reads, style, color=figure.READS, label=f"{drive}, reads")
        axis.plot(life, writes, style, color=figure.WRITES, label=f"{drive}, writes")
    axis.set_xlabel("erases of every block [% of the rated ones]")
    axis.set_ylabel("mean response time, over that of a new drive")
    figure.title(axis, "4 KiB at random over a drive's life", "flash of assumed constants")
    axis.legend(loc="upper left")
    return sheet


REPRODUCTION = Reproduction(
    id="ms-life",
    title="both drives as their cells wear out",
    source="Myers & Sinclair (2010) §7",
    steps=2,
    measure=measure,
    rows=rows,
    draw=draw,
)
