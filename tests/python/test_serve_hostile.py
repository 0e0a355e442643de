"""Does a server survive its clients: malformed sessions, floods of connections, idle sockets?

Each malformed session follows the protocol with one fault or several, at the edges of every length;
meanwhile another client must read its data unchanged.
"""

import itertools
import os
import random
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import nbd
import pytest
from nbd import Client, info_request, option, request, serving

SESSIONS = 1000
CYCLES = 10_000
IDLE = 500
SEED = int(os.environ.get("UFLIP_SEED") or 1)
EDGES = (0, 1, 255, 256, 257, 4095, 4096, 4097, 2**31, 2**32 - 1)
FLAGS = b"\0\0\0\3"
HELD = b"\x5a" * 4096
# An offset that no malformed session writes to.
WITNESS_OFFSET = 40 << 30


def resident_kib(process_id: int) -> int:
    status = Path(f"/proc/{process_id}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, int]]:
    path = tmp_path_factory.mktemp("hostile") / "s"
    with serving("null", "sim:demo?blocks_per_die=64", "--speed", "0", path=path) as process:
        yield path, process.pid
        assert process.poll() is None, "it is still there"


def long_options() -> Iterator[list[bytes]]:
    """Yield options and names with wrong lengths."""
    for number, length in itertools.product((0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 2**32 - 1), EDGES):
        yield [FLAGS, option(number, b"x" * min(length, 5000), length)]
    for number, length in itertools.product((6, 7), EDGES):
        yield [FLAGS, option(number, info_request(b"null", (3,), length))]
        yield [FLAGS, option(number, info_request(b"n" * min(length, 8000)))]
        count = struct.pack(">I4sH", 4, b"null", length & 0xFFFF)
        yield [FLAGS, option(number, count + b"\0\3" * 3)]
    for length in EDGES:
        yield [FLAGS, option(1, b"n" * min(length, 9000))]
        yield [FLAGS, option(9, struct.pack(">I", length) + b"null" + struct.pack(">I", length))]
        yield [FLAGS, option(10, struct.pack(">I", 4) + b"null" + struct.pack(">I", length))]


def odd_requests() -> Iterator[list[bytes]]:
    """Yield requests with wrong lengths, offsets, kinds and flags, and little data."""
    go = [FLAGS, option(7, info_request())]
    chunks = [FLAGS, option(8), option(7, info_request())]
    for begin, kind, length in itertools.product((go, chunks), range(9), EDGES):
        yield [*begin, request(kind, 0, length), b"d" * 600]
        yield [*begin, request(kind, (64 << 30) - 512, length)]
        yield [*begin, request(kind, 2**64 - 512, length, flags=0xFFFF)]
    for value in EDGES:
        yield [*go, request(value & 0xFFFF), request(1, value * 2**31, 512), HELD]
        yield [*go, struct.pack(">I", value), b"junk" * 10]


def other_beginnings() -> Iterator[list[bytes]]:
    for value in EDGES:
        yield [struct.pack(">I", value), option(3)]
    yield [b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"]
    yield [FLAGS, b"\0" * 400]
    yield [FLAGS, option(2), option(3)]
    yield [FLAGS, struct.pack(">QII", 0, 3, 0)]


def sessions() -> list[list[bytes]]:
    """Return `SESSIONS` sessions: each edge case once, the others mixed at random."""
    each = [*long_options(), *odd_requests(), *other_beginnings()]
    rng = random.Random(SEED)
    mixed = []
    while len(each) + len(mixed) < SESSIONS:
        picked = [part for _ in range(3) for part in rng.choice(each)[1:]]
        rng.shuffle(picked)
        cut = rng.randrange(1, len(picked[-1]) + 1)
        mixed.append([FLAGS, *picked[:-1], picked[-1][:cut]])
    return each + mixed


def play(path: Path, parts: list[bytes]) -> None:
    """Send a session in pieces of any length, and wait until the server has closed it."""
    with Client(path) as client:
        try:
            for part in parts:
                client.send(part)
            client.socket.shutdown(socket.SHUT_WR)
        except (BrokenPipeError, ConnectionResetError):
            return  # it was enough for the server before
        client.receive_until_closed()


def test_malformed_sessions_harm_no_other_client(server: tuple[Path, int]) -> None:
    path, process_id = server
    malformed = sessions()
    assert len(malformed) >= SESSIONS
    with Client(path) as witness:
        witness.go()
        assert witness.write(WITNESS_OFFSET, HELD) == 0
        before = 0
        for number, parts in enumerate(malformed):
            play(path, parts)
            if number % 50 == 0:
                assert witness.read(WITNESS_OFFSET, 4096) == HELD, (
                    f"UFLIP_SEED={SEED}, session {number}"
                )
            if number == SESSIONS // 5:
                before = resident_kib(process_id)
        assert witness.do(nbd.FLUSH) == 0
    assert resident_kib(process_id) <= before * 1.05, "memory grows"


def test_connections_leak_no_memory(server: tuple[Path, int]) -> None:
    path, process_id = server
    before = 0
    for number in range(CYCLES):
        with Client(path) as client:
            if number % 3 == 1:
                client.go()
            elif number % 3 == 2:
                client.go(structured=True)
                client.send(request(nbd.READ, 0, 512))
        if number == CYCLES // 10:
            before = resident_kib(process_id)
    assert resident_kib(process_id) <= before * 1.05, "memory grows"


def test_idle_connections_block_no_client(server: tuple[Path, int]) -> None:
    path, _ = server
    idle = [Client(path) for _ in range(IDLE)]
    try:
        with Client(path) as client:
            client.go()
            for at in range(0, 1 << 20, 65536):
                assert client.write(at, HELD) == 0
                assert client.read(at, 4096) == HELD
        assert idle[-1].socket.fileno() > 0
    finally:
        for client in idle:
            client.socket.close()


def test_client_that_reads_no_replies_is_throttled(
    server: tuple[Path, int],
) -> None:
    """A client requests reads of 32 MiB and receives nothing: memory stays within its limit."""
    path, process_id = server
    with Client(path) as greedy, Client(path) as other:
        greedy.go()
        other.go()
        greedy.socket.setblocking(False)
        requests = request(nbd.READ, 0, 32 << 20) * 2000
        while requests:
            try:
                requests = requests[greedy.socket.send(requests) :]
            except BlockingIOError:
                break
        for _ in range(20):
            assert other.write(0, HELD) == 0
            assert other.read(0, 4096) == HELD
        assert resident_kib(process_id) < 600 << 10
