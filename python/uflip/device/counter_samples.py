"""Counters of a simulated device over the course of a run, from what was recorded inside of it."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from uflip import _native
from uflip.errors import native_errors

MOST = 128
"""Samples that are stored with a run: its rounds are fewer."""
NAMES = ("written_bytes", "pages_programmed")
PREFIX = "sample_"


def counter_samples(trace: _native.Trace) -> dict[str, list[int]]:
    """Return what the host had written and the device had programmed at instants of a run.

    Parameters
    ----------
    trace : Trace
        From `Device.run` with `samples`.

    Returns
    -------
    dict
        `written_bytes` [bytes] and `pages_programmed` (n,) since the run began; empty for a real
        device.
    """
    if not trace.has_inside:
        return {}
    with TemporaryDirectory(prefix="uflip-samples-") as folder, native_errors():
        path = str(Path(folder) / "inside.parquet")
        trace.write_inside(path, "{}")
        columns, _ = _native.read_inside(path)
        found = {name: np.asarray(column) for name, column in columns}
    every = max(-(-len(found[PREFIX + NAMES[0]]) // MOST), 1)
    samples = {}
    for name in NAMES:
        values = found[PREFIX + name]
        kept = [*values[:-1:every], values[-1]]
        samples[name] = [int(value) for value in kept]
    return samples
