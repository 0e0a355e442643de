"""Does a server keep its limits and answer every client, whatever others or the system do?"""

import resource
import select
import socket
import struct
import time
from contextlib import ExitStack
from pathlib import Path

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
    request,
    serving,
    stop_and_report,
)

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
