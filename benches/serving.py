"""What serving a device costs: rates of `uflip serve null` beside nbdkit's memory plugin, in turn.

Server and client are where the scheduler puts them, and then on one processor and on two: what is
measured of one request at a time is above all whether a processor must be woken for it, which the
machine decides, not the server. Values are medians of the rounds, ratios those of the pairs.

And what it does to time: how far a client's median is from what the simulated device and the way
through the socket take together, and how late the server itself is. Where it may, that is measured
with real-time priority and server and client on one processor: waking another one takes longer
than all the rest, and that is the machine's.
"""

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# Name, fio's pattern, size of an I/O, queue depth, target.
JOBS = (
    ("4 KiB random reads, one at a time", "randread", "4k", 1, "> 30,000"),
    ("4 KiB random writes, 32 at a time", "randwrite", "4k", 32, "> 50,000"),
    ("32 KiB writes, 4 at a time", "write", "32k", 4, "> 700"),
)
# Where: in words, and what goes before the command of the server and of the client.
Place = tuple[str, tuple[str, ...], tuple[str, ...]]
ROUNDS = 3
SECONDS = 2
# Answers in some 200 us, and does nothing between two requests.
SIMULATED = "sim:demo?blocks_per_die=64&idle_free_blocks=0"


@contextmanager
def served(path: Path, *command: str) -> Iterator[subprocess.Popen[str]]:
    """Run a server until the block is left."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    while not path.exists():
        time.sleep(0.01)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()
        path.unlink(missing_ok=True)


def ours(path: Path, device: str = "null") -> tuple[str, ...]:
    """Return the command that serves a device of ours."""
    return (sys.executable, "-m", "uflip", "serve", device, "--socket", str(path), "--json")


def fio(
    path: Path, pattern: str, size: str, depth: int, first: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Let fio work for a while; return what it measured."""
    words = f"fio --name=x --ioengine=nbd --rw={pattern} --bs={size} --iodepth={depth} --size=256m"
    timed = f"--time_based --runtime={SECONDS} --output-format=json --output={path}.json"
    command = [*first, *words.split(), *timed.split(), f"--uri=nbd+unix:///?socket={path}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    job = json.loads(Path(f"{path}.json").read_text())["jobs"][0]
    measured: dict[str, Any] = job["read" if "read" in pattern else "write"]
    return measured


def serving_rows() -> list[dict[str, Any]]:
    """Rates beside nbdkit's, and the time that serving adds; nothing where a tool is missing."""
    if shutil.which("fio") is None or shutil.which("nbdkit") is None:
        return []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s"
        memory = ("nbdkit", "--foreground", "--unix", str(path), "memory", "1G")
        rows = [_rates(path, memory, job, place) for place in _places() for job in JOBS]
        return [*rows, *_added(path)]


def _rates(
    path: Path, memory: tuple[str, ...], job: tuple[str, str, str, int, str], place: Place
) -> dict[str, Any]:
    name, pattern, size, depth, target = job
    where, server, client = place
    megabytes = size == "32k"

    def rate(command: tuple[str, ...]) -> float:
        with served(path, *server, *command):
            done = fio(path, pattern, size, depth, client)
        return float(done["bw_bytes"]) / 1e6 if megabytes else float(done["iops"])

    pairs = [(rate(ours(path)), rate(memory)) for _ in range(ROUNDS)]
    value, reference = (statistics.median(column) for column in zip(*pairs, strict=True))
    return {
        "name": f"serving: {name}, {where}",
        "value": value,
        "unit": "MB/s" if megabytes else "IOPS",
        "reference": reference,
        "ratio": statistics.median(our / their for our, their in pairs),
        "target": f"{target} (nbdkit)",
    }


def _places() -> Iterator[Place]:
    """Yield where server and client run."""
    yield "as the scheduler has it", (), ()
    first, *_, last = sorted(os.sched_getaffinity(0)) * 2
    one, other = (("taskset", "-c", str(number)) for number in (first, last))
    yield "on one processor", other, other
    if first != last:
        yield "on two processors", one, other


def _undisturbed() -> tuple[str, ...]:
    """Return what goes before a command, so that it has a processor when it wants it."""
    told = subprocess.run(["chrt", "-f", "20", "true"], check=False, capture_output=True)
    if told.returncode != 0:
        return ()
    return ("chrt", "-f", "20", "taskset", "-c", str(max(os.sched_getaffinity(0))))


def _added(path: Path) -> Iterator[dict[str, Any]]:
    """Compare a client's median with the device's and that of a device of no time [us]."""
    first = _undisturbed()
    where = "one processor, real-time priority" if first else "as the scheduler has it"
    with served(path, *first, *ours(path)):
        transport = _median_us(fio(path, "randread", "32k", 1, first))
    with served(path, *first, *ours(path, SIMULATED)) as process:
        seen = _median_us(fio(path, "randread", "32k", 1, first))
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate()
    export = json.loads(out)["exports"][0]
    device = export["simulated"]["p50_ns"] / 1e3
    beyond = "a client's median beyond device and transport"
    lag = export["lag"]
    for name, value, target in (
        (beyond, seen - device - transport, "within 20"),
        ("a server's median lag", lag["p50_ns"] / 1e3, "< 20"),
        ("a server's mean lag", lag["mean_ns"] / 1e3, "< 20"),
    ):
        yield {
            "name": f"serving: {name}, {where}",
            "value": value,
            "unit": "us",
            "reference": device,
            "ratio": value / device,
            "target": target,
        }


def _median_us(measured: dict[str, Any]) -> float:
    return float(measured["clat_ns"]["percentile"]["50.000000"]) / 1e3


if __name__ == "__main__":
    for line in serving_rows():
        print(line)
