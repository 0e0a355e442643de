"""Runs as fio jobs, which repeat them without uflip.

    OUT/<run>.fio       the job; in OUT `UFLIP_TARGET=FILE fio <run>.fio` runs it, on FILE
    OUT/<run>.iolog     its I/Os one by one, where no option of fio makes them

fio has options for sequential and random I/Os, also by Zipf's law and in zones, for pauses between
groups of them, queues, parallel processes, open loops and random mixes. For all else (increments,
partitions, mixes in turn or with trims, replays) the job reads the I/Os from a log. The log is
exact but has no times: pauses and arrivals are left out, and a comment in the job notes it. fio's
logs with times (3.33) are unsuitable: fio drops the first time, checks for completions only when it
submits, so that a queued I/O seems to last until the next one arrives, and ends without the last
I/Os. A random job draws from fio's own generator: other addresses of the same distribution, which a
comment notes too.

Every difference between fio and uflip is a comment in the job. The target is named when the job is
run, never in the job.
"""

from pathlib import Path
from typing import NamedTuple

from uflip.data.locations import DRAWN
from uflip.data.spec import MODES, Basic, Mix, MixPart, Parallel, Pattern, Replay, read_spec
from uflip.results.columns import pieces
from uflip.results.reader import Results, StoredRun

TARGET = "${UFLIP_TARGET}"
LOG_FILE_NAME = "target"
"""File name in a log; the job redirects it to `TARGET`."""
PAUSE_PARAMETERS = ("pause", "burst")
FIO_MODES = ("read", "write", "trim")
_DISTRIBUTIONS = tuple(name for name in DRAWN if name != "zones")
"""Random locations that fio has an option for."""
RATE_ERROR = 0.01
"""Largest relative error of a job's rate."""
_NS_PER_US = 1000
_SECTOR_BYTES, _DUPLICATE_BYTES = 512, 4096  # what is compressible, and duplicated, alike
_ALL_PERCENT = 100  # per cent
_NS_PER_S = 1_000_000_000

Lines = list[str]


class JobSettings(NamedTuple):
    """Properties common to all jobs of a benchmark: durability, and polled or interrupted."""

    durability: str
    is_polled: bool


def write_jobs(results: Results, folder: Path) -> None:
    """Write a fio job for each run."""
    for run in results.runs:
        spec = read_spec(run.trace().spec_json)
        manifest = results.manifest
        settings = JobSettings(manifest.durability, manifest.device.completion == "polled")
        lines = [*_head(run, results), *_sections(spec, run.id, settings)]
        (folder / f"{run.id}.fio").write_text("\n".join(lines) + "\n", encoding="utf-8")
        if not _has_options(spec):
            _write_log(run, folder / f"{run.id}.iolog")


def _head(run: StoredRun, results: Results) -> Lines:
    value = f" = {run.value}" if run.value is not None else ""
    return [
        f"; uflip: {_in_line(run.micro_benchmark)}, {_in_line(run.pattern)}, "
        f"{_in_line(run.parameter or '')}{value}",
        f"; measured on {_in_line(results.manifest.device.url)}",
        f"; in this folder: UFLIP_TARGET=FILE fio {run.id}.fio",
        "",
        "[global]",
        f"filename={TARGET}",
        "direct=1",
        "thread=1",
        "allow_file_create=0",
    ]


def _in_line(text: str) -> str:
    """Replace characters that could end a comment."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _has_options(spec: Pattern) -> bool:
    """Return whether options of fio make the I/Os of a pattern, without a log."""
    if isinstance(spec, Parallel):
        return all(_has_options(each) for each in spec.patterns)
    if isinstance(spec, Basic):
        return spec.location == "sequential" or spec.location in _DISTRIBUTIONS
    return isinstance(spec, Mix) and _is_random_mix(spec)


def _is_random_mix(spec: Mix) -> bool:
    """Return whether a mix is fio's randrw: random I/Os of one size and space, reads and writes."""
    first, second = spec.first, spec.second
    same = (first.io_size, first.begin, first.end, first.shift) == (
        second.io_size,
        second.begin,
        second.end,
        second.shift,
    )
    random = first.location in _DISTRIBUTIONS and second.location in _DISTRIBUTIONS
    alike = random and _distribution(first) == _distribution(second)
    times = (first.time, second.time) == ("consecutive", "consecutive")
    both = {first.mode, second.mode} == {"read", "write"}
    return spec.first_percent is not None and same and alike and times and both


def _sections(spec: Pattern, name: str, settings: JobSettings) -> Lines:
    if unsupported := [part.mode for part in spec.parts if part.mode not in FIO_MODES]:
        return ["", f"; {name}: fio has no I/Os of the mode {unsupported[0]}"]
    if not _has_options(spec):
        return _from_log(spec, name, settings)
    if isinstance(spec, Parallel):
        return [
            line
            for number, each in enumerate(spec.patterns)
            for line in _sections(each, f"{name}-{number}", settings)
        ]
    head = ["", f"[{name}]", *_queue(_depth(spec), settings), *_durable(settings)]
    if isinstance(spec, Basic):
        return [*head, *_basic(spec)]
    assert isinstance(spec, Mix), "a replay has no options"
    return [*head, *_mix(spec)]


def _depth(spec: Pattern) -> int:
    return 1 if isinstance(spec, Parallel) else spec.queue_depth or 1


def _queue(depth: int, settings: JobSettings) -> Lines:
    if depth == 1:
        return ["ioengine=psync"]
    return ["ioengine=io_uring", f"iodepth={depth}", *(["hipri=1"] if settings.is_polled else [])]


def _durable(settings: JobSettings) -> Lines:
    if settings.durability == "fua":
        return ["sync=dsync"]
    if settings.durability.startswith("flush:"):
        return [f"fdatasync={settings.durability.removeprefix('flush:')}"]
    return []


def _basic(spec: Basic) -> Lines:
    lines = [*_space(spec, spec.processes), *_length(spec.ios, spec.io_bytes)]
    if spec.location in _DISTRIBUTIONS:
        drawn = [*_distribution(spec), *_streams(spec), *_seed(spec.seed)]
        lines = [f"rw=rand{spec.mode}", "norandommap=1", *drawn, *lines]
    else:
        lines = [f"rw={spec.mode}", *lines]
    lines += _content(spec)
    if spec.is_trim:
        lines.insert(0, "; fio trims block devices, and no files")
    return [*lines, *_times(spec, spec.processes), *_ignored(spec.ignored_ios)]


def _mix(spec: Mix) -> Lines:
    percent = spec.first_percent or 0
    reads = percent if spec.first.mode == "read" else 100 - percent
    return [
        "rw=randrw",
        f"rwmixread={reads}",
        "norandommap=1",
        *_distribution(spec.first),
        *_streams(spec.first),
        *_streams(spec.second),
        *_content(spec.first if spec.first.is_write else spec.second),
        *_seed(spec.seed),
        *_space(spec.first, 1),
        *_length(spec.ios, spec.first.io_bytes),
        *_arrivals(spec.time, spec.interval, (reads, _ALL_PERCENT - reads)),
        *_ignored(spec.ignored_ios),
    ]


def _distribution(part: MixPart) -> Lines:
    """Return the options of the address distribution, where it is not uniform."""
    if part.location == "zipf":
        skew = part.skew_percent or 0
        # fio takes every number but 1; the difference is not measurable.
        theta = "1.0001" if skew == _ALL_PERCENT else f"{skew / _ALL_PERCENT:g}"
        return [
            "; other addresses are hot: fio maps ranks to addresses by a hash, which may collide",
            f"random_distribution=zipf:{theta}",
        ]
    if part.location == "hotcold":
        space, ios = part.hot_space_percent or 0, part.hot_io_percent or 0
        return [
            f"random_distribution=zoned:{ios}/{space}:{_ALL_PERCENT - ios}/{_ALL_PERCENT - space}"
        ]
    return []


def _streams(part: MixPart) -> Lines:
    """Return a comment about write streams, which fio does not set."""
    named = (part.write_stream or 0, part.hot_write_stream or 0)
    return ["; its writes name streams; fio does not set them"] if any(named) else []


def _content(part: MixPart) -> Lines:
    """Return the options for the content of the writes, in the chunks of uflip."""
    shares = {
        "buffer_compress_percentage": part.compress_percent,
        "dedupe_percentage": part.duplicate_percent,
    }
    lines = [f"{option}={percent}" for option, percent in shares.items() if percent]
    chunk = _DUPLICATE_BYTES if part.duplicate_percent else _SECTOR_BYTES
    return [*lines, f"buffer_compress_chunk={chunk}", "refill_buffers=1"] if lines else []


def _length(ios: int, io_size: int) -> Lines:
    """Return the options for the number of I/Os; by default fio makes one pass of its space."""
    return [f"number_ios={ios}", f"io_size={ios * io_size}"]


def _seed(seed: int | None) -> Lines:
    return [
        "; other addresses of the same distribution: fio draws by its own generator",
        f"randseed={(seed or 0) % 2**63}",
    ]


def _space(part: MixPart, processes: int) -> Lines:
    """Return the options for the target space: whole slots only, as in uflip."""
    io_size = part.io_bytes
    share = part.target_bytes
    if processes > 1:
        share = share // processes // io_size * io_size
    size = (share - part.shift) // io_size * io_size
    lines = [f"bs={io_size}", f"offset={part.begin + part.shift}", f"size={size}"]
    # fio draws multiples of it from the start of the job, which is shifted anyway.
    if part.shift and part.location not in DRAWN:
        lines.append(f"blockalign={_alignment(part)}")
    if processes > 1:
        lines += [f"numjobs={processes}", f"offset_increment={share}", "group_reporting=1"]
    return lines


def _alignment(part: MixPart) -> int:
    """Return the largest power of two that divides all addresses of a pattern."""
    together = part.io_bytes | (part.begin + part.shift)
    return together & -together


def _times(spec: Basic, processes: int) -> Lines:
    if spec.time in PAUSE_PARAMETERS and spec.pause:
        burst = 1 if spec.time == "pause" else spec.burst or 1
        lines = [f"thinktime={max(spec.pause // _NS_PER_US, 1)}", f"thinktime_blocks={burst}"]
        if _depth(spec) > 1:
            # By default fio counts completions, and fills its queue again while a burst completes.
            lines.append("thinktime_blocks_type=issue")
        if spec.pause % _NS_PER_US:
            lines.insert(0, f"; {spec.pause} ns: fio's pauses are whole microseconds")
        return lines
    lines = _arrivals(spec.time, spec.interval)
    if lines and processes > 1:
        lines.insert(0, "; arrivals of each process, as in uflip")
    return lines


def _arrivals(
    time: str | None, interval: int | None, percents: tuple[int, ...] = (_ALL_PERCENT,)
) -> Lines:
    """Return the options of an open loop; `percents` are the shares of reads and writes of a mix.

    fio's rate is that of each direction, and decides the mix.
    """
    if time not in ("fixed", "poisson") or not interval:
        return []
    exact = [_NS_PER_S * percent / _ALL_PERCENT / interval for percent in percents]
    rates = [round(each) for each in exact]
    if any(abs(rate - each) > RATE_ERROR * each for rate, each in zip(rates, exact, strict=True)):
        return [
            f"; arrivals every {interval} ns are left out, fio submits as fast as it can: its "
            "rates are whole I/Os a second"
        ]
    lines = ["; fio's response times begin at submission: waiting before it is left out"]
    if rates != exact:
        lines.append(f"; arrivals every {interval} ns: fio's rates are whole I/Os a second")
    if len(rates) > 1:
        lines.append("; reads and writes arrive independently, in exactly this proportion")
    lines.append(f"rate_iops={','.join(map(str, rates))}")
    return [*lines, "rate_process=poisson"] if time == "poisson" else lines


def _ignored(ios: int) -> Lines:
    if not ios:
        return []
    return [f"; uflip leaves the first {ios} I/Os of each process out; fio's ramp_time is a time"]


def _from_log(spec: Pattern, name: str, settings: JobSettings) -> Lines:
    """Return a job that reads its I/Os from a log."""
    why = "the I/Os of a replay" if isinstance(spec, Replay) else "no option of fio makes these"
    parallel = isinstance(spec, Parallel)
    return [
        "",
        f"[{name}]",
        f"; {why}: one after another from the log",
        *(["; uflip ran these patterns side by side; here they follow each other"] * parallel),
        *_times_left_out(spec),
        *_queue(_depth(spec), settings),
        *_durable(settings),
        f"read_iolog={name}.iolog",
        f"replay_redirect={TARGET}",
        "replay_no_stall=1",
        *_ignored(0 if parallel else spec.ignored_ios),
    ]


def _times_left_out(spec: Pattern) -> Lines:
    """Return comments on arrivals and pauses, which a log omits."""
    each = spec.patterns if isinstance(spec, Parallel) else (spec,)
    lines = []
    if any(pattern.is_open for pattern in each):
        lines.append("; their arrivals are left out: fio submits as fast as it can")
    if any(part.time in PAUSE_PARAMETERS and part.pause for part in spec.parts):
        lines.append("; their pauses are left out: fio submits as fast as it can")
    return lines


def _write_log(run: StoredRun, path: Path) -> None:
    """Write the I/Os of a run in fio's format (version 2, which has no times)."""
    trace = run.trace()
    with path.open("w", encoding="ascii") as file:
        file.write(f"fio version 2 iolog\n{LOG_FILE_NAME} add\n{LOG_FILE_NAME} open\n")
        for columns in pieces(trace, ("offset_bytes", "io_size_bytes", "mode")):
            file.writelines(
                f"{LOG_FILE_NAME} {MODES[mode]} {offset} {size}\n"
                for offset, size, mode in zip(*(each.tolist() for each in columns), strict=True)
            )
        file.write(f"{LOG_FILE_NAME} close\n")
