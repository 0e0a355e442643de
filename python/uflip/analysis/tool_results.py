"""Results of other programs: diskspd XML, elbencho CSV, iostat JSON, SMART logs of NVMe drives.

These are rates and means that the programs computed, not I/Os.

**Source**: `XmlResultParser.cpp` of diskspd; "CSV Results File" and `Statistics.cpp` of elbencho;
`iostat(1)` of sysstat 12; `nvme-smart-log(1)`, `nvme-ocp-smart-add-log(1)` and
`nvme-intel-smart-log-add(1)` of nvme-cli; smartctl(8), `--json`.
**Faithful**: rates, means, percentiles; of SMART logs the bytes and commands between two of them.
**Simplified**: threads and targets of diskspd are added. Rates of elbencho are those until the
last thread ended ("last"); a mix (`--rwmixpct`) has rows for writes and for reads. Of iostat,
reports are averaged, waits weighted by their I/Os.
**Ambiguous**: the first report of iostat is an average since the start of the machine unless `-y`
was given; of several reports it is left out. A unit of NVMe is 1000 sectors of 512 bytes, rounded
up, so a difference is known to one unit.
"""

import csv
import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

import msgspec
from msgspec import Struct

from uflip.data.document import DocumentKind, Table, read_foreign_text, start_of_text
from uflip.errors import UsageError

KIND = DocumentKind(
    "result", 1 << 27, "see docs/reference/formats.md for what `uflip show` reads", UsageError
)
_NS_PER_S = 1_000_000_000
_MS_NS = 1_000_000
_US_NS = 1000
_KIB, _MIB = 1 << 10, 1 << 20
_NVME_UNIT = 512_000
_INTEL_UNIT = 32 << 20
_COUNTER_END = 1 << 128
_MAX_DIGITS = 40
_DAMAGED = (KeyError, TypeError, ValueError, AttributeError, OverflowError, IndexError)


class ToolRow(Struct, frozen=True, kw_only=True):
    """One direction of one test or device; None is unknown."""

    #: The test, time span or device; read, write, trim or another operation.
    name: str
    direction: str
    #: Rates.
    ios_per_s: float | None
    bytes_per_s: float | None
    mean_ns: float | None = None  #: Mean response time [ns].
    percentiles: dict[str, float] = {}  #: Share [%] -> response time [ns].
    in_flight: float | None = None  #: I/Os in flight, on average, of the device as a whole.


class ToolResult(Struct, frozen=True, kw_only=True):
    """A file of another program, and how it was understood."""

    tool: str
    rows: tuple[ToolRow, ...]
    notes: tuple[str, ...] = ()


class SmartDifference(Struct, frozen=True, kw_only=True):
    """The counters of a drive between two logs; None is unknown."""

    #: Bytes; those of the host are known to one unit of 512,000 bytes.
    host_bytes_read: int | None
    host_bytes_written: int | None
    media_bytes_written: int | None
    #: Numbers.
    read_commands: int | None
    write_commands: int | None
    power_on_hours: int | None  #: Hours.
    write_amplification: tuple[float, float] | None  #: Lower and upper bound.


def tool_of(path: Path) -> str | None:
    """Return the program that wrote a file: diskspd, elbencho, iostat, smart; None: another one."""
    start = start_of_text(path, KIND).lstrip()
    if start.startswith(("<?xml", "<Results")):
        return "diskspd" if "<Results>" in start else None
    if start.startswith("{"):
        if '"sysstat"' in start:
            return "iostat"
        try:
            return "smart" if _smart_counters(read_foreign_text(path, KIND)) else None
        except UsageError:
            return None
    head = start.splitlines()[0].split(",") if start else []
    return "elbencho" if {"operation", "IOPS [last]", "MiB/s [last]"} <= set(head) else None


def read_tool_result(path: Path) -> ToolResult:
    """Read a file of diskspd, elbencho or iostat."""
    tool = tool_of(path)
    readers: dict[str, Callable[[str], ToolResult]] = {
        "diskspd": _diskspd,
        "elbencho": _elbencho,
        "iostat": _iostat,
    }
    if tool not in readers:
        raise KIND.unreadable(path, tool or "another file", " or ".join(readers))
    try:
        result = readers[tool](read_foreign_text(path, KIND))
    except (*_DAMAGED, ElementTree.ParseError, csv.Error, msgspec.DecodeError) as error:
        got = f"{type(error).__name__}: {error}"
        raise KIND.unreadable(path, got, f"a whole result of {tool}") from error
    if not result.rows:
        raise KIND.unreadable(path, "no result", f"a result of {tool} with I/Os")
    return result


def _diskspd(text: str) -> ToolResult:
    if "<!" in text:
        raise ValueError("a document type")  # entities could fill the memory
    root = ElementTree.fromstring(text.split("?>", 1)[-1] if text.startswith("<?") else text)
    spans = root.findall("TimeSpan")
    rows: list[ToolRow] = []
    for number, span in enumerate(spans, 1):
        seconds = _positive(span.findtext("TestTimeSeconds"))
        name = f"time span {number}" if len(spans) > 1 else "all targets"
        for direction in ("Read", "Write"):
            targets = span.findall("Thread/Target")
            ios = sum(int(target.findtext(f"{direction}Count", "")) for target in targets)
            size = sum(int(target.findtext(f"{direction}Bytes", "")) for target in targets)
            if not ios:
                continue
            mean = span.findtext(f"Latency/Average{direction}Milliseconds")
            shares = {
                f"{float(share):g}": _positive(value, or_zero=True) * _MS_NS
                for bucket in span.findall("Latency/Bucket")
                if (share := bucket.findtext("Percentile"))
                and (value := bucket.findtext(f"{direction}Milliseconds"))
            }
            rows.append(
                ToolRow(
                    name=name,
                    direction=direction.lower(),
                    ios_per_s=ios / seconds,
                    bytes_per_s=size / seconds,
                    mean_ns=None if mean is None else _positive(mean, or_zero=True) * _MS_NS,
                    percentiles=shares,
                )
            )
    version = root.findtext("System/Tool/Version") or ""
    return ToolResult(tool=f"diskspd {version}".strip(), rows=tuple(rows))


def _elbencho(text: str) -> ToolResult:
    rows: list[ToolRow] = []
    version = ""
    for row in csv.DictReader(io.StringIO(text), strict=True):
        if row["operation"] == "operation":
            continue  # a second head
        version = row.get("version") or version
        is_mix = bool(row.get("rwmix read IOPS [last]"))
        name = row.get("label") or f"line {len(rows) + 1}"
        direction = "write" if is_mix else row["operation"].lower()
        rows += _elbencho_row(row, "", name, direction)
        rows += _elbencho_row(row, "rwmix read ", name, "read") if is_mix else ()
    notes = ("rates until the last thread ended",)
    return ToolResult(tool=f"elbencho {version}".strip(), rows=tuple(rows), notes=notes)


def _elbencho_row(
    row: Mapping[str, str], prefix: str, name: str, direction: str
) -> Iterator[ToolRow]:
    """Return the columns of a direction as a row; none for an operation on entries."""

    def value(column: str) -> float | None:
        return _number(row.get(prefix + column))

    ios, rate = value("IOPS [last]"), value("MiB/s [last]")
    if ios is None and rate is None:
        return
    total, time_ms = value("MiB [last]"), _number(row.get("time ms [last]"))
    # From MiB and ms, or from MiB/s, whichever has more digits.
    if total and time_ms and total >= (rate or 0):
        rate = total * 1000 / time_ms
    mean = value("IO lat us [avg]")
    yield ToolRow(
        name=name,
        direction=direction,
        ios_per_s=ios,
        bytes_per_s=None if rate is None else rate * _MIB,
        mean_ns=None if mean is None else mean * _US_NS,
    )


def _iostat(text: str) -> ToolResult:
    document = msgspec.json.decode(text, type=Table)
    reports = [
        report["disk"]
        for host in document["sysstat"]["hosts"]
        for report in host["statistics"]
        if report.get("disk")
    ]
    notes = ["the only report, which is since the start of the machine unless -y was given"]
    if len(reports) > 1:
        notes = [f"mean of {len(reports) - 1} reports; the first is since the start of the machine"]
        reports = reports[1:]
    disks: dict[str, list[Table]] = {}
    for report in reports:
        for disk in report:
            disks.setdefault(str(disk["disk_device"]), []).append(disk)
    if any("r/s" not in disk for parts in disks.values() for disk in parts):
        raise ValueError("reports without r/s; write them with iostat -x -o JSON")
    rows = tuple(row for name, parts in disks.items() for row in _iostat_rows(name, parts))
    return ToolResult(tool="iostat", rows=rows, notes=tuple(notes))


def _iostat_rows(name: str, reports: Sequence[Table]) -> Iterator[ToolRow]:
    # sysstat 11 had another name.
    depths = [each.get("aqu-sz", each.get("avgqu-sz")) for each in reports]
    in_flight = [_finite(depth) for depth in depths if depth is not None]
    for letter, direction in (("r", "read"), ("w", "write"), ("d", "trim")):
        rates = [_finite(each.get(f"{letter}/s", 0)) for each in reports]
        if not any(rates):
            continue
        waits = [_finite(each.get(f"{letter}_await", math.nan), or_nan=True) for each in reports]
        weighted = sum(rate * wait for rate, wait in zip(rates, waits, strict=True) if rate)
        mean = weighted / sum(rates)
        yield ToolRow(
            name=name,
            direction=direction,
            ios_per_s=sum(rates) / len(rates),
            bytes_per_s=sum(_iostat_bytes(each, letter) for each in reports) / len(reports),
            mean_ns=None if math.isnan(mean) else mean * _MS_NS,
            in_flight=sum(in_flight) / len(in_flight) if in_flight else None,
        )


def _iostat_bytes(report: Table, letter: str) -> float:
    for unit, size in (("kB", _KIB), ("MB", _MIB), ("sec", 512)):
        if (rate := report.get(f"{letter}{unit}/s")) is not None:
            return _finite(rate) * size
    raise ValueError(f"no {letter}kB/s")


def read_smart_difference(paths: Sequence[Path]) -> SmartDifference:
    """Return the growth of each counter from the first to the last SMART log that has it."""
    logs = [_smart_counters(read_foreign_text(path, KIND)) for path in paths]
    for path, log in zip(paths, logs, strict=True):
        if not log:
            raise KIND.unreadable(path, "no counters", "a SMART log of an NVMe drive, as JSON")
    serials = {str(log["serial"]) for log in logs if "serial" in log}
    if len(serials) > 1:
        raise UsageError(
            "The SMART logs are of several drives",
            where=", ".join(map(str, paths)),
            got=", ".join(sorted(serials)),
            allowed="two logs of one drive",
            action="name those of one drive",
        )

    def grown(name: str) -> int | None:
        values = [int(log[name]) for log in logs if name in log]
        if len(values) < 2:
            return None
        if values[-1] < values[0]:
            raise UsageError(
                f"The counter {name} has decreased",
                where=", ".join(map(str, paths)),
                got=f"{values[0]}, then {values[-1]}",
                allowed="logs of one drive, the older one first",
                action="exchange the files",
            )
        return values[-1] - values[0]

    units = grown("host_units_written")
    host = grown("host_bytes_written") if units is None else units * _NVME_UNIT
    error = _INTEL_UNIT if units is None else _NVME_UNIT
    units_read = grown("host_units_read")
    media = grown("media_bytes_written")
    bounds = None
    if media is not None and host is not None and host > error:
        bounds = (media / (host + error), media / (host - error))
    return SmartDifference(
        host_bytes_read=None if units_read is None else units_read * _NVME_UNIT,
        host_bytes_written=host,
        media_bytes_written=media,
        read_commands=grown("read_commands"),
        write_commands=grown("write_commands"),
        power_on_hours=grown("power_on_hours"),
        write_amplification=bounds,
    )


_SMART_NAMES = {
    "data_units_read": "host_units_read",
    "data_units_written": "host_units_written",
    "host_read_commands": "read_commands",
    "host_write_commands": "write_commands",
    "host_reads": "read_commands",
    "host_writes": "write_commands",
    "power_on_hours": "power_on_hours",
    "physical_media_units_written": "media_bytes_written",
}
"""Key of nvme-cli, its OCP plugin or smartctl -> counter."""
_INTEL_NAMES = {
    "nand_bytes_written": "media_bytes_written",
    "host_bytes_written": "host_bytes_written",
}


def _smart_counters(text: str) -> dict[str, int | str]:
    """Return the counters in a SMART log; empty if the text is another one."""
    try:
        document = msgspec.json.decode(text[text.index("{") :], type=Table)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return {}
    counters: dict[str, int | str] = {}
    serial = document.get("serial_number")
    for key, value in _flat(document, 3):
        name = key.lower().replace(" ", "_")
        if name in _SMART_NAMES and (number := _whole(value)) is not None:
            counters.setdefault(_SMART_NAMES[name], number)
        if name in _INTEL_NAMES and isinstance(value, dict):
            raw = _whole(value.get("raw"))
            if raw is not None:
                counters[_INTEL_NAMES[name]] = raw * _INTEL_UNIT
    written = {"host_units_written", "media_bytes_written", "host_bytes_written"}
    if not written & counters.keys():
        return {}
    return counters | ({"serial": serial} if isinstance(serial, str) else {})


def _flat(document: Table, depth: int) -> Iterator[tuple[str, object]]:
    """Return all keys with their values, down to a depth."""
    for key, value in document.items():
        yield key, value
        if isinstance(value, dict) and depth:
            yield from _flat(value, depth - 1)


def _whole(value: object) -> int | None:
    """Return a counter: a number, its digits as text, or two halves of 64 bits."""
    if isinstance(value, dict) and {"hi", "lo"} <= value.keys():
        high, low = _whole(value["hi"]), _whole(value["lo"])
        return None if high is None or low is None else _bounded((high << 64) + low)
    if isinstance(value, str):
        digits = value.replace(",", "").strip()
        is_number = digits.isascii() and digits.isdigit() and len(digits) < _MAX_DIGITS
        return _bounded(int(digits)) if is_number else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # Not-a-number and infinity are above no bound, or above each.
    return _bounded(int(value)) if 0 <= value < _COUNTER_END else None


def _bounded(value: int) -> int | None:
    """Return a counter of 128 bits; None if it has more."""
    return value if value < _COUNTER_END else None


def _positive(text: str | None, *, or_zero: bool = False) -> float:
    value = float(text or "")
    if not math.isfinite(value) or value < 0 or (value == 0 and not or_zero):
        raise ValueError(f"{text} is not a time")
    return value


def _number(text: str | None) -> float | None:
    return _positive(text, or_zero=True) if text else None


def _finite(value: object, *, or_nan: bool = False) -> float:
    number = float(value)  # type: ignore[arg-type]
    if number < 0 or math.isinf(number) or (math.isnan(number) and not or_nan):
        raise ValueError(f"{number} is not a rate")
    return number
