"""One run by itself, described: what `uflip pattern --json` prints."""

import json

from uflip._native import Trace
from uflip.amplification import write_amplification
from uflip.data.device import DeviceInfo
from uflip.data.one_run import OneRun
from uflip.results.columns import as_array, measured
from uflip.results.throughput import measured_amount, rates
from uflip.spec import Mix, read_spec
from uflip.stats import summarise


def describe(trace: Trace, info: DeviceInfo, durability: str) -> OneRun:
    """Describe a run as plain data.

    Parameters
    ----------
    trace : Trace
        All I/Os of the run.
    info : DeviceInfo
        The device.
    durability : str
        What writes waited for.

    Returns
    -------
    OneRun
        device, durability, spec, elapsed_ns, ios, bytes, ignored; of what was not ignored
        ios_per_s, bytes_per_s, statistics, components (of a mix), causes_ns (mean per I/O); of the
        whole run counters, write_amplification; ended (None, or how it came to its length).
    """
    spec = read_spec(trace.spec_json)
    response_ns = measured(trace)
    ios_per_s, bytes_per_s = rates([measured_amount(trace)])
    total_bytes = int(as_array(trace, "io_size_bytes").sum(dtype="uint64"))
    counters = json.loads(trace.counters_json() or "null")
    document: OneRun = {
        "device": info,
        "durability": durability,
        "spec": spec,
        "ios": len(trace),
        "ignored": len(trace) - len(response_ns),
        "bytes": total_bytes,
        "elapsed_ns": trace.elapsed_ns(),
        "ios_per_s": ios_per_s,
        "bytes_per_s": bytes_per_s,
        "statistics": summarise(response_ns).as_dict(),
        "causes_ns": {name: float(measured(trace, name).mean()) for name in trace.causes},
        "counters": counters,
        "write_amplification": write_amplification(counters, info.page_bytes, trace.bytes_written),
        "ended": None if trace.ended_json is None else json.loads(trace.ended_json),
    }
    if isinstance(spec, Mix):
        component = measured(trace, "component")
        document["components"] = {
            name: summarise(response_ns[component == index]).as_dict()
            for index, name in enumerate(("first", "second"))
            if (component == index).any()  # a pattern may never be drawn
        }
    return document
