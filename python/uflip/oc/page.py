"""The report of an open-channel device: one page of HTML with everything in it."""

from collections.abc import Mapping, Sequence

import numpy as np

from uflip.data.device import Geometry
from uflip.data.document import plain
from uflip.data.summary import Rule
from uflip.microbench.open_channel.oc0 import MIXES, Oc0
from uflip.microbench.open_channel.oc1 import Oc1
from uflip.microbench.open_channel.oc2 import KINDS
from uflip.microbench.open_channel.scaling import Scaling
from uflip.microbench.open_channel.series import READ, WRITE, ResponseSeries
from uflip.oc import figures
from uflip.oc.benchmark import OpenChannelFindings, format_times, times_summary
from uflip.oc.contract import write_variance
from uflip.oc.result_dir import OpenChannelResult
from uflip.report import html
from uflip.report.blocks import Block, Figure, Paragraph, Table
from uflip.report.data import Document
from uflip.report.figures.svg import Drawing, draw
from uflip.report.page import ReportPage, Section, render_page

Blocks = Sequence[Block]

SOURCE = (
    "The benchmark is uFLIP-OC: Picoli, Pasco, Jónsson, Bouganim, Bonnet, “uFLIP-OC: Understanding "
    "Flash I/O Patterns on Open-Channel Solid-State Drives”, APSys 2017."
)


def page_of(result: OpenChannelResult) -> str:
    """Build the page of a result folder."""
    return build_page(result.measured, result.rules, result.summary())


def build_page(measured: OpenChannelFindings, rules: Sequence[Rule], document: Document) -> str:
    """Build the page."""
    info, runs = document["device"], document["runs_finished"]
    simulated = info.simulated
    geometry = info.geometry
    progress = f"{runs} of {document['runs_planned']} jobs"
    page = ReportPage(
        benchmark="uFLIP-OC",
        source=SOURCE,
        version=str(document["uflip_version"]),
        created_utc=str(document["created_utc"]),
        device=info.profile.description or info.url,
        title=f"{info.url}: uFLIP-OC report",
        badge="simulated" if simulated else "",
        facts=[
            info.url,
            f"{geometry.channels} channels of {geometry.luns_per_channel} LUNs",
            f"scale {document['scale']}",
            progress,
            str(document["created_utc"]).replace("T", " ").replace("Z", " UTC"),
        ],
        simulated=simulated,
        unfinished=None if document["status"] == "complete" else (document["status"], progress),
        warnings=len(document["warnings"]),
        abstract=_abstract(measured),
        sections=[
            Section("oc0", "µOC0: one LUN", _oc0(measured.oc0, simulated)),
            Section("oc1", "µOC1: wear", _oc1(measured.oc1, simulated)),
            Section("oc2", "µOC2: LUNs of a channel", _oc2(measured.oc2, simulated)),
            Section("oc3", "µOC3: channels", _oc3(measured, simulated)),
            Section("contract", "The unwritten contract, revisited", _contract(rules)),
            Section("warnings", "Warnings", html.warnings(document, ())),
            Section("skipped", "Skipped and missing jobs", html.skipped(document, ())),
            Section("geometry", "Geometry", [_geometry(geometry)]),
            Section("provenance", "Provenance", html.provenance(document, ())),
        ],
    )
    return render_page(page)


def _abstract(measured: OpenChannelFindings) -> str:
    """Return the main results in a few sentences."""
    sentences = []
    if measured.oc0:
        write, read = measured.oc0.write_mb_per_s, measured.oc0.read_mb_per_s
        sentences.append(
            f"A LUN alone writes {np.median(write):.1f} and reads {np.median(read):.1f} MB/s."
        )
    if measured.oc3:
        both = measured.oc3.all_luns
        sentences.append(
            f"All of them together write {both['writes']:.0f} and read {both['reads']:.0f} MB/s."
        )
    if measured.oc1:
        first, pages = measured.oc1.first_failure(), measured.oc1.pages
        share = measured.oc1.failing_share()[-1]
        sentences.append(
            f"The first read of {pages} pages of a block fails after {first:,} erases; after "
            f"{measured.oc1.cycles:,}, {share:.0%} of these reads fail."
            if first
            else f"No read of {pages} pages of a block failed in {measured.oc1.cycles:,} cycles."
        )
    return " ".join(sentences)


def _draw_bands(
    mixes: Mapping[str, ResponseSeries], titles: Mapping[str, str], name: str, sim: bool
) -> Drawing:
    chart = figures.bands(mixes, titles, simulated=sim)
    return draw(chart, name, "Response times", "A dot for each I/O; reads blue, writes orange.")


def _draw_heat_map(measured: Oc0, sim: bool) -> Drawing:
    chart = figures.heat_map(measured.write_mb_per_s, measured.read_mb_per_s, simulated=sim)
    return draw(chart, "heat", "Throughput of every LUN", "One cell for each channel and LUN.")


def _draw_wear(measured: Oc1, sim: bool) -> Drawing:
    chart = figures.wear(measured, simulated=sim)
    below = "Times on the left, failing reads on the right."
    return draw(chart, "wear", "Wear of a block", below)


def _draw_scaling(
    by_name: Mapping[str, Scaling],
    panels: Sequence[tuple[str, Sequence[str]]],
    name: str,
    sim: bool,
) -> Drawing:
    chart = figures.scalings(by_name, panels=panels, simulated=sim)
    below = "A line for each way of having more."
    return draw(chart, name, "Throughput by parallelism", below)


def _oc0(measured: Oc0 | None, sim: bool) -> Blocks:
    if measured is None:
        return []
    single_lun = Figure(
        "bands",
        "Response times of a single LUN",
        _draw_bands(measured.mixes, {mix: mix for mix in MIXES}, "bands", sim),
        "Each dot is an I/O of one page of all planes, by one thread; the letters are the mix. "
        "Bands of writes are low and high pages and those that had not to wait; reads that follow "
        "writes wait for them.",
        data=[_times_table(measured.mixes, measured.throughput)],
    )
    all_luns = Figure(
        "heat",
        "Throughput of every LUN",
        _draw_heat_map(measured, sim),
        "One LUN at a time, by one thread. Equal cells mean equal LUNs.",
    )
    return [single_lun, all_luns]


def _oc1(measured: Oc1 | None, sim: bool) -> Blocks:
    if measured is None:
        return []
    first = measured.first_failure()
    end_reason = "an erase failed" if measured.erase_failed else "the requested cycles were done"
    worn = Figure(
        "wear",
        "Wear of one block",
        _draw_wear(measured, sim),
        f"Block {':'.join(map(str, measured.block))} (channel:LUN:block) was erased "
        f"{measured.cycles:,} times, and {measured.pages} pages of it written and read each time; "
        f"it ended because {end_reason}. The share of reads that fail is a mean over 200 cycles.",
        finding="no read failed"
        if first is None
        else f"the first read failed after {first:,} erases; {int(measured.failed_writes.sum())} "
        "writes failed",
    )
    return [worn]


def _oc2(scalings: Mapping[str, Scaling] | None, sim: bool) -> Blocks:
    if not scalings:
        return []
    panels = [("writes", list(KINDS)[:2]), ("reads", list(KINDS)[2:])]
    luns = Figure(
        "luns",
        "Throughput over the LUNs of one channel",
        _draw_scaling(scalings, panels, "luns", sim),
        "Where a line bends, the channel is what all LUNs wait for.",
    )
    return [luns, _scaling_table(scalings)]


def _oc3(measured: OpenChannelFindings, sim: bool) -> Blocks:
    results = measured.oc3
    if results is None:
        return []
    panels = [(word, [f"{word}, vectors", f"{word}, threads"]) for word in ("writes", "reads")]
    everything = ", ".join(f"{word} {value:.0f} MB/s" for word, value in results.all_luns.items())
    channels = Figure(
        "channels",
        "Throughput over channels",
        _draw_scaling(results.scaling, panels, "channels", sim),
        "Pages of one vector, or threads, each on a channel of its own. "
        f"With a thread for every LUN: {everything}.",
    )
    isolated = Figure(
        "isolated",
        "Reads during writes",
        _draw_bands(results.mixes, {share: share for share in results.mixes}, "isolated", sim),
        "Every thread either reads or writes, on a channel of its own. Reads whose times "
        "do not depend on the share of writes are isolated from them.",
        data=[_times_table(results.mixes, results.throughput)],
        finding=write_variance(measured),
    )
    return [channels, _scaling_table(results.scaling), isolated]


def _contract(rules: Sequence[Rule]) -> Blocks:
    rows = [(f"{r.name}: {r.says}", r.verdict, r.evidence) for r in rules]
    intro = (
        "The five rules that He et al. found for SSDs with a translation layer (EuroSys 2017), as "
        "uFLIP-OC revisits them in its section 6, with the numbers of this device."
    )
    return [Paragraph(intro), Table(("rule", "verdict", "evidence"), rows)]


def _geometry(geometry: Geometry) -> Table:
    return Table(
        ("what", "value"), [(str(key), str(value)) for key, value in plain(geometry).items()]
    )


def _times_table(mixes: Mapping[str, ResponseSeries], throughput: Mapping[str, float]) -> Table:
    rows = []
    for mix, series in mixes.items():
        for op, word in ((WRITE, "writes"), (READ, "reads")):
            times = times_summary(series, op)
            if times is None:
                continue
            rows.append((
                f"{mix}, {word}",
                f"{times['count']:,}",
                *format_times(times, 3),
                f"{throughput[mix]:.2f}",
            ))  # fmt: skip
    head = ("mix", "I/Os", "mean [ms]", "p5", "p50", "p95", "p99", "most", "MB/s of all")
    return Table(head, rows, "lr")


def _scaling_table(scalings: Mapping[str, Scaling]) -> Table:
    rows = [
        (f"{name}, {scaling.degree_name(degree)}", f"{value:.2f}", f"{factor:.2f}")
        for name, scaling in scalings.items()
        for (degree, value), factor in zip(
            scaling.mb_per_s.items(), scaling.factors().values(), strict=True
        )
    ]
    return Table(("", "MB/s", "scaling factor"), rows, "lr")
