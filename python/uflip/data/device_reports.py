"""Reports about available devices, and about served ones: plain data.

`uflip devices --json` prints the former, `uflip serve --json` the latter. Sizes are in bytes.
"""

from typing import NotRequired, TypedDict

from uflip.data.document import Count, Text

Identity = dict[str, str | int]
"""The identity of a device, to compare two descriptions: fields by name."""


class BlockReport(TypedDict):
    """The user of a block device ("" if free), its content, and the token for --destroy."""

    in_use: Text
    holds: list[Text]
    token: Text


class KnownDevice(TypedDict):
    """An available device; the fields after `description` only for block devices."""

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
    """Quantiles of durations [ns], null without any; `span_ns`: length of the last interval."""

    count: Count
    mean_ns: Count | None
    p50_ns: Count | None
    p90_ns: Count | None
    p99_ns: Count | None
    p999_ns: Count | None
    max_ns: Count | None
    span_ns: NotRequired[Count]


class ServedExport(TypedDict):
    """Statistics of a served device: `simulated` is its own latency, `lag` that of the host."""

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
    """Clients of a server: now, since it began, and rejected because of the limit."""

    now: Count
    in_all: Count
    turned_away: Count


class ServedDocument(TypedDict):
    """The statistics of `uflip serve`."""

    elapsed_ns: Count
    clients: ServerClients
    exports: list[ServedExport]
