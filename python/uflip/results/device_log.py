"""What was recorded inside a simulated device during a run, beside the file of that run.

::

    results/demo/
      runs/0002-baseline-RW-….parquet         in its metadata: length and digest of the one below
      inside/0002-baseline-RW-….parquet       samples of the device, its blocks before and after,
                                              and what its dies did

So the ledger proves the run, and the run what was recorded of it. The file is there before the run
is; what a kill leaves of it belongs to nobody and is written again. Whatever is wrong with it costs
the look inside, and nothing of the run. Format: `crates/store/src/inside.rs`.
"""

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from uflip import _native
from uflip.data.run import InsideFile, metadata_of
from uflip.errors import ResultsError, native_errors
from uflip.results import atomic
from uflip.results.file_status import PROVEN, FileStatus
from uflip.results.operations import Operations, operations_of
from uflip.results.run_files import SUFFIX, run_file

if TYPE_CHECKING:
    from uflip.results.store import StoredRun
    from uflip.results.summary_cache import Log

FOLDER = "inside"
SAMPLE = "sample_"
Whole = NDArray[np.uint64]


@dataclass(frozen=True)
class DeviceLog:
    """What was recorded of a device during a run.

    Attributes
    ----------
    samples : mapping of str to numpy.ndarray
        Of each sample (n,): `ios` completed, `at_ns` since the run began [ns], `written_bytes` by
        the host [bytes], `pages_programmed`, `pages_relocated`, `blocks_erased` since the run
        began, `erased_blocks` of all dies that can be filled, `least_erased_blocks` of any die.
    erases_before, erases : numpy.ndarray
        How often each block was erased, before and after the run, die after die (blocks,).
    valid : numpy.ndarray or None
        Valid pages of each block after the run, −1 of one that is not full (blocks,); None where
        the FTL keeps no book of them.
    channels, dies, pages_per_block, page_bytes : int
        Of the device; a die that is several, because its planes are independent, counts as such.
    operations : Operations or None
        What its dies did; None in a file of before that was recorded.
    """

    samples: Mapping[str, Whole]
    erases_before: Whole
    erases: Whole
    valid: NDArray[np.int64] | None
    channels: int
    dies: int
    pages_per_block: int
    page_bytes: int
    operations: Operations | None


def write_inside(folder: Path, run: str, trace: "Log") -> InsideFile:
    """Write what was recorded during a run that is about to be stored.

    Raises
    ------
    OSError, UflipError
        If it cannot be written.
    """
    path = _file(folder, run)
    path.parent.mkdir(exist_ok=True)
    temporary = atomic.temporary_name(path)
    temporary.unlink(missing_ok=True)
    try:
        with native_errors():
            trace.write_inside(str(temporary), "{}")
        ((size, digest, problem),) = _native.digest_files([str(temporary)])
        if problem:
            raise OSError(0, problem)
        atomic.publish(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    return InsideFile(bytes=size, digest=digest)


def read_inside(run: "StoredRun") -> DeviceLog | None:
    """Read what was recorded during a run; None where nothing was.

    Raises
    ------
    ResultsError
        If the file is not what was written, or gone.
    """
    about = run.meta.inside
    if about is None:
        return None
    with native_errors():
        columns, _ = _native.read_inside(str(_of(run)), (about.bytes, about.digest))
    found: dict[str, NDArray[Any]] = {name: np.asarray(column) for name, column in columns}
    valid = found.get("block_valid_and_one")
    try:
        channels, dies, pages_per_block, page_bytes = map(int, found["shape"])
        return DeviceLog(
            {name.removeprefix(SAMPLE): each for name, each in found.items() if SAMPLE in name},
            found["block_erases_before"],
            found["block_erases"],
            None if valid is None else valid.astype(np.int64) - 1,
            channels,
            dies,
            pages_per_block,
            page_bytes,
            operations_of(found),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ResultsError(
            "The recorded flash operations are incomplete",
            where=str(_of(run)),
            got=f"not all of its columns: {error}",
            action="move the file away: the run itself is not affected",
        ) from error


def inside_verdicts(folder: Path, runs: Iterable[str]) -> list[FileStatus]:
    """Hold what was recorded beside runs, whose files are usable, against what these say of it."""
    verdicts = []
    for run in runs:
        path = run_file(folder, run)
        about = metadata_of(path, _native.read_metadata(str(path)) or "").inside
        if about is None:
            continue
        name, costs = f"{FOLDER}/{run}{SUFFIX}", "the look inside the device during this run"
        if not _file(folder, run).exists():
            verdicts.append(FileStatus(name, "missing", 0, "its file is not there any more", costs))
            continue
        ((size, digest, problem),) = _native.digest_files([str(_file(folder, run))])
        if (size, digest) == (about.bytes, about.digest):
            verdicts.append(FileStatus(name, PROVEN, size))
        else:
            reason = problem or "its bytes have changed since they were written"
            verdicts.append(FileStatus(name, "damaged", size, reason, costs))
    return verdicts


def _of(run: "StoredRun") -> Path:
    return _file(run.path.parent.parent, run.id)


def _file(folder: Path, run: str) -> Path:
    return folder / FOLDER / f"{run}{SUFFIX}"
