"""Responses of a site, as a client reads and validates them.

The client trusts no data from the network: fields have types, digests and ids are validated, and
redirections are refused.
"""

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, TypedDict, TypeVar

import msgspec
from msgspec import Meta, Struct

from uflip.data.document import Count, DigestText
from uflip.errors import RefusedError, ResultsError, UflipError, UnavailableError, UsageError

if TYPE_CHECKING:
    import httpx

ERROR_KINDS: dict[str, type[UflipError]] = {
    "usage": UsageError,
    "refused": RefusedError,
    "results": ResultsError,
    "unavailable": UnavailableError,
}
MAX_PART = 2000
Shape = TypeVar("Shape")


class UploadStatusResponse(Struct):
    """An upload: the number of received bytes of each file, by its digest."""

    id: Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
    received: dict[str, Count]


class ReceivedBytesResponse(Struct):
    """The numbers of received bytes of files."""

    received: dict[str, Count]


class Submitted(TypedDict):
    """The answer to a committed submission, see `uflip.site.api_types.Committed`."""

    id: str
    url: str
    new: bool
    own: bool
    published: bool


class FileResponse(Struct):
    """A file of a result."""

    path: str
    digest: DigestText
    bytes: Count


class ResultResponse(Struct):
    """The fields of a result that the client uses."""

    files: list[FileResponse]


class NotFoundError(ResultsError):
    """The requested object is not on the site, or not any more."""


def read_response(answer: "httpx.Response", content: bytes, shape: type[Shape]) -> Shape:
    """Decode the content of a response.

    Raises
    ------
    UflipError
        The error that the site returned; `UnavailableError` for a response of another server.
    """
    check_response(answer, content)
    try:
        return msgspec.json.decode(content, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _not_a_site_error(answer, str(error)) from error


def check_response(answer: "httpx.Response", content: bytes) -> None:
    """Refuse a response that reports an error.

    Raises
    ------
    UflipError
        As `read_response`.
    """
    if answer.is_success:
        return
    try:
        parts = dict(json.loads(content)["error"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        where = answer.headers.get("location", "")[:200]
        raise _not_a_site_error(answer, f"it leads to {where}" if where else "") from error
    kind = ERROR_KINDS.get(str(parts.pop("kind", "")), UnavailableError)
    if answer.status_code == HTTPStatus.NOT_FOUND and kind is ResultsError:
        kind = NotFoundError
    fields = ("what", "where", "got", "allowed", "action")
    raise kind(**{name: str(parts.get(name) or "")[:MAX_PART] for name in fields})


def _not_a_site_error(answer: "httpx.Response", problem: str) -> UflipError:
    requested = answer.request.url
    return UnavailableError(
        "The server is not a uflip results site",
        where=f"{requested.scheme}://{requested.netloc.decode()}{requested.path}",
        got=f"an answer {answer.status_code} of another kind"
        + (f": {problem[:200]}" if problem else ""),
        action="check the address",
    )
