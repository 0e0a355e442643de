"""Sweeps: one pattern on many simulated devices, as grids or samples, with rankings.

`points`         combinations: all, or a sample
`measure_point`  measurement of a point, and its costs: spare flash and memory
`run_sweep`      from the design to the rows
`data_set`       rows on disk: Parquet with a manifest, resumed after a kill
`ranking`        the best point, the Pareto front, the influence of each name

Points are independent: a row is identical to that of the same command alone, on any executor
(`uflip.executors`) and among any number of others.
"""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from uflip.data.sweep import Design, Range, Sample, Value, Varied
from uflip.durability import CACHED
from uflip.errors import UsageError
from uflip.executors import OnStep, ignore
from uflip.spec import Functions, baseline
from uflip.sweeping.measure_point import SweepRow
from uflip.sweeping.points import SweepPoint, points
from uflip.sweeping.run_sweep import PlannedSweep, load_plan, plan

__all__ = [
    "Design",
    "PlannedSweep",
    "Range",
    "Sample",
    "SweepPoint",
    "SweepRow",
    "Value",
    "Varied",
    "load_plan",
    "plan",
    "points",
    "sweep",
]  # fmt: skip


def sweep(
    url: str,
    spec: Functions | str,
    vary: Mapping[str, Sequence[Any] | Range],
    *,
    sample: Sample | None = None,
    durability: str = CACHED,
    warm_up: float = 0.0,
    timed: bool = True,
    data: str | PathLike[str] | None = None,
    on_step: OnStep = ignore,
) -> list[SweepRow]:
    """Run a pattern on every combination of the varied values, or on a sample of them.

    Parameters
    ----------
    url : str
        A simulated device; its own overrides apply to every point.
    spec : str, Basic, Mix or Parallel
        The pattern: SR, RR, SW or RW, or as `uflip.baseline` and the like make it.
    vary : mapping
        Name -> values, or a `Range` of numbers. A name is one of `uflip.spec.CHANGEABLE`,
        "durability", or else a key of the profile.
    sample : Sample, optional
        Draw combinations instead of taking all. Those that make no device are omitted.
    durability : str
        When writes are complete, see `uflip.durability`, unless it varies.
    warm_up : float
        Before the run, write this multiple of the device size in functional mode, by the same
        pattern with another seed: the run then measures the steady state.
    timed : bool
        False: run in functional mode, at the speed of memory. There are then no times, only
        counters.
    data : path, optional
        A new folder for the rows; `load_plan(data).carry_out()` resumes it.
    on_step : callable, optional
        Called after each point.

    Returns
    -------
    list of SweepRow
        In the order of the points, on any executor; see `uflip.executors.using`.

    Raises
    ------
    UsageError
        If the device is not simulated, nothing varies, or a point of a grid makes no device or
        pattern; for a warm-up by a pattern that writes no data, and for a durability other than
        cached in functional mode.

    Examples
    --------
    >>> rows = sweep(
    ...     "sim:demo?blocks_per_die=64", "RW", {"spare_factor": [0.15, 0.3]}, timed=False
    ... )
    >>> rows[0].write_amplification > rows[1].write_amplification
    True
    """
    if not isinstance(vary, Mapping):
        raise UsageError(
            "`vary` must be a dict of names and values",
            where="vary",
            got=repr(vary),
            allowed="a dict of names with their values, or ranges",
            action='write {"gc": ["greedy", "cyclic"]}',
        )
    varied = {name: _plain(name, each) for name, each in vary.items()}
    pattern = baseline(spec) if isinstance(spec, str) else spec
    design = Design(url, pattern, varied, sample, durability, warm_up, timed)
    return plan(design, None if data is None else Path(data)).carry_out(on_step)


def _plain(name: str, values: Any) -> list[Any] | Range:
    """Return values as Python types: numpy has types of its own."""
    if isinstance(values, Range):
        return values
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise UsageError(
            "The values of a name must be a list",
            where=name,
            got=repr(values),
            allowed="a list, or a Range of numbers",
            action=f"write [{values!r}] for this one value",
        )
    return [each.item() if isinstance(each, np.generic) else each for each in values]
