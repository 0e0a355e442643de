"""HTML pages from blocks: the only module that turns data into markup.

All HTML is in the templates (`templates/`). Jinja escapes every text that enters a page, without
exception; characters that reverse text or are invisible are replaced by their codes
(`uflip.escape`). A name that a template does not get is an error, not a gap.

All reports, of block devices and of open-channel devices, share the layout: style,
Content-Security-Policy, contents, numbers of the figures.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from uflip.escape import on_page
from uflip.extras import missing_extra
from uflip.report.blocks import Block
from uflip.report.figures import palette

if TYPE_CHECKING:
    from jinja2 import Environment


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page; left out if its body is empty."""

    anchor: str
    heading: str
    body: Sequence[Block]


@dataclass(frozen=True, slots=True)
class ReportPage:
    """A report, from head to foot.

    Attributes
    ----------
    benchmark, source
        Name of the benchmark, and a sentence that names its paper.
    version, created_utc
        Version of uflip, and date of the results; the date may be empty.
    device, title
        Name of the device, and title of the page.
    badge
        A word next to the name of the benchmark.
    facts
        Facts for the head; empty ones are left out.
    simulated
        Whether the device was simulated.
    unfinished
        (status, "3 of 5 runs") of an incomplete benchmark.
    warnings
        Number of warnings.
    abstract
        The findings in a few sentences.
    sections
        The sections from top to bottom.
    """

    benchmark: str
    source: str
    version: str
    device: str
    title: str
    facts: Sequence[str]
    abstract: str
    sections: Sequence[Section]
    created_utc: str = ""
    badge: str = ""
    simulated: bool = False
    unfinished: tuple[str, str] | None = None
    warnings: int = 0


def render_page(page: ReportPage) -> str:
    """Return the HTML of a page."""
    return render("page.html", page=page, light=_variables(dark=False), dark=_variables(dark=True))


def render(template: str, **values: object) -> str:
    """Return the HTML of a template; every text in `values` is escaped."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> "Environment":
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise missing_extra(
            "report",
            "Pages of HTML need Jinja",
            where="a report, or a comparison in a file .html",
            instead="`uflip show`, and `uflip compare` with a .csv file, do not need Jinja",
        ) from error
    environment = Environment(
        loader=PackageLoader("uflip.report"),
        autoescape=True,
        finalize=on_page,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["template"] = _template_of
    return environment


def _template_of(block: Block) -> str:
    return f"blocks/{type(block).__name__.lower()}.html"


def _variables(*, dark: bool) -> list[tuple[str, str]]:
    """Return the names and colours of the theme."""
    return [(name, night if dark else day) for day, (name, night) in palette.THEME.items()]
