"""Query parameters of addresses; unknown ones are refused."""

from fastapi import Request
from fastapi.routing import APIRoute

from uflip.data.document import Table
from uflip.errors import UsageError, unknown_name
from uflip.site.query import FILTERS, ResultQuery

PAGE = 50
FILTERED: Table = {
    "parameters": [{"name": each, "in": "query", "schema": {"type": "string"}} for each in FILTERS]
}
"""The OpenAPI description of a route with filters."""


def names_known(request: Request) -> None:
    """Refuse parameters that the route does not have, and would ignore.

    Raises
    ------
    UsageError
        For an unknown parameter, and for one that is given twice.
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


def parse_query(  # noqa: PLR0917 -- parameters of an address
    request: Request,
    q: str,
    sort: str = "-created",
    after: str = "",
    before: str = "",
    per_page: int = PAGE,
) -> ResultQuery:
    """Return the query for results that an address contains."""
    filters = tuple(
        (name, value) for name, value in request.query_params.items() if name in FILTERS and value
    )
    return ResultQuery(q[:200], filters, sort, after, before, per_page)
