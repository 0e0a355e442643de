"""The routes for programs: `/api/v1/…`, described by OpenAPI at `/api/v1/openapi.json`.

Clients authenticate with `Authorization: Bearer TOKEN`. The site sets no cookies, so that a page of
another site cannot act in the name of a reader.

There are few connections to the database: a request has one at a time, and none while it reads a
body, moves files or waits for an examiner.

A route reads the body after it has authenticated the sender. FastAPI would read and parse a body
that is declared as a parameter before it resolves any dependency.
"""

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields
from functools import partial
from itertools import islice
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, Annotated, get_args, get_type_hints

import msgspec
from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse, StreamingResponse
from fastapi.routing import APIRoute
from sqlalchemy.orm import Session

from uflip._native import __version__
from uflip.data.document import Table
from uflip.errors import RefusedError, UnavailableError, UsageError, unknown_name
from uflip.results.outputs import cell
from uflip.site import browse, publishing, rows
from uflip.site.accounts import account_of, has_role
from uflip.site.browse import FILTERS, ResultQuery
from uflip.site.intake import CommittedUpload
from uflip.site.rows import DeviceRow, ResultRow
from uflip.site.tables import AbsentError, Account, ResultRecord
from uflip.site.upload_files import (
    MAX_BODY_BYTES,
    MAX_FILES,
    MAX_PART_BYTES,
    FilePart,
    Offer,
    UploadFile,
    parse_offer,
    unpack_parts,
)

if TYPE_CHECKING:
    from uflip.site.site import Site


DEFAULT_PER_PAGE = 50
FILTERED: Table = {
    "parameters": [{"name": each, "in": "query", "schema": {"type": "string"}} for each in FILTERS]
}
"""The OpenAPI description of a route with filters."""
MAX_TABLE_ROWS = 100_000
MAX_OFFER_BYTES = MAX_FILES * 400
"""Length of a list of files: names of 260 characters, digests of 64, and the JSON syntax."""
ROW_GROUP_ROWS = 10_000
"""Rows of a row group."""
IN_MEMORY_BYTES = 4 << 20
PART_BYTES = 1 << 20
Rows = Iterable[ResultRow]


@dataclass(frozen=True, kw_only=True)
class UploadStatus:
    """An upload: the number of received bytes of each file, by its digest."""

    id: str
    received: dict[str, int]
    part_bytes: int = MAX_PART_BYTES


@dataclass(frozen=True, kw_only=True)
class ReceivedBytes:
    """The number of received bytes of a file."""

    received: int


@dataclass(frozen=True, kw_only=True)
class ReceivedParts:
    """The numbers of received bytes of files, by their digests."""

    received: dict[str, int]


@dataclass(frozen=True)
class Committed(CommittedUpload):
    """A result, as it can be cited.

    `new` is false if the site had this content, `own` if another account submitted it first;
    `published` is whether it is public now, whatever the request was.
    """

    url: str


@dataclass(frozen=True, kw_only=True)
class ResultPage:
    """A page of results; `before` and `after` lead to the pages beside it.

    `total` counts the matches; it is a lower bound if `counted` is false.
    """

    total: int
    counted: bool
    before: str | None
    after: str | None
    results: list[ResultRow]


@dataclass(frozen=True, kw_only=True)
class OneResult(ResultRow):
    """A result, its permanent address, and its files."""

    url: str
    files: list[UploadFile]


@dataclass(frozen=True, kw_only=True)
class OneDevice:
    """A device and its newest results."""

    slug: str
    model: str
    kind: str
    capacity_bytes: int
    results: list[ResultRow]


def site_of(request: Request) -> "Site":
    """Return the site of the server that handles a request."""
    served: Site = request.app.state.site
    return served


def session_of(request: Request) -> Iterator[Session]:
    """Yield a database session for the time of a request."""
    with site_of(request).sessions.begin() as session:
        yield session


# Committed before the answer goes out: acknowledged changes are durable.
DatabaseSession = Annotated[Session, Depends(session_of, scope="function")]


def find_account(request: Request) -> Account | None:
    """Return the account of a request's token; None without a token."""
    header = request.headers.get("authorization", "")
    if not header:
        return None
    kind, _, token = header.partition(" ")
    owner = None
    if kind.lower() == "bearer":
        with site_of(request).sessions() as session:
            owner = account_of(session, token.strip())
    if owner is None:
        raise RefusedError(
            "Unknown token",
            where="Authorization",
            action="ask the operator of this site for one: `uflip site token FOLDER NAME`",
        )
    return owner


Caller = Annotated[Account | None, Depends(find_account)]


def _require_role(caller: Account | None, role: str) -> Account:
    if not has_role(caller, role):
        raise RefusedError(
            f"This needs a token of a {role}",
            where="Authorization",
            got=f"that of a {caller.role}" if caller else "no token",
            action="give --token, or set UFLIP_SITE_TOKEN",
        )
    assert caller is not None, "the check passed"
    return caller


def _owned_result(
    session: Session, caller: Account | None, name: str
) -> tuple[Account, ResultRecord]:
    """Return a result that the account may change, as its owner or as an admin."""
    submitter = _require_role(caller, "submitter")
    record = browse.result(session, caller, name)
    if record.account_id != submitter.id and not has_role(caller, "admin"):
        raise RefusedError(
            "The result belongs to another account",
            where=name,
            got=record.account.name,
            action="ask who submitted it, or an admin",
        )
    return submitter, record


def check_parameters(request: Request) -> None:
    """Refuse parameters that the route does not have, and would ignore."""
    route: APIRoute = request.scope["route"]
    filters = (route.openapi_extra or {}).get("parameters", ())
    allowed = [each.alias for each in route.dependant.query_params]
    allowed += [each["name"] for each in filters]
    repeated = {each["name"] for each in filters if each.get("explode")}
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
        if names.count(name) > 1 and name not in repeated:
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


router = APIRouter(prefix="/api/v1", dependencies=[Depends(check_parameters)])


@router.get("/results", openapi_extra=FILTERED)
def list_results(  # noqa: PLR0917 -- parameters of an address
    session: DatabaseSession,
    caller: Caller,
    request: Request,
    q: str = "",
    sort: str = "-created",
    after: str = "",
    before: str = "",
    per_page: int = DEFAULT_PER_PAGE,
) -> ResultPage:
    """List results: words in `q`, filters by name (`kind`, `device`, `scale`, …)."""
    search = browse.results(session, caller, parse_query(request, q, sort, after, before, per_page))
    return ResultPage(
        total=search.at_least,
        counted=search.counted,
        before=search.page.before,
        after=search.page.after,
        results=[rows.as_result(each) for each in search.page.rows],
    )


@router.get("/results.{ending}", openapi_extra=FILTERED)
def whole_table(
    session: DatabaseSession, caller: Caller, request: Request, ending: str, q: str = ""
) -> Response:
    """Return all matching results as a table: CSV or Parquet."""
    matches = browse.all_results(session, caller, parse_query(request, q), MAX_TABLE_ROWS)
    return _as_table(map(rows.as_result, matches), ResultRow, ending)


@router.get("/results/{result}")
def one_result(
    session: DatabaseSession, caller: Caller, request: Request, result: str
) -> OneResult:
    """Return a result, with its files."""
    record = browse.result(session, caller, result)
    row = rows.as_result(browse.row(session, record))
    files = [UploadFile(each.path, each.digest, each.bytes) for each in record.files]
    return OneResult(**asdict(row), url=site_of(request).url_of(record.id), files=files)


@router.get("/results/{result}/summary")
def summary(caller: Caller, request: Request, result: str) -> Response:
    """Return the whole summary, as `uflip show --json` prints it, computed by this server."""
    site = site_of(request)
    with site.sessions() as session:
        record = browse.result(session, caller, result)
    return Response(site.folders.summary_text(record.id), media_type="application/json")


@router.get("/results/{result}/files/{digest}")
def file(caller: Caller, request: Request, result: str, digest: str) -> Response:
    """Return a file of a result; range requests let a download resume.

    A file never changes: its digest is its ETag, and a client that has it gets 304.
    """
    site = site_of(request)
    with site.sessions() as session:
        if not browse.has_file(session, browse.result(session, caller, result), digest):
            raise AbsentError("This result has no such file", where=digest[:80])
    # A client with a copy must revalidate it: a result can be withdrawn.
    headers = {"ETag": f'"{digest}"', "Cache-Control": "private, no-cache"}
    if _client_has(request, digest):
        return Response(status_code=304, headers=headers)
    site.blobs.fetch([digest])
    path = site.blobs.path(digest)
    return FileResponse(path, media_type="application/octet-stream", headers=headers)


def _client_has(request: Request, digest: str) -> bool:
    tags = request.headers.get("if-none-match", "").split(",")
    return any(each.strip().removeprefix("W/") in ("*", f'"{digest}"') for each in tags)


@router.post("/results/{result}/publish")
def publish(session: DatabaseSession, caller: Caller, result: str) -> ResultRow:
    """Publish a result."""
    account, record = _owned_result(session, caller, result)
    publishing.publish(session, account, record)
    return rows.as_result(browse.row(session, record))


@router.post("/results/{result}/withdraw")
def withdraw(session: DatabaseSession, caller: Caller, result: str) -> ResultRow:
    """Withdraw a result: only its owner sees it."""
    account, record = _owned_result(session, caller, result)
    publishing.withdraw(session, account, record)
    return rows.as_result(browse.row(session, record))


@router.delete("/results/{result}", status_code=204)
def delete(caller: Caller, request: Request, result: str) -> Response:
    """Delete a result for good, its files included."""
    site = site_of(request)
    with site.sessions() as session:
        account, record = _owned_result(session, caller, result)
    site.intake.delete(record.id, account.name)
    return Response(status_code=204)


@router.get("/devices")
def list_devices(session: DatabaseSession) -> list[DeviceRow]:
    """Return every device with the published result that represents it: Table 3 of all devices."""
    return [*map(rows.as_device, browse.every_device(session))]


@router.get("/devices.{ending}")
def table_of_devices(session: DatabaseSession, ending: str) -> Response:
    """Return Table 3 of all devices: CSV or Parquet."""
    return _as_table(map(rows.as_device, browse.every_device(session)), DeviceRow, ending)


@router.get("/devices/{slug}")
def one_device(session: DatabaseSession, caller: Caller, slug: str) -> OneDevice:
    """Return the newest results of a device, newest first; all: `results?device=SLUG`."""
    record, newest = browse.device(session, caller, slug)
    return OneDevice(
        slug=record.slug,
        model=record.model,
        kind=record.kind,
        capacity_bytes=record.capacity_bytes,
        results=[*map(rows.as_result, newest)],
    )


_, SCHEMAS = msgspec.json.schema_components([Offer])
OFFER_SCHEMA = SCHEMAS["Offer"]
OFFER_SCHEMA["properties"]["files"]["items"] = SCHEMAS["UploadFile"]
OFFER: Table = {
    "requestBody": {"required": True, "content": {"application/json": {"schema": OFFER_SCHEMA}}}
}
"""The OpenAPI description of a route that takes a list of files."""


@router.post("/submissions", status_code=201, openapi_extra=OFFER)
async def begin(caller: Caller, request: Request) -> UploadStatus:
    """Begin an upload, or find the one that began with the same files."""
    account = _require_role(caller, "submitter")
    async with request.app.state.receiving.slot(account.id):
        content = await _body(request, MAX_OFFER_BYTES)
        return await run_in_threadpool(_begin_upload, site_of(request), account, content)


def _begin_upload(site: "Site", account: Account, content: bytes) -> UploadStatus:
    files = parse_offer(content)
    submission = site.intake.begin(account, files)
    return UploadStatus(id=submission, received=site.intake.received(account, submission, files))


@router.get("/submissions/{submission}")
def upload_status(caller: Caller, request: Request, submission: str) -> UploadStatus:
    """Return the progress of an upload."""
    account, intake = _require_role(caller, "submitter"), site_of(request).intake
    offered = intake.offered(account, submission)
    return UploadStatus(id=submission, received=intake.received(account, submission, offered))


@router.put("/submissions/{submission}/files/{digest}")
async def receive_part(
    caller: Caller,
    request: Request,
    submission: str,
    digest: str,
    offset: Annotated[int, Query(ge=0)],
) -> ReceivedBytes:
    """Store a part of a file: at most 8 MiB, from `offset` on."""
    account = _require_role(caller, "submitter")
    async with request.app.state.receiving.slot(account.id):
        sent = [FilePart(digest, offset, await _body(request, MAX_PART_BYTES))]
        receive = site_of(request).intake.receive
        received = await run_in_threadpool(receive, account, submission, sent)
    return ReceivedBytes(received=received[digest])


@router.post("/submissions/{submission}/parts")
async def receive_parts(caller: Caller, request: Request, submission: str) -> ReceivedParts:
    """Store parts of many files, in the format of `uflip.site.upload_files`.

    Returns the number of received bytes of each of these files.
    """
    account = _require_role(caller, "submitter")
    async with request.app.state.receiving.slot(account.id):
        sent = unpack_parts(await _body(request, MAX_BODY_BYTES))
        receive = site_of(request).intake.receive
        received = await run_in_threadpool(receive, account, submission, sent)
    return ReceivedParts(received=received)


async def _body(request: Request, most: int) -> bytes:
    content = bytearray()
    too_long = int(request.headers.get("content-length", "0")) > most  # digits: `app.RequestLimits`
    async for piece in request.stream():
        content += piece
        if too_long or len(content) > most:
            raise UsageError(
                "The part is too large",
                got=f"more than {most} bytes",
                allowed=str(most),
                action="send shorter parts, with their offsets",
            )
    return bytes(content)


@router.delete("/submissions/{submission}", status_code=204)
def abandon(caller: Caller, request: Request, submission: str) -> Response:
    """End an upload."""
    site_of(request).intake.abandon(_require_role(caller, "submitter"), submission)
    return Response(status_code=204)


@router.post("/submissions/{submission}/commit", status_code=201)
async def commit(
    caller: Caller, request: Request, submission: str, publish: bool = False
) -> Committed:
    """Examine an upload and store it as a result, or return why it is refused."""
    site, account = site_of(request), _require_role(caller, "submitter")
    work = partial(site.intake.commit, account, submission, publish=publish)
    committed = await request.app.state.committing.run(account.id, work)
    return Committed(url=site.url_of(committed.id), **asdict(committed))


@router.get("/version")
def version() -> dict[str, str]:
    """Return the version of uflip."""
    return {"uflip": __version__}


def _as_table(rows: Rows, model: type[ResultRow], ending: str) -> Response:
    """Return a response with a table: rows are read before the answer begins.

    It is written in batches of rows, so that memory is bounded.
    """
    if ending not in TABLE_KINDS:
        raise unknown_name(
            "kind of table", ending[:20], TABLE_KINDS, where="the end of the address"
        )
    write, media_type = TABLE_KINDS[ending]
    with ExitStack() as stack:
        file = stack.enter_context(SpooledTemporaryFile(IN_MEMORY_BYTES))
        write(file, rows, model)
        file.seek(0)
        stack.pop_all()  # the response closes the file
    return StreamingResponse(_table_parts(file), media_type=media_type)


def _table_parts(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while part := file.read(PART_BYTES):
            yield part


def _csv(file: IO[bytes], rows: Rows, model: type[ResultRow]) -> None:
    text = io.TextIOWrapper(file, "utf-8", errors="backslashreplace", newline="")
    writer = csv.writer(text, lineterminator="\n")
    names = [each.name for each in fields(model)]
    writer.writerow(names)
    for row in rows:
        writer.writerow([cell(getattr(row, name)) for name in names])
    text.flush()
    text.detach()


def _parquet(file: IO[bytes], rows: Rows, model: type[ResultRow]) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise UnavailableError(
            "Tables as Parquet need pyarrow",
            where="parquet",
            got="no pyarrow",
            allowed="csv, or pyarrow installed",
            action="request csv, or ask the operator of the site to install pyarrow",
        ) from error
    kinds: dict[object, object] = {
        str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64(),
    }  # fmt: skip
    hints = get_type_hints(model)
    schema = pyarrow.schema(
        [(each.name, kinds[_column_type(hints[each.name])]) for each in fields(model)]
    )
    remaining = iter(rows)
    with parquet.ParquetWriter(file, schema) as writer:
        while some := [asdict(each) for each in islice(remaining, ROW_GROUP_ROWS)]:
            writer.write_table(pyarrow.Table.from_pylist(some, schema))


def _column_type(annotation: object) -> object:
    """Return the type of an optional annotation, as `float` of `float | None`."""
    return (get_args(annotation) or (annotation,))[0]


TABLE_KINDS: dict[str, tuple[Callable[[IO[bytes], Rows, type[ResultRow]], None], str]] = {
    "csv": (_csv, "text/csv; charset=utf-8"),
    "parquet": (_parquet, "application/vnd.apache.parquet"),
}
