"""Disturbances by the host are sampled beside runs of real devices, and aligned with their I/Os.

Recorded counters stand in for /proc and /sys; coincidences are counted anew by a loop.
"""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from command_line import uflip
from numpy.typing import NDArray

from uflip.data.host_load import HostRecord
from uflip.data.run import HostSummary
from uflip.device import host_load
from uflip.device.host_load import HostSampler, host_record
from uflip.device.opener import open_device
from uflip.results import Results
from uflip.results.slow_traits import host_facts, summarise_host
from uflip.spec import basic
from uflip.web import slow_ios
from uflip.web.open_run import OpenRun

MS = 1_000_000


def write(path: Path, text: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


@pytest.fixture
def linux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a tree as Linux 6.12 has it, with one thread; the sampler's thread reads nothing."""
    monkeypatch.setattr(host_load, "PERIOD_S", 3600.0)
    set_counters(tmp_path, steal=7, interrupts=1000, stalled=5, throttled=2, clock=3_000_000)
    set_thread(tmp_path, 1, waited_ns=10**9, preempted=99)
    return tmp_path


def set_counters(
    root: Path, *, steal: int, interrupts: int, stalled: int, throttled: int, clock: int
) -> None:
    stat = (
        f"cpu  308 64 45 605 15 0 11 {steal} 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\nintr {interrupts} 0 9"
    )
    write(root / "proc" / "stat", f"{stat}\nctxt 77\nsoftirq 5 1")
    pressure = f"some avg10=0.00 avg60=0.00 avg300=0.00 total={stalled}\nfull avg10=0.00 total=1"
    write(root / "proc" / "pressure" / "memory", pressure)
    folder = root / "sys" / "devices" / "system" / "cpu"
    write(folder / "cpu0" / "thermal_throttle" / "core_throttle_count", throttled)
    write(folder / "cpufreq" / "policy0" / "scaling_cur_freq", clock)


def set_thread(root: Path, tid: int, *, waited_ns: int, preempted: int) -> None:
    folder = root / "proc" / "self" / "task" / str(tid)
    write(folder / "schedstat", f"5000000 {waited_ns} 12")
    write(
        folder / "status",
        f"Name:\tuflip\nvoluntary_ctxt_switches:\t4\nnonvoluntary_ctxt_switches:\t{preempted}",
    )


def test_recorded_counters_become_changes(linux: Path) -> None:
    sampler = HostSampler(linux / "proc", linux / "sys")
    sampler.start()
    began = sampler._samples[0][0] + 4 * MS
    set_counters(linux, steal=9, interrupts=1500, stalled=305, throttled=2, clock=1_000_000)
    # The new thread is the run; the other one existed before.
    set_thread(linux, 1, waited_ns=2 * 10**9, preempted=500)
    set_thread(linux, 2, waited_ns=3 * MS, preempted=2)
    sampler.sample(began + 6 * MS)
    set_thread(linux, 2, waited_ns=4 * MS, preempted=2)
    sampler.sample(began + 16 * MS)
    record = sampler.finish(began)
    assert record.ends_ns[:2] == [6 * MS, 16 * MS]
    assert {name: values[:2] for name, values in record.changes.items()} == {
        "steal_ticks": [2, 0], "interrupts": [500, 0], "memory_stall_us": [300, 0],
        "cpu_wait_ns": [3 * MS, 1 * MS], "preemptions": [2, 0], "slow_clock": [1, 1],
    }  # fmt: skip
    disturbed = {name: windows[:2].tolist() for name, windows in record.disturbed().items()}
    # A tenth of a window of 10 ms is not more than a tenth.
    assert disturbed["cpu_wait_ns"] == [True, False]
    assert disturbed["slow_clock"] == [True, True]


def test_counters_that_linux_lacks_are_left_out(tmp_path: Path) -> None:
    sampler = HostSampler(tmp_path / "proc", tmp_path / "sys")
    sampler.start()
    assert sampler.finish(0).changes == {}
    went_back = [(1, {"steal_ticks": 5, "throttled": 1}), (2, {"steal_ticks": 4, "throttled": 3})]
    assert host_record(went_back, 0).changes == {"throttled": [2]}


def test_long_runs_keep_their_sums_in_bounded_memory(
    linux: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_load, "MAX_SAMPLES", 8)
    sampler = HostSampler(linux / "proc", linux / "sys")
    sampler.start()
    began = sampler._samples[0][0]
    for number in range(1, 101):
        set_counters(linux, steal=7 + number, interrupts=0, stalled=5, throttled=2, clock=1)
        sampler.sample(began + number)
        assert len(sampler._samples) <= 9
    record = sampler.finish(began)
    assert sum(record.changes["steal_ticks"]) == 100
    assert record.ends_ns == sorted(record.ends_ns)


Columns = dict[str, NDArray[np.int64]]


def random_ios(count: int, slow: NDArray[np.bool_]) -> Columns:
    submitted = np.arange(count) * MS
    return {"submit_ns": submitted, "response_time_ns": np.where(slow, 500_000, 100_000)}


def summarise(columns: Columns, record: HostRecord) -> HostSummary:
    def column(name: str, start: int, stop: int, /) -> object:
        return columns[name][start:stop]

    return summarise_host(column, len(columns["submit_ns"]), record)


def test_coincidences_are_those_of_a_naive_count() -> None:
    random = np.random.default_rng(5)
    windows, count = 200, 2000
    stolen = random.random(windows) < 0.05
    ends = [(number + 1) * 10 * MS for number in range(windows)]
    record = HostRecord(ends, {"steal_ticks": stolen.astype(int).tolist()})
    slow = stolen[np.arange(count) // 10] & (random.random(count) < 0.3)
    slow |= random.random(count) < 0.002
    columns = random_ios(count, slow)
    begin = columns["submit_ns"]
    end = begin + columns["response_time_ns"]
    naive = np.array([
        any(
            stolen[number] and begin[io] <= high and end[io] > low
            for number, (low, high) in enumerate(pairwise([-1, *ends]))
        )
        for io in range(count)
    ])  # fmt: skip
    slowest = np.lexsort((np.arange(count), -columns["response_time_ns"]))[:20]
    summary = summarise(columns, record)
    assert summary["windows"] == windows
    assert summary["disturbed"] == {"steal time": int(stolen.sum())}
    counted = int(naive[slowest].sum())
    assert summary["coincide"] == [
        {"what": "steal time", "slow_ios": counted, "ios": int(naive.sum())}
    ]
    ((label, line),) = host_facts(summary)
    assert label == "host"
    assert line.startswith(f"{counted} of the 20 slowest I/Os lie in windows of 10")


def test_unrelated_disturbances_explain_nothing() -> None:
    random = np.random.default_rng(6)
    record = HostRecord(
        [(number + 1) * 10 * MS for number in range(200)],
        {"preemptions": (random.random(200) < 0.2).astype(int).tolist()},
    )
    summary = summarise(random_ios(2000, random.random(2000) < 0.01), record)
    assert summary["coincide"] == []
    ((_, line),) = host_facts(summary)
    assert line.endswith("the slow I/Os do not coincide with them")


def test_windows_cover_a_run_of_a_file(workdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The begin of the run lies after the first sample, and its end before the last one."""
    seen: list[tuple[list[int], int]] = []

    def spy(samples: list[tuple[int, dict[str, int]]], began_ns: int) -> HostRecord:
        seen.append(([at for at, _ in samples], began_ns))
        return host_record(samples, began_ns)

    monkeypatch.setattr(host_load, "host_record", spy)
    with open_device("file:f", size=1 << 20, buffered=True) as device:
        trace = device.run(basic("write", "random", io_count=200))
        parts = device.run_series([basic("read", "random", io_count=50)] * 2)
        record = device.host_record
    (times, began), (series_times, series_began) = seen
    completed = np.asarray(trace.column("submit_ns")) + np.asarray(trace.column("response_time_ns"))
    assert times[0] <= began
    assert began + int(completed.max()) <= times[-1]
    offset, last = parts[-1]
    assert series_times[0] <= series_began
    assert series_began + offset + int(np.asarray(last.column("submit_ns"))[-1]) <= series_times[-1]
    assert record is not None
    with open_device("sim:demo?blocks_per_die=64") as device:
        device.run(basic("read", "random", io_count=10))
        assert device.host_record is None


def test_result_stores_windows_and_the_explorer_uses_them(workdir: Path) -> None:
    uflip("pattern", "file:f", "--size", "1MiB", "--buffered", "--pattern", "RR", "--quiet")
    document = json.loads(
        uflip(
            "pattern", "file:f", "--buffered", "--pattern", "RR", "--io-count", "100", "--json"
        ).out
    )
    assert document["host"]["windows"] >= 1
    assert document["host"]["slow_ios"] == 10
    trace = "version 3 iolog"
    write(Path("t.iolog"), "\n".join([
        f"fio {trace}", "0 target add", "0 target open",
        *(f"{n * 10} target read {n % 64 * 4096} 4096" for n in range(400)), "9999 target close",
    ]))  # fmt: skip
    uflip("replay", "t.iolog", "file:f", "--buffered", "--speed", "1", "--out", "out")
    results = Results.load(Path("out"))
    opened = OpenRun(results, results.runs[0])
    assert opened.host is not None
    # A record in which the second half of the run has steal time.
    run = results.runs[0].trace()
    submitted = np.asarray(run.column("submit_ns")).astype(np.int64)
    completed = submitted + np.asarray(run.column("response_time_ns")).astype(np.int64)
    half = int(submitted[200])
    opened.__dict__["host"] = HostRecord([half - 1, 10**15], {"steal_ticks": [0, 1]})
    marks = dict(slow_ios._marks(opened, 0, 400, 0, 400))
    stolen = marks["host", "in a window with steal time"]
    assert (stolen == (completed > half - 1)).all()
    assert slow_ios.io_view(opened, 300).get("host") == "steal time"
    assert slow_ios.io_view(opened, 0).get("host") == ("steal time" if stolen[0] else "")
