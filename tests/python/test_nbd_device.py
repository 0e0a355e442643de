"""Is an NBD export a device like others, written to only where it was named twice?"""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import uflip
from nbd import served, serving

import uflip as package
from uflip.errors import DeviceError, UsageError

# Between two requests of a client a device is idle, if only for the way through the socket.
DEVICE = "sim:demo?blocks_per_die=64&idle_free_blocks=0"
URL = "nbd:unix:s"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_is_known_of_an_export_is_what_its_server_says(here: Path) -> None:
    with serving("null", DEVICE):
        first = json.loads(uflip("info", URL, "--json").out)
        other = json.loads(uflip("info", f"{URL}:exportname={DEVICE[4:]}", "--json").out)
        unknown = uflip("info", f"{URL}:exportname=nobody")
    assert (first["kind"], first["capacity_bytes"], first["sector_bytes"]) == ("nbd", 64 << 30, 512)
    assert other["capacity_bytes"] == package.open_device(DEVICE).info.capacity_bytes
    assert unknown.code == 4
    assert "no export of this name" in unknown.err


def test_an_export_is_written_only_when_it_is_named_once_more(here: Path) -> None:
    write = ("pattern", URL, "--pattern", "SW", "--io-count", "16", "-q")
    with serving("null") as process:
        for refused in ((), ("--destroy", "nbd:unix:t"), ("--destroy", "s")):
            outcome = uflip(*write, *refused)
            assert outcome.code == 3, outcome
            assert "--destroy nbd:unix:s" in outcome.err
        assert uflip("pattern", URL, "--pattern", "SR", "--io-count", "16", "-q").code == 0
        assert uflip(*write, "--destroy", URL).code == 0
        export = served(process)["exports"][0]
    assert (export["reads"], export["writes"], export["flushes"]) == (16, 16, 0)


@pytest.mark.parametrize(("durability", "flushes"), [("cached", 0), ("fua", 0), ("flush:4", 4)])
def test_durability_is_asked_of_the_server(here: Path, durability: str, flushes: int) -> None:
    with serving("null") as process:
        options = ("--destroy", URL, "--durability", durability, "-q")
        outcome = uflip("pattern", URL, "--pattern", "RW", "--io-count", "16", *options)
        assert outcome.code == 0, outcome.err
        export = served(process)["exports"][0]
    assert (export["writes"], export["flushes"]) == (16, flushes)


def test_a_served_device_takes_the_time_that_it_takes_in_virtual_time(here: Path) -> None:
    options = ("--pattern", "SR", "--io-size", "32KiB", "--io-count", "64", "--json")
    with serving(DEVICE) as process:
        over_nbd = json.loads(uflip("pattern", URL, *options).out)["statistics"]
        export = served(process)["exports"][0]
    virtual = json.loads(uflip("pattern", DEVICE, *options).out)["statistics"]
    assert abs(export["simulated"]["mean_ns"] - virtual["mean_ns"]) < 0.02 * virtual["mean_ns"]
    # Never sooner: the way through the socket comes on top.
    assert over_nbd["mean_ns"] > export["simulated"]["mean_ns"]


def test_a_benchmark_runs_on_an_export_from_several_processes(here: Path) -> None:
    with serving("null", "--speed", "0"):
        run = ("run", URL, "--scale", "quick", "--only", "parallelism,order", "--state", "as-is")
        outcome = uflip(*run, "--pause", "0s", "--destroy", URL, "--out", "r", "-q")
        assert outcome.code == 0, outcome.err
    assert uflip("verify", "r").code == 0
    assert json.loads(uflip("show", "r", "--json").out)["device"]["kind"] == "nbd"


def test_a_server_that_is_gone_is_an_error(here: Path) -> None:
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
def nbdkit(*arguments: str) -> Iterator[None]:
    """Let a server of others serve at the socket."""
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


def test_a_server_of_others_is_measured_too(here: Path) -> None:
    with nbdkit("memory", "64M"):
        outcome = uflip("pattern", URL, "--pattern", "RW", "--io-count", "64", "--destroy", URL,
                        "--durability", "fua", "--json")  # fmt: skip
        assert outcome.code == 0, outcome.err
        assert json.loads(outcome.out)["device"]["capacity_bytes"] == 64 << 20


def test_a_server_without_flush_is_never_asked_for_one(here: Path) -> None:
    """The protocol forbids it; what asks for more than it can is refused before the first write."""
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
