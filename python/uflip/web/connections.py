"""Sockets and connections of our servers: addresses, numbers of connections, deadlines of clients.

uvicorn waits for the rest of a request as long as the connection is open, and counts a request only
when it is complete. So a silent client with many connections would block everybody else. Here a
request has to arrive within a time that depends on its length, and a response has to be read. If
all connections are used, the one that has waited longest is closed, of the address with the most
waiting connections, so that no client crowds out others.
"""

import asyncio
import errno
import resource
import socket
from collections import Counter
from typing import Any

import h11

from uflip.errors import UsageError

HEAD_S = 10.0
"""Deadline for the head of a request: a few hundred bytes, usually in one packet [s]."""
BODY_S, BODY_BYTES_PER_S = 20.0, 16 << 10
"""Deadline for a body, plus a second for each of these bytes: 128 kbit/s (Apache's
`mod_reqtimeout` has the same rule). A part of 8 MiB has 9 minutes."""
SEND_S = 60.0
"""Deadline for a client to read the 64 KiB in the send buffer [s]."""
MAX_UNREAD_BYTES = 16 << 20
"""Bytes of a refused body that are still accepted, so that its sender reads the reason."""
MAX_CONNECTIONS = 1000


def bind_listener(host: str, port: int, options: str) -> socket.socket:
    """Return a socket bound to an address; the caller closes it.

    `host`: an address of this machine. `port`: the port; 0: a free one. `options`: the options that
    selected it, for the error.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit it. Without it the second part of a response waits for the
        # acknowledgement of the first, which takes 40 ms.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        code = error.errno if isinstance(error, OSError) else None
        in_use = code == errno.EADDRINUSE
        raise UsageError(
            "The address cannot be used",
            where=options,
            got="another program listens there"
            if in_use
            else getattr(error, "strerror", None) or str(error),
            allowed="an address of this machine and a free port",
            action="give another --port; 0 is a free one",
        ) from error
    return listener


def limited_protocol() -> type[asyncio.Protocol]:
    """Return uvicorn's connection class with deadlines."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    return type("LimitedConnection", (_Limits, H11Protocol), {})


class _Limits(asyncio.Protocol):
    """A connection of uvicorn with deadlines and a limited number."""

    # Attributes of uvicorn's class.
    client: tuple[str, int] | None
    connections: set[Any]
    conn: h11.Connection
    cycle: Any
    flow: Any
    loop: asyncio.AbstractEventLoop
    timeout_keep_alive_task: asyncio.TimerHandle | None
    transport: asyncio.Transport

    _awaited: tuple[str, object] = ("", None)
    _deadline: asyncio.TimerHandle | None = None
    _send_deadline: asyncio.TimerHandle | None = None
    _since = 0.0
    _received = 0

    def connection_made(self, transport: Any) -> None:
        """Start waiting for a request."""
        super().connection_made(transport)
        resume_reading = self.flow.resume_reading

        def resume() -> None:
            if self.flow.read_paused:
                self._restart_clock()
            resume_reading()

        self.flow.resume_reading = resume
        self._update_deadline()
        _close_excess(self.connections)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel all deadlines."""
        for timer in (self._deadline, self._send_deadline):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Receive a part of a request."""
        self._received += len(data)
        super().data_received(data)
        self._update_deadline()
        answered = self.cycle is not None and self.cycle.response_complete
        if answered and self._awaited[0] == "body" and self._received > MAX_UNREAD_BYTES:
            self.transport.abort()

    def on_response_complete(self) -> None:
        """Continue with the next request."""
        super().on_response_complete()  # type: ignore[misc]
        self._update_deadline()

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection without a next request, with a limit for unsent data."""
        super().timeout_keep_alive_handler()  # type: ignore[misc]
        self.loop.call_later(SEND_S, self.transport.abort)

    def pause_writing(self) -> None:
        """Start the deadline for the client to read."""
        super().pause_writing()
        self._send_deadline = self.loop.call_later(SEND_S, self.transport.abort)

    def resume_writing(self) -> None:
        """Cancel that deadline."""
        super().resume_writing()
        if self._send_deadline is not None:
            self._send_deadline.cancel()

    @property
    def waits(self) -> bool:
        """Whether the server waits for the client."""
        return not self.transport.is_closing() and (
            self.conn.their_state in {h11.IDLE, h11.SEND_BODY}
            or self.cycle is None
            or self.cycle.response_complete
        )

    def _update_deadline(self) -> None:
        """Start a deadline if something else is awaited than before, or another request."""
        awaited = ""
        if self.conn.their_state is h11.SEND_BODY:
            awaited = "body"
        elif self.conn.their_state is h11.IDLE and self.timeout_keep_alive_task is None:
            awaited = "head"  # between two requests uvicorn's own timeout applies
        if (awaited, self.cycle) == self._awaited:
            return
        self._awaited = (awaited, self.cycle)
        self._restart_clock()
        if self._deadline is not None:
            self._deadline.cancel()
        if awaited in {"head", "body"}:
            self._deadline = self.loop.call_later(_allowed_s(awaited, 0), self._check)

    def _restart_clock(self) -> None:
        """Count the client's time and bytes from now."""
        self._since, self._received = self.loop.time(), 0

    def _check(self) -> None:
        """Close a connection that is too slow."""
        awaited = self._awaited[0]
        if self.flow.read_paused:  # by the server: the client cannot send
            self._restart_clock()
        remaining_s = self._since + _allowed_s(awaited, self._received) - self.loop.time()
        if remaining_s <= 0:
            self.transport.abort()
        else:
            self._deadline = self.loop.call_later(remaining_s, self._check)


def _allowed_s(awaited: str, received: int) -> float:
    return HEAD_S if awaited == "head" else BODY_S + received / BODY_BYTES_PER_S


def _close_excess(connections: set[Any]) -> None:
    """Close waiting connections while there are too many."""
    while len(connections) > most_connections():
        waiting = [each for each in connections if each.waits]
        if not waiting:
            return  # all are being answered; the rate of requests is limited elsewhere
        crowd = Counter(_host(each) for each in waiting).most_common(1)[0][0]
        oldest = min((each for each in waiting if _host(each) == crowd), key=_since)
        connections.discard(oldest)
        oldest.transport.abort()


def _host(connection: Any) -> str:
    return connection.client[0] if connection.client else ""


def _since(connection: Any) -> float:
    return float(connection._since)


def most_connections() -> int:
    """Return the maximum number of connections: half of this process's file descriptors."""
    return min(MAX_CONNECTIONS, _descriptors() // 2)


def accepted_at_once() -> int:
    """Return the length of the accept queue (the `backlog`).

    A quarter of the file descriptors is left for files and the database. If necessary, the limit of
    the process is raised first.
    """
    limit, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= limit < 4 * MAX_CONNECTIONS and limit != hard:
        more = 4 * MAX_CONNECTIONS if hard < 0 else min(hard, 4 * MAX_CONNECTIONS)
        resource.setrlimit(resource.RLIMIT_NOFILE, (more, hard))
    return min(MAX_CONNECTIONS, _descriptors() // 4)


def _descriptors() -> int:
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 4 * MAX_CONNECTIONS if limit < 0 else limit
