"""Findings about an open-channel device, for drawing: bands, LUNs, wear, parallelism, rules.

The numbers are those of `uflip.oc`, which the report draws too. Long series are thinned out by an
odd step, so that no position of a mix is always left out.
"""

from collections.abc import Mapping

import numpy as np

from uflip.errors import UsageError
from uflip.microbench.open_channel.oc1 import Oc1
from uflip.microbench.open_channel.scaling import Scaling
from uflip.microbench.open_channel.series import ResponseSeries
from uflip.oc.contract import Rule
from uflip.oc.figures import TOP_PERCENTILE
from uflip.oc.result_dir import OpenChannelResult
from uflip.web import api_io_types
from uflip.web.open_results import OpenResults

MAX_DOTS = 3000
LINE_POINTS = 600


def channel(opened: OpenResults, key: str) -> api_io_types.Channel:
    """Return the findings of a uFLIP-OC folder.

    Raises
    ------
    UsageError
        If the folder is of another benchmark.
    """
    results = opened.results(key)
    if not results.is_open_channel:
        raise UsageError(
            "Not an open-channel device",
            where=opened.folder(key).name,
            got="a block device",
            allowed="results of uFLIP-OC",
            action="open it as a result",
        )
    result = OpenChannelResult(results)
    phases = result.measured
    scaling = {**(phases.oc2 or {}), **(phases.oc3.scaling if phases.oc3 else {})}
    return {
        "bands": _bands(phases.oc0.mixes, phases.oc0.throughput) if phases.oc0 else [],
        "shares": _bands(phases.oc3.mixes, phases.oc3.throughput) if phases.oc3 else [],
        "luns": None
        if phases.oc0 is None
        else {
            "write_mb_per_s": phases.oc0.write_mb_per_s.tolist(),
            "read_mb_per_s": phases.oc0.read_mb_per_s.tolist(),
        },
        "wear": None if phases.oc1 is None else _wear(phases.oc1),
        "scaling": [_scaling(name, line) for name, line in scaling.items()],
        "rules": [_rule(rule) for rule in result.rules],
    }


def _bands(
    mixes: Mapping[str, ResponseSeries], throughput: Mapping[str, float]
) -> list[api_io_types.ResponseBands]:
    bands: list[api_io_types.ResponseBands] = []
    for mix, series in mixes.items():
        step = max(1, len(series.op) // MAX_DOTS) | 1
        at = np.arange(0, len(series.op), step)
        bands.append(
            {
                "mix": mix,
                "ios": len(series.op),
                "at": at.tolist(),
                "op": series.op[at].tolist(),
                "ms": np.round(series.response_time_ms[at], 6).tolist(),
                "top_ms": float(np.percentile(series.response_time_ms, TOP_PERCENTILE)),
                "mb_per_s": throughput[mix],
            }
        )
    return bands


def _wear(worn: Oc1) -> api_io_types.BlockWear:
    cycles = worn.cycles - worn.erase_failed
    at = np.unique(np.linspace(0, max(cycles - 1, 0), LINE_POINTS).astype(np.int64))
    return {
        "block": ":".join(map(str, worn.block)),
        "cycles": worn.cycles,
        "at": (at + 1).tolist(),
        "erase_ms": worn.erase_ms[at].tolist(),
        "write_ms": worn.write_ms[at].tolist(),
        "read_ms": worn.read_ms[at].tolist(),
        "failing_share": worn.failing_share()[at].tolist(),
        "first_failure": worn.first_failure(),
        "erase_failed": bool(worn.erase_failed),
    }


def _scaling(name: str, one: Scaling) -> api_io_types.ScalingCurve:
    return {
        "name": name,
        "over": one.over,
        "degrees": list(one.mb_per_s),
        "mb_per_s": list(one.mb_per_s.values()),
    }


def _rule(rule: Rule) -> api_io_types.RuleVerdict:
    return {
        "name": rule.name,
        "says": rule.says,
        "verdict": rule.verdict,
        "evidence": rule.evidence,
    }
