"""What is said of devices before one is chosen, and of those that are served: plain data.

`uflip devices --json` prints the first, `uflip serve --json` the last. Sizes are in bytes.
"""

from typing import NotRequired, TypedDict

from uflip.data.document import Count, Text

Identity = dict[str, str | int]
"""What makes two descriptions of a device descriptions of one device: fields by name."""


class BlockReport(TypedDict):
    """Who uses a block device ("" if nobody), what it holds, and what --destroy must say."""

    in_use: Text
    holds: list[Text]
    token: Text


class KnownDevice(TypedDict):
    """A device that can be named; what stands below `description` only of block devices."""

    url: Text
    kind: Text
    description: Text
    model: NotRequired[Text]
    serial: NotRequired[Text]
    capacity_bytes: NotRequired[Count]
    in_use: NotRequired[Text]
    holds: NotRequired[list[Text]]
    token: NotRequired[Text]


class Quantiles(TypedDict):
    """Of durations [ns], null where there are none; `span_ns`: of the last whole stretch."""

    count: Count
    mean_ns: Count | None
    p50_ns: Count | None
    p90_ns: Count | None
    p99_ns: Count | None
    p999_ns: Count | None
    max_ns: Count | None
    span_ns: NotRequired[Count]


class ServedExport(TypedDict):
    """What was served of one device: `simulated` is what it took, `lag` how late the host was."""

    name: Text
    reads: Count
    writes: Count
    flushes: Count
    trims: Count
    write_zeroes: Count
    failed: Count
    bytes_read: Count
    bytes_written: Count
    bytes_zeroed: Count
    response_time: Quantiles
    simulated: Quantiles
    lag: Quantiles
    recent: Quantiles
    held_ns: Count
    counters: dict[str, Count] | None
    flash: NotRequired[dict[str, Count]]


class ServerClients(TypedDict):
    """Clients of a server: now, since it began, and those that there was no room for."""

    now: Count
    in_all: Count
    turned_away: Count


class ServedDocument(TypedDict):
    """What `uflip serve` served."""

    elapsed_ns: Count
    clients: ServerClients
    exports: list[ServedExport]
