"""Long runs, packed in memory or in a file while they last, are read like any other."""

import csv
import random
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import command_line
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import uflip

from uflip import _native
from uflip.device.opener import open_device
from uflip.errors import UsageError
from uflip.results import Results, ResultsWriter
from uflip.results.columns import as_array, measured_column
from uflip.spec import Spec, baseline

DEVICE = "sim:demo?blocks_per_die=64"
# More than stays in memory (2 MiB, packed), where there is a folder.
LONG = 300_000


def long_spec(**changes: Any) -> Spec:
    parameters = {"io_size": 32768, "io_count": LONG, "io_ignore": 1000, "target_size": 64 << 20}
    return baseline("RW", **(parameters | changes))


def traces_by_storage(
    spec: Spec, folder: Path
) -> tuple[_native.Trace, _native.Trace, _native.Trace]:
    """Make the same run in plain columns (those of a series never leave them), packed in memory,
    and in a file."""
    with open_device(DEVICE) as device:
        ((_, plain),) = device.run_series([spec])
    with open_device(DEVICE) as device:
        packed = device.run(spec)
    with open_device(DEVICE) as device:
        file = device.run(spec, spool=folder)
    opened = [
        str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()
    ]
    assert any(str(folder) in name for name in opened), "it is in a file"
    return plain, packed, file


def same(one: _native.Trace, other: _native.Trace) -> bool:
    assert one.columns == other.columns
    return all((as_array(one, name) == as_array(other, name)).all() for name in one.columns)


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Any, Any]]:
    folder = tmp_path_factory.mktemp("spool")
    yield traces_by_storage(long_spec(), folder)
    assert not list(folder.iterdir()), "the file has no name, and is gone with the trace"


def test_run_is_identical_in_memory_and_in_file(
    traces: tuple[Any, Any, Any], tmp_path: Path
) -> None:
    plain, packed, file = traces
    assert len(file) == LONG
    for trace in (packed, file):
        assert same(plain, trace)
        assert trace.elapsed_ns() == plain.elapsed_ns()
        assert (trace.spec_json, trace.causes) == (plain.spec_json, plain.causes)
    for number, trace in enumerate(traces):
        trace.write_parquet(str(tmp_path / f"{number}.parquet"), "{}")
        assert same(_native.read_trace(str(tmp_path / f"{number}.parquet")), plain)
    # Another reader sees the same rows in all files; gaps begin anew in each row group.
    tables = [pq.read_table(tmp_path / f"{number}.parquet") for number in range(3)]
    tables = [table.drop_columns(["gap_ns"]) for table in tables]
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])


def test_column_slices_match_whole_column(traces: tuple[Any, Any, Any]) -> None:
    plain, _, file = traces
    for name in plain.columns:
        whole = as_array(plain, name)
        for start, stop in (
            (0, 10),
            (65_530, 65_540),
            (131_072, 190_000),
            (LONG - 1, LONG),
            (7, 7),
        ):
            for trace in traces:
                assert (np.asarray(trace.column(name, start, stop)) == whole[start:stop]).all()
    for start, stop in ((5, 4), (0, LONG + 1)):
        with pytest.raises(UsageError, match="no such I/Os"):
            file.column("submit_ns", start, stop)


def test_whole_columns_of_several_pieces_equal_their_slices(tmp_path: Path) -> None:
    """The native module gathers a column in pieces of 524,288 I/Os."""
    for degree in (1, 2):
        spec = long_spec(io_size=4096, io_count=1_100_000 // degree, io_ignore=1000)
        with open_device(DEVICE) as device:
            trace = device.run(spec.but(parallel_degree=degree), spool=tmp_path)
        for name in trace.columns:
            slices = [
                np.asarray(trace.column(name, start, min(start + 300_000, len(trace))))
                for start in range(0, len(trace), 300_000)
            ]
            np.testing.assert_array_equal(as_array(trace, name), np.concatenate(slices))
        measured = as_array(trace, "ignored") == 0
        assert np.count_nonzero(~measured) == 1000 * degree
        np.testing.assert_array_equal(
            measured_column(trace), as_array(trace, "response_time_ns")[measured]
        )


def test_parallel_ios_are_stored_stream_by_stream(tmp_path: Path) -> None:
    plain, packed, file = traces_by_storage(
        long_spec(io_count=80_000).but(parallel_degree=4), tmp_path
    )
    assert len(file) == 4 * 80_000
    assert same(plain, packed)
    assert same(plain, file)
    assert (np.diff(as_array(file, "stream").astype(int)) >= 0).all()
    file.write_parquet(str(tmp_path / "run.parquet"), "{}")
    assert same(_native.read_trace(str(tmp_path / "run.parquet")), plain)


def test_arrow_reads_every_io(traces: tuple[Any, Any, Any], tmp_path: Path) -> None:
    plain, _, file = traces
    table, *others = [pa.table(trace) for trace in traces]
    assert all(table.equals(other) for other in others)
    assert table.column_names == ["index", *plain.columns]
    assert table["index"].to_numpy().tolist() == list(range(LONG))
    words = np.array(["read", "write"])
    for name in plain.columns:
        expected = as_array(plain, name)
        values = table[name].to_numpy()
        if name == "mode":
            assert (values == words[expected]).all()
        else:
            assert (values == expected).all(), name
    # It is read batch by batch, and may be left.
    batch = pa.RecordBatchReader.from_stream(file).read_next_batch()
    assert 0 < batch.num_rows < LONG
    # A borrowed column outlives the trace.
    with open_device(DEVICE) as device:
        short = device.run(long_spec(io_count=100, io_ignore=0))
    lent = pa.table(short)["response_time_ns"]
    times = as_array(short, "response_time_ns").tolist()
    del short
    assert lent.to_pylist() == times


def test_table_is_identical_in_memory_and_in_file(
    traces: tuple[Any, Any, Any], tmp_path: Path
) -> None:
    for number, trace in enumerate(traces):
        trace.write_table(str(tmp_path / f"{number}.parquet"), '[["run", "a"]]', trace.columns)
    tables = [pq.read_table(tmp_path / f"{number}.parquet") for number in range(3)]
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])
    assert tables[0]["offset_bytes"].to_numpy().tolist() == (
        as_array(traces[0], "offset_bytes").tolist()
    )


def test_csv_rows_match_columns(traces: tuple[Any, Any, Any], tmp_path: Path) -> None:
    _, _, file = traces
    path = tmp_path / "ios.csv"
    path.touch()
    file.append_csv(str(path), '"a, b",c', ["mode", "no_such_column", *file.columns])
    with path.open(newline="") as lines:
        rows = list(lines)
    assert len(rows) == LONG
    columns = {name: as_array(file, name) for name in file.columns}
    for number in (0, 65_535, 65_536, LONG - 1):
        words = [str(columns[name][number]) for name in file.columns]
        words[file.columns.index("mode")] = "write"
        (row,) = csv.reader([rows[number]])
        assert row == ["a, b", "c", str(number), "write", "0", *words]


MEASURE = """
import resource, sys
from pathlib import Path
from uflip.device.opener import open_device
from uflip.spec import baseline
device = open_device(sys.argv[1])
def run(ios):
    spec = baseline("RW", io_size=4096, io_count=ios, target_size=8 << 20)
    trace = device.run(spec, spool=Path(sys.argv[2]) if len(sys.argv) > 2 else None)
    if len(sys.argv) > 2:
        trace.write_parquet(f"{sys.argv[2]}/{ios}.parquet", "{}")
    assert len(trace.causes) == 18
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
print(run(200_000), run(1_200_000))
"""


@pytest.mark.parametrize(("in_a_file", "max_mib"), [(True, 25), (False, 40)])
def test_memory_stays_bounded_for_long_runs(tmp_path: Path, in_a_file: bool, max_mib: int) -> None:
    """A million I/Os more, with all their causes, would be 160 MB in plain columns."""
    process = subprocess.run(
        [sys.executable, "-c", MEASURE, DEVICE, *([str(tmp_path)] if in_a_file else [])],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    short, long = map(int, process.stdout.split())
    assert long - short < max_mib, (short, long)


def test_real_clock_run_fills_blocks(tmp_path: Path) -> None:
    """Above the buffer in memory (64 MiB), and below the limit of the write queue (256 MiB)."""
    ios = 6_000_000
    with open_device("null") as device:
        trace = device.run(baseline("RR", io_size=4096, io_count=ios), spool=tmp_path)
    trace.write_parquet(
        str(tmp_path / "run.parquet"), '{"device_kind": "null"}'
    )  # if it makes sense
    assert len(trace) == ios
    assert (np.asarray(trace.column("response_time_ns", ios - 1000)) < 2**63).all()


KILLED = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import stored
from uflip.device.opener import open_device
short = stored.baseline_run(1, "RR")
long = stored.baseline_run(2, "RR", io_count=40_000_000)
device = open_device("null")
writer = stored.writer(Path(sys.argv[1]), [short, long], device)
writer.commit(short, device.run(short.spec), {})
def report(done, total, last):
    if done > 10_000_000:
        print("long", flush=True)
device.run(long.spec, report, spool=writer.spool)
"""


def test_killed_benchmark_loses_only_the_running_run(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(folder), str(Path(__file__).parent)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "long\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    results = Results.load(folder)
    assert [len(run.trace()) for run in results.runs] == [100]
    assert len(results.missing) == 1
    assert len(list((folder / "runs").iterdir())) == 1, "nothing half written is left"
    writer = ResultsWriter.resume(folder)
    assert len(writer.done) == 1
    writer.close()


SPOOLED = """
import resource, sys
from uflip import _native
if sys.argv[2] != "0":
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
recording = _native.read_recording([sys.argv[1]], None)
ios = recording.fit(1 << 40, 512, "refuse", None, (1_000_000, 0))
print("(deleted)" in open("/proc/self/maps").read())
print(len(recording), len(ios), recording.summary_json(), ios.spec_json(1))
"""


def test_full_disk_moves_a_long_trace_back_to_memory(tmp_path: Path) -> None:
    """A file cannot be made beyond 64 MiB of I/Os (16 MiB), or not grow beyond 128 MiB."""
    trace = tmp_path / "trace.iolog"
    lines = b"f write 4096 4096\nf read 8192 512\nf write 65536 1024\n"
    trace.write_bytes(b"fio version 2 iolog\nf add\nf open\n" + 1_200_000 * lines)
    outputs = [
        subprocess.run(
            [sys.executable, "-c", SPOOLED, trace, str(limit)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        for limit in (0, 16 << 20, 160 << 20)
    ]
    assert [spooled for spooled, _ in outputs][:2] == ["True", "False"]
    assert len({read for _, read in outputs}) == 1, "nothing is lost"
    assert outputs[0][1].startswith("3600000 3600000 ")


def test_full_disk_ends_a_long_replay_that_can_be_resumed(workdir: Path) -> None:
    draw = random.Random(1).randrange
    ios = (f"f write {draw(2048) * 32768} 32768\n" for _ in range(LONG))
    Path("trace.iolog").write_text(f"fio version 2 iolog\nf add\nf open\n{''.join(ios)}")

    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    process = command_line.start("replay", "trace.iolog", DEVICE, "--out", "r", preexec_fn=full)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 4, err
    assert "The I/Os of a run cannot be written during the run" in err
    assert "check that the file system is not full" in err
    assert "no run was finished" in err
    assert not list(Path("r/runs").iterdir()), "nothing half written is left"
    resumed = uflip("replay", "trace.iolog", "--resume", "r", "-q")
    assert resumed.code == 0, resumed.err
    assert [len(run.trace()) for run in Results.load("r").runs] == [LONG]
