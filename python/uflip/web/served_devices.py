"""Devices being served: statistics from their servers, requested by the page."""

import json
import socket
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NotRequired, TypedDict

from uflip.errors import DeviceError, UflipError
from uflip.results.run_statistics import write_amplification
from uflip.web.api_types import Problem

TIMEOUT_S = 2.0
MAX_BYTES = 1 << 24


class ServiceTimes(TypedDict):
    """Statistics of times [ns]; null without samples."""

    count: int
    mean_ns: int | None
    p50_ns: int | None
    p90_ns: int | None
    p99_ns: int | None
    p999_ns: int | None
    max_ns: int | None


class RecentTimes(ServiceTimes):
    """The same in the last complete interval."""

    span_ns: int


class FlashNow(TypedDict):
    """Erase blocks, and bytes programmed since serving began."""

    blocks: int
    free_blocks: int
    programmed_bytes: int


class ExportNow(TypedDict):
    """Requests to one export, and the state of its device."""

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
    recent: RecentTimes
    counters: dict[str, int] | None
    flash: NotRequired[FlashNow]
    write_amplification: float | None


class ClientCounts(TypedDict):
    """Numbers of clients: connected, in total, refused."""

    now: int
    in_all: int
    turned_away: int


class ServerStatus(TypedDict):
    """The statistics of a server."""

    elapsed_ns: int
    clients: ClientCounts
    exports: list[ExportNow]


class Server(ServerStatus):
    """The same, with its socket."""

    socket: str


class UnreachableServer(TypedDict):
    """A socket without an answering server."""

    socket: str
    error: Problem


class Servers(TypedDict):
    """All servers of the page."""

    servers: list[Server | UnreachableServer]


def server_statistics(sockets: Sequence[Path]) -> Servers:
    """Return the statistics of every server."""
    return {"servers": [_server(path) for path in sockets]}


def _server(path: Path) -> Server | UnreachableServer:
    try:
        document = request_status(path)
    except UflipError as error:
        return {"socket": str(path), "error": error.parts()}
    for export in document["exports"]:
        flash = export.get("flash")
        pages = None if flash is None else {"pages_programmed": flash["programmed_bytes"]}
        # Write zeroes program flash like data.
        written = export["bytes_written"] + export["bytes_zeroed"]
        export["write_amplification"] = write_amplification(pages, 1, written)
    return {"socket": str(path), **document}


def request_status(path: Path) -> ServerStatus:
    """Return the statistics of one server."""
    text = bytearray()
    try:
        with closing(socket.socket(socket.AF_UNIX)) as connection:
            connection.settimeout(TIMEOUT_S)
            connection.connect(str(path))
            while (more := connection.recv(1 << 16)) and len(text) < MAX_BYTES:
                text += more
        document: ServerStatus = json.loads(text)
        if not {"exports", "clients", "elapsed_ns"} <= document.keys():
            raise ValueError("another document")
    except (OSError, ValueError, AttributeError) as error:
        raise DeviceError(
            "The server does not report statistics",
            where=str(path),
            got=str(error),
            allowed="the socket of `uflip serve --stats`, while it serves",
            action="start it again, or name another socket",
        ) from error
    return document
