"""A page of HTML from blocks: the one place where data becomes markup.

Templates (`templates/`) hold all the HTML there is. Whatever they are given is text and is escaped
by Jinja where it enters the page, without exception; characters that turn writing around or cannot
be seen are written out (`uflip.escape`). A name that a template does not get is an
error and not a gap.

The layout belongs to every report, of block devices and of open-channel devices alike: style,
Content-Security-Policy, contents, numbers of the figures.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from uflip.errors import UnavailableError
from uflip.escape import on_page
from uflip.report.blocks import Block
from uflip.report.figures import palette

if TYPE_CHECKING:
    from jinja2 import Environment


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page; one without a body is left out."""

    anchor: str
    heading: str
    body: Sequence[Block]


@dataclass(frozen=True, slots=True)
class ReportPage:
    """A report, from its head to its foot.

    Attributes
    ----------
    benchmark, source
        What was run, and the paper that it comes from, as a sentence.
    version, created_utc
        Of uflip, and of the results; the second may be empty.
    device, title
        What the report is about, and what a browser calls it.
    badge
        A word beside the name of the benchmark.
    facts
        What is known at first sight; empty ones are left out.
    simulated
        Whether to say that a simulator made the numbers.
    unfinished
        (status, "3 of 5 runs") of a benchmark that did not end well.
    warnings
        How many there are to read first.
    abstract
        What was found, in a few sentences.
    sections
        From top to bottom.
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
    """Fill the layout.

    Raises
    ------
    UnavailableError
        If Jinja is not installed.
    """
    return render("page.html", page=page, light=_variables(dark=False), dark=_variables(dark=True))


def render(template: str, **values: object) -> str:
    """Fill a template; every text in `values` is escaped where it enters the HTML."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> "Environment":
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise UnavailableError(
            what="Pages of HTML need Jinja",
            where="a report, or a comparison in a file .html",
            got="a Python environment without jinja2",
            allowed="jinja2 3.1 or later",
            action="pip install 'uflip[report]'; `uflip show` needs no pages, nor does `uflip "
            "compare` with a file .csv",
        ) from error
    made = Environment(
        loader=PackageLoader("uflip.report"),
        autoescape=True,
        finalize=on_page,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["template"] = _template_of
    return made


def _template_of(block: Block) -> str:
    return f"blocks/{type(block).__name__.lower()}.html"


def _variables(*, dark: bool) -> list[tuple[str, str]]:
    """Names and colours of the theme."""
    return [(name, night if dark else day) for day, (name, night) in palette.THEME.items()]
