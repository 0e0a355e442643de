"""The five rules of the "unwritten contract" of SSDs, checked against measurements.

**Source**: uFLIP-OC (2017) §6; the rules are from He et al., "The Unwritten Contract of Solid State
Drives" (EuroSys 2017).
**Faithful**: the five rules, and the questions that uFLIP-OC asks about them; every verdict follows
from measured numbers, which its evidence names, and depends on them.
**Simplified**: a verdict follows from a threshold in this module, not from a model.
**Ambiguous**: (1) the meaning of "locality" without a mapping table. Here, as in the paper, it is
reads of LUNs that are being written. (2) Grouping by death time and uniform lifetime: the paper
states that placement is the host's own decision, and that reads and writes should be isolated. The
first is useful only if isolation works, the second if batches of erases save time; both are
measured.
"""

import math

import numpy as np

from uflip.data.device import Geometry
from uflip.data.summary import Rule
from uflip.microbench.open_channel.oc1 import Oc1
from uflip.microbench.open_channel.oc3 import READS_ALONE
from uflip.microbench.open_channel.series import READ, WRITE, ResponseSeries
from uflip.oc.benchmark import NS_PER_MS, OpenChannelFindings, times_summary
from uflip.stats import summarise

# A factor that counts as a clear difference.
CLEAR_FACTOR = 1.5

TOO_FEW_READS = (
    "needs 200 reads or more: a 95th percentile needs ten commands beyond it "
    "(--scale standard makes more)"
)

VERDICTS = (
    HOLDS := "holds",
    TRIVIAL := "holds and is trivial",
    DOES_NOT_APPLY := "does not apply",
    AT_A_PRICE := "comes at a price",
    HOST_DECISION := "is the host's own decision",
    NOT_HOST_ALONE := "is not the host's alone",
    NO_DIFFERENCE := "makes no difference",
    NOT_MEASURED := "not measured",
)


def evaluate_rules(measured: OpenChannelFindings, geometry: Geometry) -> list[Rule]:
    """Return the verdicts on the five rules."""
    return [
        _request_scale(measured),
        _locality(measured),
        _aligned_sequentiality(measured.order),
        _death_time(measured, geometry),
        _lifetime(measured, geometry),
    ]


def _request_scale(measured: OpenChannelFindings) -> Rule:
    says = "submit large requests, or many at a time"
    name = "Request scale"
    if measured.oc3 is None or measured.oc0 is None:
        return Rule(name, says, NOT_MEASURED, "needs oc0 and oc3")
    threads = measured.oc3.scaling["writes, threads"].mb_per_s
    one_thread = threads[min(threads)]
    all_threads = measured.oc3.all_luns["writes"]
    gain = all_threads / one_thread
    isolated_ms, shared_ms = _read_spreads(measured)
    evidence = (
        f"Writes grow from {one_thread:.0f} MB/s of one thread to {all_threads:.0f} MB/s of a "
        f"thread for every LUN ({gain:.1f} times)."
    )
    if math.isfinite(shared_ms / isolated_ms):
        evidence += (
            " But where the requests that are added are writes on a LUN that is read, the slowest "
            f"twentieth of its reads takes {shared_ms:.2f} ms and more, not {isolated_ms:.2f} ms."
        )
    tension = gain >= CLEAR_FACTOR and shared_ms / isolated_ms >= CLEAR_FACTOR
    verdict = AT_A_PRICE if tension else HOLDS if gain >= CLEAR_FACTOR else DOES_NOT_APPLY
    return Rule(name, says, verdict, evidence)


def _read_spreads(measured: OpenChannelFindings) -> tuple[float, float]:
    """Return the 95th percentile of reads away from writes, and on a LUN that is written [ms]."""
    assert measured.oc0
    assert measured.oc3
    isolated_ms = _p95(measured.oc3.halves, READ)
    return isolated_ms, _p95(measured.oc0.mixes["WRWR"], READ)


def _p95(series: ResponseSeries | None, op: int) -> float:
    """Return the 95th percentile [ms]; NaN if there are too few commands (`uflip.stats`)."""
    statistics = None if series is None else times_summary(series, op)
    p95_ms = None if statistics is None else statistics["p95_ms"]
    return math.nan if p95_ms is None else p95_ms


def _locality(measured: OpenChannelFindings) -> Rule:
    says = "favour locality, so that the mapping table is found in memory"
    name = "Locality"
    if measured.oc0 is None:
        return Rule(name, says, NOT_MEASURED, "needs oc0")
    alone_ms = _p95(measured.oc0.mixes["RRRR"], READ)
    mixed_ms = _p95(measured.oc0.mixes["WRWR"], READ)
    if not math.isfinite(mixed_ms / alone_ms):
        return Rule(name, says, NOT_MEASURED, TOO_FEW_READS)
    evidence = (
        f"There is no mapping table. Reads of a LUN that is written as often take up to "
        f"{mixed_ms:.2f} ms in 95 % of the cases, {mixed_ms / alone_ms:.1f} times the "
        f"{alone_ms:.2f} ms of reads alone: "
    )
    if mixed_ms / alone_ms >= CLEAR_FACTOR:
        return Rule(name, says, DOES_NOT_APPLY, evidence + "with locality reads wait for writes.")
    return Rule(name, says, NO_DIFFERENCE, evidence + "reads during writes are not slower.")


def _aligned_sequentiality(alignment: list[str] | None) -> Rule:
    says = "write sequentially within a block"
    name = "Aligned sequentiality"
    if alignment is None:
        return Rule(name, says, NOT_MEASURED, "needs a block that may be erased")
    statuses = sorted(set(alignment))
    evidence = (
        f"A write of page 1 of an erased block ended with {', '.join(statuses)} for its "
        f"{len(alignment)} addresses: "
    )
    if statuses == ["out_of_order"]:
        return Rule(name, says, TRIVIAL, evidence + "the device accepts no other order.")
    if statuses == ["done"]:
        return Rule(name, says, DOES_NOT_APPLY, evidence + "the device takes pages in any order.")
    return Rule(name, says, NOT_MEASURED, evidence + "this does not show the order of pages.")


def _death_time(measured: OpenChannelFindings, geometry: Geometry) -> Rule:
    says = "put data on the same blocks that is deleted together"
    name = "Grouping by death time"
    if measured.oc0 is None or measured.oc3 is None:
        return Rule(name, says, NOT_MEASURED, "needs oc0 and oc3")
    block_mb = geometry.page_bytes * geometry.pages_per_block / 1e6
    slowdown = _p95(measured.oc0.mixes["WRWR"], READ) / _p95(measured.oc0.mixes["RRRR"], READ)
    isolated_ms, alone_ms = (
        _p95(series, READ) for series in (measured.oc3.halves, measured.oc3.mixes[READS_ALONE])
    )
    if not math.isfinite(slowdown):
        return Rule(name, says, NOT_MEASURED, TOO_FEW_READS)
    evidence = (
        f"The erase unit is known, {block_mb:.1f} MB, and the host places the data in it. "
        f"Placement can isolate reads from writes: reads of a LUN that is written take "
        f"{slowdown:.1f} times as long as reads alone (95 %), reads apart from writes "
        f"{isolated_ms:.2f} ms, against {alone_ms:.2f} ms without any writes: "
    )
    if not (math.isfinite(isolated_ms) and math.isfinite(alone_ms)):
        missing = "needs two channels: one to read, one to write"
        has_both = measured.oc3.halves is not None
        return Rule(name, says, NOT_MEASURED, TOO_FEW_READS if has_both else missing)
    if isolated_ms / alone_ms >= CLEAR_FACTOR:
        return Rule(name, says, NOT_HOST_ALONE, evidence + "writes elsewhere slow them down, too.")
    if slowdown >= CLEAR_FACTOR:
        return Rule(name, says, HOST_DECISION, evidence + "keeping them apart is worth it.")
    return Rule(
        name, says, NO_DIFFERENCE, evidence + "where writes go makes no difference to reads."
    )


def _lifetime(measured: OpenChannelFindings, geometry: Geometry) -> Rule:
    says = "favour structures whose data is updated and deleted in batches"
    name = "Uniform data lifetime"
    if measured.oc1 is None:
        return Rule(name, says, NOT_MEASURED, "needs oc1")
    worn = measured.oc1
    write_ms = float(worn.write_ms.mean())
    evidence = (
        f"An erase takes {worn.erase_ms[0]:.1f} ms on a new block and {worn.erase_ms[-1]:.1f} ms "
        f"after {worn.cycles:,}, a write {write_ms:.1f} ms: "
    )
    batches = worn.erase_ms[-1] / write_ms >= CLEAR_FACTOR
    if batches:
        evidence += (
            "its LUN serves no other command meanwhile; batches of whole blocks keep erases rare. "
        )
    else:
        evidence += "erasing in batches saves hardly any time. "
    evidence += (
        f"{_erases_until_failure(worn, geometry)}; {int(worn.failed_writes.sum())} writes failed."
    )
    return Rule(name, says, HOST_DECISION if batches else NO_DIFFERENCE, evidence)


def _erases_until_failure(worn: Oc1, geometry: Geometry) -> str:
    """Return the erases until reads fail; a limit for the block only if all pages were worn."""
    first, pages = worn.first_failure(), worn.pages
    if pages < geometry.pages_per_block:
        failed = f"first failed after {first:,} erases" if first else f"failed in {worn.cycles:,}"
        return (
            f"{'A' if first else 'No'} read of the {pages} pages that were worn, of "
            f"{geometry.pages_per_block}, {failed}; the other pages were not tested"
        )
    if first:
        return f"Reads are safe up to {first:,} erases, when the first one failed"
    return f"No read failed in {worn.cycles:,} cycles"


def write_variance(measured: OpenChannelFindings) -> str:
    """Return the effect of mixing on writes of other threads (§5.2.2); "" if not measured."""
    if measured.oc3 is None:
        return ""
    mixes = measured.oc3.mixes
    statistics = {share: summarise(times) for share, series in mixes.items()
             if len(times := np.rint(series.times(WRITE) * NS_PER_MS))}  # fmt: skip
    listed = ", ".join(
        f"{deviation / NS_PER_MS:.2f} ms at {share}"
        for share, each in statistics.items()
        if (deviation := each["std_ns"]) is not None
    )
    return f"Standard deviation of the response times of writes: {listed}." if listed else ""
