"""Samples of a simulated device's counters during a run, from its device log."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from uflip import _native
from uflip.errors import native_errors

MAX_SAMPLES = 128
"""Number of samples stored with a run: more than its rounds."""
NAMES = ("written_bytes", "pages_programmed")
PREFIX = "sample_"


def counter_samples(trace: _native.Trace) -> dict[str, list[int]]:
    """Return samples of the host's writes and the programmed pages during a run.

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
        series = {name: np.asarray(column) for name, column in columns}
    step = max(-(-len(series[PREFIX + NAMES[0]]) // MAX_SAMPLES), 1)
    samples = {}
    for name in NAMES:
        values = series[PREFIX + name]
        sampled = [*values[:-1:step], values[-1]]
        samples[name] = [int(value) for value in sampled]
    return samples
