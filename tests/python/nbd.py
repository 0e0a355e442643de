"""An NBD client for tests, written from the protocol's text: whole sessions, and single messages.

It is independent of the server: numbers and layouts are those of `doc/proto.md`.
"""

import json
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from command_line import start

OPTION = 0x49484156454F5054
REQUEST, SIMPLE, STRUCTURED = 0x25609513, 0x67446698, 0x668E33EF
EXPORT_NAME, ABORT, LIST, INFO, GO, STRUCTURED_REPLY = 1, 2, 3, 6, 7, 8
ACK, SERVER, INFORMATION = 1, 2, 3
UNSUPPORTED, INVALID, UNKNOWN, TOO_BIG = (2**31 + n for n in (1, 3, 6, 9))
READ, WRITE, DISCONNECT, FLUSH, TRIM, ZEROES = 0, 1, 2, 3, 4, 6
FUA, NO_HOLE = 1, 2
EPERM, EIO, EINVAL, ENOSPC = 1, 5, 22, 28
PATIENCE_S = 20.0


def option(number: int, data: bytes = b"", length: int | None = None) -> bytes:
    """Encode an option; `length` may be wrong on purpose."""
    return struct.pack(">QII", OPTION, number, len(data) if length is None else length) + data


def info_request(
    name: bytes = b"", kinds: tuple[int, ...] = (3,), length: int | None = None
) -> bytes:
    """Encode the data of GO and INFO; the name's `length` may be wrong on purpose."""
    head = struct.pack(">I", len(name) if length is None else length) + name
    return head + struct.pack(f">H{len(kinds)}H", len(kinds), *kinds)


def request(
    command: int, offset: int = 0, length: int = 0, *, flags: int = 0, cookie: int = 1
) -> bytes:
    """Encode the header of a request."""
    return struct.pack(">IHHQQI", REQUEST, flags, command, cookie, offset, length)


class Client:
    """A session with a server."""

    def __init__(self, path: Path | str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE_S)
        self.structured = False
        try:
            self.socket.connect(str(path))
        except OSError:
            self.socket.close()
            raise
        assert self.receive(18) == b"NBDMAGICIHAVEOPT" + b"\0\3"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, *parts: bytes) -> None:
        self.socket.sendall(b"".join(parts))

    def receive(self, length: int) -> bytes:
        """Receive `length` bytes; raise EOFError if the server has closed the connection."""
        got = b""
        while len(got) < length:
            more = self.socket.recv(min(length - len(got), 1 << 20))
            if not more:
                raise EOFError
            got += more
        return got

    def receive_until_closed(self) -> bytes:
        """Receive until the server closes."""
        got = b""
        with suppress(ConnectionResetError):
            while more := self.socket.recv(1 << 16):
                got += more
        return got

    def option_reply(self, number: int) -> tuple[int, bytes]:
        """Receive a reply to an option: its kind and data."""
        magic, replied_to, kind, length = struct.unpack(">QIII", self.receive(20))
        assert (magic, replied_to) == (0x3E889045565A9, number)
        return kind, self.receive(length)

    def negotiate(self, number: int, data: bytes = b"") -> list[tuple[int, bytes]]:
        """Send an option; return all replies, the last of which is not an information."""
        self.send(option(number, data))
        answers = [self.option_reply(number)]
        while answers[-1][0] in (SERVER, INFORMATION):
            answers.append(self.option_reply(number))
        return answers

    def go(self, name: bytes = b"", *, structured: bool = False) -> tuple[int, int]:
        """Begin to send requests; return the size and flags of the export."""
        self.send(struct.pack(">I", 3))
        if structured:
            assert self.negotiate(STRUCTURED_REPLY) == [(ACK, b"")]
            self.structured = True
        answers = self.negotiate(GO, info_request(name))
        assert answers[-1][0] == ACK, answers
        kind, size, flags = struct.unpack(">HQH", answers[0][1])
        assert kind == 0
        return size, flags

    def reply(self, cookie: int = 1) -> int:
        """Receive a simple reply; return its error."""
        magic, error, reply_cookie = struct.unpack(">IIQ", self.receive(16))
        assert (magic, reply_cookie) == (SIMPLE, cookie)
        return int(error)

    def read(self, offset: int, length: int) -> bytes | int:
        """Read; return the data, or an error."""
        self.send(request(READ, offset, length))
        if not self.structured:
            return self.reply() or self.receive(length)
        data = bytearray(length)
        while True:
            magic, flags, kind, cookie, size = struct.unpack(">IHHQI", self.receive(20))
            assert (magic, cookie) == (STRUCTURED, 1)
            chunk = self.receive(size)
            if kind & 1 << 15:
                return int(struct.unpack(">I", chunk[:4])[0])
            if kind == 1:
                (at,) = struct.unpack(">Q", chunk[:8])
                data[at - offset : at - offset + len(chunk) - 8] = chunk[8:]
            if flags & 1:
                return bytes(data)

    def write(self, offset: int, data: bytes, flags: int = 0) -> int:
        """Write; return the error."""
        self.send(request(WRITE, offset, len(data), flags=flags), data)
        return self.reply()

    def do(self, command: int, offset: int = 0, length: int = 0, flags: int = 0) -> int:
        """Send a request without data; return the error."""
        self.send(request(command, offset, length, flags=flags))
        return self.reply()


@contextmanager
def serving(*arguments: object, path: Path | str = "s") -> Iterator[subprocess.Popen[str]]:
    """Serve devices at a UNIX socket during the block; then stop the server in order."""
    process = start("serve", *arguments, "--socket", path, "--json")
    deadline = time.monotonic() + PATIENCE_S * 3
    while not accepts_connections(path):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        with process:  # closes its pipes and waits for it
            with suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE_S)
            process.kill()


def stop_and_report(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Stop a server; return its report."""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    document: dict[str, Any] = json.loads(out)
    return document


def accepts_connections(path: Path | str) -> bool:
    """Return whether a server accepts connections: the socket's file exists a moment earlier."""
    try:
        with Client(path):
            return True
    except (FileNotFoundError, ConnectionRefusedError):
        return False
