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

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from uflip import _native
from uflip.data.run import InsideFile
from uflip.errors import ResultsError, native_errors
from uflip.results import atomic
from uflip.results.operations import Operations, operations_of
from uflip.results.result_dir import RUN_SUFFIX

if TYPE_CHECKING:
    from uflip.results.store import StoredRun
    from uflip.results.summary_cache import Log

FOLDER = "inside"
SAMPLE = "sample_"


@dataclass(frozen=True)
class DeviceLog:
    """Records from inside a device during a run.

    Attributes
    ----------
    samples : mapping of str to numpy.ndarray
        For each sample (n,): `ios` completed, `at_ns` since the run began [ns], `written_bytes` by
        the host [bytes], `pages_programmed`, `pages_relocated`, `blocks_erased` since the run
        began, `erased_blocks` of all dies that can be filled, `least_erased_blocks` of any die.
    erases_before, erases : numpy.ndarray
        Erase count of each block, before and after the run, die after die (blocks,).
    valid : numpy.ndarray or None
        Valid pages of each block after the run, −1 for one that is not full (blocks,); None where
        the FTL does not count them.
    channels, dies, pages_per_block, page_bytes : int
        Geometry of the device; a die with independent planes counts as several.
    operations : Operations or None
        Operations of its dies; None in files of older versions.
    """

    samples: Mapping[str, NDArray[np.uint64]]
    erases_before: NDArray[np.uint64]
    erases: NDArray[np.uint64]
    valid: NDArray[np.int64] | None
    channels: int
    dies: int
    pages_per_block: int
    page_bytes: int
    operations: Operations | None


def write_device_log(folder: Path, run: str, trace: "Log") -> InsideFile:
    """Write the device log of a run that is stored next.

    Raises
    ------
    OSError, UflipError
        If it cannot be written.
    """
    path = log_file(folder, run)
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


def read_device_log(run: "StoredRun") -> DeviceLog | None:
    """Read the device log of a run; return None if it has none.

    Raises
    ------
    ResultsError
        If the file has changed since it was written, or is missing.
    """
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
