"""Job files of fio as patterns.

    [global]                      Basic, Mix: one job
    bs=4k                ─▶       Parallel: several jobs, or numjobs, side by side
    [reader]
    rw=randread

**Source**: fio's documentation (HOWTO, "Job parameters"), and the I/Os of fio 3.33 (a test).
**Faithful**: the options in `MEANINGS`, with fio's defaults and units. `rate_iops` of a mix is that
of each direction, and decides the mix.
**Simplified**: `IGNORED` options have no effect on the I/Os; the device is that of the command
line.
With zonemode=zbd fio opens another zone as soon as one is full, and resets a zone only if it was
written; uflip opens a set of zones when all of the set before are full, and resets each of them.
Without norandommap fio makes each random address once; uflip draws them independently.
**Ambiguous**: nothing; any other option is refused by its name.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from uflip import spec
from uflip.data.document import DocumentKind, Table, read_text
from uflip.errors import UsageError
from uflip.spec import Basic, Functions, Mix

KIND = DocumentKind("job file of fio", 1 << 20, "name a job file of fio", UsageError)
GLOBAL = "global"
IGNORED = (
    "allow_file_create", "allow_mounted_write", "create_on_open", "description", "direct",
    "filename", "group_reporting", "lat_percentiles", "log_offset", "name",
    "norandommap", "percentile_list", "randrepeat", "refill_buffers", "thread",
    "write_bw_log", "write_iops_log", "write_lat_log",
)  # fmt: skip
"""Options without an effect on the I/Os: direct I/O is uflip's own."""
MEANINGS = {
    "rw": "read, write, trim, randread, randwrite, randtrim, rw, randrw; also readwrite",
    "bs": "size of an I/O, or of reads, writes and trims (4k,64k); also blocksize",
    "size": "length of the target space",
    "offset": "its beginning",
    "io_size": "bytes to make; by default size",
    "number_ios": "I/Os to make, if they are fewer",
    "ioengine": "a synchronous engine, with a queue depth of 1, or an asynchronous one",
    "iodepth": "queue depth, with an asynchronous engine",
    "numjobs": "copies of the job, side by side",
    "offset_increment": "distance of the target spaces of the copies",
    "rwmixread": "share of reads in a mix [%]; also rwmixwrite",
    "rate_iops": "arrivals a second, or of reads, writes and trims (350,150)",
    "rate_process": "linear or poisson",
    "thinktime": "pause [us]",
    "thinktime_blocks": "I/Os between two pauses",
    "thinktime_blocks_type": "issue; complete only with a queue depth of 1",
    "random_distribution": "random, zipf:THETA, zoned:P1/S1:P2/S2",
    "randseed": "seed",
    "zonemode": "none, zbd: random writes at the write pointers of open zones",
    "zonesize": "distance of two zones, by default those of the device; with zonemode=zbd",
    "zonecapacity": "written part of each; with zonemode=zbd",
    "max_open_zones": "zones written at a time; with zonemode=zbd",
    "buffer_compress_percentage": "share of the written data that compression removes [%]",
    "dedupe_percentage": "share of the written blocks that are duplicates [%]",
}
"""Option -> its meaning."""
MAX_COPIES = 1024
_CONTENT = {
    "buffer_compress_percentage": "compress_percent", "dedupe_percentage": "duplicate_percent",
}  # fmt: skip
_ALIASES = {"readwrite": "rw", "blocksize": "bs"}
_SYNCHRONOUS = ("sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice")
_ASYNCHRONOUS = (
    "io_uring", "io_uring_cmd", "libaio", "libzbc", "posixaio", "sg", "solarisaio", "windowsaio",
    "xnvme",
)  # fmt: skip
_DIRECTIONS = ("read", "write", "trim")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_US_NS = {"": 1000, "us": 1000, "usec": 1000, "ns": 1, "ms": 10**6, "msec": 10**6, "s": 10**9,
          "m": 60 * 10**9}  # fmt: skip
_NS_PER_S = 10**9

Options = Mapping[str, str]


def read_job_file(path: Path) -> Functions:
    """Return the jobs of a file as one pattern."""
    patterns = [
        pattern for name, options in _sections(path) for pattern in _Job(path, name, options).make()
    ]
    if not patterns:
        raise KIND.unreadable(path, "no job", "a section such as [job]")
    if len(patterns) == 1:
        return patterns[0]
    return spec.parallel(*patterns)


def _sections(path: Path) -> list[tuple[str, Options]]:
    """Return the name and the options of each job; those of [global] hold for later sections."""
    common: dict[str, str] = {}
    sections: list[tuple[str, dict[str, str]]] = []
    current: dict[str, str] | None = None
    for number, text in enumerate(read_text(path, KIND).splitlines(), 1):
        line = text.strip()
        if not line or line[0] in ";#":
            continue
        if line.startswith("[") and line.endswith("]"):
            name = line[1:-1].strip()
            current = common if name == GLOBAL else dict(common)
            if name != GLOBAL:
                sections.append((name, current))
            continue
        if current is None:
            raise KIND.unreadable(path, f"line {number}: {line}", "a section such as [job] first")
        key, _, value = line.partition("=")
        key = key.strip().lower()
        current[_ALIASES.get(key, key)] = os.path.expandvars(value.strip())
    return [(name, options) for name, options in sections]


class _Job:
    """One section."""

    def __init__(self, path: Path, name: str, options: Options) -> None:
        self._where = f"{path}, [{name}]"
        self._options = options
        for option in options:
            if option not in MEANINGS and option not in IGNORED and option != "rwmixwrite":
                raise UsageError(
                    "An option of fio is not supported",
                    where=self._where,
                    got=option,
                    allowed=", ".join(MEANINGS),
                    action="omit it, or describe the pattern with options of `uflip pattern`",
                )

    def make(self) -> list[Basic | Mix]:
        """Return a pattern for each copy of the job."""
        copies = self._number("numjobs", 1)
        if not 1 <= copies <= MAX_COPIES:
            raise self._wrong("numjobs", f"1 to {MAX_COPIES}")
        step = self._size("offset_increment", 0)
        return [self._pattern(copy * step, copy) for copy in range(copies)]

    def _pattern(self, shift: int, copy: int) -> Basic | Mix:
        rw = self._options.get("rw", "read").replace("readwrite", "rw")
        is_random = rw.startswith("rand")
        direction = rw.removeprefix("rand")
        location = self._location(rw) if is_random else {"location": "sequential"}
        place: Table = {
            "target_offset": self._size("offset", 0) + shift,
            "target_size": self._size("size"),
        }
        common: Table = {}
        if "randseed" in self._options:
            common["seed"] = self._number("randseed", 0) + copy
        if (depth := self._depth()) > 1:
            common["queue_depth"] = depth
        if direction == "rw":
            reads = self._number("rwmixread", 100 - self._number("rwmixwrite", 50))
            if 0 < reads < 100:
                return self._mix(reads, location | place, common)
            direction = "read" if reads else "write"
        if direction not in _DIRECTIONS:
            raise self._wrong("rw", MEANINGS["rw"])
        number = _DIRECTIONS.index(direction)
        io_size = self._each("bs", "4k")[number]
        return spec.basic(
            direction,
            io_size=io_size,
            io_count=self._count(io_size),
            **location,
            **place,
            **common,
            **(self._content() if direction == "write" else {}),
            **self._times(self._each("rate_iops", "0")[number]),
        )

    def _mix(self, reads: int, place: Table, common: Table) -> Mix:
        if self._duration("thinktime", 0):
            raise self._wrong("thinktime", "no pauses in a mix of reads and writes")
        sizes, rates = self._each("bs", "4k")[:2], self._each("rate_iops", "0")[:2]
        if any(rates) and not all(rates):
            raise self._wrong("rate_iops", "a rate of reads and one of writes, or none")
        times: Table = {}
        if any(rates):
            # A rate holds for each direction, and decides the mix.
            times = self._times(rates[0] + rates[1])
            reads = round(100 * rates[0] / (rates[0] + rates[1]))
        first, second = (
            spec.basic(mode, io_size=size, **place, **content)
            for mode, size, content in zip(
                ("read", "write"), sizes, ({}, self._content()), strict=True
            )
        )
        mean = (sizes[0] * reads + sizes[1] * (100 - reads)) // 100
        return spec.mix(
            first, second, first_percent=reads, io_count=self._count(mean), **common, **times
        )

    def _zones(self, rw: str) -> Table:
        """Return random writes at the write pointers of zones."""
        if rw != "randwrite":
            raise self._wrong("rw", "randwrite, or sequential I/Os, with zonemode=zbd")
        size = self._each("bs", "4k")[1]
        zones: Table = {"location": "zones", "random_turns": 1}
        for option, name in (("zonesize", "zone_ios"), ("zonecapacity", "zone_capacity_ios")):
            if option in self._options:
                zones[name] = self._size(option) // size
        if "max_open_zones" in self._options:
            zones["open_zones"] = max(1, self._number("max_open_zones", 1))
        return zones

    def _location(self, rw: str) -> Table:
        mode = self._options.get("zonemode", "none")
        if mode == "zbd":
            return self._zones(rw)
        if mode != "none":
            raise self._wrong("zonemode", MEANINGS["zonemode"])
        kind, _, more = self._options.get("random_distribution", "random").partition(":")
        if kind == "random":
            return {"location": "random"}
        if kind == "zipf" and (theta := _number(more)) is not None:
            return {"location": "zipf", "skew_percent": round(theta * 100)}
        zones = re.fullmatch(r"(\d+)/(\d+):(\d+)/(\d+)", more)
        if kind == "zoned" and zones:
            shares = [int(each) for each in zones.groups()]
            if shares[0] + shares[2] == shares[1] + shares[3] == 100:
                return {
                    "location": "hotcold", "hot_io_percent": shares[0],
                    "hot_space_percent": shares[1],
                }  # fmt: skip
        raise self._wrong("random_distribution", MEANINGS["random_distribution"])

    def _content(self) -> Table:
        return {
            name: self._number(option, 0)
            for option, name in _CONTENT.items()
            if option in self._options
        }

    def _depth(self) -> int:
        """Return the queue depth; synchronous engines, such as fio's default, have 1."""
        engine = self._options.get("ioengine", "psync")
        if engine not in _SYNCHRONOUS + _ASYNCHRONOUS:
            raise self._wrong("ioengine", ", ".join(_SYNCHRONOUS + _ASYNCHRONOUS))
        return 1 if engine in _SYNCHRONOUS else self._number("iodepth", 1)

    def _times(self, rate: int) -> Table:
        pause = self._duration("thinktime", 0)
        if rate and pause:
            raise self._wrong("thinktime", "either rate_iops or thinktime")
        if rate:
            process = self._options.get("rate_process", "linear")
            if process not in ("linear", "poisson"):
                raise self._wrong("rate_process", MEANINGS["rate_process"])
            time = "fixed" if process == "linear" else process
            return {"time": time, "interval": round(_NS_PER_S / rate)}
        if not pause:
            return {}
        by_issue = self._options.get("thinktime_blocks_type", "complete") == "issue"
        if self._depth() > 1 and not by_issue:
            raise self._wrong("thinktime_blocks_type", "issue, with a queue")
        blocks = self._number("thinktime_blocks", 1)
        return {"time": "pause", "pause": pause} if blocks == 1 else {
            "time": "burst", "burst": blocks, "pause": pause,
        }  # fmt: skip

    def _count(self, io_size: int) -> int:
        """Return the number of I/Os: one pass of the space unless another one is given."""
        count = (self._size("io_size", 0) or self._size("size")) // io_size
        return max(1, min(count, self._number("number_ios", 0) or count))

    def _each(self, option: str, default: str) -> list[int]:
        """Return the numbers of reads, writes and trims.

        As in fio, the last one holds for the others, unless a comma follows it; these then have the
        default.
        """
        values = [text.strip() for text in self._options.get(option, default).split(",")]
        if len(values) > len(_DIRECTIONS):
            raise self._wrong(option, MEANINGS[option])
        values += [values[-1]] * (len(_DIRECTIONS) - len(values))
        return [self._parse(option, text or default, _bytes) for text in values]

    def _number(self, option: str, default: int) -> int:
        return self._parse(option, self._options.get(option, str(default)), _whole)

    def _size(self, option: str, default: int | None = None) -> int:
        if option not in self._options and default is None:
            raise UsageError(
                "The job does not give a size",
                where=self._where,
                allowed="size=LENGTH, as 1g",
                action="add size= to the job",
            )
        return self._parse(option, self._options.get(option, str(default)), _bytes)

    def _duration(self, option: str, default: int) -> int:
        return self._parse(option, self._options.get(option, str(default)), _duration_ns)

    def _parse(self, option: str, text: str, parse: Callable[[str], int | None]) -> int:
        value = parse(text)
        if value is None:
            raise self._wrong(option, MEANINGS[option])
        return value

    def _wrong(self, option: str, allowed: str) -> UsageError:
        return UsageError(
            f"The option {option} of fio has a value that is not supported",
            where=self._where,
            got=f"{option}={self._options.get(option, '')}",
            allowed=allowed,
            action="change it, or describe the pattern with options of `uflip pattern`",
        )


def _whole(text: str) -> int | None:
    return int(text, 0) if re.fullmatch(r"0x[0-9a-fA-F]{1,16}|\d{1,18}", text) else None


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,6}(\.\d{1,6})?", text) else None


def _bytes(text: str) -> int | None:
    """Return a size as fio reads it: k, kb and KiB are all 1,024."""
    match = re.fullmatch(r"(\d{1,15})([kmgt]?)(?:i?b)?", text.strip().lower())
    return int(match[1]) * _UNITS[match[2]] if match else None


def _duration_ns(text: str) -> int | None:
    match = re.fullmatch(r"(\d{1,12})([a-z]*)", text.strip().lower())
    unit = _US_NS.get(match[2]) if match else None
    return None if match is None or unit is None else int(match[1]) * unit
