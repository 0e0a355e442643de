"""The report of a block device: one self-contained HTML page.

The page uses no network and no scripts: it embeds its figures and its style, and its
Content-Security-Policy forbids loading anything. It follows the reader's light or dark theme,
prints in light colours, and has the numbers of every figure in a table. The same results give the
same bytes.
"""

from collections.abc import Callable, Sequence

from uflip.durability import CACHED
from uflip.report import sections
from uflip.report.blocks import Block
from uflip.report.data import Document, Traces, is_simulated
from uflip.report.findings import headline
from uflip.report.method import method_section
from uflip.report.page import ReportPage, Section, render_page
from uflip.results.summary_document import describe_device
from uflip.units import format_duration_ns

Body = Callable[[Document, Traces], Sequence[Block]]

# The page from top to bottom: anchor, heading, and function of the body; a section with an empty
# body is omitted.
SECTIONS: list[tuple[str, str, Body]] = [
    ("key-figures", "Key figures", sections.key_figures),
    ("key-characteristics", "Key characteristics", sections.key_characteristics),
    ("design-hints", "Design hints", sections.design_hints),
    ("baselines", "The baselines, every I/O", sections.baselines),
    ("micro-benchmarks", "The micro-benchmarks", sections.micro_benchmarks),
    ("summary", "Summary", sections.summary),
    ("warnings", "Warnings", sections.warnings),
    ("skipped", "Skipped and missing runs", sections.skipped),
    ("method", "Method", method_section),
    ("provenance", "Provenance", sections.provenance),
]

SOURCE = (
    "The benchmark is uFLIP: Bouganim, Jónsson, Bonnet, “uFLIP: Understanding Flash IO Patterns”, "
    "CIDR 2009."
)


def build_page(document: Document, traces: Traces) -> str:
    """Return the page of a summary and the I/Os of the baselines."""
    device = describe_device(document["device"])
    runs = f"{document['runs_finished']} of {document['runs_planned']} runs"
    finished = document["status"] == "complete"
    page = ReportPage(
        benchmark="uFLIP",
        source=SOURCE,
        version=str(document["uflip_version"]),
        created_utc=str(document["created_utc"]),
        device=device,
        title=f"{device}: uFLIP report",
        badge=_badge(document),
        facts=_facts(document, runs),
        simulated=is_simulated(document),
        unfinished=None if finished else (document["status"], runs),
        warnings=len(document["warnings"]),
        abstract=headline(document),
        sections=[Section(at, heading, body(document, traces)) for at, heading, body in SECTIONS],
    )
    return render_page(page)


def _badge(document: Document) -> str:
    if is_simulated(document):
        return "simulated"
    return "null device" if document["device"].null else ""


def _facts(document: Document, runs: str) -> list[str]:
    elapsed = document["elapsed_s"]
    return [
        document["device"].url,
        document["device"].profile.description,
        f"durability {document['durability']}" if document["durability"] != CACHED else "",
        f"scale {document['scale']}",
        f"seed {document['seed']}",
        runs,
        str(document["created_utc"]).replace("T", " ").replace("Z", " UTC"),
        f"measured in {format_duration_ns(elapsed * 1e9)}" if elapsed else "",
    ]
