"""A hundred hostile run files: does the site refuse each of them quickly?

The ledger of each folder matches its file, so that only the reader can refuse it. The tests run the
work of `uflip.site.examiner` in a process for each case, and measure its CPU time and memory.
"""

import io
import json
import os
import shutil
import struct
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import bombs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bombs import Page
from command_line import uflip
from forged_results import rewrite_ledger

from uflip.errors import UflipError
from uflip.site.client import redacted_copy
from uflip.site.examiner import examine_folder
from uflip.site.folders import parse_examination

CPU_S = 2.0
MEMORY_BYTES = 512 << 20
GIB = 1 << 30


class Run(NamedTuple):
    """A run file as it was written: what cases are made of."""

    content: bytes
    names: list[str]
    rows: int
    metadata: dict[str, str]

    def width(self, name: str) -> int:
        """Bytes of a number of a column."""
        return 4 if name == "stream" else 8

    def page(self, name: str, number: int = 0) -> Page:
        """All values of a column are this number."""
        plain = self.rows * number.to_bytes(self.width(name), "little")
        return Page(len(plain), self.rows, pa.compress(plain, "zstd", asbytes=True))

    def made(self, changed: dict[str, list[Page]], **metadata: str) -> bytes:
        """A file of ones and zeros that makes sense, but for some columns."""
        ones = ("response_time_ns", self.names[3])
        pages = {name: [self.page(name, int(name in ones))] for name in self.names}
        columns = {name: [column] for name, column in (pages | changed).items()}
        return bombs.parquet(columns, [self.rows], self.metadata | metadata)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("hostile")
    device = "sim:demo?blocks_per_die=64"
    outcome = uflip("run", device, "--scale", "quick", "--only", "order", "-q", "--out", root / "r")
    assert outcome.code == 0, outcome.err
    redacted_copy(root / "r", root / "copy")
    return root / "copy"


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    path = min((folder / "runs").iterdir(), key=lambda path: path.stat().st_size)
    schema, rows = pq.read_schema(path), pq.read_metadata(path).num_rows
    metadata = {key.decode(): value.decode() for key, value in schema.metadata.items()}
    return Run(path.read_bytes(), schema.names, rows, metadata)


BOMBS: dict[str, Callable[[Run, str], Page]] = {
    "a page of a gigabyte": lambda run, _: Page(GIB, run.rows, bombs.zeros(GIB)),
    "of two, but for one byte": lambda run, _: Page(
        2 * GIB - 1, run.rows, bombs.zeros(2 * GIB - 1)
    ),
    "a gigabyte that denies it": lambda run, column: run.page(column)._replace(
        packed=bombs.zeros(GIB)
    ),
    "less than nothing": lambda run, column: run.page(column)._replace(unpacked=-1),
    "no frame": lambda run, column: run.page(column)._replace(packed=b"\xff" * 99),
    "a frame that is cut": lambda run, column: run.page(column)._replace(
        packed=run.page(column).packed[:-3]
    ),
    "nothing": lambda run, column: run.page(column)._replace(packed=b""),
}


def page_cases(run: Run) -> Iterator[tuple[str, bytes]]:
    for label, made in BOMBS.items():
        for name in ("gap_ns", "response_time_ns", run.names[3], run.names[-1]):
            yield f"{label} in {name}", run.made({name: [made(run, name)]})
        everywhere = {name: [made(run, name)] for name in run.names if name != "stream"}
        yield f"{label} everywhere", run.made(everywhere)
    for pages in (10, 1000, 10_000):
        many = [Page(15 << 20, 0, bombs.zeros(15 << 20))] * pages
        yield f"{pages} pages of 15 MiB", run.made({"gap_ns": many})
        empty = [Page(0, 0, b"")] * pages
        yield f"{pages} pages of nothing", run.made({"gap_ns": empty})


def number_cases(run: Run) -> Iterator[tuple[str, bytes]]:
    for name, number in (
        ("response_time_ns", 0), ("response_time_ns", 2), ("response_time_ns", 2**64 - 1),
        ("response_time_ns", 2**63), ("gap_ns", 2**63), ("gap_ns", 2**64 - 1),
        (run.names[3], 0), (run.names[3], 2**64 - 1), (run.names[-1], 1), (run.names[-1], 2**63),
    ):  # fmt: skip
        yield f"{name} is {number} in every row", run.made({name: [run.page(name, number)]})


def footer_cases(run: Run) -> Iterator[tuple[str, bytes]]:
    body, page = run.content[:-8], run.page("gap_ns")
    for length in (0, 1, len(body), len(body) + 1, 2**31, 2**32 - 1):
        yield f"a footer of {length} bytes", body + struct.pack("<I", length) + b"PAR1"
    for rows in (0, 1, run.rows - 1, run.rows + 1, 10**8, 2**31, 2**62):
        columns = {name: [[run.page(name)]] for name in run.names}
        yield f"a group of {rows} rows", bombs.parquet(columns, [rows], run.metadata)
    for groups in (2, 1000):
        repeated_pages = {name: [[run.page(name)]] * groups for name in run.names}
        rows = [run.rows] * groups
        yield f"{groups} groups", bombs.parquet(repeated_pages, rows, run.metadata)
    for columns in (1, 2, 65, 1000, 20_000):
        wide = {f"cause_{number}_ns": [[page]] for number in range(columns)}
        yield f"{columns} columns", bombs.parquet(wide, [run.rows], run.metadata)
    named = {name: [[run.page(name)]] for name in run.names[:3]} | {"x" * 10**6: [[page]]}
    yield "a name of a megabyte", bombs.parquet(named, [run.rows], run.metadata)
    for codec in (1, 2, 4, 5, 7, 99):
        plain = {name: [[run.page(name)]] for name in run.names}
        yield f"codec {codec}", bombs.parquet(plain, [run.rows], run.metadata, codec=codec)


def text_cases(run: Run) -> Iterator[tuple[str, bytes]]:
    pattern = json.loads(run.metadata["uflip.pattern"])
    for label, text in (
        ("no pattern", ""), ("brackets", "[" * 10**6), ("braces", '{"a":' * 10**5),
        ("null", "null"),
        ("ten to the 18 I/Os", json.dumps(pattern | {"io_count": 10**18})),
        ("no kind", json.dumps({})), ("a number", "1e400"),
        ("I/Os of no size", json.dumps(pattern | {"io_size": 0})),
    ):  # fmt: skip
        yield label, run.made({}, **{"uflip.pattern": text})
    for version in ("0", "6", "9" * 1000, ""):
        yield f"version {version[:9]}", run.made({}, **{"uflip.trace_version": version})
    for share in range(1, 20):
        yield f"{5 * share} % of it", run.content[: len(run.content) * share // 20]


def cases(run: Run) -> dict[str, bytes]:
    """Return all run files, by their fault."""
    parts = (page_cases(run), number_cases(run), footer_cases(run), text_cases(run))
    return {label: content for part in parts for label, content in part}


def replace_run(folder: Path, name: str, content: bytes) -> None:
    """Put a run file into a folder, and add its digest to the ledger."""
    path = folder / "runs" / name
    path.unlink()
    path.write_bytes(content)
    rewrite_ledger(folder)


def examine_in_child(folder: Path) -> tuple[str, float, int]:
    """Examine a folder in a child process; return its outcome, CPU time [s] and memory [bytes]."""
    # A fork begins with the pages of this process, which are not its own.
    shared = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        outcome = "accepted"
        try:
            parse_examination(examine_folder(folder))
        except UflipError as error:
            outcome = f"refused: {error}"
        except BaseException:
            outcome = traceback.format_exc()
        os.write(writing, outcome.encode()[:4000])
        os._exit(0)
    os.close(writing)
    outcome = os.read(reading, 4000).decode(errors="replace")
    os.close(reading)
    _, status, used = os.wait4(child, 0)
    memory = max(0, (used.ru_maxrss << 10) - shared)
    return outcome or f"status {status}", used.ru_utime + used.ru_stime, memory


def test_hand_made_file_with_consistent_content_is_accepted(
    folder: Path, run: Run, tmp_path: Path
) -> None:
    """The valid folder is accepted, so that the others are refused for their faults."""
    name = _named(folder, run)
    shutil.copytree(folder, tmp_path / "copy")
    replace_run(tmp_path / "copy", name, run.made({}))
    assert examine_in_child(tmp_path / "copy")[0] == "accepted"


def test_hostile_files_are_refused_quickly(folder: Path, run: Run, tmp_path: Path) -> None:
    made = cases(run)
    assert len(made) >= 100
    name = _named(folder, run)
    wrong = [wrong_refusal(folder, name, tmp_path / "copy", *case) for case in made.items()]
    assert not any(wrong), "\n".join(filter(None, wrong))


def wrong_refusal(folder: Path, name: str, copy: Path, label: str, content: bytes) -> str:
    """Return what is wrong with the refusal of a run file."""
    shutil.copytree(folder, copy)
    replace_run(copy, name, content)
    outcome, cpu_s, memory_bytes = examine_in_child(copy)
    shutil.rmtree(copy)
    if outcome.startswith("refused") and cpu_s <= CPU_S and memory_bytes <= MEMORY_BYTES:
        return ""
    return f"{label}: {outcome}, {cpu_s:.2f} s, {memory_bytes >> 20} MiB"


def _named(folder: Path, run: Run) -> str:
    (path,) = (p for p in (folder / "runs").iterdir() if p.read_bytes() == run.content)
    return path.name


# Logs of jobs over physical addresses


@pytest.fixture(scope="module")
def job_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("jobs")
    options = ("--scale", "quick", "--only", "oc0", "-q")
    outcome = uflip("run", "sim:dfc", *options, "--out", root / "r")
    assert outcome.code == 0, outcome.err
    redacted_copy(root / "r", root / "copy")
    return root / "copy"


def _table(like: pa.Table, rows: int, names: list[str], groups: int = 1) -> bytes:
    """A log of zeros as we write them: a few bytes for hundreds of numbers."""
    zeros = pa.array(np.zeros(rows, np.uint64))
    schema = pa.schema(
        [pa.field(name, pa.uint64(), nullable=False) for name in names], like.schema.metadata
    )
    table = pa.table([zeros] * len(names), schema=schema)
    sink = io.BytesIO()
    options: dict[str, Any] = {"use_dictionary": False, "compression": "none"}
    options |= {"column_encoding": "DELTA_BINARY_PACKED", "write_statistics": False}
    with pq.ParquetWriter(sink, schema, **options) as writer:
        for _ in range(groups):
            writer.write_table(table)
    return sink.getvalue()


def test_declared_log_sizes_are_limited_before_reading(job_folder: Path, tmp_path: Path) -> None:
    path = min((job_folder / "runs").iterdir(), key=lambda path: path.stat().st_size)
    like = pq.read_table(path)
    names = like.column_names
    causes = [f"cause_{number}" for number in range(64 - len(names))]
    made = {
        "34 million numbers": _table(like, (34 << 20) // len(names), names),
        "34 million in 64 columns": _table(like, (34 << 20) // 64, names + causes),
        "34 million in one": _table(like, 34 << 20, names[:1]),
        "31 million in one": _table(like, 31 << 20, names[:1]),
        "31 million numbers": _table(like, (31 << 20) // len(names), names),
        "65 columns": _table(like, 4, [*names, *causes, "one"]),
        "5,000 groups": _table(like, 1, names, 5000),
        "no rows": _table(like, 0, names),
    }
    wrong = [
        wrong_refusal(job_folder, path.name, tmp_path / "copy", *case) for case in made.items()
    ]
    assert not any(wrong), "\n".join(filter(None, wrong))
