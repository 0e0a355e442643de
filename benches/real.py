"""Real I/O beside fio: the same file in memory, the same flags, in turn; an open loop in a stall.

The file is on tmpfs, so that only the two programs and the kernel take time. fio stores no single
response times here; uflip stores all of them. Many short rounds are compared pair by pair, and the
programs take turns in going first, so that other load of the machine affects both equally. The
ratio is the median of the rounds, with its interval of 95 % (order statistics, without assumptions
about the distribution). If permitted, both have real-time priority.
"""

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from uflip.device.opener import open_device
from uflip.spec import baseline, basic

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "python"))

SIZE = 256 << 20
ROUNDS = 5
# Pairs of rounds; rank of the ratios, from both ends, that bound the median with 95 %.
PAIRS, BOUND = 20, 5
SECONDS = 1
DEPTH = 32
SYNC_IOS, QUEUE_IOS = 500_000, 500_000
INTERVAL_NS, STALL_S = 5_000_000, 2.0
SHARED_MEMORY = Path("/dev/shm")


def fio(target: Path, *more: str) -> dict[str, Any]:
    """Let fio read at random for a while; return its measurements."""
    command = [
        "fio", "--name=x", f"--filename={target}", "--rw=randread", "--bs=4k", f"--size={SIZE}",
        "--norandommap", "--thread", "--lat_percentiles=1", "--time_based",
        f"--runtime={SECONDS}", "--output-format=json", *more,
    ]  # fmt: skip
    process = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    measured: dict[str, Any] = json.loads(process.stdout)["jobs"][0]["read"]
    return measured


def row(name: str, value: float, unit: str, reference: float, target: str) -> dict[str, Any]:
    """Return one line of the table."""
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "reference": reference,
        "ratio": value / reference,
        "target": target,
    }


def beside_fio() -> list[dict[str, Any]]:
    """Return the median of single reads and the rate of a queue, each beside fio's."""
    if shutil.which("fio") is None or not SHARED_MEMORY.is_dir():
        return []
    fixed = ("--registerfiles", "--fixedbufs")
    reads = baseline("RR", io_size=4096)
    pairs: dict[str, list[tuple[float, float]]] = {"median": [], "rate": []}
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as folder, real_time_priority():
        target = Path(folder) / "scratch.bin"
        with open_device(f"file:{target}", size=SIZE, buffered=True):
            pass

        def median() -> float:
            with open_device(f"file:{target}", buffered=True) as device:
                trace = device.run(reads.but(io_count=SYNC_IOS))
            return float(np.median(np.asarray(trace.column("response_time_ns"))))

        def rate() -> float:
            with open_device(f"file:{target}", buffered=True) as device:
                trace = device.run(reads.but(io_count=QUEUE_IOS, queue_depth=DEPTH))
            return len(trace) / trace.elapsed_ns() * 1e9

        def their_median() -> float:
            return float(fio(target, "--ioengine=psync")["lat_ns"]["percentile"]["50.000000"])

        def their_rate() -> float:
            return float(fio(target, "--ioengine=io_uring", f"--iodepth={DEPTH}", *fixed)["iops"])

        for number in range(PAIRS):
            for name, ours, theirs in (
                ("median", median, their_median),
                ("rate", rate, their_rate),
            ):
                if number % 2:
                    their, our = theirs(), ours()
                else:
                    our, their = ours(), theirs()
                pairs[name].append((our, their))
    return [
        compare("4 KiB read of a cached file, median", pairs["median"], "ns", "<= fio (psync)"),
        compare(f"the same, io_uring, {DEPTH} under way", pairs["rate"], "I/Os/s", ">= fio"),
    ]


@contextmanager
def real_time_priority() -> Iterator[None]:
    """Run this process and its children with real-time priority, if permitted."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))
    except PermissionError:
        yield
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def compare(name: str, pairs: list[tuple[float, float]], unit: str, target: str) -> dict[str, Any]:
    """Return a line with the median of the ratios of rounds, and its interval."""
    ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratios = sorted(our / their for our, their in pairs)
    low, high = ratios[BOUND], ratios[-1 - BOUND]
    line = row(f"{name} [{low:.3f}, {high:.3f}]", ours, unit, theirs, target)
    return line | {"ratio": statistics.median(ratios), "ratio_low": low, "ratio_high": high}


def null_queue() -> dict[str, Any]:
    """Return the I/Os per second of one core on a device without delay, with a queue."""
    device = open_device("null")
    spec = baseline("RR", io_size=4096, queue_depth=DEPTH)
    rates = []
    for _ in range(ROUNDS):
        trace = device.run(spec.but(io_count=QUEUE_IOS))
        rates.append(len(trace) / trace.elapsed_ns() * 1e9)
    name = f"null device, {DEPTH} under way"
    return row(name, statistics.median(rates), "I/Os/s", 1e6, ">= 1 M a core")


def stalled(depth: int) -> list[dict[str, Any]]:
    """Return the total wait of all arrivals in a stall of S, over S² / 2τ(1 − s/τ).

    At most `depth` I/Os are in flight. A server that takes s for each I/O serves the backlog while
    further I/Os arrive every τ; s is measured before, by a closed loop that keeps it busy.
    """
    from fuse_file import MISSING, fuse_file

    if MISSING or os.geteuid() != 0:
        return []
    reads = basic("read", "random", io_size=4096, queue_depth=depth)
    open_loop = reads.but(time="fixed", interval=INTERVAL_NS, io_count=800)
    stall_s: list[float] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        fuse_file(Path(folder), "memory", "16M") as (image, pid),
        open_device(f"file:{image}", destroy=str(image)) as device,
    ):
        busy = device.run(reads.but(io_count=4000))
        stopper = threading.Thread(target=stop, args=(pid, stall_s))
        stopper.start()
        trace = device.run(open_loop)
        stopper.join(timeout=30)
    share = busy.elapsed_ns() / len(busy) / INTERVAL_NS
    waited = np.asarray(trace.column("response_time_ns")) / 1e9
    ordinary = float(np.median(waited[:50]))
    late = float((waited - ordinary).clip(0).sum())
    expected = stall_s[0] ** 2 / (2 * INTERVAL_NS / 1e9) / (1 - share)
    name = f"open loop in a stall, {depth} under way, sum of waits"
    return [row(name, late, "s", expected, "1 ± 0.01")]


def stop(pid: int, stall_s: list[float]) -> None:
    """Stop a process for a while, and record the duration."""
    time.sleep(0.5)
    os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    time.sleep(STALL_S)
    os.kill(pid, signal.SIGCONT)
    stall_s.append(time.monotonic() - began)


def real_rows() -> list[dict[str, Any]]:
    """Return all rows; those that need fio, FUSE or root are omitted without them."""
    return [*beside_fio(), null_queue(), *stalled(1), *stalled(512)]


if __name__ == "__main__":
    for line in real_rows():
        print(line)
