"""Micro-benchmarks of write streams: those of NVMe's directive, and placement handles (FDP)."""

from uflip.microbench.experiment import Context
from uflip.spec import Spec

MAX_STREAMS = 8
"""Number of streams that are compared: FDP drives have eight reclaim unit handles."""


def why_no_stream(context: Context, spec: Spec) -> str | None:
    """Return why the device does not support the streams of a pattern."""
    streams = context.info.write_streams
    if streams == 1:
        return "the device has one write stream: it separates nothing that the host names"
    highest = max(max(each.write_stream or 0, each.hot_write_stream or 0) for each in spec.parts)
    if highest >= streams:
        return f"the device has no write stream {highest}: its last one is {streams - 1}"
    return None
