"""The device log: records from inside a simulated device during a run, in a file beside the run.

::

    results/demo/
      runs/0002-baseline-RW-….parquet         in its metadata: length and digest of the one below
      inside/0002-baseline-RW-….parquet       samples of the device, its blocks before and after,
                                              and the operations of its dies

The ledger proves the run file, and the run file proves its device log. The log is written before
the run; a kill between the two leaves an orphan, which is overwritten. Damage to the log loses the
log only, not the run. Format: `crates/store/src/inside.rs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from uflip import _native, safe_files
from uflip.data.run import InsideFile
from uflip.errors import ResultsError, native_errors
from uflip.results.causes import COLUMN_OF_PURPOSE
from uflip.results.result_dir import RUN_SUFFIX

if TYPE_CHECKING:
    from uflip.results.reader import StoredRun
    from uflip.results.run_summary import Log


# Flash operations of every die and channel:
#
#     requested ──waits──▶ begin ──────────── holds its die ───────────▶ end
#                            read      │cells│ waits │sent│
#                            program   │ waits │sent│  cells  │
#
# For a long run, half a million operations around the slowest I/Os are stored; `gaps` lists the
# times without records. Written by `crates/py/src/inside.rs`.
READ, PROGRAM, INSIDE, RESUMED = range(4)
HOST_READ, HOST_WRITE, RELOCATION, MERGE, ERASE, METADATA, MAPPING, RETRY, SCRUB = range(9)
NAMES_BY_PURPOSE: Mapping[tuple[int, int], str] = {
    (HOST_READ, READ): "host read",
    (HOST_WRITE, PROGRAM): "host program",
    (HOST_WRITE, READ): "read-modify-write",
    (RELOCATION, READ): "valid-page read",
    (RELOCATION, PROGRAM): "valid-page program",
    (RELOCATION, INSIDE): "copy-back",
    (MERGE, READ): "merge read",
    (MERGE, PROGRAM): "merge program",
    (MERGE, INSIDE): "merge inside the die",
    (ERASE, INSIDE): "erase",
    (METADATA, PROGRAM): "metadata program",
    (MAPPING, READ): "mapping read",
    (MAPPING, PROGRAM): "mapping program",
    # Operations that were suspended for a host read.
    (HOST_WRITE, RESUMED): "host program resumed",
    (RELOCATION, RESUMED): "valid-page program resumed",
    (MERGE, RESUMED): "merge program resumed",
    (ERASE, RESUMED): "erase resumed",
    (METADATA, RESUMED): "metadata program resumed",
    (MAPPING, RESUMED): "mapping program resumed",
    (SCRUB, READ): "scrub read",
    (SCRUB, PROGRAM): "scrub program",
    (SCRUB, INSIDE): "scrub inside the die",
    (SCRUB, RESUMED): "scrub program resumed",
    (RETRY, READ): "read in vain",
    (RETRY, PROGRAM): "program in vain",
}
"""Name of an operation, by its purpose and what its die does."""
CAUSE_OF = {each: COLUMN_OF_PURPOSE[each[0]] for each in NAMES_BY_PURPOSE} | {
    (HOST_WRITE, READ): "read_to_modify_ns"
}
"""The cause column for the same activity where an I/O waits for it."""
WAITS = ("free page", "write cache")
"""Waits of a host page outside the dies: `Operations::WAITS` of the simulator."""
JOBS = ("collection", "merge", "scrub")
"""Reasons for which an FTL empties a block."""
UNDER_WAY = "already under way"
OPERATION_NAMES = (*NAMES_BY_PURPOSE.values(), UNDER_WAY)
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Waits:
    """Waits of host pages that belong to no operation, in the order of their ends (n,)."""

    #: Begin and end, since the run began [ns].
    begin: Integers
    end: Integers
    io: Integers  #: The waiting I/O, in the order of submission; −1 where it is unknown.
    die: Integers  #: The die with the free page in the end, or that programmed the flushed page.
    page: Integers  #: The logical page programmed then: its own, or the flushed one.
    kind: Integers  #: Index into `WAITS`.

    def __len__(self) -> int:
        return len(self.begin)


@dataclass(frozen=True)
class Operations:
    """Operations in the order of their known ends (n,); times since the run began [ns]."""

    #: When it entered the queue of its die, got the die, and left it.
    requested: Integers
    begin: Integers
    end: Integers
    cells: Integers  #: Time of the cells [ns]: of a read from `begin` on, of others up to `end`.
    #: Channel transfer of its data; equal without a transfer. A program that holds its channel
    #: before it has its die begins then.
    sent: Integers
    sent_until: Integers
    #: Its die, its I/O in the order of submission, its collection or merge, and the block that this
    #: empties: −1 where it has none.
    die: Integers
    io: Integers
    job: Integers
    block: Integers
    code: Integers  #: Index into `OPERATION_NAMES`.
    channels: Integers  #: The channel of each die (dies,).
    #: The clock of each die: planes that work together count as dies of one clock (dies,).
    clocks: Integers
    gaps: NDArray[np.int64]  #: Begin and end of times without records (gaps, 2).
    recorded: int  #: Number of all operations, stored or not.
    #: Number of valid pages in the block of a collection at its begin, by its job; −1 for other
    #: jobs (jobs,).
    valid: Integers
    waits: Waits  #: Waits for a free page and for the write cache.

    def __len__(self) -> int:
        return len(self.requested)

    @cached_property
    def is_read(self) -> NDArray[np.bool_]:
        """Whether the cells work first, and the channel after them."""
        reads = [code for code, (_, kind) in enumerate(NAMES_BY_PURPOSE) if kind == READ]
        return np.isin(self.code, reads)

    @cached_property
    def cells_from(self) -> Integers:
        """Begin of the cells' work."""
        begin: Integers = np.where(self.is_read, self.begin, self.end - self.cells)
        return begin

    @cached_property
    def jobs(self) -> Integers:
        """Kind of each job of the FTL, by its number: index into `JOBS` (jobs,).

        A job with erases only gets the kind of the device's other jobs.
        """
        purposes = np.array([purpose for purpose, _ in NAMES_BY_PURPOSE] + [-1])[self.code]
        kinds = np.zeros(int(self.job.max(initial=-1)) + 1, np.int64)
        kinds[:] = bool((purposes == MERGE).any())
        for kind, purpose in ((1, MERGE), (2, SCRUB)):
            kinds[self.job[(purposes == purpose) & (self.job >= 0)]] = kind
        return kinds

    @cached_property
    def channel(self) -> Integers:
        """The channel of each operation."""
        channel: Integers = self.channels[self.die]
        return channel


def operations_of(columns: Mapping[str, NDArray[Any]]) -> Operations:
    """Make operations from the columns of a file."""

    def column(name: str) -> Integers:
        return np.asarray(columns[f"op_{name}"], dtype=np.int64)

    requested = column("asked_ns")
    begin = requested + column("waited_ns")
    end = begin + column("held_ns")
    sent = begin + column("to_channel_ns") - column("channel_first_ns")
    code = np.full(len(requested), len(NAMES_BY_PURPOSE), dtype=np.int64)
    purposes, kinds = column("purpose"), column("kind")
    for number, (purpose, kind) in enumerate(NAMES_BY_PURPOSE):
        code[(purposes == purpose) & (kinds == kind)] = number
    channels = np.asarray(columns["die_channel"], dtype=np.int64)
    ends = [np.asarray(columns[f"gap_{each}_ns"], dtype=np.int64) for each in ("from", "until")]
    return Operations(
        requested,
        begin,
        end,
        column("cells_ns"),
        sent,
        sent + column("sent_ns"),
        column("die"),
        column("io_and_one") - 1,
        column("job_and_one") - 1,
        column("block_and_one") - 1,
        code,
        channels,
        np.asarray(columns["die_clock"], dtype=np.int64),
        np.stack(ends, axis=1),
        int(columns["ops_all"][0]),
        _valid_of(columns),
        _waits_of(columns),
    )


def _valid_of(columns: Mapping[str, NDArray[Any]]) -> Integers:
    jobs = np.asarray(columns["valid_job"], dtype=np.int64)
    pages = np.full(int(jobs.max(initial=-1)) + 1, -1, np.int64)
    pages[jobs] = columns["valid_pages"]
    return pages


def _waits_of(columns: Mapping[str, NDArray[Any]]) -> Waits:
    def column(name: str) -> Integers:
        return np.asarray(columns[f"wait_{name}"], dtype=np.int64)

    begin = column("from_ns")
    io = column("io_and_one") - 1
    return Waits(begin, begin + column("ns"), io, column("die"), column("page"), column("kind"))


FOLDER = "inside"
SAMPLE = "sample_"


@dataclass(frozen=True)
class DeviceLog:
    """Records from inside a device during a run."""

    #: For each sample (n,): `ios` completed, `at_ns` since the run began [ns], `written_bytes` by
    #: the host [bytes], `pages_programmed`, `pages_relocated`, `blocks_erased` since the run began,
    #: `erased_blocks` of all dies that can be filled, `least_erased_blocks` of any die.
    samples: Mapping[str, NDArray[np.uint64]]
    #: Erase count of each block, before and after the run, die after die (blocks,).
    erases_before: NDArray[np.uint64]
    erases: NDArray[np.uint64]
    #: Valid pages of each block after the run, −1 for one that is not full (blocks,); None where
    #: the FTL does not count them.
    valid: NDArray[np.int64] | None
    #: Geometry of the device; a die with independent planes counts as several.
    channels: int
    dies: int
    pages_per_block: int
    page_bytes: int
    operations: Operations  #: Operations of its dies.


def write_device_log(folder: Path, run: str, trace: Log) -> InsideFile:
    """Write the device log of a run that is stored next."""
    path = log_file(folder, run)
    path.parent.mkdir(exist_ok=True)
    with safe_files.replaced_file(path) as temporary:
        temporary.unlink(missing_ok=True)
        with native_errors():
            trace.write_inside(str(temporary), "{}")
        ((size, digest, problem),) = _native.digest_files([str(temporary)])
        if problem:
            raise OSError(0, problem)
    return InsideFile(bytes=size, digest=digest)


def read_device_log(run: StoredRun) -> DeviceLog | None:
    """Read the device log of a run; return None if it has none."""
    about = run.meta.inside
    if about is None:
        return None
    path = log_file(run.path.parent.parent, run.id)
    with native_errors():
        columns, _ = _native.read_inside(str(path), (about.bytes, about.digest))
    arrays: dict[str, NDArray[Any]] = {name: np.asarray(column) for name, column in columns}
    valid = arrays.get("block_valid_and_one")
    try:
        channels, dies, pages_per_block, page_bytes = map(int, arrays["shape"])
        return DeviceLog(
            {name.removeprefix(SAMPLE): each for name, each in arrays.items() if SAMPLE in name},
            arrays["block_erases_before"],
            arrays["block_erases"],
            None if valid is None else valid.astype(np.int64) - 1,
            channels,
            dies,
            pages_per_block,
            page_bytes,
            operations_of(arrays),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ResultsError(
            "The recorded flash operations are incomplete",
            where=str(path),
            got=f"not all of its columns: {error}",
            action="move the file away: the run itself is not affected",
        ) from error


def log_file(folder: Path, run: str) -> Path:
    """Return the path of the device log of a run."""
    return folder / FOLDER / f"{run}{RUN_SUFFIX}"
