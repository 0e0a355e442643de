"""The description of a single run: the output of `uflip pattern --json`."""

import json

from uflip._native import Trace
from uflip.amplification import write_amplification
from uflip.data.device import DeviceInfo
from uflip.data.single_run import OneRun
from uflip.data.spec import read_spec
from uflip.results.columns import pieces
from uflip.results.run_statistics import statistics_of

SIZE = "io_size_bytes"


def describe_run(trace: Trace, info: DeviceInfo, durability: str) -> OneRun:
    """Describe a run as plain data.

    Parameters
    ----------
    trace : Trace
        All I/Os of the run.
    info : DeviceInfo
        The device.
    durability : str
        Durability of writes.

    Returns
    -------
    OneRun
        device, durability, spec, elapsed_ns, ios, bytes, ignored. Of the measured I/Os:
        ios_per_s, bytes_per_s, statistics, components (of a mix), by_mode (with several modes),
        causes_ns (mean per I/O). Of the whole run: counters, write_amplification, ended (None, or
        the end of a run with a stop rule).
    """
    measured = statistics_of([trace])
    statistics = measured.statistics
    assert statistics is not None, "a run has I/Os behind its start-up"
    counters = json.loads(trace.counters_json() or "null")
    document: OneRun = {
        "device": info,
        "durability": durability,
        "spec": read_spec(trace.spec_json),
        "ios": len(trace),
        "ignored": len(trace) - measured.count,
        "bytes": sum(int(sizes.sum(dtype="uint64")) for (sizes,) in pieces(trace, [SIZE])),
        "elapsed_ns": trace.elapsed_ns(),
        "ios_per_s": measured.ios_per_s,
        "bytes_per_s": measured.bytes_per_s,
        "statistics": statistics,
        "causes_ns": dict(measured.causes_ns),
        "counters": counters,
        "write_amplification": write_amplification(counters, info.page_bytes, trace.bytes_written),
        "ended": None if trace.ended_json is None else json.loads(trace.ended_json),
    }
    if measured.components:
        # A mix may never draw one of its patterns.
        document["components"] = {name: of for name, of in measured.components.items() if of}
    if measured.separate_modes:
        document["by_mode"] = measured.separate_modes
    return document
