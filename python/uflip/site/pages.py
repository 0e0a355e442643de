"""The HTML pages: without scripts, from templates that escape all values.

The explorer draws the charts: `/explore/` is the page of `uflip explore` over published results.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args
from urllib.parse import urlencode

import msgspec
from fastapi import APIRouter, Depends, Request, Response
from sqlalchemy import Row

from uflip._native import __version__
from uflip.benchmark_options import SCALES, STATES
from uflip.data.device import DeviceKind
from uflip.data.document import Table
from uflip.data.summary import Summary
from uflip.durability import CACHED, FUA
from uflip.escape import on_page
from uflip.hints import CLASSES
from uflip.report.key_row import COLUMNS, note
from uflip.site import browse, figures
from uflip.site.api import FILTERED, DatabaseSession, check_parameters, parse_query, site_of
from uflip.units import format_size

if TYPE_CHECKING:
    from jinja2 import Environment

SHOWN_WARNINGS = 30
CHOICES = {
    "kind": get_args(DeviceKind),
    "class": tuple(CLASSES),
    "capacity": ("..32GiB", "32GiB..256GiB", "256GiB..1TiB", "1TiB..4TiB", "4TiB.."),
    "scale": SCALES,
    "state": STATES,
    "durability": (CACHED, FUA),
}
DAY_S = 24 * 3600
SITE = Path(__file__).parent


class _Spread(msgspec.Struct):
    """The minimum and the maximum of each baseline [ms], under equal conditions."""

    scale: str
    state: str
    durability: str
    results: int
    cells: list[tuple[float, float] | None]


router = APIRouter(include_in_schema=False, dependencies=[Depends(check_parameters)])


@cache
def _templates() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        # Figures have the template of the report.
        loader=FileSystemLoader(
            [package / "templates" for package in (SITE, SITE.parent / "report")]
        ),
        autoescape=True,
        finalize=on_page,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {"version": __version__, "columns": COLUMNS, "dashes": ["–"] * len(COLUMNS)}
    made.filters |= {"size": format_size, "ms": _ms}
    return made


def _ms(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _page(name: str, **context: Any) -> Response:
    text = _templates().get_template(name).render(**context)
    return Response(
        text.encode("utf-8", "replace"),
        status_code=context.get("status", 200),
        media_type="text/html; charset=utf-8",
    )


def error_page(status: int, parts: dict[str, str]) -> Response:
    """Return the page for an error."""
    return _page("error.html", error=parts, status=status)


@router.get("/site.css")
def style() -> Response:
    """Return the style sheet, which explorer and report share."""
    content = (resources.files("uflip.web") / "static" / "app.css").read_bytes()
    return Response(
        content,
        media_type="text/css; charset=utf-8",
        headers={"Cache-Control": f"public, max-age={DAY_S}"},
    )


@router.get("/", openapi_extra=FILTERED)
def index(  # noqa: PLR0917 -- parameters of an address
    session: DatabaseSession,
    request: Request,
    q: str = "",
    sort: str = "-created",
    after: str = "",
    before: str = "",
) -> Response:
    """Return the list of results."""
    criteria = parse_query(request, q, sort, after, before)
    search = browse.results(session, None, criteria)
    parameters = {"q": q, "sort": sort} | dict(criteria.filters)
    return _page(
        "index.html",
        results=search.page.rows,
        search=search,
        parameters=parameters,
        address=_addresses(parameters),
        choices=CHOICES,
    )


def _addresses(query: Mapping[str, str]) -> Callable[..., str]:
    """Return a function that makes the address of the same list with changed parameters."""

    def address(**changes: str | None) -> str:
        parameters = {**query, **changes}
        return "?" + urlencode({name: each for name, each in parameters.items() if each})

    return address


@router.get("/compare", openapi_extra={"parameters": [{"name": "id", "explode": True}]})
def compare(request: Request) -> Response:
    """Redirect a form with chosen results to their comparison."""
    chosen = [each for each in request.query_params.getlist("id") if each.isalnum()]
    address = f"/explore/#/compare/{','.join(chosen)}" if len(chosen) > 1 else "/"
    return Response(status_code=303, headers={"Location": address})


@router.get("/about")
def about(request: Request) -> Response:
    """Return the page for submitters and for programs."""
    paths = request.app.openapi()["paths"]
    requests = [
        (method.upper(), path, each["description"].partition("\n")[0].replace("`", ""))
        for path, methods in paths.items()
        for method, each in methods.items()
    ]
    site_url = site_of(request).url_of("").rpartition("/results")[0]
    return _page("about.html", requests=requests, url=site_url)


@router.get("/devices")
def devices(
    session: DatabaseSession, sort: str = "device", after: str = "", before: str = ""
) -> Response:
    """Return Table 3 of all devices: a row for each."""
    page = browse.devices(session, sort, after, before)
    return _page(
        "devices.html",
        page=page,
        scatter=figures.scatter(page.rows),
        total=browse.count_devices(session),
        sort=sort,
        address=_addresses({"sort": sort}),
        note=note(),
    )


@router.get("/devices/{slug}")
def device(session: DatabaseSession, slug: str) -> Response:
    """Return the page of a device: all results, and their spread."""
    record, newest_rows = browse.device(session, None, slug)
    newest = [each.id for each in newest_rows[:8]]
    return _page(
        "device.html",
        device=record,
        results=newest_rows,
        spread=[each for each in _spread(newest_rows) if each.results > 1],
        trend=figures.trend(newest_rows),
        compare=",".join(newest) if len(newest) > 1 else "",
    )


def _spread(results: Sequence[Row[Any]]) -> list[_Spread]:
    """Return minimum and maximum of each baseline, over results under equal conditions."""
    groups: dict[tuple[str, str, str], list[Row[Any]]] = {}
    for each in results:
        groups.setdefault((each.scale, each.state, each.durability), []).append(each)
    rows = []
    for conditions, group in sorted(groups.items()):
        cells = []
        for name in ("sr_ms", "rr_ms", "sw_ms", "rw_ms"):
            values = [value for each in group if (value := getattr(each, name)) is not None]
            cells.append((min(values), max(values)) if values else None)
        rows.append(_Spread(*conditions, len(group), cells))
    return rows


@router.get("/results/{name}")
def result(request: Request, name: str) -> Response:
    """Return the page of a result: means, conditions, warnings, citation, downloads."""
    site = site_of(request)
    with site.sessions() as session:
        record = browse.result(session, None, name)
    summary = msgspec.json.decode(site.folders.summary_text(record.id), type=Summary)
    means = zip(COLUMNS, record.cells or (), strict=False)
    return _page(
        "result.html",
        result=record,
        warnings=summary["warnings"][:SHOWN_WARNINGS],
        more_warnings=max(0, len(summary["warnings"]) - SHOWN_WARNINGS),
        host=_host(summary["host"]),
        means=[(name.split()[0], f"{cell} ms") for name, cell in means if name.endswith("[ms]")],
        figure=figures.micro_benchmarks(summary),
        url=site.url_of(record.id),
    )


def _host(host: Table) -> list[tuple[str, str]]:
    keys = (
        "os",
        "kernel",
        "cpu_model",
        "cpus_usable",
        "memory_bytes",
        "cpu_governor",
        "clock_source",
    )
    facts = {
        name: format_size(host[name]) if name == "memory_bytes" else str(host[name])
        for name in keys
        if host.get(name) not in (None, "")
    }
    return [(name.removesuffix("_bytes").replace("_", " "), facts[name]) for name in facts]
