"""Does a served device behave as a block device, to a client written from the protocol's text?

Response times are compared only with those that the simulated device reports.
"""

import json
import random
import signal
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import start, uflip
from fuse_file import wait_until
from nbd import (
    ACK,
    EINVAL,
    ENOSPC,
    EPERM,
    FLUSH,
    FUA,
    INFO,
    INVALID,
    LIST,
    NO_HOLE,
    SERVER,
    STRUCTURED_REPLY,
    TRIM,
    UNKNOWN,
    UNSUPPORTED,
    ZEROES,
    Client,
    info_request,
    serving,
    stop_and_report,
)

SMALL = "sim:demo?blocks_per_die=64"
KIB, MIB = 1 << 10, 1 << 20


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A server of a device that takes no time, and of a simulated one that keeps no time."""
    path = tmp_path_factory.mktemp("serve") / "s"
    with serving("null", SMALL, "--speed", "0", path=path):
        yield path


@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize("name", [b"", SMALL.removeprefix("sim:").encode()])
def test_written_data_is_read_back(quick: Path, name: bytes, structured: bool) -> None:
    rng = random.Random(7)
    with Client(quick) as client:
        size, _ = client.go(name, structured=structured)
        offsets = [0, size - 4096, *(rng.randrange(size // 512 - 256) * 512 for _ in range(20))]
        for at in offsets:
            data = rng.randbytes(min(size - at, 512 * rng.randint(1, 256)))
            assert client.write(at, data) == 0
            assert client.read(at, len(data)) == data
            assert client.do(TRIM, at, len(data)) == 0
            assert client.read(at, len(data)) == bytes(len(data))


def test_zeroes_flushes_and_fua_work(quick: Path) -> None:
    with Client(quick) as client:
        client.go()
        assert client.write(MIB, b"\1" * 4096, flags=FUA) == 0
        assert client.do(ZEROES, MIB + 512, 1024, NO_HOLE) == 0
        assert client.do(ZEROES, MIB + 2048, 512) == 0
        assert client.do(FLUSH) == 0
        ones = [b"\1" * 512, bytes(1024), b"\1" * 512, bytes(512), b"\1" * 1536]
        assert client.read(MIB, 4096) == b"".join(ones)


def test_connections_share_one_device(quick: Path) -> None:
    with Client(quick) as one, Client(quick) as other:
        one.go()
        other.go(structured=True)
        assert one.write(5 * MIB, b"\5" * 4096) == 0
        assert other.do(FLUSH) == 0
        assert other.read(5 * MIB, 4096) == b"\5" * 4096


REFUSED = [
    ("no whole sectors", 0, 1, 512, EINVAL),
    ("no whole sectors", 0, 0, 513, EINVAL),
    ("nothing", 0, 0, 0, EINVAL),
    ("beyond the end", 0, 64 << 30, 512, EINVAL),
    ("the sum overflows", 0, 2**64 - 512, 1024, EINVAL),
    ("too long", 0, 0, (32 << 20) + 512, EINVAL),
    ("beyond the end", TRIM, 64 << 30, 512, ENOSPC),
    ("beyond the end", ZEROES, 64 << 30, 512, ENOSPC),
    ("a place", FLUSH, 512, 0, EINVAL),
    ("a length", FLUSH, 0, 512, EINVAL),
    ("an unknown command", 5, 0, 512, EINVAL),
    ("an unknown command", 65535, 0, 0, EINVAL),
]


@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize("refused", REFUSED)
def test_invalid_request_is_an_error_and_session_continues(
    quick: Path, refused: tuple[str, int, int, int, int], structured: bool
) -> None:
    why, command, offset, length, error = refused
    with Client(quick) as client:
        client.go(structured=structured)
        if command == 0:
            assert client.read(offset, length) == error, why
        else:
            assert client.do(command, offset, length) == error, why
        assert client.write((64 << 30) - 512, bytes(1024)) == ENOSPC
        assert client.write(0, b"\2" * 512) == 0
        assert client.read(0, 512) == b"\2" * 512


def test_options_are_answered(quick: Path) -> None:
    with Client(quick) as client:
        client.send(b"\0\0\0\3")
        names = [answer[1][4:].decode() for answer in client.negotiate(LIST)[:-1]]
        assert names[0].startswith("null")
        assert len(names) == 2
        assert client.negotiate(LIST, b"?") == [(INVALID, b"")]
        assert client.negotiate(STRUCTURED_REPLY, b"?") == [(INVALID, b"")]
        assert client.negotiate(99, b"what") == [(UNSUPPORTED, b"")]
        assert client.negotiate(INFO, info_request(b"nobody")) == [(UNKNOWN, b"")]
        answers = client.negotiate(INFO, info_request(b"null", (0, 1, 2, 3)))
        assert answers[-1] == (ACK, b"")
        assert answers[1][1] == b"\0\1null"
        assert answers[3][1] == b"\0\3" + b"".join(n.to_bytes(4) for n in (512, 4096, 32 << 20))
        assert client.negotiate(LIST)[0][0] == SERVER


def test_read_only_export_rejects_writes(workdir: Path) -> None:
    with serving("null", "--read-only"), Client("s") as client:
        _, flags = client.go()
        assert flags & 2
        assert client.write(0, bytes(512)) == EPERM
        assert client.do(TRIM, 0, 512) == EPERM
        assert client.do(ZEROES, 0, 512) == EPERM
        assert client.read(0, 512) == bytes(512)


def test_socket_is_private_and_removed_at_exit(workdir: Path) -> None:
    with serving("null") as process:
        assert stat.S_IMODE(Path("s").stat().st_mode) == 0o600
        document = stop_and_report(process)
        assert document["clients"]["now"] == 0
    assert not Path("s").exists()


def test_sigterm_stops_server_cleanly(workdir: Path) -> None:
    with serving("null") as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    assert not Path("s").exists()


def test_existing_file_at_socket_path_is_kept(workdir: Path) -> None:
    Path("thesis").write_text("three years of work")
    outcome = uflip("serve", "null", "--socket", "thesis")
    assert outcome.code == 3
    assert Path("thesis").read_text() == "three years of work"


def test_data_file_keeps_written_data(workdir: Path) -> None:
    with serving(SMALL, "--data", "disk"), Client("s") as client:
        size, _ = client.go()
        assert client.write(size - 512, b"\7" * 512, flags=FUA) == 0
        assert client.write(0, b"\6" * 512) == 0
        assert client.do(FLUSH) == 0
    assert Path("disk").stat().st_size == size
    assert Path("disk").stat().st_blocks < 100, "it is sparse"
    with serving(SMALL, "--data", "disk", "--read-only"), Client("s") as client:
        client.go()
        assert client.read(size - 512, 512) == b"\7" * 512
        assert client.read(0, 512) == b"\6" * 512


def test_data_file_of_wrong_size_is_refused(workdir: Path) -> None:
    Path("thesis").write_text("three years of work")
    outcome = uflip("serve", "null", "--socket", "s", "--data", "thesis")
    assert outcome.code == 3
    assert Path("thesis").read_text() == "three years of work"
    assert not Path("s").exists()


def test_response_times_match_simulated_device(workdir: Path) -> None:
    """The server reports the virtual time that the same I/Os take on the device."""
    # Between two requests of a client a device is idle, if only for the way through the socket.
    device = f"{SMALL}&idle_free_blocks=0"
    with serving(device) as process:
        with Client("s") as client:
            client.go()
            for number in range(64):
                assert client.read(number * 32 * KIB, 32 * KIB) == bytes(32 * KIB)
        export = stop_and_report(process)["exports"][0]
    outcome = uflip("pattern", device, "--pattern", "SR", "--io-size", "32KiB", "--io-count", "64",
                    "--json")  # fmt: skip
    mean = json.loads(outcome.out)["statistics"]["mean_ns"]
    assert export["reads"] == 64
    assert abs(export["simulated"]["mean_ns"] - mean) < 0.02 * mean
    # Never early, however late the host is.
    assert export["response_time"]["mean_ns"] >= export["simulated"]["mean_ns"]
    assert export["lag"]["count"] == 64


def test_flushes_and_fua_wait_for_flash(workdir: Path) -> None:
    """The write cache of the device is too slow to be emptied between two requests."""
    slower, program_ns, page = 500, 300_000, bytes(4 * KIB)
    device = f"{SMALL}&write_cache_bytes=262144&idle_free_blocks=0"
    with serving(device, "--speed", slower) as process:
        with Client("s") as client:
            client.go()
            began = time.monotonic_ns()
            for number in range(4):
                assert client.write(number * MIB, page) == 0
            assert client.do(FLUSH) == 0
            took = time.monotonic_ns() - began
        export = stop_and_report(process)["exports"][0]
    assert export["flushes"] == 1
    assert export["counters"]["pages_programmed"] == 4
    # A write is over before its page is on flash, and a flush is not: never early, however late.
    assert export["simulated"]["p50_ns"] < slower * program_ns <= took
    with serving(device, "--speed", slower) as process:
        with Client("s") as client:
            client.go()
            assert client.write(0, page, flags=FUA) == 0
            assert client.do(FLUSH) == 0, "for which nothing is left"
        simulated = stop_and_report(process)["exports"][0]["simulated"]
    assert simulated["max_ns"] >= slower * program_ns
    assert simulated["p50_ns"] == 0


def test_command_runs_against_served_device(workdir: Path) -> None:
    outcome = start("serve", "null", "--socket", "s", "--run", 'test -S s && echo "$UFLIP_URI"')
    out, err = outcome.communicate(timeout=60)
    assert (outcome.returncode, out) == (0, "nbd+unix:///?socket=s\n"), err
    outcome = start("serve", "null", "--socket", "s", "--json", "--run", "echo said")
    out, err = outcome.communicate(timeout=60)
    assert len(json.loads(out)["exports"]) == 1, "and nothing else is printed"
    assert "said\n" in err
    failed = uflip("serve", "null", "--socket", "s", "--run", "exit 3", "-q")
    assert failed.code == 4
    assert "exit code 3" in failed.err
    assert not Path("s").exists()


def read_statistics(socket_path: str) -> dict[str, Any]:
    """Return the statistics that a server reports on its status socket."""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(socket_path)
        text = b"".join(iter(lambda: asking.recv(1 << 16), b""))
    statistics: dict[str, Any] = json.loads(text)
    return statistics


def test_statistics_are_served_on_status_socket(workdir: Path) -> None:
    with serving("null", SMALL, "--stats", "stats"), Client("s") as client:
        client.go()
        assert client.write(0, bytes(8192)) == 0
        assert isinstance(client.read(0, 4096), bytes)
        statistics = read_statistics("stats")
    export = statistics["exports"][0]
    assert (export["reads"], export["writes"]) == (1, 1)
    assert (export["bytes_read"], export["bytes_written"]) == (4096, 8192)
    assert export["response_time"]["count"] == 2
    assert statistics["exports"][1]["counters"]["host_pages_written"] == 0
    assert statistics["clients"] == {"now": 1, "in_all": 2, "turned_away": 0}
    assert not Path("stats").exists()


def test_statistics_show_idle_collection(workdir: Path) -> None:
    """It collects while idle; the statistics show it without a further request.

    In real time it would be finished 50 ms after the last write, perhaps before the first look.
    """
    rng = random.Random(3)
    with serving(SMALL, "--speed", "30", "--stats", "stats") as process:
        with Client("s") as client:
            size, _ = client.go()
            for _ in range(50):
                at = rng.randrange(size // (32 * KIB)) * 32 * KIB
                assert client.write(at, bytes(32 * KIB)) == 0
            before = read_statistics("stats")["exports"][0]["counters"]["blocks_collected_idle"]
            assert wait_until(
                lambda: (
                    read_statistics("stats")["exports"][0]["counters"]["blocks_collected_idle"]
                    > before
                )
            )
        last = stop_and_report(process)["exports"][0]["counters"]
    assert last["blocks_collected_idle"] > before


def test_recording_lists_reads_and_writes(workdir: Path) -> None:
    with serving("null", "--record", "did.csv") as process:
        with Client("s") as client:
            client.go()
            assert client.write(4096, bytes(8192)) == 0
            assert client.read(1 << 20, 512) == bytes(512)
            assert client.do(FLUSH) == 0
            assert client.read(1, 1) == EINVAL
        stop_and_report(process)
    head, *lines = Path("did.csv").read_text().splitlines()
    assert head == "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime"
    fields = [line.split(",") for line in lines]
    assert [each[1:6] for each in fields] == [
        ["null", "0", "Write", "4096", "8192"],
        ["null", "0", "Read", str(1 << 20), "512"],
    ]
    assert int(fields[0][0]) <= int(fields[1][0])
    refused = uflip("serve", "null", "--socket", "s", "--record", "did.csv", "--run", "true")
    assert refused.code == 3, "a recording is not replaced"


def test_device_starts_in_state_and_is_saved(workdir: Path) -> None:
    empty = f"{SMALL}&state=empty"
    options = ("--speed", "0", "--state", "sequential", "--save", "after.snapshot")
    with serving(empty, *options) as process:
        with Client("s") as client:
            client.go()
            assert client.write(0, bytes(1 << 20)) == 0
        export = stop_and_report(process)["exports"][0]
    assert export["counters"]["host_pages_written"] >= 256
    assert export["counters"]["pages_read_to_modify"] == 0
    info = json.loads(uflip("info", "sim:after.snapshot", "--json").out)
    assert info["details"]["snapshot"]
