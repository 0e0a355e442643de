"""The addresses that programs use: `/api/v1/…`, described by OpenAPI at `/api/v1/openapi.json`.

Who asks says so by `Authorization: Bearer TOKEN`. No cookie is ever set, so that a page of somebody
else cannot act in the name of a reader.
"""

from io import BytesIO, StringIO
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import FileResponse
from pydantic import BaseModel, Field
from sqlalchemy.orm import Session

from uflip._native import __version__
from uflip.errors import RefusedError, UnavailableError, UsageError
from uflip.frame import frame
from uflip.results.beginning import utc_now
from uflip.results.csv_text import write_rows
from uflip.site import browse
from uflip.site.accounts import account_of, may, note
from uflip.site.offer import PART_BYTES, Offered
from uflip.site.tables import AbsentError, Account, Result

if TYPE_CHECKING:
    from uflip.site.site import Site

TABLES = ("csv", "parquet")
MOST_OF_A_TABLE = 100_000


class FileOffered(BaseModel):
    """A file of a result folder."""

    path: Annotated[str, Field(max_length=260)]
    digest: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    bytes: Annotated[int, Field(ge=0, le=1 << 40)]


class Offer(BaseModel):
    """All files of a result folder."""

    files: Annotated[list[FileOffered], Field(max_length=20_000)]


class Begun(BaseModel):
    """An upload: how many bytes of each file, by its digest, are there."""

    id: str
    received: dict[str, int]
    part_bytes: int = PART_BYTES


class Got(BaseModel):
    """How many bytes of a file are there now."""

    received: int


class Committed(BaseModel):
    """A result, as it can be cited."""

    id: str
    url: str
    new: bool
    published: bool


class Listed(BaseModel):
    """A page of results."""

    total: int
    page: int
    results: list[dict[str, Any]]


def site_of(request: Request) -> "Site":
    """What the server of a request keeps."""
    found: Site = request.app.state.site
    return found


def session_of(request: Request) -> Any:
    """A session of the database for the time of a request."""
    with site_of(request).sessions.begin() as session:
        yield session


# Committed before the answer goes out: what is acknowledged is kept.
SessionOf = Annotated[Session, Depends(session_of, scope="function")]


def whoever(request: Request, session: SessionOf) -> Account | None:
    """Who asks; None for somebody without a token.

    Raises
    ------
    RefusedError
        For a token that is none, or none any more.
    """
    said = request.headers.get("authorization", "")
    if not said:
        return None
    kind, _, token = said.partition(" ")
    found = account_of(session, token.strip()) if kind.lower() == "bearer" else None
    if found is None:
        raise RefusedError(
            "This token allows nothing",
            where="Authorization",
            action="ask whoever runs this site for one: `uflip site token NAME`",
        )
    return found


Who = Annotated[Account | None, Depends(whoever, scope="function")]


def _allowed(who: Account | None, role: str) -> Account:
    if not may(who, role):
        raise RefusedError(
            f"This needs a token of a {role}",
            where="Authorization",
            got=f"that of a {who.role}" if who else "no token",
            action="give --token, or set UFLIP_SITE_TOKEN",
        )
    assert who is not None, "somebody may"
    return who


def _own(session: Session, who: Account | None, name: str) -> tuple[Account, Result]:
    """Find a result that somebody may change: the owner, or an admin."""
    somebody = _allowed(who, "submitter")
    found = browse.result(session, who, name)
    if found.account_id != somebody.id and not may(who, "admin"):
        raise RefusedError(
            "This result is somebody else's",
            where=name,
            got=found.account.name,
            action="ask who submitted it, or an admin",
        )
    return somebody, found


router = APIRouter(prefix="/api/v1")


@router.get("/results")
def list_results(  # noqa: PLR0917 -- parameters of an address
    session: SessionOf,
    who: Who,
    request: Request,
    q: str = "",
    sort: str = "-created",
    page: int = 1,
    per_page: int = browse.PAGE,
) -> Listed:
    """List results: words in `q`, filters by name (`kind`, `device`, `scale`, …)."""
    wanted = wanted_of(request, q, sort, page, per_page)
    found, total = browse.results(session, who, wanted)
    return Listed(total=total, page=page, results=[browse.as_row(each) for each in found])


def wanted_of(request: Request, q: str, sort: str, page: int, per_page: int) -> browse.Wanted:
    """Read which results an address wants."""
    filters = tuple(
        (name, value)
        for name, value in request.query_params.items()
        if name in browse.FILTERS and value
    )
    return browse.Wanted(q[:200], filters, sort, page, per_page)


@router.get("/results.{ending}")
def whole_table(
    session: SessionOf, who: Who, request: Request, ending: str, q: str = ""
) -> Response:
    """Every result that matches, as a table: CSV or Parquet."""
    if ending not in TABLES:
        raise UsageError(
            "There is no such table",
            where=ending[:20],
            allowed=", ".join(TABLES),
            action="ask for one of these",
        )
    wanted = wanted_of(request, q, "-created", 1, browse.PAGE)
    found = browse.every(session, who, wanted, MOST_OF_A_TABLE)
    return _as_table([browse.as_row(each) for each in found], ending)


def _as_table(rows: list[dict[str, Any]], ending: str) -> Response:
    if ending == "csv":
        text = StringIO(newline="")
        write_rows(text, list(rows[0]) if rows else [], (each.values() for each in rows))
        content = text.getvalue().encode("utf-8", "backslashreplace")
        return Response(content, media_type="text/csv; charset=utf-8")
    try:
        from pyarrow import parquet, table
    except ImportError as error:
        raise UnavailableError(
            "Tables as Parquet need pyarrow",
            where=ending,
            allowed="csv, or pyarrow installed",
            action="ask for csv, or have `pip install pyarrow` done on the server",
        ) from error

    packed = BytesIO()
    parquet.write_table(table(frame(rows)), packed)
    return Response(packed.getvalue(), media_type="application/vnd.apache.parquet")


@router.get("/results/{result}")
def one_result(session: SessionOf, who: Who, request: Request, result: str) -> dict[str, Any]:
    """What is known of a result, with the files that it is made of."""
    found = browse.result(session, who, result)
    files = [{"path": e.path, "digest": e.digest, "bytes": e.bytes} for e in found.files]
    return browse.as_row(found) | {"url": site_of(request).url_of(found.id), "files": files}


@router.get("/results/{result}/summary")
def summary(session: SessionOf, who: Who, request: Request, result: str) -> dict[str, Any]:
    """The whole summary, as `uflip show --json` prints it, computed by this server."""
    return site_of(request).intake.summary(browse.result(session, who, result).id)


@router.get("/results/{result}/files/{digest}")
def file(session: SessionOf, who: Who, request: Request, result: str, digest: str) -> FileResponse:
    """A file of a result; ranges are answered, so that a download can go on."""
    found = browse.result(session, who, result)
    if digest not in {each.digest for each in found.files}:
        raise AbsentError("This result has no such file", where=digest[:80])
    return FileResponse(site_of(request).blobs.path(digest), media_type="application/octet-stream")


@router.post("/results/{result}/publish")
def publish(session: SessionOf, who: Who, result: str) -> dict[str, Any]:
    """Let everybody see a result."""
    somebody, found = _own(session, who, result)
    if found.published_utc is None:
        found.published_utc = utc_now()
        note(session, somebody.name, "publish", found.id)
    return browse.as_row(found)


@router.post("/results/{result}/withdraw")
def withdraw(session: SessionOf, who: Who, result: str) -> dict[str, Any]:
    """Let nobody but its owner see a result any more."""
    somebody, found = _own(session, who, result)
    if found.published_utc is not None:
        found.published_utc = None
        note(session, somebody.name, "withdraw", found.id)
    return browse.as_row(found)


@router.delete("/results/{result}", status_code=204)
def delete(session: SessionOf, who: Who, request: Request, result: str) -> Response:
    """Delete a result for good, its files included."""
    somebody, found = _own(session, who, result)
    site_of(request).intake.delete(found.id, somebody.name)
    return Response(status_code=204)


@router.get("/devices")
def list_devices(session: SessionOf, who: Who) -> list[dict[str, Any]]:
    """Every device with its newest result: Table 3 of everything."""
    return [
        {"slug": each["device"].slug, "results": each["results"]} | browse.as_row(each["newest"])
        for each in browse.devices(session, who)
    ]


@router.get("/devices/{slug}")
def one_device(session: SessionOf, who: Who, slug: str) -> dict[str, Any]:
    """All results of a device, the newest first."""
    found, seen = browse.device(session, who, slug)
    return {
        "slug": found.slug,
        "model": found.model,
        "kind": found.kind,
        "capacity_bytes": found.capacity_bytes,
        "results": [browse.as_row(each) for each in seen],
    }


@router.post("/submissions", status_code=201)
def begin(who: Who, request: Request, offer: Offer) -> Begun:
    """Begin an upload, or find the one that began with the same files."""
    account = _allowed(who, "submitter")
    intake = site_of(request).intake
    begun = intake.begin(account, [Offered(e.path, e.digest, e.bytes) for e in offer.files])
    return Begun(id=begun, received=intake.received(account, begun))


@router.get("/submissions/{submission}")
def how_far(who: Who, request: Request, submission: str) -> Begun:
    """How far an upload is."""
    account = _allowed(who, "submitter")
    return Begun(id=submission, received=site_of(request).intake.received(account, submission))


@router.put("/submissions/{submission}/files/{digest}")
async def part(
    who: Who,
    request: Request,
    submission: str,
    digest: str,
    offset: Annotated[int, Query(ge=0)],
) -> Got:
    """Take a part of a file: at most 8 MiB, from `offset` on."""
    from starlette.concurrency import run_in_threadpool

    account = _allowed(who, "submitter")
    content = bytearray()
    async for piece in request.stream():
        content += piece
        if len(content) > PART_BYTES:
            raise UsageError(
                "A part is too long",
                got=f"more than {PART_BYTES} bytes",
                allowed=str(PART_BYTES),
                action="send shorter parts, with their offsets",
            )
    intake = site_of(request).intake
    received = await run_in_threadpool(
        intake.receive, account, submission, digest, offset, bytes(content)
    )
    return Got(received=received)


@router.delete("/submissions/{submission}", status_code=204)
def abandon(who: Who, request: Request, submission: str) -> Response:
    """End an upload."""
    site_of(request).intake.abandon(_allowed(who, "submitter"), submission)
    return Response(status_code=204)


@router.post("/submissions/{submission}/commit", status_code=201)
def commit(who: Who, request: Request, submission: str, publish: bool = False) -> Committed:
    """Look at what was sent; a result comes of it, or the reason why none does."""
    site = site_of(request)
    result, new = site.intake.commit(_allowed(who, "submitter"), submission, publish=publish)
    return Committed(id=result, url=site.url_of(result), new=new, published=publish)


@router.get("/version")
def version() -> dict[str, str]:
    """Which version of uflip answers."""
    return {"uflip": __version__}
