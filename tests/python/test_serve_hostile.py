"""Does a server survive its clients: malformed sessions, floods of connections, idle sockets?

Each malformed session follows the protocol with one fault or several, at the edges of every length;
meanwhile another client must read its data unchanged.
"""

import itertools
import os
import random
import resource
import select
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import nbd
import pytest
from nbd import (
    FUA,
    NO_HOLE,
    PATIENCE_S,
    READ,
    TRIM,
    ZEROES,
    Client,
    accepts_connections,
    info_request,
    option,
    request,
    serving,
    stop_and_report,
)

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


# Does a server keep its limits and answer every client, whatever others or the system do?


MIB = 1 << 20
SMALL = "sim:demo?blocks_per_die=64"


def resident_bytes(process: int) -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS"))


def is_readable(client: Client) -> bool:
    return bool(select.select([client.socket], [], [], 0)[0])


@pytest.mark.parametrize("socket_path", ["s", "t"], ids=["clients", "statistics"])
def test_server_accepts_again_when_descriptors_are_free(workdir: Path, socket_path: str) -> None:
    """No client is connected meanwhile that could wake it by leaving."""
    with serving("null", "--stats", "t") as process:
        time.sleep(0.2)  # the probing client is gone by then
        used = {int(path.name) for path in Path(f"/proc/{process.pid}/fd").iterdir()}
        free = next(number for number in range(1000) if number not in used)
        before = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (free, before[1]))
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(0.3)
            client.connect(socket_path)
            with pytest.raises(TimeoutError):
                client.recv(8)
            resource.prlimit(process.pid, resource.RLIMIT_NOFILE, before)
            client.settimeout(PATIENCE_S)
            assert client.recv(8), "the one that waited is let in"
        assert accepts_connections("s")


def test_unread_replies_share_a_memory_limit(workdir: Path) -> None:
    """24 clients request 64 MiB each, 1.5 GiB in total; the server buffers at most a quarter."""
    with serving("null", "--speed", "0") as process, ExitStack() as stack:
        greedy = [stack.enter_context(Client("s")) for _ in range(24)]
        before = resident_bytes(process.pid)
        for client in greedy:
            client.go()
            client.send(*(request(READ, 0, 32 * MIB, cookie=each) for each in range(2)))
        with Client("s") as modest:
            modest.go()
            for _ in range(50):  # by then all requests have arrived
                assert modest.read(4096, 65536) == bytes(65536)
            growth = resident_bytes(process.pid) - before
        assert growth < 400 * MIB, f"{growth >> 20} MiB"
        # A waiting client gets its whole reply once others have read theirs or left.
        last = greedy.pop()
        for client in greedy:
            client.socket.close()
        for cookie in range(2):
            assert last.reply(cookie) == 0
            assert last.receive(32 * MIB) == bytes(32 * MIB)


@pytest.mark.parametrize("flags", [0, NO_HOLE], ids=["hole", "no hole"])
def test_long_request_does_not_delay_others(workdir: Path, flags: int) -> None:
    """The answer to a short request that comes later comes first."""
    with serving("sim:demo?blocks_per_die=64", "--speed", "0") as process:
        with Client("s") as patient, Client("s") as other:
            size, _ = patient.go()
            other.go()
            long = size - size % MIB
            patient.send(*(request(ZEROES, 0, long, flags=flags, cookie=n) for n in range(40)))
            for _ in range(20):
                assert other.read(0, 4096) == bytes(4096)
            assert not is_readable(patient) or patient.reply(0) == 0
            assert not is_readable(patient), "40 long requests take longer than 20 short ones"
        # Its client has left: the server drops the remaining requests.
        began = time.monotonic()
        assert accepts_connections("s")
        assert process.poll() is None
        assert time.monotonic() - began < PATIENCE_S


def test_stepwise_zeroing_is_exact(workdir: Path) -> None:
    """Compare with bytes in memory, for ranges that begin and end next to each step."""
    size = 24 * MIB
    with serving(SMALL, "--speed", "0", "--data", "disk") as process, Client("s") as client:
        client.go()
        model = bytearray(size)

        def fill() -> None:
            for at in range(0, size, 8 * MIB):
                piece = struct.pack(">Q", at + 1) * MIB
                assert client.write(at, piece) == 0
                model[at : at + 8 * MIB] = piece

        for command, offset, length, flags in (
            (ZEROES, 512, 9 * MIB, 0),
            (ZEROES, 4 * MIB - 512, 12 * MIB + 1024, NO_HOLE | FUA),
            (ZEROES, MIB, 4 * MIB, FUA),
            (TRIM, 3 * MIB + 4096, 17 * MIB + 512, FUA),
            (TRIM, 8 * MIB, 4 * MIB, 0),
        ):
            fill()
            assert client.do(command, offset, length, flags) == 0
            model[offset : offset + length] = bytes(length)
            assert client.read(0, size) == bytes(model), (command, offset, length)
        client.socket.close()
        (export,) = stop_and_report(process)["exports"]
        assert (export["failed"], export["bytes_zeroed"]) == (0, 25 * MIB + 1024)
