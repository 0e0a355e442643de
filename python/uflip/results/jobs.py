"""Jobs over physical addresses, where results treat them differently from patterns over sectors.

A run of an open-channel device is a job. Its file has a row per command, with address and status,
or, for a wear job, a row per cycle of a block.
"""

from typing import Any

import msgspec
import numpy as np

from uflip import _native
from uflip.data.run_summary import RunSummary, typed
from uflip.results.convergence import job_convergence
from uflip.stats import summarise

OPS = ("reads", "writes", "erases")
WEAR = {"reads": "read_ns", "writes": "write_ns", "erases": "erase_ns"}
"""Columns of a wear job for each operation: a mean per cycle."""


def job_summary(run: Any, log: _native.FlashTrace) -> RunSummary:
    """Summarise a job: `statistics` are those of its reads and writes; each operation is separate.

    Parameters
    ----------
    run
        The planned or stored run: id, pattern, parameter, value, unit.
    log
        Its log. For a wear job, `statistics` is null, and those of an operation are of its means
        in each cycle. Any other job has an interval of the mean, as a run of fixed length.
    """
    wears_out = WEAR["erases"] in log.columns
    times = {op: _times(log, number, op) for number, op in enumerate(OPS)}
    moved = np.zeros(0) if wears_out else np.concatenate([times["reads"], times["writes"]])
    mean_ns = float(moved.mean()) if len(moved) else None
    convergence = job_convergence(*((np.zeros(0),) * 2 if wears_out else _moved(log)))
    document: dict[str, object] = {
        "run": run.id,
        "pattern": run.pattern,
        "parameter": run.parameter,
        "value": run.value,
        "unit": run.unit,
        "io_count": len(log),
        "io_ignore": 0,
        "elapsed_ns": log.elapsed_ns(),
        "ios_per_s": len(log) / log.elapsed_ns() * 1e9 if log.elapsed_ns() else None,
        "statistics": _statistics(moved),
        "repetitions": [{"run": run.id, "io_count": len(log), "mean_ns": mean_ns, **convergence}],
        "disagreement": None,
        "components": {
            op: {"pattern": op, "statistics": _statistics(op_times)}
            for op, op_times in times.items()
            if len(op_times)
        },
        "spec": msgspec.json.decode(log.job_json),
    }
    if log.causes:
        document["time_spent_ns"] = {
            cause: float(np.asarray(log.column(cause)).mean()) if len(log) else 0.0
            for cause in log.causes
        }
    return typed(document)


def _moved(log: _native.FlashTrace) -> tuple[np.ndarray, np.ndarray]:
    """Return times [ns] and threads of reads and writes (n,), in the order of submission."""
    moves = np.asarray(log.column("op")) < OPS.index("erases")
    times, thread = (np.asarray(log.column(name)) for name in ("response_time_ns", "thread"))
    return times[moves], thread[moves]


def _times(log: _native.FlashTrace, number: int, op: str) -> np.ndarray:
    if WEAR[op] in log.columns:
        means: np.ndarray = np.asarray(log.column(WEAR[op]))
        return means
    times: np.ndarray = np.asarray(log.column("response_time_ns"))
    of_this: np.ndarray = times[np.asarray(log.column("op")) == number]
    return of_this


def _statistics(times: np.ndarray) -> dict[str, int | float | None] | None:
    return summarise(times).as_dict() if len(times) else None
