"""Requests of the Play page: the form, the list of runs; and, by POST, starting a run.

A link alone starts nothing. A run needs a POST of our own page, which is visible in Origin, with a
JSON body, which a form of another page cannot send.
"""

import json
from collections.abc import Callable, Mapping
from time import monotonic
from typing import TYPE_CHECKING, TypedDict

from uflip.data.document import Table
from uflip.data.spec import MODES, table_of
from uflip.errors import UflipError, UsageError
from uflip.play.form import Form, PlayRequest, Twins, form, parse_request, text_field
from uflip.play.remedies import UNCHANGED, Remedy, SlowIo, remedies
from uflip.play.remedies import request as remedy_request
from uflip.play.stage import Played, Stage
from uflip.web.open_results import Folders, OpenResults, key_of
from uflip.web.open_run import OpenRun

if TYPE_CHECKING:
    from starlette.requests import Request

ACTION_PATH = "api/play/"
CONTENT = "application/json"
MAX_BODY = 1 << 16
KEY = "key."
"""Prefix of device keys in a URL: parameters of patterns may have the same names."""
DEFAULT_DEVICE = "demo"
AS_IT_WAS = "none"
"""Remedy of a request for the unchanged device."""
Action = Callable[[object], Mapping[str, object]]
"""Carries out an action of a document, and returns its result."""


class PlayedRun(TypedDict):
    """A run, with the key of its result; see `uflip.play.stage.Played`."""

    number: int
    url: str
    benchmark: str
    label: str
    spec: Table | None
    state: str
    share: float
    words: str
    error: dict[str, str] | None
    took_s: float
    key: str


class Remedies(TypedDict):
    """Changes of a device that act on the causes of an I/O; or the reason for an empty list."""

    device: str
    remedies: list[Remedy]
    problem: str


class PlayedRuns(TypedDict):
    """All runs, the current one included."""

    played: list[PlayedRun]


def is_action(path: str) -> bool:
    """Return whether a path is an action rather than a query."""
    return path.split("/", 2)[2:] != [] and path.split("/", 2)[2].startswith(ACTION_PATH)


async def body(request: "Request") -> object:
    """Read the body of a request."""
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > MAX_BODY:
            raise UsageError(
                "The request body is too large",
                where="body",
                allowed=f"{MAX_BODY} bytes",
                action="send less",
            )
    try:
        document = json.loads(content)
        # An unpaired surrogate is not valid text, though JSON can encode it.
        json.dumps(document, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise UsageError(
            "The request is not a JSON object of strings",
            where="body",
            got=str(error),
            action="send a document as the page does",
        ) from error
    return document


def form_view(query: Mapping[str, str], twins: Twins) -> Form:
    """Return the form of a device with some keys changed; errors in them are part of the form."""
    changes = {name[len(KEY) :]: text for name, text in query.items() if name.startswith(KEY)}
    device = query.get("device") or DEFAULT_DEVICE
    plain = form(device, {}, twins)
    try:
        return {**form(device, changes, twins), "problem": None}
    except UflipError as error:
        return {**plain, "problem": error.parts()}


def runs_view(stage: Stage, folders: Folders) -> PlayedRuns:
    """Return all runs, the current one included."""
    return {"played": [_run_view(each, folders) for each in stage.played()]}


def remedies_view(run: OpenRun, number: int) -> Remedies:
    """Return what would have avoided an I/O."""
    url = run.results.manifest.device.url
    try:
        return {"device": url, "remedies": remedies(url, _slow_io(run, number)), "problem": ""}
    except UflipError as error:
        return {"device": url, "remedies": [], "problem": str(error)}


def _slow_io(run: OpenRun, number: int) -> SlowIo:
    if not 0 <= number < run.io_count:
        raise UsageError(
            "There is no such I/O",
            where="number",
            got=str(number),
            allowed=f"0 to {run.io_count - 1}",
            action="use the number of an I/O of the run",
        )
    causes = {name: int(run.column(name, number, number + 1)[0]) for name in run.causes}
    mode = int(run.column("mode", number, number + 1)[0]) if run.has("mode") else 0
    return SlowIo(MODES[mode], causes)


def _remedy_request(opened: OpenResults, document: object) -> PlayRequest:
    """Parse a request to run the I/Os of a stored run on a changed device."""
    run = opened.run(text_field(document, "key"), text_field(document, "run"))
    number = text_field(document, "number")
    name = text_field(document, "remedy")
    url = run.results.manifest.device.url
    io = _slow_io(run, int(number) if number.isdecimal() else -1)
    name = UNCHANGED if name == AS_IT_WAS else name
    return remedy_request(url, run.run.spec, run.run.pattern, io, name)


def actions(stage: Stage, opened: OpenResults) -> dict[str, Action]:
    """Return the actions of POST requests, by name."""
    folders = opened.folders

    def begin(document: object) -> PlayedRun:
        return _run_view(stage.begin(parse_request(document, stage.twins)), folders)

    def remedy(document: object) -> PlayedRun:
        return _run_view(stage.begin(_remedy_request(opened, document)), folders)

    def stop(_document: object) -> dict[str, str]:
        stage.stop()
        return {}

    return {"begin": begin, "remedy": remedy, "stop": stop}


def _run_view(one: Played, folders: Folders) -> PlayedRun:
    folders.add(one.folder.parent)
    now = monotonic() - one.began if one.state == "running" else one.took_s
    return {
        "number": one.number,
        "url": one.request.url,
        "benchmark": one.request.benchmark,
        "label": one.request.label,
        "spec": None if one.request.spec is None else table_of(one.request.spec),
        "state": one.state,
        "share": one.share,
        "words": one.words,
        "error": one.error,
        "took_s": round(now, 1),
        "key": key_of(one.folder),
    }
