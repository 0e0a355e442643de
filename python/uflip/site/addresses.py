"""What an address of a site asks for behind its question mark: no name that nobody reads."""

from fastapi import Request
from fastapi.routing import APIRoute

from uflip.data.document import Table
from uflip.errors import UsageError, unknown_name
from uflip.site.query import FILTERS, ResultQuery

PAGE = 50
FILTERED: Table = {
    "parameters": [{"name": each, "in": "query", "schema": {"type": "string"}} for each in FILTERS]
}
"""What the description of a route has that takes filters."""


def names_known(request: Request) -> None:
    """Refuse a name that the route does not know, and would ignore.

    Raises
    ------
    UsageError
        For such a name, and for one that stands there twice.
    """
    route: APIRoute = request.scope["route"]
    beside = (route.openapi_extra or {}).get("parameters", ())
    known = [each.alias for each in route.dependant.query_params]
    known += [each["name"] for each in beside]
    given = [name for name, _ in request.query_params.multi_items()]
    for name in given:
        if not known:
            raise UsageError(
                "This address takes no parameters",
                where=request.url.path,
                got=repr(name[:80]),
                action="leave away what follows the question mark",
            )
        if name not in known:
            raise unknown_name("parameter", name[:80], known, where=request.url.path)
        if given.count(name) > 1:
            raise UsageError(
                "A parameter is given twice",
                where=request.url.path,
                got=f"{name} {given.count(name)} times",
                action="leave all but one away",
            )


def wanted_of(  # noqa: PLR0917 -- parameters of an address
    request: Request,
    q: str,
    sort: str = "-created",
    after: str = "",
    before: str = "",
    per_page: int = PAGE,
) -> ResultQuery:
    """Read which results an address wants."""
    filters = tuple(
        (name, value) for name, value in request.query_params.items() if name in FILTERS and value
    )
    return ResultQuery(q[:200], filters, sort, after, before, per_page)
