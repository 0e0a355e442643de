"""Is a run file always the written trace, or an error?

Files are damaged at random, written by another program with impossible numbers, and replaced by
pipes, folders and devices.
"""

import os
import random
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bombs
import duckdb
import numpy as np
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import stored

from uflip import _native
from uflip.analysis.files import read_times
from uflip.device.opener import open_device
from uflip.errors import ResultsError, UflipError, native_errors
from uflip.results import Results
from uflip.results.columns import as_array

DAMAGED = Path(__file__).parents[1] / "golden" / "damaged"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a run with a queue, on a device that reports causes."""
    run = stored.baseline_run(1, "RW", io_ignore=10, queue_depth=4)
    stored.results(tmp_path / "r", [run])
    (stored_run,) = Results.load(tmp_path / "r").runs
    (tmp_path / "r" / "ledger.jsonl").unlink()
    return stored_run.path


def refusal(path: Path) -> str:
    """Return why a file is not a trace; it must be an error of kind results."""
    with pytest.raises(_native.NativeError) as caught:
        _native.read_trace(str(path))
    kind, what, where, got, _, action = caught.value.args
    assert (kind, where) == ("results", str(path))
    assert what
    assert action
    return str(got)


@pytest.mark.parametrize("path", sorted(DAMAGED.glob("*.parquet")), ids=lambda path: path.name)
def test_files_that_once_crashed_parser_are_errors(path: Path) -> None:
    assert refusal(path)


def test_random_damage_is_an_error_or_a_consistent_trace(file: Path) -> None:
    """Without a digest: then nothing but care protects the reader."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng, whole, read = random.Random(seed), file.read_bytes(), 0
    for _ in range(3000):
        content = bytearray(whole)
        for _ in range(rng.choice([1, 1, 1, 3, 30])):
            # The footer is a small part of the file, and the most delicate one.
            at = rng.randrange(len(content))
            if rng.random() < 0.5:
                at = len(content) - 1 - rng.randrange(min(3000, len(content)))
            change = rng.randrange(4)
            if change == 0:
                content[at] ^= 1 << rng.randrange(8)
            elif change == 1:
                content[at] = rng.choice([0, 0x7F, 0x80, 0xFF])
            elif change == 2:
                del content[at : at + rng.randrange(1, 64)]
            else:
                content[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 16)))
        file.write_bytes(content)
        trace = trace_or_none(file)
        if trace is None:
            continue
        read += 1
        causes = sum(as_array(trace, name) for name in trace.causes)
        assert (causes == as_array(trace, "response_time_ns")).all() or not trace.causes
    print("read all the same", read)


def trace_or_none(file: Path) -> _native.Trace | None:
    """Read a trace; None where it is refused, as damaged."""
    try:
        with native_errors():
            return _native.read_trace(str(file))
    except ResultsError:
        return None


def rewritten(file: Path, **changes: Any) -> None:
    """Write a run file anew with other numbers, by another program. It is one row group, in which a
    gap is the time from the completion before to the submission."""
    table = pq.read_table(file)
    columns = {name: table[name].to_numpy().copy() for name in table.column_names}
    times = columns["response_time_ns"]
    submit = columns["gap_ns"].view(np.uint64).cumsum() + (times.cumsum() - times)
    columns["submit_ns"] = submit
    for name, change in changes.items():
        change(columns[name])
    completed = submit + times
    columns["gap_ns"] = (submit - np.append(np.uint64(0), completed[:-1])).view(np.int64)
    for column, name in enumerate(table.column_names):
        table = table.set_column(column, table.schema.field(name), pa.array(columns[name]))
    pq.write_table(table, file, compression="none", use_dictionary=False)


def test_run_file_written_by_pyarrow_is_read(file: Path) -> None:
    before = _native.read_trace(str(file))
    rewritten(file)
    after = _native.read_trace(str(file))
    for name in before.columns:
        assert (as_array(before, name) == as_array(after, name)).all()


def put(index: int, value: int) -> Any:
    def change(values: np.ndarray) -> None:
        values[index] = value

    return change


def add_one(values: np.ndarray) -> None:
    values[50] += np.uint64(1)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"response_time_ns": put(50, 2**64 - 1)}, "I/O 50: submitted at"),
        ({"response_time_ns": put(50, 2**64 - 5)}, "I/O 50: submitted at"),
        ({"response_time_ns": put(50, 2**63)}, "I/O 50: submitted at"),
        ({"response_time_ns": add_one}, "I/O 50: took"),
        ({"submit_ns": put(50, 1)}, "the one before at"),
        ({"submit_ns": put(50, 2**63 - 1)}, "I/O 50: submitted at"),
        ({"submit_ns": lambda values: values.fill(0)}, "queue depth 4"),
        ({"transfer_ns": add_one}, "its causes sum to"),
    ],
)
def test_impossible_times_are_refused(file: Path, changes: dict[str, Any], reason: str) -> None:
    rewritten(file, **changes)
    assert reason in refusal(file)
    folder = file.parents[1]
    results = Results.load(folder)
    assert not results.runs
    assert reason in str([w["numbers"] for w in results.warnings if w["code"] == "damaged"])


def test_zero_response_time_is_refused_for_real_device(tmp_path: Path) -> None:
    with open_device("null") as device:
        trace = device.run(stored.baseline_run(1, "RR").spec)
    for kind, allowed in (("null", True), ("file", False)):
        path = tmp_path / f"{kind}.parquet"
        trace.write_parquet(str(path), f'{{"device_kind": "{kind}"}}')
        rewritten(path, response_time_ns=put(50, 0))
        if allowed:
            assert len(_native.read_trace(str(path))) == 100
        else:
            assert refusal(path) == "I/O 50: took no time"


def test_few_bytes_declaring_many_rows_are_refused(file: Path, tmp_path: Path) -> None:
    """Other encodings store a million equal rows in a few bytes."""
    rows = 5_000_000
    metadata = pq.read_schema(file).metadata
    zeros = pa.array(np.zeros(rows, dtype=np.uint64))
    table = pa.table({"gap_ns": zeros, "response_time_ns": zeros})
    path = tmp_path / "few.parquet"
    pq.write_table(table.replace_schema_metadata(metadata), path, compression="none")
    assert path.stat().st_size < 100_000
    assert "rows in" in refusal(path)


def test_file_longer_than_its_rows_is_refused_unread(file: Path) -> None:
    """A hole of a terabyte takes no room on the disk, and would take all of the memory."""
    whole = file.read_bytes()
    with file.open("r+b") as holed:
        holed.seek(1 << 40)
        holed.write(whole)
    assert "bytes for 100 rows" in refusal(file)


@pytest.mark.parametrize("made", ["pipe", "folder", "/dev/zero", "/dev/null", "empty", "nothing"])
def test_non_file_is_refused_without_waiting(tmp_path: Path, made: str) -> None:
    path = tmp_path / "run.parquet"
    if made == "pipe":
        os.mkfifo(path)
    elif made == "folder":
        path.mkdir()
    elif made == "empty":
        path.touch()
    elif made != "nothing":
        path = Path(made)
    assert refusal(path)
    with pytest.raises(UflipError):
        read_times(path)


def test_implausible_trace_is_not_written(file: Path, tmp_path: Path) -> None:
    """A trace from a file with times that a real device cannot have is not written for one."""
    with open_device("null") as device:
        trace = device.run(stored.baseline_run(1, "RR").spec)
    null = tmp_path / "null.parquet"
    trace.write_parquet(str(null), '{"device_kind": "null"}')
    rewritten(null, response_time_ns=put(50, 0))
    at_once = _native.read_trace(str(null))
    with pytest.raises(UflipError) as caught:
        at_once.write_parquet(str(tmp_path / "file.parquet"), '{"device_kind": "file"}')
    assert caught.value.kind == "internal"
    assert "took no time" in caught.value.got
    assert not (tmp_path / "file.parquet").exists()


def test_digest_is_checked_before_parsing(file: Path, tmp_path: Path) -> None:
    whole = file.read_bytes()
    expected = (len(whole), _native.digest(whole))
    assert len(_native.read_trace(str(file), expected)) == 100
    shutil.copy(DAMAGED / "panic-1.parquet", file)
    with pytest.raises(_native.NativeError, match="bytes instead of"):
        _native.read_trace(str(file), expected)
    file.write_bytes(whole[:-1] + b"2")
    with pytest.raises(_native.NativeError, match="have changed"):
        _native.read_trace(str(file), expected)


def packed(file: Path, pages_of: Callable[[str], list[bombs.Page]], rows: int = 100) -> bytes:
    """Return a run file with pages from `pages_of`, and the metadata of `file`."""
    schema = pq.read_schema(file)
    metadata = {key.decode(): value.decode() for key, value in schema.metadata.items()}
    return bombs.parquet({name: [pages_of(name)] for name in schema.names}, [rows], metadata)


def width(name: str) -> int:
    """Bytes of a number of a column."""
    return 4 if name == "stream" else 8


GIB = 1 << 30
PAGES: dict[str, Callable[[str], list[bombs.Page]]] = {
    "one page of a gigabyte": lambda _: [bombs.Page(GIB, 100, bombs.zeros(GIB))],
    "a gigabyte declared as small": lambda name: [
        bombs.Page(100 * width(name), 100, bombs.zeros(GIB))
    ],
    "a negative size": lambda _: [bombs.Page(-1, 100, bombs.zeros(GIB))],
    "a thousand pages of 15 MiB": lambda _: 1000 * [bombs.Page(15 << 20, 0, bombs.zeros(15 << 20))],
    "a header alone": lambda _: [bombs.Page(800, 100, b"")],
    "no frame": lambda _: [bombs.Page(800, 100, b"\xff" * 800)],
    "a frame that is cut": lambda _: [bombs.Page(800, 100, bombs.zeros(800)[:-2])],
}


@pytest.mark.parametrize("pages_of", PAGES.values(), ids=PAGES.keys())
def test_decompression_bomb_is_refused_quickly(
    file: Path, pages_of: Callable[[str], list[bombs.Page]]
) -> None:
    content = packed(file, pages_of)
    file.write_bytes(content)
    before = resource.getrusage(resource.RUSAGE_SELF)
    assert refusal(file)
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 2
    assert after.ru_maxrss - before.ru_maxrss < 512 << 10


def test_hand_made_pages_are_read(file: Path) -> None:
    """The other cases are refused for their unpacked content, not for how they were made."""

    def ones(name: str) -> list[bombs.Page]:
        number = 1 if name in ("response_time_ns", "transfer_ns") else 0
        plain = 100 * number.to_bytes(width(name), "little")
        return [bombs.Page(len(plain), 100, pa.compress(plain, "zstd", asbytes=True))]

    content = packed(file, ones)
    file.write_bytes(content)
    assert as_array(_native.read_trace(str(file)), "transfer_ns").tolist() == 100 * [1]


def test_many_packed_rows_in_few_bytes_are_refused(file: Path, tmp_path: Path) -> None:
    rows = 100_000_000
    metadata = {
        key.decode(): value.decode() for key, value in pq.read_schema(file).metadata.items()
    }
    groups = [1 << 20] * (rows >> 20)
    column = [[bombs.Page(8 << 20, 1 << 20, bombs.zeros(8 << 20))] for _ in groups]
    content = bombs.parquet(dict.fromkeys(("gap_ns", "response_time_ns"), column), groups, metadata)
    path = tmp_path / "few.parquet"
    path.write_bytes(content)
    assert "rows in" in refusal(path)


def test_other_readers_read_packed_columns(tmp_path: Path) -> None:
    """With and without causes, which are encoded differently."""
    for name in ("sim:demo", "null"):
        path = tmp_path / f"{name[:3]}.parquet"
        with open_device(name) as device:
            trace = device.run(stored.baseline_run(1, "RW", io_count=20_000).spec)
        trace.write_parquet(str(path), '{"device_kind": "null"}')
        columns = ["response_time_ns", *trace.causes]
        expected = {column: as_array(trace, column).tolist() for column in columns}
        read = [pq.read_table(path), polars.read_parquet(path).to_arrow()]
        read.append(duckdb.sql(f"from '{path}'").to_arrow_table())
        assert pq.ParquetFile(path).metadata.row_group(0).column(2).compression == "ZSTD"
        for table in read:
            assert {column: table[column].to_pylist() for column in columns} == expected
