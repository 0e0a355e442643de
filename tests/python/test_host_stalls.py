"""Host stalls while I/Os are due are reported: before which I/O, and for how long.

crates/engine/src/trace.rs tests the definition of a gap; here a process is stopped on purpose,
between I/Os that arrive every two milliseconds.
"""

import signal
import time
from pathlib import Path

import numpy as np
import pytest
import stored
from command_line import start, uflip
from fuse_file import stop_process

from uflip.data.spec import Basic
from uflip.device.opener import open_device
from uflip.results import Results
from uflip.results.run_warnings import CHECKS, RunArrays
from uflip.spec import basic
from uflip.web import slow_ios
from uflip.web.open_run import OpenRun

INTERVAL_NS, COUNT, STOPPED_S = 2_000_000, 700, 0.15
(CHECK,) = (check for check in CHECKS if check.code == "host_stalls")


def write_iolog(path: Path) -> Path:
    """Write a log of I/Os every two milliseconds, in the format of fio 3."""
    lines = ["fio version 3 iolog", "0 target add", "0 target open"]
    lines += [f"{n * INTERVAL_NS // 1000} target read {n % 64 * 4096} 4096" for n in range(COUNT)]
    path.write_text("\n".join([*lines, f"{COUNT * INTERVAL_NS // 1000} target close"]) + "\n")
    return path


def wait_until_running(out: Path) -> None:
    """Wait until a replay makes its I/Os."""
    deadline = time.monotonic() + 60
    while not (out / "manifest.json").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(0.3)


def test_stopped_process_is_reported(workdir: Path) -> None:
    trace = write_iolog(Path("t.iolog"))
    with open_device("file:f", size=1 << 20, buffered=True):
        pass
    process = start("replay", trace, "file:f", "--buffered", "--speed", "1", "--out", "out")
    wait_until_running(Path("out"))
    stop_process(process.pid)
    began = time.monotonic()
    time.sleep(STOPPED_S)
    stopped_ns = (time.monotonic() - began) * 1e9
    process.send_signal(signal.SIGCONT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    results = Results.load(Path("out"))
    (run,) = results.runs
    gaps = np.asarray(run.trace().column("host_gap_ns"))
    # The stop began at most an interval before an I/O was due.
    assert gaps.max() >= stopped_ns - INTERVAL_NS - 20e6
    at = int(gaps.argmax())
    waited = np.asarray(run.trace().column("submission_wait_ns"))
    assert waited[at] == gaps[at], "the device was free: all of the wait is the host's"
    (warning,) = (one for one in results.manifest.warnings if one.code == "host_stalls")
    assert warning.numbers["worst"]["longest_ns"] == gaps.max()
    assert "host_stalls" in uflip("show", "out", "--json").out
    opened = OpenRun(results, run)
    assert slow_ios.io_view(opened, at).get("host_gap_ns") == gaps[at]
    # Host stalls are one of the marks that explain slow I/Os.
    marks = dict(slow_ios._marks(opened, 0, COUNT, 0, COUNT))
    assert (marks["host gap", "more than 50 µs"] == (gaps > 50_000)).all()


def test_simulated_run_has_no_host_gaps() -> None:
    with open_device("sim:demo?blocks_per_die=64") as device:
        trace = device.run(basic("read", "random", io_count=10))
    assert "host_gap_ns" not in trace.columns


def test_pauses_queues_and_processes_are_not_stalls(workdir: Path) -> None:
    """Delays that the pattern requests on an idle null device are not stalls."""
    patterns = [
        basic("read", "random", time="burst", burst=5, pause=300_000, io_count=50),
        basic("read", "random", queue_depth=8, io_count=500),
        basic("read", "random", parallel_degree=3, io_count=200),
        basic("read", "random", time="poisson", interval=200_000, io_count=100),
    ]
    with open_device("null") as device:
        for pattern in patterns:
            gaps = np.asarray(device.run(pattern).column("host_gap_ns"))
            # The median is that of the loop itself, even on a busy machine.
            assert np.median(gaps) < 50_000, pattern


def run_arrays(gaps: list[int], took: int = 100_000, kind: str = "file") -> RunArrays:
    times = np.full(len(gaps), took, dtype=np.uint64)
    begins = np.cumsum(np.array(gaps, dtype=np.uint64) + times) - times
    spec = basic("read", "random", io_size=4096, io_count=len(gaps))
    assert isinstance(spec, Basic)
    return RunArrays(
        micro_benchmark="mix", spec=spec, device=stored.device_info(kind), harness={},
        stream=np.zeros(len(gaps)), submit_ns=begins, response_time_ns=times, measured_ns=times,
        host_gap_ns=np.array(gaps, dtype=np.uint64),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("gaps", "count"),
    [
        ([0] * 1999 + [60_000], None),  # one in two thousand, 0.03 % of the time
        ([0] * 499 + [60_000], 1),  # one in five hundred
        ([0] * 1999 + [60_000_000], 1),  # a quarter of the time
        ([50_000] * 100, None),
        ([0, 50_001, 0], 1),
    ],
)
def test_few_short_gaps_give_no_warning(gaps: list[int], count: int | None) -> None:
    warning = CHECK.check(run_arrays(gaps))
    assert (warning and warning[1]["count"]) == count
    assert CHECK.check(run_arrays(gaps, kind="null")) is None
