"""The server of a site: routes, host check, rate and size limits, metrics.

::

    /  /devices  /results/ID     pages for people
    /explore/                    the explorer over published results
    /api/v1/…                    for programs, see `api`; described at /api/v1/openapi.json
    /health  /metrics            for the operator of the site

Metrics for Prometheus: counters grow with each request; gauges are read from the site when the
metrics are requested.
"""

import errno
import os
import socket
import sys
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from anyio import CapacityLimiter, to_thread
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from sqlalchemy import Select, func, select, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as NoConnectionError

from uflip._native import __version__
from uflip.errors import UflipError, UnavailableError
from uflip.escape import escape_line
from uflip.site import api, pages
from uflip.site.folders import EXAMINERS, PublishedFolders
from uflip.site.site import Site
from uflip.site.tables import AbsentError, ResultRecord, Submission
from uflip.web.app import reading_routes
from uflip.web.connections import accepted_at_once, limited_protocol
from uflip.web.open_results import OpenResults

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

T = TypeVar("T")
STATUS = {"usage": 400, "refused": 403, "results": 422, "unavailable": 501}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_ENCODED_HEADERS = [(name.lower().encode(), each.encode()) for name, each in HEADERS.items()]
MAX_BODY_BYTES = 16 << 20
BODY_TOO_LARGE = f"A request has at most {MAX_BODY_BYTES} bytes"
MAX_BODIES = 16
"""Request bodies in memory at a time, of up to 8 MiB each, held twice while they are parsed."""
PER_MINUTE = 1200
"""Requests a minute of one address: an upload of a thousand files needs about a thousand."""
ADDRESSES = 10_000
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"})


class AccountLimiter:
    """Limits concurrent work; one account may use half of the limit.

    A request waits here for a slot, without a thread that others need, and before its body is read.
    """

    def __init__(self, total: int) -> None:
        self._all = CapacityLimiter(total)
        self._per_account = max(1, total // 2)
        self._requests = 0
        # An entry exists while a request of the account waits or is served.
        self._by_account: WeakValueDictionary[int, CapacityLimiter] = WeakValueDictionary()

    @asynccontextmanager
    async def slot(self, account: int) -> AsyncIterator[None]:
        """Wait for a slot of an account, by its id, and hold it for this block."""
        own = self._by_account.setdefault(account, CapacityLimiter(self._per_account))
        self._requests += 1
        try:
            async with own, self._all:
                yield
        finally:
            self._requests -= 1

    @property
    def busy(self) -> int:
        """Number of slots in use."""
        return int(self._all.borrowed_tokens)

    @property
    def waiting(self) -> int:
        """Number of requests that wait for a slot."""
        return self._requests - self.busy

    async def run(self, account: int, work: Callable[[], T]) -> T:
        """Run the work of an account on a thread of its own, when it has a slot."""
        async with self.slot(account):
            return await to_thread.run_sync(work, limiter=CapacityLimiter(1))


class SiteMetrics:
    """The metrics of one site."""

    def __init__(self, site: Site, examining: AccountLimiter) -> None:
        self.registry = CollectorRegistry()
        self._site = site
        self._requests = Counter(
            "uflip_requests", "Requests", ["method", "status"], registry=self.registry
        )
        self._refusals = Counter(
            "uflip_refusals", "Refused requests (4xx)", ["status"], registry=self.registry
        )
        self._seconds = Histogram("uflip_request_seconds", "Time to answer", registry=self.registry)
        published = ResultRecord.published_utc.is_not(None)
        results = select(func.count()).select_from(ResultRecord)
        uploads = select(func.count()).select_from(Submission)
        total = select(func.coalesce(func.sum(ResultRecord.bytes), 0))
        gauges: dict[tuple[str, str], Callable[[], float]] = {
            ("uflip_results_published", "Published results"): self._value(results.where(published)),
            ("uflip_results_stored", "Stored results"): self._value(results),
            ("uflip_result_bytes", "Bytes of all stored results"): self._value(total),
            ("uflip_unfinished_uploads", "Uploads that are not committed"): self._value(uploads),
            ("uflip_examiners_busy", "Examinations in progress"): lambda: examining.busy,
            ("uflip_examiners_waiting", "Results that wait for one"): lambda: examining.waiting,
            ("uflip_database_seconds", "Time of a query without rows"): self._query_seconds,
        }
        for (name, meaning), value in gauges.items():
            Gauge(name, meaning, registry=self.registry).set_function(value)

    def record(self, method: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        label = method if method in METHODS else "other"
        self._requests.labels(label, str(status)).inc()
        if 400 <= status < 500:
            self._refusals.labels(str(status)).inc()
        self._seconds.observe(seconds)

    def _value(self, query: Select[int]) -> Callable[[], float]:
        return partial(self._read, query)

    def _read(self, query: Select[int]) -> float:
        with self._site.sessions() as session:
            return float(session.scalar(query) or 0)

    def _query_seconds(self) -> float:
        begun = time.perf_counter()
        with self._site.sessions() as session:
            session.execute(text("SELECT 1"))
        return time.perf_counter() - begun


class RequestLimits:
    """Middleware that checks host names, request sizes and rates, and counts requests.

    `app`: the application behind it. `hosts`: accepted host names; empty: any, for a proxy in front
    that checks them. `per_minute`: requests a minute of one address. `counts`: records the answers.
    `access_log`: print a line per answer.
    """

    def __init__(
        self,
        app: "ASGIApp",
        hosts: frozenset[str],
        per_minute: int,
        counts: SiteMetrics,
        *,
        access_log: bool,
    ) -> None:
        self._app = app
        self._counts = counts
        self._access_log = access_log
        self._hosts = hosts
        self._rate = RequestRateLimit(per_minute)

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            self._record(scope, refusal[0], 0.0)
            answer = _json(refusal[0], {"what": refusal[1]}, HEADERS)
            await answer(scope, receive, send)
            return

        begun = time.perf_counter()
        received = 0

        async def limited() -> "Message":
            # A chunked request has no Content-Length.
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > MAX_BODY_BYTES:
                from starlette.exceptions import HTTPException

                raise HTTPException(413, BODY_TOO_LARGE)
            return message

        async def with_headers(message: "Message") -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_ENCODED_HEADERS]
                self._record(scope, message["status"], time.perf_counter() - begun)
            await send(message)

        # A HEAD request is handled as GET; the server drops the body of the answer.
        routed = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
        await self._app(routed, limited, with_headers)

    def _record(self, scope: "Scope", status: int, seconds: float) -> None:
        self._counts.record(scope["method"], status, seconds)
        if self._access_log:
            client, now = (scope.get("client") or ("-",))[0], datetime.now(UTC)
            line = f"{now:%Y-%m-%dT%H:%M:%SZ} {client} {scope['method']} {scope['path']} {status}"
            with suppress(OSError, ValueError):  # nobody reads the log any more
                print(escape_line(f"{line} {seconds * 1000:.1f} ms"), file=sys.stderr, flush=True)

    def _refusal(self, scope: "Scope") -> tuple[int, str] | None:
        headers = {
            name.decode("latin-1"): each.decode("latin-1") for name, each in scope["headers"]
        }
        if self._hosts and headers.get("host") not in self._hosts:
            return 421, "This is not the name of this server"
        if "\0" in scope["path"] or b"%00" in scope["query_string"]:
            return 400, "The address contains a NUL"
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length) > MAX_BODY_BYTES:
            return 413, BODY_TOO_LARGE
        # By address: a token that is not verified yet may differ in every request.
        if not self._rate.allows((scope.get("client") or ("",))[0]):
            return 429, "Too many requests: wait a minute"
        return None


class RequestRateLimit:
    """A token bucket for each caller."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._tokens: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = Lock()

    def allows(self, caller: str, now_s: float | None = None) -> bool:
        """Take one request out of the caller's bucket; return whether there was one."""
        now = time.monotonic() if now_s is None else now_s
        with self._lock:
            tokens, before = self._tokens.pop(caller, (float(self._per_minute), now))
            tokens = min(self._per_minute, tokens + (now - before) * self._per_minute / 60)
            self._tokens[caller] = (max(0.0, tokens - 1), now)
            while len(self._tokens) > ADDRESSES:
                self._tokens.popitem(last=False)
            return tokens >= 1


def application(
    site: Site,
    hosts: frozenset[str] = frozenset(),
    per_minute: int = PER_MINUTE,
    *,
    access_log: bool = False,
) -> "ASGIApp":
    """Return the ASGI application of a site.

    `site`: open. `hosts`: accepted host names (with port); empty: any. `per_minute`: requests a
    minute of one caller. `access_log`: print a line per answer on standard error.
    """
    app = FastAPI(
        title="uflip results",
        version=__version__,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    app.state.site = site
    app.state.committing = AccountLimiter(EXAMINERS)
    app.state.receiving = AccountLimiter(MAX_BODIES)
    counts = SiteMetrics(site, app.state.committing)

    @app.get("/metrics", include_in_schema=False)
    def metrics() -> Response:
        """Return the metrics in the format of Prometheus."""
        return Response(generate_latest(counts.registry), media_type="text/plain; version=0.0.4")

    @app.get("/health", include_in_schema=False)
    def health() -> Response:
        """Report whether database and files are usable."""
        with site.sessions() as session:
            session.execute(text("SELECT 1"))
        problem = site.folder_problem()
        if problem is not None:
            return _json(503, {"what": "The folder of the site cannot be read", "got": problem})
        return JSONResponse({"status": "ok", "uflip": __version__})

    app.router.routes += reading_routes(
        OpenResults(PublishedFolders(site.sessions, site.folders)),
        "/explore",
        ("site", "results"),
    )
    app.include_router(api.router)
    app.include_router(pages.router)
    _explain(app)
    return RequestLimits(app, hosts, per_minute, counts, access_log=access_log)


def _explain(app: FastAPI) -> None:
    """Register error handlers: JSON for API routes, a page for other routes."""
    from starlette.exceptions import HTTPException

    @app.exception_handler(UflipError)
    def failed(request: Request, error: UflipError) -> Response:
        status = 404 if isinstance(error, AbsentError) else STATUS.get(error.kind, 500)
        return _answer(request, status, error.parts())

    @app.exception_handler(NoConnectionError)
    @app.exception_handler(OperationalError)
    def busy(request: Request, error: Exception) -> Response:
        if "is full" in str(error):  # SQLite's message for a full disk
            return full(request, OSError(errno.ENOSPC, ""))
        parts = UnavailableError(
            "The database does not answer in time",
            where="the server",
            action="try again in a minute; data that the site has received is not sent again",
        ).parts()
        return _answer(request, 503, parts)

    @app.exception_handler(OSError)
    def full(request: Request, error: OSError) -> Response:
        """Answer a request that failed to read or write a file of the site."""
        is_full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        parts = UnavailableError(
            "The disk of the site is full" if is_full else "The site cannot use its files",
            where="the server",
            got=os.strerror(error.errno) if error.errno else "",
            action="inform the operator of the site; the same command resumes later "
            "without sending data again",
        ).parts()
        return _answer(request, 507 if is_full else 503, parts)

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        return _answer(
            request,
            400,
            {"what": "The request is invalid", "where": where, "got": first["msg"]},
        )

    @app.exception_handler(HTTPException)
    def not_found(request: Request, error: HTTPException) -> Response:
        message = "There is nothing of this name" if error.status_code == 404 else str(error.detail)
        answer = _answer(request, error.status_code, {"what": message})
        answer.headers.update(error.headers or {})
        return answer


def _answer(request: Request, status: int, parts: dict[str, str]) -> Response:
    if request.url.path.startswith("/api/"):
        return _json(status, parts)
    return pages.error_page(status, parts)


def _json(
    status: int, parts: dict[str, str], headers: Mapping[str, str] | None = None
) -> JSONResponse:
    return JSONResponse({"error": parts}, status_code=status, headers=headers)


def serve(
    site: Site, listener: socket.socket, *, any_host: bool, per_minute: int, access_log: bool
) -> None:
    """Serve requests until a signal arrives, which is the normal end of a server.

    `site`: an open site. `listener`: a bound socket. `any_host`: accept any host name: only a proxy
    reaches this server, checks host names, and passes client addresses on (`X-Forwarded-For`).
    `per_minute`: requests a minute of one caller. `access_log`: print a line per answer.
    """
    import uvicorn

    host, port = listener.getsockname()[:2]
    names = {f"{name}:{port}" for name in (host, "localhost", "127.0.0.1")}
    if site.base_url:
        names.add(urlsplit(site.base_url).netloc)
    hosts = frozenset() if any_host else frozenset(names)
    config = uvicorn.Config(
        application(site, hosts, per_minute, access_log=access_log),
        proxy_headers=any_host,
        forwarded_allow_ips="*" if any_host else None,
        log_config=None,
        access_log=False,
        ws="none",
        http=limited_protocol(),
        backlog=accepted_at_once(),
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=5,
    )
    with suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[listener])
