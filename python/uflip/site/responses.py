"""What a site answers, as a client reads it: of the shape that it has, or it is no site of ours.

Nothing that comes over a network is believed: fields have types, digests and ids are what they can
be, an answer that leads elsewhere is none.
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

KINDS: dict[str, type[UflipError]] = {
    "usage": UsageError,
    "refused": RefusedError,
    "results": ResultsError,
    "unavailable": UnavailableError,
}
LONGEST_PART = 2000
Shape = TypeVar("Shape")


class UploadStatusResponse(Struct):
    """An upload: how many bytes of each file, by its digest, are there."""

    id: Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
    received: dict[str, Count]


class ReceivedBytesResponse(Struct):
    """How many bytes of some files are there now."""

    received: dict[str, Count]


class Submitted(TypedDict):
    """What a site says of a submission, see `uflip.site.api_types.Committed`."""

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
    """A result, as far as it is read here."""

    files: list[FileResponse]


class NotThereError(ResultsError):
    """What was asked for is not on the site, or not any more."""


def read(answer: "httpx.Response", content: bytes, shape: type[Shape]) -> Shape:
    """Read the content of an answer.

    Raises
    ------
    UflipError
        That which the site answers; `UnavailableError` for what is no answer of a site.
    """
    check(answer, content)
    try:
        return msgspec.json.decode(content, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _no_site(answer, str(error)) from error


def check(answer: "httpx.Response", content: bytes) -> None:
    """Refuse an answer that is not what was asked for.

    Raises
    ------
    UflipError
        As `read`.
    """
    if answer.is_success:
        return
    try:
        parts = dict(json.loads(content)["error"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        where = answer.headers.get("location", "")[:200]
        raise _no_site(answer, f"it leads to {where}" if where else "") from error
    kind = KINDS.get(str(parts.pop("kind", "")), UnavailableError)
    if answer.status_code == HTTPStatus.NOT_FOUND and kind is ResultsError:
        kind = NotThereError
    known = ("what", "where", "got", "allowed", "action")
    raise kind(**{name: str(parts.get(name) or "")[:LONGEST_PART] for name in known})


def _no_site(answer: "httpx.Response", problem: str) -> UflipError:
    asked = answer.request.url
    return UnavailableError(
        "The server is not a uflip results site",
        where=f"{asked.scheme}://{asked.netloc.decode()}{asked.path}",
        got=f"an answer {answer.status_code} that is none of ours"
        + (f": {problem[:200]}" if problem else ""),
        action="check the address",
    )
