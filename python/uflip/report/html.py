"""The report: one page of HTML with everything in it.

No network, no scripts: the page carries its figures and its style, forbids itself to load anything
(Content-Security-Policy), and reads the same in ten years. It follows the reader's light or dark
theme, prints on paper in light, and has the numbers of every figure in a table. The same results
give the same bytes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

from uflip.durability import CACHED
from uflip.report import sections
from uflip.report.data import BaselineTrace, baseline_traces
from uflip.report.figures import palette
from uflip.report.findings import headline
from uflip.report.method import how_made
from uflip.results import Results, outputs, summary
from uflip.results.summarise import describe_device
from uflip.units import format_duration_ns

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page: its anchor, its heading, and what makes its body."""

    anchor: str
    heading: str
    body: Callable[[Document, Sequence[BaselineTrace]], str]


# The page from top to bottom; a section whose body is empty is left out.
SECTIONS = (
    Section("key-figures", "Key figures", sections.key_figures),
    Section("key-characteristics", "Key characteristics", sections.key_characteristics),
    Section("baselines", "The baselines, I/O by I/O", sections.baselines),
    Section("micro-benchmarks", "The nine micro-benchmarks", sections.micro_benchmarks),
    Section("summary", "Summary", sections.summary),
    Section("warnings", "Warnings", sections.warnings),
    Section("skipped", "Skipped and missing runs", sections.skipped),
    Section("method", "How these numbers were made", how_made),
    Section("provenance", "Provenance", sections.provenance),
)


def write_report(results: Results, out: Path, *, force: bool = False) -> int:
    """Write the report of a result folder.

    Parameters
    ----------
    results
        A folder, finished or not.
    out
        The HTML file; an older report of this name is replaced, in one step.
    force
        Replace any regular file of this name.

    Returns
    -------
    int
        Size of the file [bytes].

    Raises
    ------
    ResultsError
        If a run file is damaged, or the report cannot be written.
    RefusedError
        If something else has this name.
    UnavailableError
        If matplotlib is not installed.
    """
    place = outputs.check(out, outputs.REPORT, force=force)
    return outputs.write(
        place, build_page(summary(results), baseline_traces(results)).encode(errors="replace")
    )


def build_page(document: Document, traces: Sequence[BaselineTrace]) -> str:
    """Build the page from the summary and the I/Os of the baselines."""
    bodies = [(section, section.body(document, traces)) for section in SECTIONS]
    present = [(section, body) for section, body in bodies if body]
    device = describe_device(document["device"])
    version, created = document["uflip_version"], document["created_utc"]
    return fill_page(
        [(section.anchor, section.heading, body) for section, body in present],
        benchmark="uFLIP",
        version=escape(str(version)),
        title=escape(f"{device}: uFLIP report"),
        badge=_badge(document),
        device=escape(device),
        facts=escape(_facts(document)),
        notice=_notice(document),
        abstract=escape(headline(document)),
        made_by=f"Made by uflip {escape(str(version))} from results of {escape(str(created))}. "
        "The benchmark is uFLIP: Bouganim, Jónsson,\n"
        "Bonnet, “uFLIP: Understanding Flash IO Patterns”, CIDR 2009.",
    )


def fill_page(sections: Sequence[tuple[str, str, str]], **parts: str) -> str:
    """Fill the page of a report.

    Parameters
    ----------
    sections : sequence of (str, str, str)
        Anchor, heading and body of each, as HTML.
    **parts : str
        What else the template asks for, as HTML: benchmark, version, title, badge, device, facts,
        notice, abstract, made_by.
    """
    return _template("page.html").substitute(
        parts,
        style=style(),
        contents="\n".join(f'<li><a href="#{a}">{heading}</a></li>' for a, heading, _ in sections),
        sections="\n".join(
            f'<section id="{anchor}"><h2>{heading}</h2>\n{body}\n</section>'
            for anchor, heading, body in sections
        ),
    )


def _template(name: str) -> Template:
    return Template((resources.files("uflip.report") / "templates" / name).read_text("utf-8"))


def style() -> str:
    """Return the style sheet of every page of ours, light and dark."""
    return _template("style.css").substitute(
        light=palette.css_variables(dark=False), dark=palette.css_variables(dark=True)
    )


def _badge(document: Document) -> str:
    if document["device"].get("simulated"):
        return '<span class="badge">simulated</span>'
    if document["device"].get("kind") == "null":
        return '<span class="badge">null device</span>'
    return ""


def _facts(document: Document) -> str:
    facts = [
        str(document["device"].get("url", "")),
        _description(document["device"]),
        f"durability {document['durability']}" if document["durability"] != CACHED else "",
        f"scale {document['scale']}",
        f"seed {document['seed']}",
        f"{document['runs_finished']} of {document['runs_planned']} runs",
        str(document["created_utc"]).replace("T", " ").replace("Z", " UTC"),
    ]
    if document["elapsed_s"]:
        facts.append(f"measured in {format_duration_ns(document['elapsed_s'] * 1e9)}")
    return " · ".join(fact for fact in facts if fact)


def _description(device: Mapping[str, Any]) -> str:
    """What the profile of a simulated device says about itself."""
    profile = device.get("details", {}).get("profile", {})
    return str(profile.get("description", "")) if isinstance(profile, Mapping) else ""


def _notice(document: Document) -> str:
    """What to know before the first number is believed."""
    lines = []
    if document["device"].get("simulated"):
        lines.append(
            "<b>These are results of a simulator</b>, in virtual time. They describe a model of a "
            "device, not a product."
        )
    if document["status"] != "complete":
        lines.append(
            f"<b>The benchmark is {escape(document['status'])}:</b> "
            f"{document['runs_finished']} of {document['runs_planned']} runs are here."
        )
    if count := len(document["warnings"]):
        noun = "warning" if count == 1 else "warnings"
        lines.append(
            f'<a href="#warnings"><b>{count} {noun}</b></a> to read before quoting these numbers.'
        )
    body = "".join(f"<p>{line}</p>" for line in lines)
    return f'<div class="notice" role="note">{body}</div>' if lines else ""
