"""Job files of fio as patterns.

    [global]                      Basic, Mix: one job
    bs=4k                ─▶       Parallel: several jobs, or numjobs, side by side
    [reader]                      a list of these: stages (stonewall), one after another
    rw=randread

**Source**: fio's documentation (HOWTO, "Job parameters"), and the I/Os of fio 3.33 (a test).
**Faithful**: the options in `MEANINGS`, with fio's defaults and units. `rate_iops` of a mix is that
of each direction, and decides the mix.
**Simplified**: `IGNORED` options have no effect on the I/Os; the device is that of the command
line. A file of fio is a part of its space: the files follow one another in the order of the jobs.
With zonemode=zbd fio opens another zone as soon as one is full, and resets a zone only if it was
written; uflip opens a set of zones when all of the set before are full, and resets each of them.
Without norandommap fio makes each random address once; uflip draws them independently. fio aligns
all sizes of a split to the smallest, so a larger one is several parts of a mix, one for each
distance from its multiples. Near the end of the space fio makes smaller sizes more often.
**Ambiguous**: nothing; any other option is refused by its name.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import ceil
from pathlib import Path

from uflip import spec
from uflip.data.document import DocumentKind, Table, read_text
from uflip.errors import UsageError
from uflip.spec import Basic, Functions, Mix

KIND = DocumentKind("job file of fio", 1 << 20, "name a job file of fio", UsageError)
GLOBAL = "global"
IGNORED = (
    "allow_file_create", "allow_mounted_write", "buffered", "bwavgtime", "clat_percentiles",
    "clocksource", "cpus_allowed", "cpus_allowed_policy", "create_fsync", "create_on_open",
    "create_serialize", "description", "direct", "directory", "disable_bw", "disable_clat",
    "disable_lat", "disable_slat", "exitall_on_error", "fadvise_hint", "fallocate", "filename",
    "fixedbufs", "group_reporting", "gtod_reduce", "hipri", "invalidate", "iomem", "iopsavgtime",
    "lat_percentiles", "lockmem", "log_avg_msec", "log_hist_msec", "log_max_value", "log_offset",
    "log_prio", "log_unix_epoch", "mem", "name", "new_group", "nice", "nonvectored",
    "norandommap", "numa_cpu_nodes", "numa_mem_policy", "overwrite", "per_job_logs",
    "percentile_list", "random_generator", "randrepeat", "refill_buffers", "registerfiles",
    "scramble_buffers", "slat_percentiles", "sqthread_poll", "sqthread_poll_cpu", "thread",
    "unified_rw_reporting", "unlink", "write_bw_log", "write_hist_log", "write_iolog",
    "write_iops_log", "write_lat_log",
)  # fmt: skip
"""Options without an effect on the I/Os: direct I/O is uflip's own."""
ADVICE = {
    "steadystate": "omit it; `uflip run DEVICE --suite today --only steady_state` measures it",
    "fsync": "omit it, and give --durability flush:N",
    "fdatasync": "omit it, and give --durability flush:N",
    "verify": "omit it: contents are not read back",
    "flow": "give each job the share of its I/Os as number_ios",
}
"""Refused option -> what to do instead."""
MEANINGS = {
    "rw": "read, write, trim, randread, randwrite, randtrim, rw, randrw; also readwrite",
    "bs": "size of an I/O, or of reads, writes and trims (4k,64k); also blocksize",
    "bssplit": "sizes and their shares, 4k/60:64k/40, of random I/Os with norandommap",
    "bsrange": "smallest and largest size, 4k-16k, of random I/Os with norandommap",
    "size": "length of the target space, or a share of the device (50%); by default to its end",
    "offset": "its beginning, or a share of the device (10%)",
    "io_size": "bytes to make, or a share of size (50%); by default size",
    "loops": "how often io_size, up to size, is made",
    "runtime": "time [s] after which no I/O begins",
    "time_based": "repeat the space until runtime, whatever io_size and number_ios are",
    "ramp_time": "time [s] before runtime that the statistics leave out",
    "stonewall": "begin when all jobs before have ended: the next stage",
    "number_ios": "I/Os to make, if they are fewer",
    "ioengine": "a synchronous engine, with a queue depth of 1, or an asynchronous one",
    "iodepth": "queue depth, with an asynchronous engine",
    "numjobs": "copies of the job, side by side",
    "offset_increment": "distance of the target spaces of the copies",
    "rwmixread": "share of reads in a mix [%]; also rwmixwrite",
    "rate_iops": "arrivals a second, or of reads, writes and trims (350,150)",
    "rate": "the same as bytes a second, with one size",
    "rate_process": "linear or poisson",
    "thinktime": "pause [us]",
    "thinktime_blocks": "I/Os between two pauses",
    "thinktime_blocks_type": "issue; complete only with a queue depth of 1",
    "random_distribution": "random, zipf:THETA, zoned:P1/S1:P2/S2",
    "randseed": "seed of the first stage; each later one has the next",
    "nrfiles": "1",
    "zonemode": "none, zbd: random writes at the write pointers of open zones",
    "zonesize": "distance of two zones, by default those of the device; with zonemode=zbd",
    "zonecapacity": "written part of each; with zonemode=zbd",
    "max_open_zones": "zones written at a time; with zonemode=zbd",
    "buffer_compress_percentage": "share of the written data that compression removes [%]",
    "dedupe_percentage": "share of the written blocks that are duplicates [%]",
}
"""Option -> its meaning."""
MAX_COPIES = 1024
MAX_PARTS = 64
"""Largest number of patterns in a mix."""
_CONTENT = {
    "buffer_compress_percentage": "compress_percent", "dedupe_percentage": "duplicate_percent",
}  # fmt: skip
_ALIASES = {
    "readwrite": "rw", "blocksize": "bs", "timeout": "runtime", "steady_state": "steadystate",
    "ss": "steadystate", "wait_for_previous": "stonewall",
}  # fmt: skip
_SYNCHRONOUS = ("sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice")
_ASYNCHRONOUS = (
    "io_uring", "io_uring_cmd", "libaio", "libzbc", "posixaio", "sg", "solarisaio", "windowsaio",
    "xnvme",
)  # fmt: skip
_FILE_ALIGNMENT = 1 << 20
_LATER_SEED = 20_000  # of the stages behind the first, which has the default
_WEIGHTS = 1_000_000  # the largest weight of a mix
_DIRECTIONS = ("read", "write", "trim")
_MIXED = _DIRECTIONS[:2]
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_US_NS = {"": 1000, "us": 1000, "usec": 1000, "ms": 10**6, "msec": 10**6, "s": 10**9,
          "m": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9}  # fmt: skip
_NS_PER_S = 10**9

Options = Mapping[str, str]


def read_job_file(path: Path, capacity: Callable[[], int]) -> list[Functions]:
    """Return the stages of a job file, each as one pattern.

    `capacity` returns that of the device [bytes].
    """
    jobs = [_Job(path, name, options, capacity) for name, options in _sections(path)]
    if not jobs:
        raise KIND.unreadable(path, "no job", "a section such as [job]")
    begins = _begins_of_files(jobs)
    stages: list[list[Basic | Mix]] = []
    seeds: list[int | None] = []
    for job in jobs:
        if job.begins_stage or not stages:
            stages.append([])
            seeds.append(job.seed(len(seeds)))
        stages[-1] += job.make(begins)
    return [
        stage[0].but(seed=seed) if len(stage) == 1 else spec.parallel(*stage, seed=seed)
        for stage, seed in zip(stages, seeds, strict=True)
    ]


def _begins_of_files(jobs: "Sequence[_Job]") -> dict[str, int]:
    """Return where each file begins: they follow one another."""
    ends: dict[str, int] = {}
    names = [name for job in jobs for name in job.files]
    if len(set(names)) == 1:
        return {names[0]: 0}
    for job in jobs:
        for copy, name in enumerate(job.files):
            ends[name] = max(ends.get(name, 0), job.end(copy))
    begins, begin = {}, 0
    for name, end in ends.items():
        begins[name] = begin
        begin += -(-end // _FILE_ALIGNMENT) * _FILE_ALIGNMENT
    return begins


def _sections(path: Path) -> list[tuple[str, Options]]:
    """Return the name and the options of each job; those of [global] hold for later sections."""
    common: dict[str, str] = {}
    sections: list[tuple[str, dict[str, str]]] = []
    current: dict[str, str] | None = None
    for number, text in enumerate(read_text(path, KIND).splitlines(), 1):
        line = re.split("[;#]", text, maxsplit=1)[0].strip()
        if not line:
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

    def __init__(
        self, path: Path, name: str, options: Options, capacity: Callable[[], int]
    ) -> None:
        self._where, self._name = f"{path}, [{name}]", name
        self._options = options
        self._capacity = capacity
        for option in options:
            if option not in MEANINGS and option not in IGNORED and option != "rwmixwrite":
                raise UsageError(
                    "An option of fio is not supported",
                    where=self._where,
                    got=option,
                    allowed=", ".join(MEANINGS),
                    action=ADVICE.get(
                        option, "omit it, or describe the pattern with options of `uflip pattern`"
                    ),
                )

        if self._number("nrfiles", 1) != 1:
            raise self._wrong("nrfiles", "1")
        if re.search(r"(?<!\\):", self._options.get("filename", "")):
            raise self._wrong("filename", "one file")

    @property
    def begins_stage(self) -> bool:
        """Whether it waits for all jobs before."""
        return self._options.get("stonewall", "0") != "0"

    def seed(self, stage: int) -> int | None:
        """Return the seed of a stage that it begins: each stage has other random addresses."""
        if "randseed" in self._options or stage:
            return self._number("randseed", _LATER_SEED) + stage
        return None

    @property
    def files(self) -> list[str]:
        """The file of each copy: the given one, or one of its own."""
        copies = self._number("numjobs", 1)
        if not 1 <= copies <= MAX_COPIES:
            raise self._wrong("numjobs", f"1 to {MAX_COPIES}")
        own = [f"{self._name}.{copy}.0" for copy in range(copies)]
        return [self._options["filename"]] * copies if "filename" in self._options else own

    def end(self, copy: int) -> int:
        """Return the length of the file of a copy, among several files [bytes]."""
        if "size" not in self._options or self._is_share("size") or self._is_share("offset"):
            raise self._wrong(
                "size", "a size in bytes, and so of offset: the jobs use several files"
            )
        place = self._place(copy * self._size("offset_increment", 0))
        return int(place["target_offset"] + place["target_size"])

    def make(self, begins: Mapping[str, int]) -> list[Basic | Mix]:
        """Return a pattern for each copy of the job; `begins`: where each file begins."""
        step = self._size("offset_increment", 0)
        return [self._pattern(begins[name] + copy * step) for copy, name in enumerate(self.files)]

    def _pattern(self, shift: int) -> Basic | Mix:
        rw = self._options.get("rw", "read").replace("readwrite", "rw")
        is_random = rw.startswith("rand")
        direction = rw.removeprefix("rand")
        location = self._location(rw) if is_random else {"location": "sequential"}
        place = self._place(shift)
        common: Table = {}
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
        content, rate = self._content(direction), self._rates()[number]
        times, sizes = self._times(rate), self._sizes(number)
        if len(sizes) > 1:
            if "pause" in times:
                raise self._wrong("thinktime", "no pauses between sizes of a split")
            parts = self._parts(direction, sizes, location | place | content)
            return self._drawn(parts, place, rate, common | times)
        ((io_size, _),) = sizes.items()
        return spec.basic(
            direction, io_size=io_size, **location, **place, **common, **content, **times,
            **self._length(io_size, place, rate),
        )  # fmt: skip

    def _place(self, shift: int) -> Table:
        """Return the target space; as in fio a share is rounded to whole I/Os."""
        each = min(min(self._sizes(number)) for number in range(len(_DIRECTIONS)))
        begin = self._size("offset", 0, self._capacity)
        if self._is_share("offset"):
            begin = -(-begin // each) * each
        if "size" not in self._options:
            size = (self._capacity() - begin - shift) // each * each
        elif self._is_share("size"):
            size = self._size("size", 0, self._capacity)
            size = min(size, self._capacity() - begin - shift) // each * each
        else:
            size = -(-self._size("size", 0) // each) * each
        if size <= 0:
            raise self._wrong("size", "a target space inside the device")
        return {"target_offset": begin + shift, "target_size": size}

    def _mix(self, reads: int, place: Table, common: Table) -> Mix:
        if self._duration("thinktime", 0):
            raise self._wrong("thinktime", "no pauses in a mix of reads and writes")
        rates = self._rates()[:2]
        if any(rates) and not all(rates):
            option = "rate" if "rate" in self._options else "rate_iops"
            raise self._wrong(option, "a rate of reads and one of writes, or none")
        times: Table = {}
        if any(rates):
            # A rate holds for each direction, and decides the mix.
            times = self._times(rates[0] + rates[1])
            reads = round(100 * rates[0] / (rates[0] + rates[1]))
        rate = rates[0] + rates[1]
        splits = self._sizes(0), self._sizes(1)
        if len(splits[0]) + len(splits[1]) > len(_MIXED):
            parts = [
                (share * weight, part)
                for mode, split, share in zip(_MIXED, splits, (reads, 100 - reads), strict=True)
                for weight, part in self._parts(mode, split, place | self._content(mode))
            ]
            return self._drawn(parts, place, rate, common | times)
        sizes = [next(iter(split)) for split in splits]
        first, second = (
            spec.basic(mode, io_size=size, **place, **self._content(mode))
            for mode, size in zip(_MIXED, sizes, strict=True)
        )
        mean = (sizes[0] * reads + sizes[1] * (100 - reads)) / 100
        length = self._length(mean, place, rate)
        return spec.mix(first, second, first_percent=reads, **length, **common, **times)

    def _sizes(self, number: int) -> Mapping[int, float]:
        """Return the sizes of a direction and their shares."""
        option = next((each for each in ("bssplit", "bsrange") if each in self._options), None)
        if option is None:
            return {self._each("bs", "4k")[number]: 1.0}
        texts = self._options[option].split(",")
        text = texts[min(number, len(texts) - 1)]
        sizes = _split(text) if option == "bssplit" else _range(text)
        least = min(sizes, default=1)
        if (
            not sizes
            or len(texts) > len(_DIRECTIONS)
            or any(size % least for size in sizes)
            or sum(sizes) > MAX_PARTS * least
        ):
            multiples = f"multiples of the smallest size, up to {MAX_PARTS} together"
            raise self._wrong(option, f"{MEANINGS[option]}; {multiples}")
        if len(sizes) > 1 and "norandommap" not in self._options:
            raise self._wrong(option, "norandommap with several sizes")
        return sizes

    def _parts(
        self, mode: str, sizes: Mapping[int, float], place: Table
    ) -> list[tuple[float, Basic]]:
        """Return random I/Os of each size at each distance from its multiples, and their shares."""
        option = "bssplit" if "bssplit" in self._options else "bsrange"
        if place["location"] != "random":
            raise self._wrong(option, "random I/Os with random_distribution=random")
        if max(sizes) > place["target_size"]:
            raise self._wrong(
                option, f"sizes up to that of the space, {place['target_size']} bytes"
            )
        parts = []
        for size, share in sizes.items():
            shifts = range(0, size, min(sizes))
            slots = [(place["target_size"] - shift) // size for shift in shifts]
            for shift, count in zip(shifts, slots, strict=True):
                moved: Table = {"io_shift": shift} if shift else {}
                if share * count:
                    part = spec.basic(mode, io_size=size, **moved, **place)
                    parts.append((share * count / sum(slots), part))
        return parts

    def _drawn(
        self, parts: Sequence[tuple[float, Basic]], place: Table, rate: Fraction, common: Table
    ) -> Mix:
        """Return a mix that draws each I/O by the shares of its parts."""
        option = "bssplit" if "bssplit" in self._options else "bsrange"
        if not 2 <= len(parts) <= MAX_PARTS:
            raise self._wrong(
                option, f"fewer sizes: {MAX_PARTS} multiples of the smallest together"
            )
        whole = sum(share for share, _ in parts)
        mean = sum(share / whole * (part.io_size or 0) for share, part in parts)
        weights = [max(1, round(_WEIGHTS * share / whole)) for share, _ in parts]
        first, second, *others = (part for _, part in parts)
        length = self._length(mean, place, rate)
        return spec.mix(
            first, second, others=others, weights=weights, drawn=True, **length, **common
        )

    def _zones(self, rw: str) -> Table:
        """Return random writes at the write pointers of zones."""
        if rw != "randwrite":
            raise self._wrong("rw", "randwrite, or sequential I/Os, with zonemode=zbd")
        size = self._each("bs", "4k")[1]
        zones: Table = {"location": "zones", "random_turns": 1}
        for option, name in (("zonesize", "zone_ios"), ("zonecapacity", "zone_capacity_ios")):
            if option in self._options:
                zones[name] = self._size(option, 0) // size
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

    def _content(self, mode: str) -> Table:
        return {
            name: self._number(option, 0)
            for option, name in _CONTENT.items()
            if option in self._options and mode == "write"
        }

    def _depth(self) -> int:
        """Return the queue depth; synchronous engines, such as fio's default, have 1."""
        engine = self._options.get("ioengine", "psync")
        if engine not in _SYNCHRONOUS + _ASYNCHRONOUS:
            raise self._wrong("ioengine", ", ".join(_SYNCHRONOUS + _ASYNCHRONOUS))
        return 1 if engine in _SYNCHRONOUS else self._number("iodepth", 1)

    def _rates(self) -> list[Fraction]:
        """Return the arrivals a second of reads, writes and trims; 0 without a rate."""
        if "rate" not in self._options:
            return [Fraction(rate) for rate in self._each("rate_iops", "0")]
        splits = [self._sizes(number) for number in range(len(_DIRECTIONS))]
        if "rate_iops" in self._options or any(len(split) > 1 for split in splits):
            raise self._wrong("rate", "one size, and no rate_iops beside it")
        pairs = zip(self._each("rate", "0"), splits, strict=True)
        return [Fraction(rate, next(iter(split))) for rate, split in pairs]

    def _times(self, rate: Fraction) -> Table:
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

    def _length(self, io_size: float, place: Table, rate: Fraction) -> Table:
        """Return number of I/Os and times: one pass of the space unless others are given."""
        times = {
            ours: ns
            for option, ours in (("runtime", "run_time"), ("ramp_time", "ramp_time"))
            if (ns := self._duration(option, 0, "s"))
        }
        if self._options.get("time_based", "0") != "0":
            if "run_time" not in times:
                raise self._wrong("time_based", "runtime beside it")
            if not rate or self._options.get("rate_process") == "poisson":
                return times
            return times | {"io_count": max(1, ceil(sum(times.values()) * rate / _NS_PER_S))}
        whole: int = place["target_size"]
        made = self._size("io_size", 0, lambda: whole) or whole
        count = ceil(made / io_size)
        count = max(1, min(count, self._number("number_ios", 0) or count))
        loops = self._number("loops", 1)
        if loops < 1 or (loops > 1 and made > whole):
            raise self._wrong("loops", MEANINGS["loops"])
        return times | {"io_count": count * loops}

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

    def _size(self, option: str, default: int, whole: Callable[[], int] | None = None) -> int:
        """Return a size, or with a `whole` a share of it [bytes]."""
        text = self._options.get(option, str(default))
        if whole is None or not self._is_share(option):
            return self._parse(option, text, _bytes)
        percent = self._parse(option, text.removesuffix("%"), _whole)
        if not 0 <= percent <= 100:
            raise self._wrong(option, "0% to 100%")
        return whole() * percent // 100

    def _is_share(self, option: str) -> bool:
        return self._options.get(option, "").endswith("%")

    def _duration(self, option: str, default: int, unit: str = "") -> int:
        text = self._options.get(option, str(default))
        return self._parse(option, text + unit if text.isdigit() else text, _duration_ns)

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


def _split(text: str) -> dict[int, float]:
    """Return sizes and shares; sizes without one share the rest evenly. Empty if it is wrong."""
    entries = [entry.partition("/") for entry in text.split(":")]
    given = {entry[0]: _whole(entry[2]) for entry in entries if entry[2]}
    sizes = [_bytes(size) for size, _, _ in entries]
    rest = 100 - sum(share or 0 for share in given.values())
    open_entries = len(entries) - len(given)
    if None in sizes or None in given.values() or rest < 0 or (rest > 0 and not open_entries):
        return {}
    shares: dict[int, float] = {}
    for size, (text_of_size, _, _) in zip(sizes, entries, strict=True):
        share = given.get(text_of_size, rest / max(open_entries, 1))
        shares[size or 0] = shares.get(size or 0, 0) + (share or 0)
    return {} if 0 in shares else shares


def _range(text: str) -> dict[int, float]:
    """Return the multiples of the smallest size and their shares; empty if it is wrong."""
    low, high = (_bytes(each) for each in text.partition("-")[::2])
    if not low or not high or high < low or high % low or high // low > MAX_PARTS:
        return {}
    return dict.fromkeys(range(low, high + 1, low), 1.0)


def _duration_ns(text: str) -> int | None:
    match = re.fullmatch(r"(\d{1,12})([a-z]*)", text.strip().lower())
    unit = _US_NS.get(match[2]) if match else None
    return None if match is None or unit is None else int(match[1]) * unit
