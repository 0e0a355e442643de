"""Does an NBD export work like other devices, with writes only after confirmation?"""

import itertools
import json
import shutil
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import nbd
import pytest
from command_line import uflip
from nbd import serving, stop_and_report

import uflip as package
from uflip.errors import DeviceError, UsageError

# Between two requests of a client a device is idle, if only for the way through the socket.
DEVICE = "sim:demo?blocks_per_die=64&idle_free_blocks=0"
URL = "nbd:unix:s"


def test_export_info_matches_server(workdir: Path) -> None:
    with serving("null", DEVICE):
        first = json.loads(uflip("info", URL, "--json").out)
        other = json.loads(uflip("info", f"{URL}:exportname={DEVICE[4:]}", "--json").out)
        unknown = uflip("info", f"{URL}:exportname=nobody")
    assert (first["kind"], first["capacity_bytes"], first["sector_bytes"]) == ("nbd", 64 << 30, 512)
    assert other["capacity_bytes"] == package.open_device(DEVICE).info.capacity_bytes
    assert unknown.code == 4
    assert "no export of this name" in unknown.err


def test_export_is_written_only_with_destroy(workdir: Path) -> None:
    write = ("pattern", URL, "--pattern", "SW", "--io-count", "16", "-q")
    with serving("null") as process:
        for refused in ((), ("--destroy", "nbd:unix:t"), ("--destroy", "s")):
            outcome = uflip(*write, *refused)
            assert outcome.code == 3, outcome
            assert "--destroy nbd:unix:s" in outcome.err
        assert uflip("pattern", URL, "--pattern", "SR", "--io-count", "16", "-q").code == 0
        assert uflip(*write, "--destroy", URL).code == 0
        export = stop_and_report(process)["exports"][0]
    assert (export["reads"], export["writes"], export["flushes"]) == (16, 16, 0)


@pytest.mark.parametrize(("durability", "flushes"), [("cached", 0), ("fua", 0), ("flush:4", 4)])
def test_durability_is_passed_to_server(workdir: Path, durability: str, flushes: int) -> None:
    with serving("null") as process:
        options = ("--destroy", URL, "--durability", durability, "-q")
        outcome = uflip("pattern", URL, "--pattern", "RW", "--io-count", "16", *options)
        assert outcome.code == 0, outcome.err
        export = stop_and_report(process)["exports"][0]
    assert (export["writes"], export["flushes"]) == (16, flushes)


def test_served_device_takes_its_virtual_time(workdir: Path) -> None:
    options = ("--pattern", "SR", "--io-size", "32KiB", "--io-count", "64", "--json")
    with serving(DEVICE) as process:
        over_nbd = json.loads(uflip("pattern", URL, *options).out)["statistics"]
        export = stop_and_report(process)["exports"][0]
    virtual = json.loads(uflip("pattern", DEVICE, *options).out)["statistics"]
    assert abs(export["simulated"]["mean_ns"] - virtual["mean_ns"]) < 0.02 * virtual["mean_ns"]
    # Never sooner: the way through the socket comes on top.
    assert over_nbd["mean_ns"] > export["simulated"]["mean_ns"]


def test_server_has_as_many_requests_as_queue_is_deep(workdir: Path) -> None:
    with serving(DEVICE, "--speed", "10", "--record", "did.csv") as process:
        options = ("--pattern", "RR", "--io-count", "200", "--queue-depth", "6", "-q")
        outcome = uflip("pattern", URL, *options)
        assert outcome.code == 0, outcome.err
        stop_and_report(process)
    rows = [row.split(",") for row in Path("did.csv").read_text().splitlines()[1:]]
    # A tick of the format is 100 ns: when each request arrived, and how long it took.
    spans = [(int(row[0]), int(row[0]) + int(row[6])) for row in rows]
    assert len(spans) == 200
    under_way = [sum(begin <= at < end for begin, end in spans) for at, _ in spans]
    assert 3 <= max(under_way) <= 6


def test_content_survives_a_queue(workdir: Path) -> None:
    with serving("null"), package.open_device(URL, destroy=URL) as device:
        pattern = package.basic("write", "random", io_size=8192, io_count=300, queue_depth=32)
        run = device.run(pattern, verify=True)
    assert run.verified_sectors > 0


def test_benchmark_runs_on_export_with_parallel_processes(workdir: Path) -> None:
    with serving("null", "--speed", "0"):
        run = ("run", URL, "--scale", "quick", "--only", "parallelism,order", "--state", "as-is")
        outcome = uflip(*run, "--pause", "0s", "--destroy", URL, "--out", "r", "-q")
        assert outcome.code == 0, outcome.err
    assert uflip("verify", "r").code == 0
    assert json.loads(uflip("show", "r", "--json").out)["device"]["kind"] == "nbd"


def test_vanished_server_is_a_device_error(workdir: Path) -> None:
    outcome = uflip("info", URL)
    assert outcome.code == 4
    assert "cannot be used" in outcome.err
    with serving("null") as process:
        device = package.open_device(URL, writable=False)
        process.kill()
        process.wait()
        with pytest.raises(DeviceError, match="failed"):
            device.run(package.basic(mode="read", location="random", io_count=4))


@contextmanager
def fake_server(size: int, answers: int = 1 << 30, drip_s: float | None = None) -> Iterator[None]:
    """Serve zeroes of any size; after `answers` answers none comes, or one byte now and then."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s")
        listener.listen()
        threading.Thread(
            target=accept_clients, args=(listener, size, answers, drip_s), daemon=True
        ).start()
        try:
            yield
        finally:
            Path("s").unlink()


def accept_clients(listener: socket.socket, size: int, answers: int, drip_s: float | None) -> None:
    with suppress(OSError, EOFError, struct.error):
        while True:
            client, _ = listener.accept()
            threading.Thread(
                target=serve_client, args=(client, size, answers, drip_s), daemon=True
            ).start()


def serve_client(client: socket.socket, size: int, answers: int, drip_s: float | None) -> None:
    def take(length: int) -> bytes:
        received = b""
        while len(received) < length:
            more = client.recv(length - len(received))
            if not more:
                raise EOFError
            received += more
        return received

    def option_reply(option: int, kind: int, data: bytes = b"") -> bytes:
        return struct.pack(">QIII", 0x3E889045565A9, option, kind, len(data)) + data

    with client, suppress(OSError, EOFError):
        client.sendall(struct.pack(">QQH", 0x4E42444D41474943, nbd.OPTION, 3))
        take(4)
        _, option, length = struct.unpack(">QII", take(16))
        take(length)
        export = option_reply(option, 3, struct.pack(">HQH", 0, size, 0b101))
        client.sendall(export + option_reply(option, 1))
        for answered in itertools.count():
            _, _, command, cookie, _, length = struct.unpack(">IHHQQI", take(28))
            data = bytes(length) if command == nbd.READ else b""
            take(length if command == nbd.WRITE else 0)
            reply = struct.pack(">IIQ", nbd.SIMPLE, 0, cookie) + data
            if answered < answers:
                client.sendall(reply)
                continue
            for byte in reply:
                time.sleep(3600 if drip_s is None else drip_s)
                client.sendall(bytes([byte]))


@pytest.mark.parametrize("size", [1 << 63, (1 << 64) - 512])
def test_impossible_export_size_is_a_device_error(workdir: Path, size: int) -> None:
    with fake_server(size):
        for verb in (("info",), ("pattern", "--pattern", "RR")):
            outcome = uflip(verb[0], URL, *verb[1:])
            assert outcome.code == 4, outcome
            assert f"{size} bytes" in outcome.err


@pytest.mark.parametrize("drip_s", [None, 0.02], ids=["silent", "dripping"])
@pytest.mark.parametrize("depth", [1, 4])
def test_silent_server_times_out(workdir: Path, drip_s: float | None, depth: int) -> None:
    with fake_server(64 << 20, answers=3, drip_s=drip_s):
        began = time.monotonic()
        outcome = uflip("pattern", URL, "--pattern", "RR", "--io-count", "20",
                        "--io-timeout", "200ms", "--queue-depth", str(depth))  # fmt: skip
        assert outcome.code == 4, outcome
        assert "no answer for 0.2 s" in outcome.err
        assert time.monotonic() - began < nbd.PATIENCE_S, "and not after the minute of a default"
        with package.open_device(URL, writable=False, io_timeout_ns=200_000_000) as device:
            with pytest.raises(DeviceError, match="no answer"):
                device.run(package.basic(mode="read", location="random", io_count=20))
            with pytest.raises(DeviceError):  # a late reply does not answer the next request
                device.run(package.basic(mode="read", location="random", io_count=1))


@contextmanager
def nbdkit(*arguments: str) -> Iterator[None]:
    """Run a foreign NBD server at the socket."""
    if shutil.which("nbdkit") is None:
        pytest.skip("nbdkit is not installed")
    server = subprocess.Popen(["nbdkit", "--foreground", "--unix", "s", *arguments])
    try:
        while not Path("s").exists():
            assert server.poll() is None
            time.sleep(0.01)
        yield
    finally:
        server.terminate()
        server.wait()


def test_nbdkit_export_can_be_measured(workdir: Path) -> None:
    with nbdkit("memory", "64M"):
        outcome = uflip("pattern", URL, "--pattern", "RW", "--io-count", "64", "--destroy", URL,
                        "--durability", "fua", "--json")  # fmt: skip
        assert outcome.code == 0, outcome.err
        assert json.loads(outcome.out)["device"]["capacity_bytes"] == 64 << 20


def test_server_without_flush_is_never_flushed(workdir: Path) -> None:
    """The protocol forbids it; a request for durability is refused before the first write."""
    log, to = Path("log").resolve(), ("--destroy", URL, "-q")
    writes = ("can_write=exit 0", f"pwrite=echo $4 >> {log}; cat >/dev/null")
    with nbdkit("eval", "get_size=echo 1M", 'pread=head -c "$3" /dev/zero', *writes):
        pattern = ("pattern", URL, "--pattern", "RW", "--io-count", "8")
        for durability in ("fua", "flush:4"):
            refused = uflip(*pattern, "--durability", durability, *to)
            assert refused.code == 2, refused
            assert "does not make writes durable" in refused.err
            read = ("pattern", URL, "--pattern", "RR", "--io-count", "8", "-q")
            assert uflip(*read, "--durability", durability).code == 0
        assert not log.exists(), "nothing was written"
        assert uflip(*pattern, *to).code == 0
        assert uflip("prepare", URL, "--state", "sequential", *to).code == 0
        with package.open_device(URL, destroy=URL) as device:
            device.durability = "fua"
            with pytest.raises(UsageError, match="does not make writes durable"):
                device.run(package.basic("write", "random", io_count=4))
