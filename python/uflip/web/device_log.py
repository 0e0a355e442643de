"""The device log of a simulated device during a run, for drawing.

Write amplification is bytes programmed over bytes that the host wrote, between one sample and the
next. Blocks of a die are grouped into `COLUMNS` columns, so that the size of the picture does not
depend on the device. A column shows its most erased block, so that a hot block is not averaged
away.
"""

import numpy as np
from numpy.typing import NDArray

from uflip.results.device_log import DeviceLog, read_device_log
from uflip.web import api_io_types
from uflip.web.open_results import OpenResults

COLUMNS = 128


def device_log_view(opened: OpenResults, key: str, name: str) -> api_io_types.DeviceLogView | None:
    """Return the device log of a run; None if nothing was recorded."""
    log = read_device_log(opened.run(key, name).run)
    if log is None:
        return None
    samples = {each: values.astype(np.int64) for each, values in log.samples.items()}
    during = (log.erases - log.erases_before).astype(np.int64)
    return {
        "ios": samples["ios"].tolist(),
        "at_ns": samples["at_ns"].tolist(),
        "erased_blocks": samples["erased_blocks"].tolist(),
        "least_erased_blocks": samples["least_erased_blocks"].tolist(),
        "write_amplification": _write_amplification(samples, log.page_bytes),
        "dies": [
            {"channel": die % log.channels, "die": die // log.channels} for die in range(log.dies)
        ],
        "blocks_per_die": len(during) // max(log.dies, 1),
        "erases": _by_die(during, log.dies),
        "erased": int(during.sum()),
        "pages_per_block": log.pages_per_block,
        "valid": _distribution(log),
    }


def _write_amplification(
    samples: dict[str, NDArray[np.int64]], page_bytes: int
) -> list[float | None]:
    """Return bytes programmed over bytes written since the previous sample; None without writes."""
    programmed = np.diff(samples["pages_programmed"]) * page_bytes
    pairs = zip(programmed.tolist(), np.diff(samples["written_bytes"]).tolist(), strict=True)
    return [None, *(one / other if other else None for one, other in pairs)]


def _by_die(values: NDArray[np.int64], dies: int) -> list[list[int]]:
    """Return the maximum of each column of blocks, one row per die."""
    rows = values.reshape(dies, -1)
    blocks = rows.shape[1]
    starts = np.unique(np.arange(COLUMNS) * blocks // COLUMNS) if blocks else np.zeros(0, int)
    maxima: list[list[int]] = np.maximum.reduceat(rows, starts, axis=1).tolist()
    return maxima


def _distribution(log: DeviceLog) -> list[int] | None:
    """Return the number of full blocks by their number of valid pages, from none to all."""
    if log.valid is None:
        return None
    full = log.valid[log.valid >= 0]
    counts: list[int] = np.bincount(full, minlength=log.pages_per_block + 1).tolist()
    return counts
