"""Devices that are served at this moment: what their servers tell of them when a page asks."""

import json
import socket
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from uflip.amplification import write_amplification
from uflip.errors import DeviceError, UflipError

PATIENCE_S = 2.0
MOST_BYTES = 1 << 24


def told(sockets: Sequence[Path]) -> dict[str, Any]:
    """Ask every server what it has served so far.

    Parameters
    ----------
    sockets : sequence of Path
        What `uflip serve --stats` was given.

    Returns
    -------
    dict
        `servers`: for each its `socket`, and what it says (`uflip.device.serving.served`) with the
        write amplification of each export, or the `error` of one that does not answer.
    """
    return {"servers": [_server(path) for path in sockets]}


def _server(path: Path) -> dict[str, Any]:
    try:
        document = ask(path)
    except UflipError as error:
        return {"socket": str(path), "error": error.parts()}
    for export in document["exports"]:
        flash = export.get("flash", {"programmed_bytes": None})
        pages = {"pages_programmed": flash["programmed_bytes"]}
        export["write_amplification"] = write_amplification(pages, 1, export["bytes_written"])
    return {"socket": str(path), **document}


def ask(path: Path) -> dict[str, Any]:
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
        document: dict[str, Any] = json.loads(text)
        if not {"exports", "clients", "elapsed_ns"} <= document.keys():
            raise ValueError("a document of something else")
    except (OSError, ValueError, AttributeError) as error:
        raise DeviceError(
            "The server of a device does not tell what it serves",
            where=str(path),
            got=str(error),
            allowed="the socket that `uflip serve --stats` was given, while it serves",
            action="start it again, or name another socket",
        ) from error
    return document
