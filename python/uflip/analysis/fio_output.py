"""The output of fio as summaries: JSON and JSON+ of fio 2 and 3, terse of versions 2 to 5.

These are percentiles and rates that fio computed, not I/Os: there is no interval, and no start-up
is left out.

**Source**: fio's documentation ("Terse output", "JSON output") and the output of fio 3.33, in all
forms of one run (a test).
**Faithful**: numbers, rates, means and percentiles of reads, writes and trims of each job, or of
all together (`unified_rw_reporting`); the error that ended a job.
**Simplified**: of the latencies one is shown: the total (lat) for the mean, and fio's percentiles,
which are those of the completion latency (clat) unless `lat_percentiles=1`.
**Ambiguous**: terse latencies are whole microseconds.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from uflip.data.document import DocumentKind, Table, read_foreign_text, start_of_text
from uflip.errors import UsageError

KIND = DocumentKind(
    "output of fio", 1 << 28, "name a file of fio --output-format=json or terse", UsageError
)
DIRECTIONS = ("read", "write", "trim", "mixed")
_DAMAGED = (KeyError, TypeError, ValueError, AttributeError, OverflowError)
_NS = {"_ns": 1, "": 1000}  # fio 3 names the unit; fio 2 had microseconds
_US_NS = 1000
_NAN = re.compile(r'(?<=")\s*:\s*-?(?:nan|inf)(?=\s*[,}\n])', re.IGNORECASE)
_ERRNO = re.compile(r"[1-9][0-9]{0,4}")
_REPORT = re.compile(r"^\{", re.MULTILINE)
_KIB = 1024
_MS_NS = 1_000_000
_TERSE = re.compile(r"^(?P<version>[2-5]);(?:[^;\n]*;){40}", re.MULTILINE)
_TERSE_FIELDS = {2: (4, 41), 3: (5, 41), 4: (5, 41), 5: (5, 47)}
"""Terse version -> the field at which the reads begin, and the fields of a direction."""


class FioSummary(Struct, frozen=True, kw_only=True):
    """The results of one direction of one job, as fio computed them."""

    #: Name of the job; read, write or trim.
    job: str
    direction: str
    #: Numbers; `ios` is None if only a rate was given.
    ios: int | None
    bytes: int
    runtime_ns: int  #: Length [ns].
    #: Rates.
    iops: float
    bytes_per_s: float
    #: Latency from the submission to the end [ns]; None if fio did not measure it.
    mean_ns: float | None
    min_ns: float | None
    max_ns: float | None
    std_ns: float | None
    percentiles_of: str = "clat"  #: The latency of the percentiles: clat or lat.
    percentiles: dict[str, float] = {}  #: Share [%] -> latency [ns].


class FioOutput(Struct, frozen=True, kw_only=True):
    """A file of fio."""

    format: str  #: "fio json" or "fio terse 3".
    version: str  #: Of fio; empty if it is not named.
    summaries: tuple[FioSummary, ...]  #: A direction of a job each, those without I/Os left out.
    #: Job -> the number of the error that ended it (errno).
    errors: dict[str, int] = {}


def is_fio_output(path: Path) -> bool:
    """Return whether a file begins like the output of fio."""
    start = start_of_text(path, KIND)
    return bool(_TERSE.search(start)) or '"fio version"' in start


def read_fio_output(path: Path) -> FioOutput:
    """Read the output of fio; lines of messages before it are skipped."""
    text = read_foreign_text(path, KIND)
    if '"fio version"' in text:
        return _read_json(path, text)
    rows = [line.split(";") for line in text.splitlines() if _TERSE.match(line)]
    if not rows:
        raise KIND.unreadable(path, "no results", '"fio version" (JSON), or lines of terse output')
    version = int(rows[0][0])
    summaries = [each for row in rows for each in _terse_row(path, row)]
    begins = [(_TERSE_FIELDS[int(row[0])][0], row) for row in rows]
    errors = {row[begin - 3]: row[begin - 1] for begin, row in begins if row[begin - 1] != "0"}
    return FioOutput(
        format=f"fio terse {version}",
        version=rows[0][1] if version > 2 else "",
        summaries=tuple(summaries),
        errors={job: int(error) for job, error in errors.items() if _ERRNO.fullmatch(error)},
    )


def _read_json(path: Path, text: str) -> FioOutput:
    try:
        # Only the outermost braces begin a line; `--status-interval` writes a report each time.
        starts = [found.start() for found in _REPORT.finditer(text)] or [text.index("{")]
        report = text[starts[-1] : text.rindex("}") + 1]
        # fio 2 divides by zero samples.
        document = msgspec.json.decode(_NAN.sub(": null", report), type=Table)
        jobs = document.get("jobs") or document["client_stats"]
        errors = {
            str(job.get("jobname", "")): int(job["error"])
            for job in jobs
            if _ERRNO.fullmatch(str(job.get("error")))
        }
        summaries = tuple(each for job in jobs for each in _json_job(job))
    except (msgspec.DecodeError, *_DAMAGED) as error:
        got = f"{type(error).__name__}: {error}"
        raise KIND.unreadable(path, got, "the JSON of one run of fio") from error
    return FioOutput(
        format="fio json" if len(starts) == 1 else f"fio json (the last of {len(starts)} reports)",
        version=str(document.get("fio version", "")),
        summaries=summaries,
        errors=errors,
    )


def _json_job(job: Table) -> Iterator[FioSummary]:
    for direction in DIRECTIONS:
        part = job.get(direction)
        if not part or not (part.get("total_ios") or part.get("io_bytes")):
            continue
        total, unit = _latency(part, "lat")
        completion, _ = _latency(part, "clat")
        of, percentiles = ("lat", total) if "percentile" in total else ("clat", completion)
        values = {
            f"{float(share):g}": float(value) * unit
            for share, value in (percentiles.get("percentile") or {}).items()
            if float(share) > 0
        }
        # "io_bytes" of fio 2 are KiB; those of fio 3 are bytes, and "io_kbytes" stands beside them.
        size = int(part["io_bytes"]) * (1 if "io_kbytes" in part else _KIB)
        rate = part.get("bw_bytes", float(part.get("bw", 0)) * _KIB)
        yield FioSummary(
            job=str(job.get("jobname", "")),
            direction=direction,
            ios=part.get("total_ios"),
            bytes=size,
            runtime_ns=int(float(part.get("runtime", 0)) * _MS_NS),
            iops=float(part.get("iops", 0)),
            bytes_per_s=float(rate),
            mean_ns=_scaled(total, "mean", unit),
            min_ns=_scaled(total, "min", unit),
            max_ns=_scaled(total, "max", unit),
            std_ns=_scaled(total, "stddev", unit),
            percentiles_of=of,
            percentiles=values,
        )


def _latency(part: Table, name: str) -> tuple[Table, int]:
    """Return the statistics of a latency, and their unit [ns]."""
    for suffix, unit in _NS.items():
        if found := part.get(name + suffix):
            return found, unit
    return {}, 1


def _scaled(latency: Table, name: str, unit: int) -> float | None:
    """Return a value [ns]; None without a measurement, of which all values are 0."""
    value = latency.get(name)
    return float(value) * unit if value is not None and latency.get("max") else None


def _terse_row(path: Path, row: list[str]) -> list[FioSummary]:
    version = int(row[0])
    begin, width = _TERSE_FIELDS[version]
    directions = DIRECTIONS[:3] if version > 3 else DIRECTIONS[:2]
    starts = range(begin, begin + width * len(directions), width)
    parts = [row[start : start + width] for start in starts]
    try:
        return [
            _terse_direction(row[begin - 3], direction, fields)
            for direction, fields in zip(directions, parts, strict=True)
            if len(fields) == width and fields[0] != "0"
        ]
    except _DAMAGED as error:
        raise KIND.unreadable(path, str(error), f"terse output, version {version}") from error


def _terse_direction(job: str, direction: str, fields: list[str]) -> FioSummary:
    kib, rate, iops, ms = (float(each) for each in fields[:4])
    times = [float(each) * _US_NS for each in fields[32:36]]
    low, high, mean, std = times if times[1] else [None] * 4
    pairs = (each.split("%=") for each in fields[12:32])
    return FioSummary(
        job=job,
        direction=direction,
        ios=None,
        bytes=int(kib * _KIB),
        runtime_ns=int(ms * _MS_NS),
        iops=iops,
        bytes_per_s=rate * _KIB,
        mean_ns=mean,
        min_ns=low,
        max_ns=high,
        std_ns=std,
        percentiles={
            f"{float(share):g}": float(value) * _US_NS for share, value in pairs if float(share) > 0
        },
    )
