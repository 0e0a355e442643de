"""Benchmarks of uflip itself: prints a table and writes `build/bench.json`.

Each row is `{name, value, unit, reference, ratio, target}`. The reference is a bare loop, measured
in the same process and alternating with uflip's if there is one, or the figure of a peer. Nothing
passes or fails: machines differ, and a number must be read beside its reference.
"""

import json
import os
import platform
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from explorer import explorer
from long_run import long_run_rows
from real import real_rows
from reporting import reporting_rows
from serving import serving_rows
from uflip import _native
from uflip.device.cache import FOLDER
from uflip.device.opener import open_device
from uflip.spec import baseline

# Devices and patterns: those whose response times have the most different causes.
SIMULATED = (
    ("sim:demo", "RW"),
    ("sim:mtron", "RW"),
    ("sim:tlc-nvme", "RW"),
    ("sim:tlc-nvme", "RR"),
)
ROOT = Path(__file__).resolve().parent.parent
Row = dict[str, Any]


def row(name: str, value: float, unit: str, reference: float | None, target: str) -> Row:
    """Return one line of the table."""
    ratio = None if reference is None else value / reference
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "reference": reference,
        "ratio": ratio,
        "target": target,
    }


def native_rows() -> list[Row]:
    """Return the rows of the Rust side, from its own program."""
    program = ROOT / "target" / "release" / "uflip-bench"
    process = subprocess.run([program], check=True, capture_output=True, text=True)
    return [json.loads(line) for line in process.stdout.splitlines()]


def start_of_a_run() -> Row:
    """Return the time from the call to the trace, for a run of one I/O in a resident process."""
    device = open_device("null")
    spec = baseline("RR", io_count=1)
    times = []
    for _ in range(200):
        begin = time.perf_counter()
        device.run(spec)
        times.append((time.perf_counter() - begin) * 1e3)
    # fio starts a process for every run: 330 ms on this kind of machine.
    return row("starting a run", statistics.median(times), "ms", 330.0, "< 5")


def parquet_bytes() -> list[Row]:
    """Return the bytes per I/O of typical traces on disk."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder) / "scratch.bin"
        real = open_device(f"file:{scratch}", size=64 << 20, buffered=True)
        spec = baseline("RR", io_size=4096)
        rows.append(size_of(real.run(spec.but(io_count=400_000)), folder, "cached file, RR"))
        for name, label in SIMULATED:
            simulated = open_device(name)
            spec = baseline(label, io_count=100_000)
            trace = simulated.run(spec)
            rows.append(size_of(trace, folder, f"{name}, {label}, with its causes", "<= 10"))
            rows.append(writing(trace, folder, f"{name}, {label}"))
    return rows


def writing(trace: _native.Trace, folder: str, name: str) -> Row:
    """Return the processor time to check and write a trace in memory; the reference is the time
    of columns with differences without compression.
    """
    ns_per_io = []
    for number in range(9):
        begin = time.process_time()
        trace.write_parquet(str(Path(folder) / f"{name} {number}.parquet"), "{}")
        ns_per_io.append((time.process_time() - begin) * 1e9 / len(trace))
    return row(f"writing a trace, {name}", min(ns_per_io), "ns an I/O", 140.0, "<= reference")


def size_of(
    trace: _native.Trace, folder: str, name: str, target: str = "<= 4 (real devices)"
) -> Row:
    """Return the length of the file of a trace."""
    path = Path(folder) / f"{name}.parquet"
    trace.write_parquet(str(path), "{}")
    per_io = path.stat().st_size / len(trace)
    # fio's latency log, a line of text an I/O.
    return row(f"Parquet, {name}", per_io, "bytes an I/O", 44.0, target)


def verifying() -> list[Row]:
    """Return the rate of verifying files that are in the page cache."""
    rows, size = [], 1 << 28
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / str(number) for number in range(4)]
        content = np.random.default_rng(1).integers(0, 256, size // 4, dtype=np.uint8)
        for path in paths:
            path.write_bytes(content.tobytes())
        for name, some in (("one file", paths[:1]), ("four files", paths)):
            durations_s = []
            for _ in range(5):
                begin = time.perf_counter()
                _native.digest_files([str(path) for path in some])
                durations_s.append(time.perf_counter() - begin)
            rate = len(some) * len(content) / min(durations_s) / 1e9
            rows.append(row(f"verifying results, {name}", rate, "GB/s", None, ">= 1"))
    return rows


def simulated_plan() -> Row:
    """Return the time of the whole benchmark on sim:demo at standard scale."""
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "demo")
        command = [str(ROOT / ".venv/bin/uflip"), "run", "sim:demo", "--scale", "standard"]
        begin = time.perf_counter()
        subprocess.run([*command, "--out", out, "--quiet"], check=True, capture_output=True)
        return row("uflip run sim:demo, standard", time.perf_counter() - begin, "s", None, "< 60")


def enforced_state() -> list[Row]:
    """Return times of the random state of 32 GB, stream hybrid: made, and from the cache."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ[FOLDER] = folder
        for label, target in (("made", "< 20"), ("from the cache", "< 1")):
            begin = time.perf_counter()
            open_device("sim:memoright")
            duration_s = time.perf_counter() - begin
            rows.append(row(f"sim:memoright, random state, {label}", duration_s, "s", None, target))
        del os.environ[FOLDER]
    return rows


def simulated_speed() -> Row:
    """Return simulated 4 KiB random writes a second through the engine, everything recorded."""
    device = open_device("sim:demo")
    spec = baseline("RW", io_size=4096)
    device.run(spec.but(io_count=200_000))
    rates = []
    for _ in range(5):
        begin = time.perf_counter()
        trace = device.run(spec.but(io_count=200_000))
        rates.append(len(trace) / (time.perf_counter() - begin) / 1e6)
    # MQSim, page-mapped, on this kind of machine.
    return row("sim:demo, 4 KiB random writes", float(np.median(rates)), "M/s", 0.2, "")


def show(rows: list[Row]) -> None:
    """Print the table with the machine."""
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    print(f"{model}, Linux {platform.release()}, Python {platform.python_version()}\n")
    print(f"{'what':48} {'value':>10} {'unit':14} {'reference':>10} {'ratio':>7}  target")
    for entry in rows:
        reference = "" if entry["reference"] is None else f"{entry['reference']:.4g}"
        ratio = "" if entry["ratio"] is None else f"{entry['ratio']:.3g}"
        print(
            f"{entry['name']:48} {entry['value']:10.4g} {entry['unit']:14} "
            f"{reference:>10} {ratio:>7}  {entry['target']}"
        )


def main() -> None:
    """Measure everything."""
    rows = native_rows()
    rows += [start_of_a_run(), *parquet_bytes(), *enforced_state(), simulated_speed()]
    rows += verifying()
    rows += long_run_rows(row)
    rows.append(simulated_plan())
    rows += reporting_rows(row, ROOT / ".venv/bin/uflip")
    rows += explorer(row)
    rows += serving_rows()
    rows += real_rows()
    show(rows)
    (ROOT / "build").mkdir(exist_ok=True)
    (ROOT / "build" / "bench.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
