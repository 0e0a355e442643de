"""Routes of the explorer, and access control.

::

    http://127.0.0.1:PORT/TOKEN/                  the page, its script, its style
    http://127.0.0.1:PORT/TOKEN/api/…             the requests of the page

Requests without the token are refused. So are requests that another site's page makes through the
browser: its name is in Origin, and in Host if its own name resolves to this address (DNS
rebinding). Only GET and HEAD are allowed, and POST for runs of our own page (`uflip.web.play`).
"""

import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from uflip._native import __version__
from uflip.errors import ResultsError, UflipError, UnavailableError, UsageError
from uflip.extras import missing_extra
from uflip.play.stage import Stage
from uflip.report.key_row import COLUMNS, note
from uflip.web import api_io_types, api_types, gantt, play, served_devices, views
from uflip.web.causal_chain import causal_chain
from uflip.web.device_log import device_log_view
from uflip.web.open_results import Folders, OpenResults
from uflip.web.open_run import OpenRun
from uflip.web.slow_ios import causes_of, io_view, slowest
from uflip.web.sweeps import Sweeps
from uflip.web.views import Listing
from uflip.web.window import AXES, Axis, Picture, addresses, picture

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

Query = Mapping[str, str]
MAX_NUMBER = float(1 << 62)
STATIC = {"": "index.html", "app.js": "app.js", "app.css": "app.css"}
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
MAX_COMPARED = 8
MAX_ROWS = 50
STATUS = {"usage": 400, "results": 404, "unavailable": 501}


class Guard:
    """ASGI middleware: answers only the browser that opened the printed URL."""

    def __init__(self, app: "ASGIApp", token: str, port: int) -> None:
        self._app = app
        self._token = token
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        self._origins = {f"http://{host}" for host in self._hosts}

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await _error(*refusal)(scope, receive, send)
            return

        async def guarded(message: "Message") -> None:
            if message["type"] == "http.response.start":
                added = [(name.lower().encode(), each.encode()) for name, each in HEADERS.items()]
                message["headers"] = [*message["headers"], *added]
            await send(message)

        await self._app(scope, receive, guarded)

    def _refusal(self, scope: "Scope") -> tuple[int, str] | None:
        headers = {
            name.decode("latin-1"): each.decode("latin-1") for name, each in scope["headers"]
        }
        if headers.get("host") not in self._hosts:
            return 421, "This is not the name of this server"
        if "origin" in headers and headers["origin"] not in self._origins:
            return 403, "The request comes from a page of another site"
        # A run of our own page is the only request that changes something.
        is_action = (
            scope["method"] == "POST"
            and "origin" in headers
            and headers.get("content-type") == play.CONTENT
            and play.is_action(scope["path"])
        )
        if scope["method"] not in ("GET", "HEAD") and not is_action:
            return 405, "Only GET and HEAD are allowed here"
        token = "".join(scope["path"].split("/", 2)[1:2])  # it need not begin with "/"
        if not hmac.compare_digest(token.encode(errors="replace"), self._token.encode()):
            return 403, "Open the address that `uflip explore` printed when it was started"
        return None


def application(
    roots: Sequence[Path], token: str, port: int, stage: Stage, sockets: Sequence[Path] = ()
) -> "ASGIApp":
    """Return the explorer's application, optionally with the statistics sockets of servers."""
    return Guard(_routes(OpenResults(Folders(roots)), stage, token, sockets), token, port)


def _routes(opened: OpenResults, stage: Stage, token: str, sockets: Sequence[Path]) -> "Starlette":
    try:
        from starlette.applications import Starlette
        from starlette.routing import Route
    except ImportError as error:
        raise missing_library() from error
    documents: dict[str, Callable[[Query], object]] = {
        "play": partial(play.form_view, twins=stage.twins),
        "played": lambda _: play.runs_view(stage, opened.folders),
        "remedies": lambda query: play.remedies_view(*_slow_io(opened, query)),
        "served": lambda _: served_devices.server_statistics(sockets),
    }
    routes = [
        Route(f"/{token}/api/{name}", partial(_json, answer=answer))
        for name, answer in documents.items()
    ]
    routes += [
        Route(f"/{token}/{play.ACTION_PATH}{name}", partial(_run_action, act=act), methods=["POST"])
        for name, act in play.actions(stage, opened).items()
    ]
    routes += reading_routes(opened, f"/{token}", ("results", "play", *["served"] * bool(sockets)))
    app = Starlette(routes=routes, exception_handlers={404: _not_found})
    app.router.redirect_slashes = False
    return app


def reading_routes(opened: OpenResults, prefix: str, views_offered: Sequence[str]) -> "list[Route]":
    """Return the routes for reading results, without any that run something.

    `opened`: the results that may be read. `prefix`: the beginning of every path. `views_offered`:
    the links at the head of the page: "site" (the page above it), "results", "play", "served".
    """
    from starlette.routing import Route

    listing, sweeps = Listing(opened), Sweeps(opened.folders)
    documents: dict[str, Callable[[Query], object]] = {
        "results": lambda _: _list(opened, listing, sweeps),
        "sweep": lambda query: sweeps.get(_text(query, "key")),
        "rows": lambda query: _rows(listing, query),
        "result": lambda query: views.result(opened, _text(query, "key")),
        "run": lambda query: views.run(opened, _text(query, "key"), _text(query, "run")),
        "io": lambda query: _io(opened, query),
        "operation": lambda query: _operation(opened, query),
        "inside": lambda query: device_log_view(opened, _text(query, "key"), _text(query, "run")),
        "channel": lambda query: views.channel(opened, _text(query, "key")),
        "slowest": lambda query: _slowest(opened, query),
        "causes": lambda query: _causes(opened, query),
        "spread": lambda query: views.distribution(
            opened, _text(query, "key"), _text(query, "runs").split(",")
        ),
        "compare": lambda query: _compare(opened, query),
    }
    routes = [
        Route(f"{prefix}/api/{name}", partial(_json, answer=answer))
        for name, answer in documents.items()
    ]
    pictures = {
        "window": partial(_drawn_part, picture, opened),
        "addresses": partial(_addresses, opened),
        "gantt": partial(_drawn_part, gantt.gantt_view, opened),
    }
    routes += [
        Route(f"{prefix}/api/{name}", partial(_drawn, answer=answer))
        for name, answer in pictures.items()
    ]
    routes += [
        Route(
            f"{prefix}/{name}", partial(_static, content=_content(file, views_offered), name=file)
        )
        for name, file in STATIC.items()
    ]
    return routes


def missing_library() -> UnavailableError:
    """Return the error for an environment without the explorer's libraries."""
    return missing_extra(
        "web",
        "The explorer needs Starlette and uvicorn",
        where="uflip explore",
        instead="`uflip report` makes a page without them",
    )


def _content(file: str, offered: Sequence[str]) -> bytes:
    content = (resources.files("uflip.web") / "static" / file).read_bytes()
    return content.replace(b'data-views="results"', f'data-views="{" ".join(offered)}"'.encode(), 1)


# Starlette runs plain functions on threads, so that none waits for another one.
def _static(_request: "Request", *, content: bytes, name: str) -> "Response":
    from starlette.responses import Response

    kind = TYPES[Path(name).suffix]
    return Response(content, media_type=f"{kind}; charset=utf-8")


def _json(request: "Request", *, answer: Callable[[Query], object]) -> "Response":
    try:
        return _document(answer(request.query_params))
    except UflipError as error:
        return _failed(error)


def _drawn(request: "Request", *, answer: Callable[[Query], Picture]) -> "Response":
    from starlette.responses import Response

    try:
        content = answer(request.query_params).pack()
    except UflipError as error:
        return _failed(error)
    return Response(content, media_type="application/octet-stream")


async def _run_action(request: "Request", *, act: play.Action) -> "Response":
    """Carry out an action of the page, on a thread."""
    from starlette.concurrency import run_in_threadpool

    try:
        document = await play.body(request)
        return _document(await run_in_threadpool(act, document))
    except UflipError as error:
        return _failed(error)


def _text(query: Query, name: str) -> str:
    """Return a word in the query of an address."""
    value = query.get(name)
    if not value:
        raise UsageError(
            "A parameter is missing in the address",
            where=name,
            allowed="a text",
            action="open the page from the list",
        )
    return value


def _number(query: Query, name: str) -> float:
    """Return a number in the query of an address, at most as large as the largest count."""
    given = query.get(name, "")
    try:
        value = float(given)
    except ValueError:
        value = float("nan")
    if not abs(value) <= MAX_NUMBER:
        raise UsageError(
            "A number in the address is not valid"
            if given
            else "A number is missing in the address",
            where=name,
            got=given or "nothing",
            allowed=f"a number of at most {MAX_NUMBER:g}",
            action="open the page from the list",
        )
    return value


def _drawn_part(
    draw: Callable[[OpenRun, Axis, float, float, int], Picture], opened: OpenResults, query: Query
) -> Picture:
    """Draw the requested part of a run."""
    run = opened.run(_text(query, "key"), _text(query, "run"))
    axis = next((each for each in AXES if each == query.get("axis")), AXES[0])
    low, high = _number(query, "from"), _number(query, "to")
    return draw(run, axis, low, high, int(_number(query, "columns")))


def _addresses(opened: OpenResults, query: Query) -> Picture:
    run = opened.run(_text(query, "key"), _text(query, "run"))
    return addresses(run, int(_number(query, "from")), int(_number(query, "to")))


def _not_found(*_: object) -> "Response":
    return _error(404, "There is nothing of this name")


def _error(status: int, message: str) -> "Response":
    return _document({"error": {"what": message}}, status, **HEADERS)


def _failed(error: UflipError) -> "Response":
    return _document({"error": error.parts()}, STATUS.get(error.kind, 500))


def _document(document: object, status: int = 200, **headers: str) -> "Response":
    """Answer with JSON in ASCII: a name may contain characters that UTF-8 cannot encode."""
    from starlette.responses import Response

    content = json.dumps(document, default=msgspec.to_builtins, allow_nan=False)
    return Response(content, status, headers, "application/json")


def _list(opened: OpenResults, listing: Listing, sweeps: Sweeps) -> api_types.ResultList:
    return {
        "version": __version__,
        "roots": [str(path) for path in opened.folders.roots],
        "columns": COLUMNS,
        "note": note(),
        "results": listing.glances(),
        "sweeps": sweeps.listed(),
    }


def _rows(listing: Listing, query: Query) -> api_types.Rows:
    rows: list[api_types.WarningRow | api_types.Failed] = []
    for key in _text(query, "keys").split(",")[:MAX_ROWS]:
        try:
            rows.append(listing.row(key))
        except ResultsError as error:
            rows.append({"key": key, "error": error.parts()})
    return {"rows": rows}


def _io(opened: OpenResults, query: Query) -> api_io_types.Io:
    run, position = opened.run(_text(query, "key"), _text(query, "run")), _number(query, "number")
    if not 0 <= position < run.io_count:
        raise UsageError(
            "There is no such I/O",
            where="number",
            got=f"{position:g}",
            allowed=f"0 to {run.io_count - 1}",
            action="use the number of an I/O of the run",
        )
    view = io_view(run, int(position))
    if (flash := gantt.flash_view(run, int(position))) is not None:
        view["flash"] = flash
    view["chain"] = causal_chain(view, gantt.recorded_lanes(run))
    return view


def _slow_io(opened: OpenResults, query: Query) -> tuple[OpenRun, int]:
    """Return a run and the number of one of its I/Os."""
    return opened.run(_text(query, "key"), _text(query, "run")), int(_number(query, "number"))


def _operation(opened: OpenResults, query: Query) -> api_io_types.Operation:
    _, lanes = gantt.lanes_of(opened, _text(query, "key"), _text(query, "run"))
    return gantt.operation(lanes, int(_number(query, "row")))


def _slowest(opened: OpenResults, query: Query) -> api_io_types.Slowest:
    run = opened.run(_text(query, "key"), _text(query, "run"))
    start, stop = int(_number(query, "from")), int(_number(query, "to"))
    if "few" in query:
        return slowest(run, start, stop, 1, traits=False)
    return slowest(run, start, stop)


def _causes(opened: OpenResults, query: Query) -> api_io_types.RangeCauses:
    run = opened.run(_text(query, "key"), _text(query, "run"))
    return causes_of(run, int(_number(query, "from")), int(_number(query, "to")))


def _compare(opened: OpenResults, query: Query) -> api_types.ComparisonView:
    keys = list(dict.fromkeys(_text(query, "keys").split(",")))
    if not 2 <= len(keys) <= MAX_COMPARED:
        raise UsageError(
            "A comparison needs two to eight results",
            where="keys",
            got=f"{len(keys)} of them",
            allowed=f"2 to {MAX_COMPARED}",
            action="select them in the list of results",
        )
    return views.comparison(opened, keys)
