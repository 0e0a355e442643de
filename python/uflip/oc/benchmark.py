"""The four micro-benchmarks of uFLIP-OC, one after the other, on one device."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from uflip.data.summary import MixFound, OpenChannel, OpTimes, ScalingFound
from uflip.microbench import MICRO_BENCHMARKS
from uflip.microbench.experiment import PlannedRun
from uflip.microbench.open_channel import oc0, oc1, oc2, oc3
from uflip.microbench.open_channel.jobs import Bench, JobScope
from uflip.microbench.open_channel.oc0 import Oc0
from uflip.microbench.open_channel.oc1 import Oc1
from uflip.microbench.open_channel.oc3 import Oc3
from uflip.microbench.open_channel.scaling import Scaling
from uflip.microbench.open_channel.series import READ, WRITE, ResponseSeries
from uflip.stats import summarise

NS_PER_MS = 1e6


@dataclass(frozen=True)
class OpenChannelFindings:
    """The results of the micro-benchmarks; None for those that were omitted.

    `order` has the statuses of a write that begins in the middle of a block; oc0 measures it.
    """

    oc0: Oc0 | None
    oc1: Oc1 | None
    oc2: dict[str, Scaling] | None
    oc3: Oc3 | None
    order: list[str] | None = None


def layout(scope: JobScope, names: Sequence[str]) -> list[PlannedRun]:
    """Lay out micro-benchmarks by name, with numbered ids."""
    jobs = [job for name in names for job in MICRO_BENCHMARKS[name].jobs(scope)]
    if oc0.NAME in names:
        jobs.append(oc0.order(scope))
    return [replace(job, id=f"{number:04d}-{job.id}") for number, job in enumerate(jobs, 1)]


def name_of(run: str) -> str:
    """Return the name of a job, without the number of its id.

    >>> name_of("0007-oc0-WRWR")
    'oc0-WRWR'
    """
    return run.partition("-")[2]


def measure(bench: Bench, names: Sequence[str]) -> OpenChannelFindings:
    """Run micro-benchmarks by name, or read their stored logs."""
    return OpenChannelFindings(
        oc0.measure(bench) if oc0.NAME in names else None,
        oc1.measure(bench) if oc1.NAME in names and bench.scope.sacrifice else None,
        oc2.measure(bench) if oc2.NAME in names else None,
        oc3.measure(bench) if oc3.NAME in names else None,
        oc0.measure_order(bench) if oc0.NAME in names else None,
    )


def document(measured: OpenChannelFindings) -> OpenChannel:
    """Return results as plain data, for `--json` and the result folder."""
    results: OpenChannel = {}
    if measured.oc0:
        results["oc0"] = {
            "mixes": _mixes(measured.oc0.mixes, measured.oc0.throughput),
            "write_mb_per_s": measured.oc0.write_mb_per_s.tolist(),
            "read_mb_per_s": measured.oc0.read_mb_per_s.tolist(),
        }
    if measured.oc1:
        worn = measured.oc1
        share = worn.failing_share()
        results["oc1"] = {
            "sacrificed": "{}:{}:{}".format(*worn.block),
            "cycles": worn.cycles,
            "pages": worn.pages,
            "first_failing_read_cycles": worn.first_failure(),
            "failing_reads_share": float(share[-1]) if len(share) else 0.0,
            "failed_writes": int(worn.failed_writes.sum()),
            "erase_first_ms": float(worn.erase_ms[0]),
            "erase_last_ms": float(worn.erase_ms[-1]),
            "write_first_ms": float(worn.write_ms[0]),
            "write_last_ms": float(worn.write_ms[-1 - worn.erase_failed]),
            "erase_failed": worn.erase_failed,
        }
    if measured.oc2:
        results["oc2"] = _scaling(measured.oc2)
    if measured.oc3:
        results["oc3"] = {
            "scaling": _scaling(measured.oc3.scaling),
            "all_luns_mb_per_s": measured.oc3.all_luns,
            "mixes": _mixes(measured.oc3.mixes, measured.oc3.throughput),
        }
    return results


def _scaling(scalings: dict[str, Scaling]) -> dict[str, ScalingFound]:
    return {
        kind: {
            "over": scaling.over,
            "mb_per_s": {str(degree): value for degree, value in scaling.mb_per_s.items()},
            "factors": {str(degree): value for degree, value in scaling.factors().items()},
        }
        for kind, scaling in scalings.items()
    }


def _mixes(mixes: dict[str, ResponseSeries], throughput: dict[str, float]) -> dict[str, MixFound]:
    return {
        name: {
            "mb_per_s": throughput[name],
            "failed": series.failed,
            "reads": times_summary(series, READ),
            "writes": times_summary(series, WRITE),
        }
        for name, series in mixes.items()
    }


def times_summary(series: ResponseSeries, op: int) -> OpTimes | None:
    """Summarise the response times of an operation; None without any."""
    times = series.times(op)
    if not len(times):
        return None
    statistics = summarise(np.rint(times * NS_PER_MS))
    return OpTimes(
        count=statistics["count"],
        mean_ms=statistics["mean_ns"] / NS_PER_MS,
        p5_ms=_ms(statistics["p5_ns"]),
        p50_ms=_ms(statistics["p50_ns"]),
        p95_ms=_ms(statistics["p95_ns"]),
        p99_ms=_ms(statistics["p99_ns"]),
        max_ms=statistics["max_ns"] / NS_PER_MS,
    )


def _ms(ns: int | None) -> float | None:
    return None if ns is None else ns / NS_PER_MS


def format_times(times: OpTimes, digits: int) -> list[str]:
    """Format mean, percentiles and maximum [ms] for a table, with a dash for unknown ones."""
    values = (
        times["mean_ms"], times["p5_ms"], times["p50_ms"], times["p95_ms"], times["p99_ms"],
        times["max_ms"],
    )  # fmt: skip
    return ["–" if value is None else f"{value:.{digits}f}" for value in values]
