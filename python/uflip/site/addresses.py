"""Query parameters of addresses; unknown ones are refused."""

from fastapi import Request
from fastapi.routing import APIRoute

from uflip.data.document import Table
from uflip.errors import UsageError, unknown_name
from uflip.site.query import FILTERS, ResultQuery

DEFAULT_PER_PAGE = 50
FILTERED: Table = {
    "parameters": [{"name": each, "in": "query", "schema": {"type": "string"}} for each in FILTERS]
}
"""The OpenAPI description of a route with filters."""


def check_parameters(request: Request) -> None:
    """Refuse parameters that the route does not have, and would ignore.

    Raises
    ------
    UsageError
        For an unknown parameter, and for one that is given twice.
    """
    route: APIRoute = request.scope["route"]
    filters = (route.openapi_extra or {}).get("parameters", ())
    allowed = [each.alias for each in route.dependant.query_params]
    allowed += [each["name"] for each in filters]
    names = [name for name, _ in request.query_params.multi_items()]
    for name in names:
        if not allowed:
            raise UsageError(
                "This address takes no parameters",
                where=request.url.path,
                got=repr(name[:80]),
                action="omit everything after the question mark",
            )
        if name not in allowed:
            raise unknown_name("parameter", name[:80], allowed, where=request.url.path)
        if names.count(name) > 1:
            raise UsageError(
                "A parameter is given twice",
                where=request.url.path,
                got=f"{name} {names.count(name)} times",
                action="give it once",
            )


def parse_query(  # noqa: PLR0917 -- parameters of an address
    request: Request,
    q: str,
    sort: str = "-created",
    after: str = "",
    before: str = "",
    per_page: int = DEFAULT_PER_PAGE,
) -> ResultQuery:
    """Return the query for results that an address contains."""
    filters = tuple(
        (name, value) for name, value in request.query_params.items() if name in FILTERS and value
    )
    return ResultQuery(q[:200], filters, sort, after, before, per_page)
