"""Logs of rates and histograms of fio (`write_bw_log`, `write_iops_log`, `write_hist_log`).

```text
 averages     ├── value ──┼── value ──┤      each holds since the row before
 each I/O     ▏  ▏▏ ▏   ▏▏▏                  counted at its time
 histograms   ├── I/Os ───┼── I/Os ───┤      spread over the time since the row before
```

**Source**: fio's documentation, "Log file formats"; the output of fio 3.33.
**Faithful**: totals and means; percentiles to the width of a bin (1.6 %, or that times
`log_hist_coarseness`).
**Simplified**: a total between two rows grows evenly. A percentile is the middle of its bin.
**Ambiguous**: rows with a block size are single I/Os (fio 3), or averages of 500 ms (fio 2): the
distances of the rows decide. Rows at nearly the same time are those of several jobs in one file
(`per_job_logs=0`), whose rates are added.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from uflip import _native
from uflip.errors import UsageError, native_errors

DIRECTIONS = ("read", "write", "trim")
MAX_ROWS = 1_000_000
SHARES = (50.0, 99.0, 99.9)
_MS_NS = 1_000_000
_NS_PER_S = 1_000_000_000
_KIB = 1024
_FIO2_AVERAGE_MS = 450
"""The averages of fio 2 without log_avg_msec are 500 ms apart."""
_LONGEST_STEP_NS = 86_400 * _NS_PER_S
"""A single row is the average since the start of fio, but not since 1970."""
_EVEN = 1.2
_SAME_TIME = 0.25
"""Rows closer than this share of the usual distance belong to several jobs."""
_SEVERAL_JOBS = 0.3
"""Share of such rows in a log of several jobs; the last row of one job can be close, too."""

Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]


class _About(Struct):
    quantity: str
    odd_lines: int
    first_odd_line: tuple[int, str] | None


class RateRow(Struct, frozen=True, kw_only=True):
    """One direction in one interval."""

    #: The interval, from the begin of the log [ns].
    start_ns: int
    length_ns: int
    direction: str  #: read, write or trim.
    #: The rates; None if the log does not contain them.
    ios_per_s: float | None
    bytes_per_s: float | None
    #: Percentiles of the response times [ns], of histograms.
    p50_ns: float | None = None
    p99_ns: float | None = None
    p999_ns: float | None = None


COLUMNS = RateRow.__struct_fields__


@dataclass(frozen=True)
class _Direction:
    """The rows of one direction: their ends [ns], and all I/Os or bytes until each of them."""

    ends: Numbers
    totals: Floats
    begin: int
    is_even: bool  # the totals grow evenly between two ends, not at them
    bin_ends: Numbers
    bins: Numbers
    bin_ios: Numbers

    def until(self, instants: Numbers) -> Floats:
        """Return the total until each instant."""
        if self.is_even:
            ends = np.concatenate([[self.begin], self.ends])
            between: Floats = np.interp(instants, ends, np.concatenate([[0.0], self.totals]))
            return between
        passed = np.searchsorted(self.ends, instants, side="right")
        counted: Floats = np.concatenate([[0.0], self.totals])
        return counted[passed]


@dataclass(frozen=True)
class RateLog:
    """The logs of one quantity of one or several jobs."""

    quantity: str  #: bw, iops or hist.
    form: str  #: How the rows were understood.
    odd_lines: int  #: Lines that do not belong to the format.
    jobs: tuple[dict[str, _Direction], ...]
    bin_middles: Floats

    @property
    def end_ns(self) -> int:
        """The last row of all [ns]."""
        return max(int(part.ends[-1]) for job in self.jobs for part in job.values())

    @property
    def begin_ns(self) -> int:
        """The begin of all [ns]."""
        return min(part.begin for job in self.jobs for part in job.values())

    def rows(self, interval_ns: int | None = None) -> list[RateRow]:
        """Return a row for each direction and interval, or of the whole log."""
        begin, length = self.begin_ns, max(1, self.end_ns - self.begin_ns)
        count = 1 if interval_ns is None else -(-length // interval_ns)
        if count > MAX_ROWS:
            raise UsageError(
                "The interval is too short for this log",
                where="--every",
                got=f"{count} rows",
                allowed=f"up to {MAX_ROWS} rows",
                action="choose a longer interval",
            )
        edges = np.minimum(np.arange(count + 1) * (interval_ns or length), length) + begin
        return [row for name in DIRECTIONS for row in self._rows_of(name, edges)]

    def _rows_of(self, direction: str, edges: Numbers) -> Iterator[RateRow]:
        parts = [job[direction] for job in self.jobs if direction in job]
        if not parts:
            return
        amounts = sum((np.diff(part.until(edges)) for part in parts), np.zeros(len(edges) - 1))
        # An I/O at the very begin belongs to the first interval.
        amounts[0] += sum(float(part.until(edges[:1])[0]) for part in parts)
        for index, amount in enumerate(amounts):
            start, end = int(edges[index]), int(edges[index + 1])
            rate = float(amount) * _NS_PER_S / max(1, end - start)
            p50, p99, p999 = self._percentiles(parts, start, end)
            yield RateRow(
                start_ns=start - int(edges[0]),
                length_ns=end - start,
                direction=direction,
                ios_per_s=None if self.quantity == "bw" else rate,
                bytes_per_s=rate if self.quantity == "bw" else None,
                p50_ns=p50,
                p99_ns=p99,
                p999_ns=p999,
            )

    def _percentiles(
        self, parts: Sequence[_Direction], start: int, end: int
    ) -> Sequence[float | None]:
        """Return the percentiles of the histograms that end in an interval."""
        if self.quantity != "hist":
            return (None, None, None)
        counts = np.zeros(len(self.bin_middles), dtype=np.int64)
        for part in parts:
            inside = (part.bin_ends > start) & (part.bin_ends <= end)
            np.add.at(counts, part.bins[inside], part.bin_ios[inside])
        total = int(counts.sum())
        if not total:
            return (None, None, None)
        wanted = [max(1, int(np.ceil(total * share / 100))) for share in SHARES]
        found = np.searchsorted(np.cumsum(counts), wanted)
        return [float(each) for each in self.bin_middles[found]]


def read_rate_logs(paths: Sequence[Path]) -> RateLog | None:
    """Read the logs of one quantity, one for each job; None if the first is another file."""
    logs = [_read(path) for path in paths]
    known = [log for log in logs if log is not None]
    if logs[0] is None:
        return None
    if len(known) < len(logs) or len({log.quantity for log in known}) > 1:
        raise UsageError(
            "These files are not logs of one quantity",
            where=", ".join(map(str, paths)),
            got=", ".join("another file" if log is None else log.quantity for log in logs),
            allowed="the logs of all jobs of one run: *_bw.*.log, *_iops.*.log or *_hist.*.log",
            action="name those of one quantity",
        )
    middles = known[0].bin_middles
    if any(len(log.bin_middles) != len(middles) for log in known):
        raise UsageError(
            "The histograms have different bins",
            where=", ".join(map(str, paths)),
            got=", ".join(str(len(log.bin_middles)) for log in known),
            allowed="one log_hist_coarseness",
            action="name the logs of one run",
        )
    forms = dict.fromkeys(log.form for log in known)
    return RateLog(
        quantity=known[0].quantity,
        form="; ".join(forms),
        odd_lines=sum(log.odd_lines for log in known),
        jobs=tuple(job for log in known for job in log.jobs),
        bin_middles=middles,
    )


def _read(path: Path) -> RateLog | None:
    with native_errors():
        read = _native.read_rates(str(path))
    if read is None:
        return None
    columns, text = read
    about = msgspec.json.decode(text, type=_About)
    arrays = [np.frombuffer(column, dtype=np.uint64).astype(np.float64) for column in columns]
    times, direction, value, size, bin_row, bins, bin_ios, limits = arrays
    ends = (times * _MS_NS).astype(np.int64)
    is_counted = _is_counted(about.quantity, ends, direction, value, size)
    parts: dict[str, _Direction] = {}
    several = False
    for number, name in enumerate(DIRECTIONS):
        rows = np.flatnonzero(direction == number)
        if not len(rows):
            continue
        rows = rows[np.argsort(ends[rows], kind="stable")]
        inside = np.isin(bin_row.astype(np.int64), rows)
        of_row = bin_row[inside].astype(np.int64)
        amounts = size if is_counted and about.quantity == "bw" else value
        try:
            part, joined = _direction(about.quantity, ends[rows], amounts[rows], is_counted)
        except ValueError as error:
            raise UsageError(
                "The log is too short",
                where=str(path),
                got=str(error),
                allowed="at least two rows of each direction",
                action="show a longer log",
            ) from None
        several |= joined
        parts[name] = _Direction(
            *part, ends[of_row], bins[inside].astype(np.int64), bin_ios[inside].astype(np.int64)
        )
    if not parts:
        return None
    middles = (limits[:-1] + limits[1:]) / 2 if len(limits) else limits
    form = _form(about.quantity, is_counted=is_counted, several=several)
    return RateLog(about.quantity, form, about.odd_lines, (parts,), middles)


def _is_counted(
    quantity: str, ends: Numbers, direction: Floats, value: Floats, size: Floats
) -> bool:
    """Return whether each row is one I/O."""
    if quantity == "hist" or not len(ends):
        return False
    if quantity == "iops":
        return bool((value <= 1).all() and (size > 0).any())
    if (size == 0).any():
        return False
    distances = np.concatenate([np.diff(ends[direction == number]) for number in range(3)]) / _MS_NS
    if not len(distances):
        return False
    low, middle, high = np.percentile(distances, [10, 50, 90])
    return not (middle >= _FIO2_AVERAGE_MS and high <= low * _EVEN)


def _direction(
    quantity: str, ends: Numbers, amounts: Floats, is_counted: bool
) -> tuple[tuple[Numbers, Floats, int, bool], bool]:
    """Return the ends, totals, begin and form of the rows, and whether they are of several jobs."""
    if is_counted:
        return (ends, np.cumsum(amounts), min(int(ends[0]), _first(ends)), False), False
    distances = np.diff(ends)
    usual = float(np.percentile(distances, 90)) if len(distances) else float(ends[0])
    close = distances < usual * _SAME_TIME
    joined = len(close) > 0 and close.mean() >= _SEVERAL_JOBS
    if joined:
        starts = np.concatenate([[0], np.flatnonzero(~close) + 1])
        amounts = np.add.reduceat(amounts, starts)
        ends = ends[np.concatenate([starts[1:] - 1, [len(ends) - 1]])]
        distances = np.diff(ends)
    step = (int(np.median(distances)) if len(distances) else 0) or int(ends[0])
    if step > _LONGEST_STEP_NS:
        raise ValueError(f"one row, at {int(ends[0]) // _MS_NS} ms, whose begin is unknown")
    begin = 0 if ends[0] <= 2 * step else int(ends[0]) - step
    if quantity == "hist":
        return (ends, np.cumsum(amounts), begin, True), joined
    seconds = np.diff(np.concatenate([[begin], ends])) / _NS_PER_S
    unit = _KIB if quantity == "bw" else 1
    return (ends, np.cumsum(amounts * unit * seconds), begin, True), joined


def _first(ends: Numbers) -> int:
    """Return the begin of single I/Os: that of the log, or of the first I/O in a later part."""
    return 0 if ends[0] < _NS_PER_S else int(ends[0])


def _form(quantity: str, *, is_counted: bool, several: bool) -> str:
    if quantity == "hist":
        form = "histograms of response times"
    elif is_counted:
        form = "one row for each I/O: rates are counted from the rows"
    else:
        form = "averages, in KiB/s" if quantity == "bw" else "averages"
    return form + ("; several jobs in one file, whose rates are added" if several else "")
