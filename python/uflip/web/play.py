"""What the page of Play asks for: the form, what was run; and, by POST, that something be run.

A link alone starts nothing: that takes a POST of the page itself, which says so in Origin and sends
JSON, as no form of another page can.
"""

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from uflip.errors import UflipError, UsageError
from uflip.play.form import Form, form
from uflip.play.play_request import read_wanted
from uflip.play.stage import Played, PlayedSaid, Stage
from uflip.web.folders import Folders, key_of

if TYPE_CHECKING:
    from starlette.requests import Request

ACTS = "api/play/"
CONTENT = "application/json"
LARGEST_BODY = 1 << 16
KEY = "key."
"""Before the names of keys in an address: parameters of patterns have such names, too."""
FIRST = "demo"
Act = Callable[[object], Mapping[str, object]]
"""Does what a document asks for, and says what became of it."""


class Keyed(PlayedSaid):
    """What was run, with the key under which its result is looked at."""

    key: str


def is_act(path: str) -> bool:
    """Whether something is asked for here rather than told."""
    return path.split("/", 2)[2:] != [] and path.split("/", 2)[2].startswith(ACTS)


async def body(request: "Request") -> object:
    """Read what was sent.

    Raises
    ------
    UsageError
        If it is too much, or no JSON, or a text in it is none.
    """
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > LARGEST_BODY:
            raise UsageError(
                "The request body is too large",
                where="body",
                allowed=f"{LARGEST_BODY} bytes",
                action="send less",
            )
    try:
        document = json.loads(content)
        # Half a pair of surrogates is no text, though JSON can write it.
        json.dumps(document, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise UsageError(
            "The request is not a JSON object of strings",
            where="body",
            got=str(error),
            action="send a document as the page does",
        ) from error
    return document


def shown(query: Mapping[str, str]) -> Form:
    """Return the form of a device with some keys changed; what is wrong with them is part of it."""
    changes = {name[len(KEY) :]: text for name, text in query.items() if name.startswith(KEY)}
    device = query.get("device") or FIRST
    plain = form(device, {})
    try:
        return {**form(device, changes), "problem": None}
    except UflipError as error:
        return {**plain, "problem": error.parts()}


def played(stage: Stage, folders: Folders) -> dict[str, list[Keyed]]:
    """Return what was run, and what is running."""
    return {"played": [_one(each, folders) for each in stage.played()]}


def acts(stage: Stage, folders: Folders) -> dict[str, Act]:
    """Return what can be asked for by POST, by name."""

    def begin(document: object) -> Keyed:
        return _one(stage.begin(read_wanted(document)), folders)

    def stop(_document: object) -> dict[str, str]:
        stage.stop()
        return {}

    return {"begin": begin, "stop": stop}


def _one(one: Played, folders: Folders) -> Keyed:
    folders.add(one.folder.parent)
    return {**one.as_dict(), "key": key_of(one.folder)}
