"""Programs that write uflip's files, recorded once, and the checks after a power failure.

    LD_PRELOAD=oplog.so python power_scenarios.py FOLDER    record all of them below a folder

A scenario does its work in an empty folder and marks what it reported as done. Its check
gets a folder of which only a part remains (`power_failure`) and uses the real readers: acknowledged
data exists, all data read is what was written, and missing runs can be made again.
"""

import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import stored
from command_line import start
from nbd import FLUSH, FUA, Client, accepts_connections

from uflip.device.opener import open_device
from uflip.results import Results, ResultsWriter, outputs
from uflip.results.result_dir import run_file
from uflip.results.state_record import open_record

Mark = Callable[[str], None]

RUNS = tuple(
    stored.baseline_run(number, pattern, io_count=20)
    for number, pattern in enumerate(("SR", "RR", "SW", "RW"), 1)
)
SMALL = "sim:demo?blocks_per_die=24&state=empty"
BLOCKS, BLOCK = 16, 4096
# A served device of few bytes: its file is written as it is.
SERVED = "sim:demo?blocks_per_die=64&state=empty"


@dataclass(frozen=True)
class Scenario:
    """Some work, and the check after a power failure.

    Attributes
    ----------
    record : callable
        Does the work in an empty folder, and marks what is acknowledged.
    check : callable
        Called with the remaining folder, the acknowledgements, and the complete folder.
    """

    record: Callable[[Path, Mark], None]
    check: Callable[[Path, Sequence[str], Path], None]


# Results: create, commit, an interruption, resume, finish


def record_results(folder: Path, mark: Mark) -> None:
    out = folder / "campaign" / "out"
    with open_device("null", size="1GiB") as device:
        writer = stored.writer(out, RUNS, device)
        mark("folder")
        for run in RUNS[:2]:
            writer.commit(run, device.run(run.spec))
            mark(run.id)
        writer.close()
        writer = ResultsWriter.resume(out)
        writer.replan(RUNS)
        for run in RUNS[2:]:
            writer.commit(run, device.run(run.spec))
            mark(run.id)
        writer.finish("complete")
        mark("complete")


def check_results(remaining: Path, acknowledged: Sequence[str], complete: Path) -> None:
    out, original = remaining / "campaign" / "out", complete / "campaign" / "out"
    if not out.exists():
        assert not acknowledged, "the folder is lost"
        return
    results = Results.load(out)
    expected_runs = {each for each in acknowledged if each not in ("folder", "complete")}
    check_runs(results, expected_runs, original)
    if "complete" in acknowledged:
        assert results.status == "complete"
    if results.status == "complete" and not results.missing:
        return
    writer = ResultsWriter.resume(out)
    writer.replan(RUNS)
    original_results = Results.load(original)
    for run in original_results.runs:
        if run.id not in writer.done:
            entry = next(each for each in RUNS if each.id == run.id)
            writer.commit(entry, run.trace())
    writer.finish("complete")
    again = Results.load(out)
    assert (again.status, again.missing) == ("complete", [])
    assert not again.verification.lost_runs
    check_runs(again, expected_runs, original)


def check_runs(results: Results, expected_runs: set[str], original: Path) -> None:
    """Check that every acknowledged run is usable, and has the bytes that were written."""
    usable = {run.id: run.path for run in results.runs}
    assert expected_runs <= usable.keys(), f"lost: {expected_runs - usable.keys()}"
    for run in expected_runs:
        assert usable[run].read_bytes() == run_file(original, run).read_bytes(), run


# Outputs: a sealed file that is replaced, a table, a new folder


def record_outputs(folder: Path, mark: Mark) -> None:
    report, table = folder / "report.html", folder / "table.csv"
    for version in ("first", "second"):
        outputs.write(outputs.check(report, outputs.REPORT), f"<p>{version}".encode() * 700)
        mark(f"report {version}")
    outputs.write(outputs.check(table, outputs.TABLE), b"1,2,3\n" * 700)
    mark("table")
    with outputs.new_folder(folder / "exports" / "all", "export", "-o") as export_dir:
        for name in ("runs.csv", "ios.csv"):
            (export_dir / name).write_bytes(name.encode() * 500)
    mark("export")


def check_outputs(remaining: Path, acknowledged: Sequence[str], complete: Path) -> None:
    report = remaining / "report.html"
    versions = [
        outputs.add_seal(f"<p>{text}".encode() * 700, outputs.REPORT)
        for text in ("first", "second")
    ]
    allowed = versions[max(sum("report" in each for each in acknowledged) - 1, 0) :]
    if report.exists():
        assert report.read_bytes() in allowed
        outputs.write(outputs.check(report, outputs.REPORT), b"<p>third")
    else:
        assert not acknowledged
    for name, acknowledgement in (("table.csv", "table"), ("exports/all/runs.csv", "export"),
                          ("exports/all/ios.csv", "export")):  # fmt: skip
        path = remaining / name
        if path.exists() or acknowledgement in acknowledged:
            assert path.read_bytes() == (complete / name).read_bytes(), name
    if (remaining / "exports" / "all").exists():
        assert len([*(remaining / "exports" / "all").iterdir()]) == 2, (
            "a folder is complete or missing"
        )


# A saved device


def record_saved(folder: Path, mark: Mark) -> None:
    with open_device(SMALL) as device:
        for number in range(2):
            device.save(folder / f"{number}.snapshot")
            mark(f"{number}.snapshot")


def check_saved(remaining: Path, acknowledged: Sequence[str], complete: Path) -> None:
    for path in sorted(
        {remaining / name for name in acknowledged} | {*remaining.glob("[0-9].snapshot")}
    ):
        with open_device(f"sim:{path}") as device:
            assert device.info.details.snapshot is not None
        assert path.read_bytes() == (complete / path.name).read_bytes()


# The record of a device's state


def record_state(folder: Path, mark: Mark) -> None:
    target = folder.parent / "target.bin"
    with open_device(f"file:{target}", size="1MiB", buffered=True) as device:
        record = open_record(folder / "records" / "state.json", device.info)
        request = {"state": "sequential", "seed": 1, "target_offset": 0, "target_size": 1 << 20,
                   "io_size_max": 4096, "random_bytes": 0}  # fmt: skip
        record.begin(request, 8)
        mark("0")
        for done in range(1, 9):
            record.save_progress(done)
            mark(str(done))


def check_state(remaining: Path, acknowledged: Sequence[str], complete: Path) -> None:
    path = remaining / "records" / "state.json"
    if not acknowledged and not path.exists():
        return
    record = json.loads(path.read_text())
    assert record["done_ios"] >= int(acknowledged[-1] if acknowledged else 0)


# Durability that a served device acknowledged to its clients


def record_served(folder: Path, mark: Mark) -> None:
    socket = folder.parent / "served.sock"
    server = start(
        "serve", SERVED, "--socket", socket, "--data", folder / "disk", "--speed", 0, "-q"
    )
    try:
        while not accepts_connections(socket):
            assert server.poll() is None, server.communicate()
            time.sleep(0.01)
        with Client(socket) as client:
            client.go()
            for number in range(1, 60):
                block = number * 7 % BLOCKS
                data = number.to_bytes(8, "big") * (BLOCK // 8)
                durable = number % 5 == 0
                assert client.write(block * BLOCK, data, FUA if durable else 0) == 0
                if number % 8 == 0:
                    assert client.do(FLUSH) == 0
                    mark(f"flush {number}")
                elif durable:
                    mark(f"fua {number}")
    finally:
        server.send_signal(signal.SIGKILL)
        server.communicate()


def check_served(remaining: Path, acknowledged: Sequence[str], complete: Path) -> None:
    disk = remaining / "disk"
    if not disk.exists():
        assert not acknowledged
        return
    durable_writes: dict[int, int] = {}
    for each in acknowledged:
        kind, number = each.split()
        upto = range(1, int(number) + 1) if kind == "flush" else [int(number)]
        for write in upto:
            block = write * 7 % BLOCKS
            durable_writes[block] = max(durable_writes.get(block, 0), write)
    with disk.open("rb") as file:
        content = file.read(BLOCKS * BLOCK)
    for block, oldest in durable_writes.items():
        sectors = content[block * BLOCK : (block + 1) * BLOCK]
        for at in range(0, BLOCK, 512):
            number = int.from_bytes(sectors[at : at + 8], "big")
            assert number >= oldest, (block, at, number, oldest)
            assert number == 0 or number * 7 % BLOCKS == block
            assert sectors[at : at + 512] == number.to_bytes(8, "big") * 64


SCENARIOS = {
    "results": Scenario(record_results, check_results),
    "outputs": Scenario(record_outputs, check_outputs),
    "saved": Scenario(record_saved, check_saved),
    "state": Scenario(record_state, check_state),
    "served": Scenario(record_served, check_served),
}


def main(folder: Path) -> None:
    """Record every scenario: NAME/work is its folder, NAME/log its calls."""
    library = ctypes.CDLL(None)
    for name, scenario in SCENARIOS.items():
        work, log = folder / name / "work", folder / name / "log"
        work.mkdir(parents=True)
        os.environ["OPLOG_FOLDER"], os.environ["OPLOG_LOG"] = str(work), str(log)
        library.oplog_begin(os.fsencode(work), os.fsencode(log))
        scenario.record(work, lambda text: library.oplog_mark(text.encode()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
