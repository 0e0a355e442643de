"""Is a client dropped in time that sends half a request or reads no answer? And no other?"""

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPResponse
from threading import Thread
from typing import Any

import httpx
import pytest
import uvicorn

from uflip.web import connections
from uflip.web.connections import bind_listener

HOST = "127.0.0.1"
HEAD = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: "
LARGE = 64 << 20


async def _app(scope: Any, receive: Any, send: Any) -> None:
    """Answer with the length of the body; at /refuse without reading it; at /large with much."""
    length = 0
    if scope["path"] == "/slow":  # resume reading in the event loop's turn of the next deadline
        await asyncio.sleep(0.5)
        time.sleep(0.2)
        await asyncio.sleep(0)
    while scope["path"] != "/refuse":
        message = await receive()
        length += len(message.get("body", b""))
        if not message.get("more_body"):
            break
    content = bytes(LARGE) if scope["path"] == "/large" else str(length).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": content})


@contextmanager
def served() -> Iterator[int]:
    with bind_listener(HOST, 0, "") as listener:
        config = uvicorn.Config(
            _app, http=connections.limited_protocol(), lifespan="off", log_config=None,
            timeout_graceful_shutdown=1, timeout_keep_alive=1,
        )  # fmt: skip
        server = uvicorn.Server(config)
        thread = Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(30)


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A server that waits a fraction of a second where others wait many."""
    monkeypatch.setattr(connections, "HEAD_S", 0.3)
    monkeypatch.setattr(connections, "BODY_S", 0.3)
    monkeypatch.setattr(connections, "SEND_S", 0.3)
    with served() as chosen:
        yield chosen


def connect(port: int, sent: bytes = b"") -> socket.socket:
    made = socket.create_connection((HOST, port), 20)
    with suppress(ConnectionError):  # it may be closed again
        made.sendall(sent)
    return made


@contextmanager
def open_connections(count: int, port: int, sent: bytes) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [stack.enter_context(connect(port, sent)) for _ in range(count)]


def answer(connection: socket.socket) -> bytes:
    with HTTPResponse(connection) as response:
        response.begin()
        return response.read()


def is_closed(connection: socket.socket) -> bool:
    """Read what there is; whether the other side closed it, which is waited for."""
    with suppress(ConnectionResetError):
        while connection.recv(1 << 16):
            pass
    return True


@pytest.mark.parametrize(
    "sent",
    [
        b"", b"G", b"GET / HTTP/1.1\r\nHost: x\r\n", HEAD + b"9\r\n\r\n", HEAD + b"9\r\n\r\n123",
        HEAD.replace(b"/ ", b"/refuse ", 1) + b"9\r\n\r\n123",
        HEAD + b"0\r\n\r\n" + b"GET / HT",
    ],
)  # fmt: skip
def test_incomplete_request_is_disconnected(port: int, sent: bytes) -> None:
    with connect(port, sent) as half:
        assert is_closed(half)
    assert httpx.get(f"http://{HOST}:{port}/").text == "0"


def test_slow_sender_is_disconnected(port: int) -> None:
    with connect(port) as dripping, pytest.raises(ConnectionError):
        send_slowly(dripping, HEAD + b"100000\r\n\r\n" + bytes(10**6))


def send_slowly(connection: socket.socket, content: bytes) -> None:
    for byte in content:
        connection.sendall(bytes([byte]))
        time.sleep(0.02)


def test_body_deadline_grows_with_its_length(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "BODY_BYTES_PER_S", 1000)
    with connect(port, HEAD + b"4000\r\n\r\n") as slow:
        for _ in range(8):  # 0.8 s, of 0.3 s and 4 s for its bytes
            time.sleep(0.1)
            slow.sendall(bytes(500))
        assert answer(slow) == b"4000"


def test_refused_body_is_read_up_to_a_limit(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse = HEAD.replace(b"/ ", b"/refuse ", 1) + b"67108864\r\n\r\n"
    assert httpx.post(f"http://{HOST}:{port}/refuse", content=bytes(1 << 20)).text == "0"
    monkeypatch.setattr(connections, "MAX_UNREAD_BYTES", 1 << 20)
    with connect(port, refuse) as sending, pytest.raises(ConnectionError):
        sending.sendall(bytes(64 << 20))


def test_time_without_server_reading_is_not_counted(port: int) -> None:
    """The application reads nothing for longer than the client's deadline, then again."""
    body = bytes(8 << 20)
    assert httpx.post(f"http://{HOST}:{port}/slow", content=body).text == str(len(body))


def test_client_that_reads_no_answer_is_disconnected(port: int) -> None:
    with connect(port, b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n") as deaf:
        time.sleep(1.0)
        received = 0
        with suppress(ConnectionResetError):
            while part := deaf.recv(1 << 20):
                received += len(part)
    assert received < LARGE


def test_longest_waiting_of_largest_group_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 10)
    with served() as port, socket.socket() as single:
        single.bind(("127.0.0.2", 0))
        single.connect((HOST, port))
        single.sendall(HEAD + b"4\r\n\r\n")
        with open_connections(30, port, b"G") as crowd:
            assert httpx.get(f"http://{HOST}:{port}/").text == "0"
            single.sendall(b"body")
            assert answer(single) == b"4"
            closed = 0
            for each in crowd:
                each.setblocking(False)
                with suppress(BlockingIOError):
                    closed += is_closed(each)
            assert closed >= 20
