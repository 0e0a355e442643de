"""Overhead of serving a device: rates of `uflip serve null` and nbdkit's memory plugin, in turn.

Server and client run where the scheduler puts them, then on one processor, then on two: the rate of
one request at a time depends mostly on the wake-up of a processor, which is a property of the
machine and not of the server. Values are medians of the rounds, ratios those of the pairs.

The accuracy of time: the difference between a client's median and the sum of the simulated device
and the transport through the socket, and the lag of the server. If permitted, this is measured with
real-time priority, server and client on one processor: a wake-up of another one takes longer than
all the rest.
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
# Placement: its description, and the prefixes of the commands of the server and the client.
Placement = tuple[str, tuple[str, ...], tuple[str, ...]]
ROUNDS = 3
SECONDS = 2
# Answers in some 200 us, and does nothing between two requests.
SIMULATED = "sim:demo?blocks_per_die=64&idle_free_blocks=0"


@contextmanager
def run_server(path: Path, *command: str) -> Iterator[subprocess.Popen[str]]:
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
    """Run fio for a while; return its measurements."""
    words = f"fio --name=x --ioengine=nbd --rw={pattern} --bs={size} --iodepth={depth} --size=256m"
    timed = f"--time_based --runtime={SECONDS} --output-format=json --output={path}.json"
    command = [*first, *words.split(), *timed.split(), f"--uri=nbd+unix:///?socket={path}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    job = json.loads(Path(f"{path}.json").read_text())["jobs"][0]
    measured: dict[str, Any] = job["read" if "read" in pattern else "write"]
    return measured


def serving_rows() -> list[dict[str, Any]]:
    """Return rates beside nbdkit's, and the added time; no rows without fio and nbdkit."""
    if shutil.which("fio") is None or shutil.which("nbdkit") is None:
        return []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s"
        memory = ("nbdkit", "--foreground", "--unix", str(path), "memory", "1G")
        rows = [_rates(path, memory, job, placement) for placement in _placements() for job in JOBS]
        return [*rows, *_added_time(path)]


def _rates(
    path: Path, memory: tuple[str, ...], job: tuple[str, str, str, int, str], placement: Placement
) -> dict[str, Any]:
    name, pattern, size, depth, target = job
    where, server, client = placement
    megabytes = size == "32k"

    def rate(command: tuple[str, ...]) -> float:
        with run_server(path, *server, *command):
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


def _placements() -> Iterator[Placement]:
    """Yield the placements of server and client."""
    yield "as the scheduler has it", (), ()
    first, *_, last = sorted(os.sched_getaffinity(0)) * 2
    one, other = (("taskset", "-c", str(number)) for number in (first, last))
    yield "on one processor", other, other
    if first != last:
        yield "on two processors", one, other


def _real_time_prefix() -> tuple[str, ...]:
    """Return a command prefix for real-time priority on one processor; () if not permitted."""
    probe = subprocess.run(["chrt", "-f", "20", "true"], check=False, capture_output=True)
    if probe.returncode != 0:
        return ()
    return ("chrt", "-f", "20", "taskset", "-c", str(max(os.sched_getaffinity(0))))


def _added_time(path: Path) -> Iterator[dict[str, Any]]:
    """Compare a client's median with that of the device, and of a device without delay [us]."""
    first = _real_time_prefix()
    where = "one processor, real-time priority" if first else "as the scheduler has it"
    with run_server(path, *first, *ours(path)):
        transport = _median_us(fio(path, "randread", "32k", 1, first))
    with run_server(path, *first, *ours(path, SIMULATED)) as process:
        client = _median_us(fio(path, "randread", "32k", 1, first))
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate()
    export = json.loads(out)["exports"][0]
    device = export["simulated"]["p50_ns"] / 1e3
    beyond = "a client's median beyond device and transport"
    lag = export["lag"]
    for name, value, target in (
        (beyond, client - device - transport, "within 20"),
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
