"""Devices that are served at this moment: what their servers tell of them when a page asks."""

import json
import socket
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NotRequired, TypedDict

from uflip.amplification import write_amplification
from uflip.errors import DeviceError, UflipError
from uflip.web.api_types import Problem

PATIENCE_S = 2.0
MOST_BYTES = 1 << 24


class ServiceTimes(TypedDict):
    """How long something took [ns], so often; null where nothing did."""

    count: int
    mean_ns: int | None
    p50_ns: int | None
    p90_ns: int | None
    p99_ns: int | None
    p999_ns: int | None
    max_ns: int | None


class Lately(ServiceTimes):
    """The same in the last whole stretch of time."""

    span_ns: int


class FlashNow(TypedDict):
    """Erase blocks, and what was programmed since the device is served."""

    blocks: int
    free_blocks: int
    programmed_bytes: int


class ExportNow(TypedDict):
    """What was asked of one export, and what became of its device."""

    name: str
    reads: int
    writes: int
    flushes: int
    trims: int
    write_zeroes: int
    failed: int
    bytes_read: int
    bytes_written: int
    bytes_zeroed: int
    response_time: ServiceTimes
    simulated: ServiceTimes
    lag: ServiceTimes
    held_ns: int
    recent: Lately
    counters: dict[str, int] | None
    flash: NotRequired[FlashNow]
    write_amplification: float | None


class ClientCounts(TypedDict):
    """Who is connected, and who was."""

    now: int
    in_all: int
    turned_away: int


class ServerStatus(TypedDict):
    """What a server tells."""

    elapsed_ns: int
    clients: ClientCounts
    exports: list[ExportNow]


class Server(ServerStatus):
    """The same, and where it was asked."""

    socket: str


class Silent(TypedDict):
    """A socket at which no server tells anything."""

    socket: str
    error: Problem


class Servers(TypedDict):
    """All that were asked."""

    servers: list[Server | Silent]


def told(sockets: Sequence[Path]) -> Servers:
    """Ask every server what it has served so far.

    Parameters
    ----------
    sockets : sequence of Path
        What `uflip serve --stats` was given.
    """
    return {"servers": [_server(path) for path in sockets]}


def _server(path: Path) -> Server | Silent:
    try:
        document = ask(path)
    except UflipError as error:
        return {"socket": str(path), "error": error.parts()}
    for export in document["exports"]:
        flash = export.get("flash")
        pages = None if flash is None else {"pages_programmed": flash["programmed_bytes"]}
        # Zeroes are written as data is.
        written = export["bytes_written"] + export["bytes_zeroed"]
        export["write_amplification"] = write_amplification(pages, 1, written)
    return {"socket": str(path), **document}


def ask(path: Path) -> ServerStatus:
    """Ask one server what it has served so far.

    Raises
    ------
    DeviceError
        If nobody answers, or with something else.
    """
    text = bytearray()
    try:
        with closing(socket.socket(socket.AF_UNIX)) as asking:
            asking.settimeout(PATIENCE_S)
            asking.connect(str(path))
            while (more := asking.recv(1 << 16)) and len(text) < MOST_BYTES:
                text += more
        document: ServerStatus = json.loads(text)
        if not {"exports", "clients", "elapsed_ns"} <= document.keys():
            raise ValueError("a document of something else")
    except (OSError, ValueError, AttributeError) as error:
        raise DeviceError(
            "The server does not report statistics",
            where=str(path),
            got=str(error),
            allowed="the socket that `uflip serve --stats` was given, while it serves",
            action="start it again, or name another socket",
        ) from error
    return document
