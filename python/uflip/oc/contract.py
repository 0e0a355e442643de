"""The five rules of the "unwritten contract" of SSDs, looked at with what was measured.

**Source**: uFLIP-OC (2017) §6; the rules are from He et al., "The Unwritten Contract of Solid State
Drives" (EuroSys 2017).
**Faithful**: the five rules, and the questions that uFLIP-OC puts to them; every verdict has its
numbers.
**Simplified**: a verdict follows from thresholds that stand here, not from a model.
**Ambiguous**: what "locality" is without a mapping table. Here, as in the paper, it is that reads
go to LUNs that are being written.
"""

from dataclasses import dataclass

import numpy as np

from uflip.oc.benchmark import Measured
from uflip.oc.device import FlashDevice
from uflip.oc.series import READ, WRITE, Series

# A factor from which on one way is clearly better than the other.
CLEARLY = 1.5


@dataclass(frozen=True)
class Rule:
    """A rule, what became of it, and why.

    Attributes
    ----------
    name, says : str
        The rule.
    verdict : str
        "holds", "holds and is trivial", "does not apply", "is the host's own decision",
        "comes at a price", or "not measured".
    evidence : str
        The numbers behind the verdict.
    """

    name: str
    says: str
    verdict: str
    evidence: str


NOT_MEASURED = "not measured"


def revisit(measured: Measured, device: FlashDevice, alignment: list[str] | None) -> list[Rule]:
    """Look at the five rules.

    Parameters
    ----------
    measured : Measured
        What was found.
    device : FlashDevice
        Its geometry.
    alignment : list of str or None
        What `probe_order` found: statuses of a write that begins in the middle of a block.
    """
    return [
        _request_scale(measured),
        _locality(measured),
        _aligned_sequentiality(alignment),
        _death_time(measured, device),
        _lifetime(measured),
    ]


def probe_order(device: FlashDevice, block: tuple[int, int, int]) -> list[str]:
    """Write the second page of an erased block first; return the statuses of its addresses."""
    channel, lun, number = block
    device.command("erase", [(channel, lun, number, 0, 0, 0)])
    geometry = device.geometry
    page = [
        (channel, lun, number, plane, 1, sector)
        for plane in range(geometry["planes"])
        for sector in range(geometry["sectors_per_page"])
    ]
    _, statuses = device.command("write", page)
    return statuses


def _request_scale(measured: Measured) -> Rule:
    says = "submit large requests, or many at a time"
    name = "Request scale"
    if measured.oc3 is None or measured.oc0 is None:
        return Rule(name, says, NOT_MEASURED, "needs oc0 and oc3")
    threads = measured.oc3.scaling["writes, threads"].mb_per_s
    alone = threads[min(threads)]
    everything = measured.oc3.all_luns["writes"]
    gain = everything / alone
    apart, together = _read_spreads(measured)
    evidence = (
        f"Writes grow from {alone:.0f} MB/s of one thread to {everything:.0f} MB/s of a thread for "
        f"every LUN ({gain:.1f} times). But where the requests that are added are writes on a LUN "
        f"that is read, the slowest twentieth of its reads takes {together:.2f} ms and more, not "
        f"{apart:.2f} ms."
    )
    tension = gain >= CLEARLY and together / apart >= CLEARLY
    verdict = "comes at a price" if tension else "holds" if gain >= CLEARLY else "does not apply"
    return Rule(name, says, verdict, evidence)


def _read_spreads(measured: Measured) -> tuple[float, float]:
    """95th percentile of reads apart from writes, and on a LUN that is written [ms]."""
    assert measured.oc0
    assert measured.oc3
    apart = _p95(measured.oc3.mixes["50 % writes"], READ)
    return apart, _p95(measured.oc0.mixes["WRWR"], READ)


def _p95(series: Series, op: int) -> float:
    times = series.times(op)
    return float(np.percentile(times, 95)) if len(times) else float("nan")


def _locality(measured: Measured) -> Rule:
    says = "favour locality, so that the mapping table is found in memory"
    name = "Locality"
    if measured.oc0 is None:
        return Rule(name, says, NOT_MEASURED, "needs oc0")
    alone = _p95(measured.oc0.mixes["RRRR"], READ)
    mixed = _p95(measured.oc0.mixes["WRWR"], READ)
    evidence = (
        f"There is no mapping table. Reads of a LUN that is written as often take up to "
        f"{mixed:.2f} ms in 95 % of the cases, {mixed / alone:.1f} times the {alone:.2f} ms of "
        f"reads alone: locality makes reads and writes meet."
    )
    return Rule(name, says, "does not apply", evidence)


def _aligned_sequentiality(alignment: list[str] | None) -> Rule:
    says = "write sequentially within a block"
    name = "Aligned sequentiality"
    if alignment is None:
        return Rule(name, says, NOT_MEASURED, "needs a block that may be erased")
    refused = all(status == "out_of_order" for status in alignment)
    evidence = (
        f"A write of page 1 of an erased block ended with {', '.join(sorted(set(alignment)))} for "
        f"all {len(alignment)} addresses: "
        + ("the device leaves no other way." if refused else "the device took it.")
    )
    return Rule(name, says, "holds and is trivial" if refused else "does not apply", evidence)


def _death_time(measured: Measured, device: FlashDevice) -> Rule:
    says = "put data on the same blocks that is deleted together"
    name = "Grouping by death time"
    geometry = device.geometry
    block_mb = device.page_bytes * geometry["pages_per_block"] / 1e6
    verdict = "is the host's own decision"
    evidence = (
        f"The unit that is erased is known, {block_mb:.1f} MB, and placing data in it is up to the "
        f"host: the device moves nothing."
    )
    if measured.oc3 is not None:
        writes = _p95(measured.oc3.mixes["50 % writes"], READ)
        alone = _p95(measured.oc3.mixes["100 % reads"], READ)
        evidence += (
            f" What placement has to see to is isolation: reads on LUNs apart from writes keep "
            f"{writes:.2f} ms (95 %), against {alone:.2f} ms without any writes."
        )
    return Rule(name, says, verdict, evidence)


def _lifetime(measured: Measured) -> Rule:
    says = "favour structures whose data is updated and deleted in batches"
    name = "Uniform data lifetime"
    verdict = "is the host's own decision"
    if measured.oc1 is None:
        return Rule(name, says, NOT_MEASURED, "needs oc1")
    worn = measured.oc1
    first = worn.first_failure()
    evidence = (
        f"An erase takes {worn.erase_ms[0]:.1f} ms on a new block and {worn.erase_ms[-1]:.1f} ms "
        f"after {worn.cycles:,}, in which its LUN serves nobody: batches of whole blocks keep "
        f"these rare. "
    )
    evidence += (
        f"Reads may be taken for safe up to {first:,} erases, when the first one failed; "
        if first
        else f"No read failed in {worn.cycles:,} cycles; "
    ) + f"{int(worn.failed_writes.sum())} writes failed."
    return Rule(name, says, verdict, evidence)


def write_variance(measured: Measured) -> str:
    """Say what mixing does to writes of other threads (§5.2.2); "" where it was not measured."""
    if measured.oc3 is None:
        return ""
    mixes = measured.oc3.mixes
    spreads = {share: np.std(series.times(WRITE)) for share, series in mixes.items()
               if len(series.times(WRITE))}  # fmt: skip
    listed = ", ".join(f"{value:.2f} ms at {share}" for share, value in spreads.items())
    return f"Standard deviation of the response times of writes: {listed}."
