"""`uflip replay`: the I/Os are those of the trace, and the result is like any other.

Traces were written by fio 3.33 and by blkparse 1.2 (crates/foreign/tests/data); an installed fio
writes another one.
"""

import csv
import json
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import start, uflip

from uflip.results import Results

DATA = Path(__file__).resolve().parents[2] / "crates" / "foreign" / "tests" / "data"
FIO = DATA / "fio-3.33.iolog"
SMALL = "sim:demo?blocks_per_die=128"


def run_replay(trace: Path, device: str, out: Path, *more: str) -> Any:
    outcome = uflip("replay", trace, device, "--out", out, "-q", *more)
    assert outcome.code == 0, outcome.err
    results = Results.load(out)
    (run,) = results.runs
    return results, run.trace()


def columns(trace: Any, *names: str) -> list[list[int]]:
    return [np.asarray(trace.column(name)).tolist() for name in names]


def lines_of(path: Path) -> list[tuple[int, int, int]]:
    """(offset, size, 1 for a write) of every I/O in one of fio's logs, by plain means."""
    ios = []
    for line in path.read_text().splitlines():
        words = line.split()
        if words[2:3] in (["read"], ["write"]):
            ios.append((int(words[3]), int(words[4]), int(words[2] == "write")))
    return ios


def ios_of(trace: Any) -> list[tuple[int, ...]]:
    return list(zip(*columns(trace, "offset_bytes", "io_size_bytes", "mode"), strict=True))


@pytest.mark.parametrize("device", [SMALL, "null"])
def test_device_receives_ios_of_fio_trace(device: str, tmp_path: Path) -> None:
    results, trace = run_replay(FIO, device, tmp_path / "out")
    assert ios_of(trace) == lines_of(FIO)
    assert results.manifest.status == "complete"
    assert uflip("verify", tmp_path / "out").code == 0


def test_file_receives_ios_of_trace(workdir: Path) -> None:
    _, trace = run_replay(FIO, "file:scratch.bin", Path("out"), "--size", "4MiB")
    assert ios_of(trace) == lines_of(FIO)
    times = np.asarray(trace.column("response_time_ns"))
    assert (times > 0).all()


def test_reading_trace_writes_nothing(workdir: Path) -> None:
    Path("reads").write_text("fio version 2 iolog\na read 0 4096\na read 8192 4096\n")
    Path("mine").write_bytes(bytes(range(256)) * 64)
    run_replay(Path("reads"), "file:mine", Path("out"))
    assert Path("mine").read_bytes() == bytes(range(256)) * 64
    Path("writes").write_text("fio version 2 iolog\na write 0 4096\n")
    refused = uflip("replay", "writes", "file:mine", "--out", "other")
    assert (refused.code, Path("other").exists()) == (3, False), "somebody else's file"


TRIMS = "fio version 2 iolog\na write 0 65536\na trim 0 32768\na read 0 4096\n"


def test_swapped_trace_and_device_are_named() -> None:
    refused = uflip("replay", "sim:demo", FIO)
    assert refused.code == 2
    assert f"do       uflip replay {FIO} sim:demo" in refused.err


def test_trims_are_replayed_where_supported(workdir: Path) -> None:
    Path("trims").write_text(TRIMS)
    for device, size in ((SMALL, ()), ("file:scratch.bin", ("--size", "4MiB"))):
        results, trace = run_replay(Path("trims"), device, Path(f"out-{device[:3]}"), *size)
        assert ios_of(trace) == [(0, 65536, 1), (0, 32768, 2), (0, 4096, 0)]
        assert "trace_left_out" not in [each["code"] for each in results.warnings]
    content = Path("scratch.bin").read_bytes()
    assert content[:32768] == bytes(32768), "there is a hole now"
    assert content[32768:65536] != bytes(32768)


def test_unsupported_trims_are_omitted_with_warning(tmp_path: Path) -> None:
    (tmp_path / "trims").write_text(TRIMS)
    results, trace = run_replay(tmp_path / "trims", "sim:zns", tmp_path / "out")
    assert ios_of(trace) == [(0, 65536, 1), (0, 4096, 0)]
    (warning,) = (each for each in results.warnings if each["code"] == "trace_left_out")
    assert warning["numbers"] == {"trim": 1}


def test_trace_of_unsupported_trims_is_refused(tmp_path: Path) -> None:
    (tmp_path / "trims").write_text("fio version 2 iolog\na trim 0 4096\n")
    outcome = uflip("replay", str(tmp_path / "trims"), "sim:zns", "--out", str(tmp_path / "out"))
    assert outcome.code == 2
    assert "contains only trims" in outcome.err
    assert "replay it on another device" in outcome.err
    assert not (tmp_path / "out").exists()


def test_trimming_trace_counts_as_writing(workdir: Path) -> None:
    Path("trims").write_text("fio version 2 iolog\na trim 0 4096\n")
    Path("mine").write_bytes(b"x" * 8192)
    refused = uflip("replay", "trims", "file:mine", "--out", "other")
    assert (refused.code, Path("other").exists()) == (3, False), "somebody else's file"
    assert Path("mine").read_bytes() == b"x" * 8192


def test_open_loop_keeps_arrival_times(tmp_path: Path) -> None:
    _, trace = run_replay(FIO, SMALL, tmp_path / "as-it-was", "--speed", "1")
    times = [int(line.split()[0]) for line in FIO.read_text().splitlines() if " 4096" in line or
             " 8192" in line or " 12288" in line or " 16384" in line]  # fmt: skip
    arrivals = [1000 * (time - times[0]) for time in times]
    submit, waits, response = columns(trace, "submit_ns", "submission_wait_ns", "response_time_ns")
    assert submit == arrivals
    assert waits == [0] * len(waits), "a simulated device takes them all"
    parts = np.sum([np.asarray(trace.column(name)) for name in trace.causes], axis=0)
    assert parts.tolist() == response
    # One after another at twice the speed: number i waits until the one before is over.
    _, trace = run_replay(FIO, SMALL, tmp_path / "twice", "--speed", "2", "--queue-depth", "1")
    submit, waits, response = columns(trace, "submit_ns", "submission_wait_ns", "response_time_ns")
    assert submit == [arrival // 2 for arrival in arrivals]
    free = 0
    for at, wait, took in zip(submit, waits, response, strict=True):
        assert at + wait == max(at, free)
        free = at + took


def test_run_file_of_uflip_is_replayed(tmp_path: Path) -> None:
    uflip("replay", FIO, SMALL, "--out", tmp_path / "first", "-q")
    (first,) = (tmp_path / "first" / "runs").glob("*.parquet")
    _, trace = run_replay(first, SMALL, tmp_path / "again")
    assert ios_of(trace) == lines_of(FIO)


def test_blkparse_and_msr_are_fitted_with_warnings(tmp_path: Path) -> None:
    results, trace = run_replay(DATA / "blkparse-1.2.txt", SMALL, tmp_path / "blk")
    assert columns(trace, "offset_bytes")[0][:2] == [223490 * 512, 8 * 512]
    assert "trace_left_out" in [each.code for each in results.manifest.warnings]
    results, trace = run_replay(
        DATA / "msr.csv", SMALL, tmp_path / "msr", "--fit", "wrap", "--speed", "1000"
    )
    info = results.manifest.device
    ends = np.asarray(trace.column("offset_bytes")) + np.asarray(trace.column("io_size_bytes"))
    assert ends.max() <= info.capacity_bytes
    assert "trace_moved" in [each.code for each in results.manifest.warnings]


def test_every_verb_opens_the_result(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run_replay(DATA / "msr.csv", SMALL, out, "--fit", "scale", "--speed", "1")
    for verb in (
        ("show", out, "--full"),
        ("show", out, "--json"),
        ("report", out, "-o", tmp_path / "page.html"),
        ("export", out, "-o", tmp_path / "tables"),
        ("compare", out, out),
        ("hints", out),
    ):
        outcome = uflip(*verb)
        assert outcome.code == 0, (verb[0], outcome.err)
    assert "trace_moved" in (tmp_path / "page.html").read_text()
    shown = uflip("show", out).out
    assert re.search(r"^Replay +queue_depth 1024$", shown, re.M), shown
    assert "highest / lowest" not in shown, "there is one value"
    refused = uflip("run", "--resume", out)
    assert refused.code == 5
    assert "Traceback" not in refused.err


def test_same_trace_gives_same_times(tmp_path: Path) -> None:
    times = []
    for name in ("a", "b"):
        _, trace = run_replay(FIO, SMALL, tmp_path / name)
        times.append(columns(trace, "submit_ns", "response_time_ns"))
    assert times[0] == times[1]


def test_damaged_io_list_is_found(tmp_path: Path) -> None:
    """The list in a run file is held against the digest in its pattern."""
    from uflip._native import NativeError, read_trace

    _, trace = run_replay(FIO, SMALL, tmp_path / "out")
    (path,) = (tmp_path / "out" / "runs").glob("*.parquet")
    content = path.read_bytes()
    digest = json.loads(trace.spec_json)["list"]["ios"].encode()
    assert digest in content
    path.write_bytes(content.replace(digest, b"0" * len(digest)))
    with pytest.raises(NativeError, match="list"):
        read_trace(str(path))


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_fresh_fio_trace_matches_its_ios(workdir: Path) -> None:
    job = ["--name=job", "--rw=randrw", "--filename=target", "--size=1m", "--bsrange=4k-64k"]
    subprocess.run(
        ["fio", *job, "--number_ios=100", "--ioengine=psync", "--write_iolog=log"],
        check=True,
        capture_output=True,
    )
    _, trace = run_replay(Path("log"), SMALL, Path("out"))
    assert ios_of(trace) == lines_of(Path("log"))
    assert len(trace) > 10


def long_trace(path: Path) -> Path:
    """Reads and writes every two milliseconds, two seconds long, as fio 3 notes them."""
    lines = ["fio version 3 iolog", "0 target add", "0 target open"]
    modes = ("read", "write")
    lines += [f"{n * 2000} target {modes[n % 2]} {n % 64 * 4096} 4096" for n in range(1000)]
    path.write_text("\n".join([*lines, "2000000 target close"]) + "\n")
    return path


@pytest.mark.parametrize(
    ("device", "more"),
    [("file:scratch.bin", ("--size", "1MiB", "--buffered")), (SMALL, ())],
)
def test_killed_replay_resumes(device: str, more: tuple[str, ...], workdir: Path) -> None:
    trace, pacing = long_trace(Path("t.iolog")), ("--speed", "1", "--queue-depth", "4")
    whole = uflip("replay", trace, device, *more, *pacing, "--out", "whole", "-q")
    assert whole.code == 0, whole.err
    for attempt in range(20):
        out = Path(f"out{attempt}")
        options = () if device == SMALL else ("--buffered",)
        process = start("replay", trace, device, *options, *pacing, "--out", out)
        # Kill it early: a simulated device takes less than two seconds.
        while not (out / "manifest.json").exists() and process.poll() is None:
            time.sleep(0.001)
        time.sleep(0 if device == SMALL else 0.5)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        if Results.load(out).status != "complete":
            break
    assert Results.load(out).missing, "it was killed in the middle"
    resume = ("replay", trace, *pacing, "--resume", out, "-q")
    outcome = uflip(*resume)
    assert outcome.code == 0, outcome.err
    results = Results.load(out)
    (run,), (expected,) = results.runs, Results.load(Path("whole")).runs
    assert (results.status, results.missing) == ("complete", [])
    assert ios_of(run.trace()) == ios_of(expected.trace()) == lines_of(trace)[: len(run.trace())]
    if device == SMALL:
        times = "submit_ns", "response_time_ns"
        assert columns(run.trace(), *times) == columns(expected.trace(), *times)
    assert uflip("verify", out).code == 0
    assert uflip(*resume).code == 5, "it is complete"


def test_replay_resumes_only_with_same_options(workdir: Path) -> None:
    trace = long_trace(Path("t.iolog"))
    out = Path("out")
    process = start("replay", trace, "file:f", "--size", "1MiB", "--buffered", "--speed", "1",
                    "--out", out)  # fmt: skip
    while not (out / "manifest.json").exists() and process.poll() is None:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    before = (out / "manifest.json").read_bytes()
    for wrong in (
        (FIO, "--speed", "1", "--fit", "wrap"),
        (trace, "--speed", "2"),
        (trace,),
        (trace, "--speed", "1", "--queue-depth", "7"),
    ):
        outcome = uflip("replay", *wrong, "--resume", out)
        assert (outcome.code, "differ from the first start" in outcome.err) == (2, True), (
            outcome.err
        )
    assert uflip("replay", trace, "null", "--speed", "1", "--resume", out).code == 2
    assert uflip("replay", trace, "--speed", "1", "--resume", out, "--out", "x").code == 2
    assert uflip("replay", trace, "--speed", "1").code == 2, "no device"
    assert uflip("run", "sim:demo?blocks_per_die=64", "--only", "alignment", "--scale", "quick",
                 "--out", "other", "-q").code == 0  # fmt: skip
    outcome = uflip("replay", trace, "--resume", "other")
    assert outcome.code == 5, outcome.err
    assert (out / "manifest.json").read_bytes() == before


def test_reading_replay_resumes_without_writing(workdir: Path) -> None:
    lines = "".join(f"{n * 2000} a read {n % 4 * 4096} 4096\n" for n in range(500))
    Path("reads").write_text(f"fio version 3 iolog\n0 a add\n0 a open\n{lines}")
    Path("mine").write_bytes(bytes(range(256)) * 64)
    process = start("replay", "reads", "file:mine", "--buffered", "--speed", "1", "--out", "out")
    while not Path("out/manifest.json").exists() and process.poll() is None:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    outcome = uflip("replay", "reads", "--speed", "1", "--resume", "out", "-q")
    assert outcome.code == 0, outcome.err
    assert Path("mine").read_bytes() == bytes(range(256)) * 64


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_pattern_trace_is_replayed(workdir: Path, ending: str) -> None:
    options = ("--pattern", "RW", "--mix", "RR", "--ratio", 2, "--io-count", 40, "--seed", 7)
    for name in (f"trace.{ending}", "read.csv"):
        assert uflip("pattern", SMALL, *options, "--trace", name, "-q").code == 0
    with Path("read.csv").open() as file:
        expected = [
            (int(r["offset_bytes"]), int(r["io_size_bytes"]), int(r["mode"] == "write"))
            for r in csv.DictReader(file)
        ]
    assert len(expected) == 120
    _, trace = run_replay(Path(f"trace.{ending}"), SMALL, workdir / "out")
    assert ios_of(trace) == expected
    # In an open loop they arrive when they did: to the nanosecond.
    with Path("read.csv").open() as file:
        instants = [int(row["submit_ns"]) for row in csv.DictReader(file)]
    open_loop, _ = run_replay(Path(f"trace.{ending}"), SMALL, workdir / "open", "--speed", "1")
    (entry,) = open_loop.manifest.plan
    assert entry.spec.list.span == instants[-1] - instants[0]


def test_invalid_row_is_left_out_and_reported(workdir: Path) -> None:
    head, row = "submit_ns,offset_bytes,io_size_bytes,mode\n", "0,0,4096,read\n"
    for number, wrong in enumerate(("1,0,4096,append", "-1,0,4096,read", "1,x,4096,read", "1,0")):
        Path("t.csv").write_text(head + row + wrong)
        results, trace = run_replay(Path("t.csv"), SMALL, Path(f"out{number}"))
        assert ios_of(trace) == [(0, 4096, 0)]
        (warning,) = (each for each in results.warnings if each["code"] == "trace_odd_lines")
        assert f"line 3: {wrong}" in warning["message"]
    Path("t.csv").write_text(head + row + "1,100,700,read")
    results, trace = run_replay(Path("t.csv"), SMALL, Path("wide"))
    assert ios_of(trace) == [(0, 4096, 0), (0, 1024, 0)]
    assert "trace_widened" in {each["code"] for each in results.warnings}
    Path("t.csv").write_text("run," + head + "a," + row + "b," + row)
    assert "one run" in uflip("replay", "t.csv", SMALL, "-q").err
    Path("t.csv").write_text("time,offset\n1,2\n")
    assert "fio version 2 iolog" in uflip("replay", "t.csv", SMALL, "-q").err


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_fio_waits_are_reproduced(workdir: Path) -> None:
    Path("target").write_bytes(bytes(1 << 20))
    lines = ("open", "wait 400 0", "read 0 4096", "wait 900 0", "read 4096 4096", "wait 600 0",
             "read 8192 4096", "wait 1200 0", "read 12288 4096", "close")  # fmt: skip
    text = "".join(f"{workdir}/target {line}\n" for line in ("add", *lines))
    Path("waits.iolog").write_text(f"fio version 2 iolog\n{text}")
    job = ["--name=w", "--read_iolog=waits.iolog", "--ioengine=psync", "--write_lat_log=w"]
    _, trace = run_replay(Path("waits.iolog"), "sim:demo", workdir / "out", "--speed", "1")
    begins = [begin // 1_000_000 for begin in columns(trace, "submit_ns")[0]]
    assert begins == [0, 500, 500, 800]

    def fio_is_late_by() -> list[int]:
        """Return how much later than ours the I/Os of a run of fio were, after its first [ms]."""
        subprocess.run(["fio", *job, "--log_offset=1"], check=True, capture_output=True)
        logged = [int(line.split(", ")[0]) for line in Path("w_lat.1.log").read_text().splitlines()]
        return [at - logged[0] - ours for at, ours in zip(logged, begins, strict=True)]

    # fio wakes up late on a busy machine, never early; but its first I/O may be the late one.
    assert any(all(-5 <= late < 2000 for late in fio_is_late_by()) for _ in range(10))


def test_offsets_are_scaled_and_moved(workdir: Path) -> None:
    """A trace from 1 to 3 MiB, moved to the beginning and then halved."""
    rows = "".join(f"{n * 1000},h,0,Write,{2**20 + n * 4096},4096,10\n" for n in range(512))
    Path("trace.csv").write_text(rows)

    def offsets(*options: str) -> list[int]:
        out = Path("out-" + "".join(options).replace("--", ""))
        outcome = uflip("replay", "trace.csv", SMALL, *options, "--out", out)
        assert outcome.code == 0, outcome.err
        trace = Results.load(out).runs[0].trace()
        return [int(each) for each in np.asarray(trace.column("offset_bytes"))]

    assert offsets("--address-offset=-1MiB") == [n * 4096 for n in range(512)]
    halved = offsets("--address-scale=0.5", "--address-offset=4k")
    assert halved == [4096 + (2**20 + n * 4096) // 2 // 512 * 512 for n in range(512)]
    refused = uflip("replay", "trace.csv", SMALL, "--address-offset=-2MiB", "--out", "no")
    assert "below 0" in refused.err
    assert "--address-offset" in refused.err


def test_response_times_of_the_trace_are_beside_the_measured_ones(workdir: Path) -> None:
    events = []
    for number in range(40):
        at = number / 1000
        events += [
            f"8,0 0 1 {at:.9f} 9 Q R {number * 8} + 8 [a]",
            f"8,0 0 1 {at + 0.0001:.9f} 9 D R {number * 8} + 8 [a]",
            f"8,0 0 1 {at + 0.0004:.9f} 9 C R {number * 8} + 8 [0]",
        ]
    Path("trace.txt").write_text("\n".join(events))
    outcome = uflip("replay", "trace.txt", SMALL, "--out", "out")
    assert outcome.code == 0, outcome.err
    table = {line.split("  ")[0]: line for line in outcome.out.splitlines()}
    assert "400 µs" in table["trace, Q2C"]
    assert "300 µs" in table["trace, D2C"]
    assert "measured here" in table
    shown = uflip("show", "trace.txt").out
    assert "of these D2C    mean 300 µs" in shown
    document = json.loads(uflip("replay", "trace.txt", SMALL, "--out", "o2", "--json").out)
    assert document["recorded_ns"]["D2C"]["p50"] == 300_000


def test_device_and_options_are_checked_before_the_trace_is_read(workdir: Path) -> None:
    """A trace that cannot be read is not reached."""
    trace = Path("trace.csv")
    trace.write_text("no trace\n")
    for options, named in (
        (("sim:no-such-device",), "no-such-device"),
        (("sim:demo", "--speed", "0"), "--speed"),
        (("sim:demo", "--address-scale", "0"), "--address-scale"),
        (("sim:demo", "--out", "."), "exist"),
    ):
        outcome = uflip("replay", trace, *options)
        assert outcome.code != 0
        assert named in outcome.err, outcome.err
        assert "trace or log" not in outcome.err


def test_averages_are_not_replayed(workdir: Path) -> None:
    rows = "".join(f"{1000 * i}, {90000 + i % 7}, 0, 0, 0, 0\n" for i in range(1, 60))
    Path("avg_clat.1.log").write_text(rows)
    outcome = uflip("replay", "avg_clat.1.log", "sim:demo")
    assert outcome.code != 0
    assert "averages of 1 s" in outcome.err
