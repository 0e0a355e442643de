"""Power meters of the host, sampled beside the runs.

    rapl[:ZONE]     energy counters of the processor (powercap): package, core, dram, psys
    hwmon:CHIP/N    power*_input or power*_average, or in*_input with curr*_input
    csv:FILE        the log of another meter: columns `time` [s since 1970] and `watts`

A thread of its own reads a meter every `PERIOD_S`; the loop of I/Os does not know of it. Sysfs
meters use the monotonic clock of the runs. A CSV file is read after the run, and aligned by the
clock of the computer that wrote it.

**Source** Documentation/power/powercap/powercap.rst and Documentation/hwmon/sysfs-interface.rst of
Linux: file names and units.
**Faithful** RAPL counts energy: a run's energy is the difference of two readings. All other meters
report power, which is integrated.
**Simplified** The window contains the preparation of a run, some milliseconds.
**Ambiguous** RAPL measures the processor, and not the drive: the cost of the I/Os on the host.
"""

from __future__ import annotations

import csv
import math
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from uflip.data.energy import PowerRecord, integrate_power
from uflip.errors import DeviceError, UsageError

PERIOD_S = 0.05
"""Time between two samples."""
RAPL_UPDATE_S = 0.001
"""A RAPL counter is updated about once a millisecond."""
SYSFS = Path("/sys")
FORMS = "rapl, rapl:ZONE, hwmon:CHIP/CHANNEL, csv:FILE"
MICRO = 1e-6


@dataclass(frozen=True)
class PowerSource:
    """A meter: its name for `--power`, what it measures, and why it cannot be read."""

    name: str
    measures: str
    problem: str = ""


@dataclass(frozen=True)
class EnergyMeter:
    """Counters of energy [µJ], each with the value at which it begins again."""

    counters: tuple[Path, ...]
    ranges_uj: tuple[int, ...]

    def read(self) -> tuple[int, ...]:
        """Return the values of all counters."""
        return tuple(_read_number(path) for path in self.counters)


@dataclass(frozen=True)
class PowerMeter:
    """A power [µW]; or a voltage [mV] and a current [mA], whose product is µW."""

    files: tuple[Path, ...]

    def read(self) -> float:
        """Return the power [W]."""
        return math.prod(_read_number(path) for path in self.files) * MICRO


def _read_number(path: Path) -> int:
    return int(path.read_text(encoding="ascii").strip())


def _problem(path: Path) -> str:
    try:
        _read_number(path)
    except PermissionError:
        return "reading it needs root"
    except (OSError, ValueError) as error:
        return f"not readable: {error}"
    return ""


def power_sources(sysfs: Path = SYSFS) -> list[PowerSource]:
    """Return the meters of this machine, also those that need root."""
    found = [
        PowerSource(f"rapl:{name}", "processor, energy counter", _problem(zone / "energy_uj"))
        for name, zone in _rapl_zones(sysfs).items()
    ]
    for name, files in _hwmon_channels(sysfs).items():
        what = "power sensor" if len(files) == 1 else "voltage and current sensor"
        problems = [problem for path in files if (problem := _problem(path))]
        found.append(PowerSource(f"hwmon:{name}", what, problems[0] if problems else ""))
    return found


def _rapl_zones(sysfs: Path) -> dict[str, Path]:
    """Return the zones by name; a zone in a package has the name of both: package-0/dram."""
    zones: dict[str, Path] = {}
    for zone in sorted((sysfs / "class" / "powercap").glob("intel-rapl:*")):
        try:
            name = (zone / "name").read_text(encoding="ascii").strip()
            if zone.name.count(":") > 1:
                package = zone.parent / zone.name.rpartition(":")[0]
                name = f"{(package / 'name').read_text(encoding='ascii').strip()}/{name}"
        except OSError:
            continue
        if (zone / "energy_uj").exists():
            zones[name] = zone
    return zones


def _hwmon_channels(sysfs: Path) -> dict[str, tuple[Path, ...]]:
    channels: dict[str, tuple[Path, ...]] = {}
    for chip in sorted((sysfs / "class" / "hwmon").glob("hwmon*")):
        try:
            name = (chip / "name").read_text(encoding="ascii").strip()
        except OSError:
            continue
        if any(each.startswith(f"{name}/") for each in channels):
            name = f"{name}@{chip.name}"
        for kind in ("power*_input", "power*_average"):
            for path in sorted(chip.glob(kind)):
                channels.setdefault(f"{name}/{path.name.partition('_')[0]}", (path,))
        for current in sorted(chip.glob("curr*_input")):
            number = current.name.removeprefix("curr").removesuffix("_input")
            voltage = chip / f"in{number}_input"
            if voltage.exists():
                channels[f"{name}/in{number}"] = (voltage, current)
    return channels


# NVMe Base Specification, Identify Controller: NPSS, and the power state descriptors.
STATE_COUNT, STATES, STATE_BYTES = 263, 2048, 32
NON_OPERATIONAL, FINE = 1 << 1, 1 << 0
SCALES = {1: 0.0001, 2: 0.01}
"""Units of idle and active power [W]; other values mean that it is not reported."""


@dataclass(frozen=True)
class PowerState:
    """A power state of an NVMe drive, as the drive declares it; None if it does not."""

    number: int
    operational: bool
    max_watts: float | None
    idle_watts: float | None
    active_watts: float | None
    entry_us: int
    exit_us: int


def nvme_power_states(controller: bytes) -> list[PowerState]:
    """Return the power states in the answer to Identify Controller."""
    if len(controller) < STATES + STATE_BYTES:
        return []
    states = []
    for number in range(min(controller[STATE_COUNT] + 1, 32)):
        start = STATES + number * STATE_BYTES
        state = controller[start : start + STATE_BYTES]
        if len(state) < STATE_BYTES:
            break
        power = int.from_bytes(state[0:2], "little")
        unit = SCALES[1] if state[3] & FINE else SCALES[2]

        def scaled(at: int, state: bytes = state) -> float | None:
            scale = SCALES.get(state[at + 2] >> 6)
            value = int.from_bytes(state[at : at + 2], "little")
            return None if scale is None or not value else value * scale

        states.append(
            PowerState(
                number,
                not state[3] & NON_OPERATIONAL,
                power * unit if power else None,
                scaled(16),
                scaled(20),
                int.from_bytes(state[4:8], "little"),
                int.from_bytes(state[8:12], "little"),
            )
        )
    return states


def check_power(source: str, sysfs: Path = SYSFS) -> None:
    """Refuse a meter that does not exist, or cannot be read.

    Raises UsageError for an unknown meter; the error lists those of this machine. Raises
    DeviceError if it cannot be read.
    """
    if source.startswith("csv:"):
        path = Path(source.removeprefix("csv:"))
        if not path.is_file():
            raise UsageError(
                "The log of the power meter does not exist", where="--power", got=str(path),
                allowed="a CSV file with the columns time and watts",
                action="start the meter, with this file as its log",
            )  # fmt: skip
        return
    meter_of(source, sysfs)


def meter_of(source: str, sysfs: Path = SYSFS) -> EnergyMeter | PowerMeter:
    """Return the meter of a name.

    Raises UsageError for an unknown meter; the error lists those of this machine. Raises
    DeviceError if it cannot be read.
    """
    known = {each.name: each for each in power_sources(sysfs)}
    zones = _rapl_zones(sysfs)
    # A package contains its parts; psys contains the packages.
    packages = {name: zone for name, zone in zones.items() if name.startswith("package-")
                and "/" not in name}  # fmt: skip
    if source == "rapl" and packages:
        chosen = list(packages)
    elif source in known:
        chosen = [source.partition(":")[2]]
    else:
        here = ", ".join(known) or "none on this machine"
        raise UsageError(
            "There is no such power meter", where="--power", got=source,
            allowed=f"{FORMS}; on this machine: {here}",
            action="`uflip info DEVICE` lists the meters; a meter without a driver can log to CSV",
        )  # fmt: skip
    kind = source.partition(":")[0]
    for name in chosen:
        if problem := known[f"{kind}:{name}"].problem:
            raise DeviceError(
                "The power meter cannot be read", where=f"{kind}:{name}", got=problem,
                action="run as root, or allow reading the file",
            )  # fmt: skip
    if kind == "hwmon":
        return PowerMeter(_hwmon_channels(sysfs)[chosen[0]])
    counters = tuple(zones[name] / "energy_uj" for name in chosen)
    ranges = tuple(_read_number(zones[name] / "max_energy_range_uj") for name in chosen)
    return EnergyMeter(counters, ranges)


class PowerSampler:
    """Samples a meter in a thread, from `start` to `finish`.

    `source`: a meter, as in `uflip.device.power`. `sysfs`: the root of sysfs. `period_s`: time
    between two samples [s].
    """

    def __init__(self, source: str, sysfs: Path = SYSFS, period_s: float = PERIOD_S) -> None:
        check_power(source, sysfs)
        self.source = source
        self.period_s = period_s
        self._meter = None if source.startswith("csv:") else meter_of(source, sysfs)
        self._samples: list[tuple[int, float | tuple[int, ...]]] = []
        self._failed = False
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._begin_ns = self._begin_wall_ns = 0

    def start(self) -> None:
        """Take the first sample, and sample from now on."""
        self._samples, self._failed, self._stop = [], False, threading.Event()
        self._begin_ns, self._begin_wall_ns = time.monotonic_ns(), time.time_ns()
        if self._meter is None:
            return
        self._sample()
        self._thread = threading.Thread(target=self._run, name="power", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(self.period_s):
            self._sample()

    def _sample(self) -> None:
        assert self._meter is not None, "a CSV file is read later"
        try:
            value = self._meter.read()
        except (OSError, ValueError):
            self._failed = True
        else:
            self._samples.append((time.monotonic_ns() - self._begin_ns, value))

    def finish(self) -> PowerRecord:
        """Stop, take the last sample, and return what was measured."""
        window_ns = time.monotonic_ns() - self._begin_ns
        if self._meter is None:
            path = Path(self.source.removeprefix("csv:"))
            return csv_record(path, self._begin_wall_ns, window_ns)
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._sample()
        window_ns = time.monotonic_ns() - self._begin_ns
        times = [at for at, _ in self._samples]
        marks = ["not_read"] if self._failed else []
        if isinstance(self._meter, EnergyMeter):
            readings = [value for _, value in self._samples if isinstance(value, tuple)]
            return counter_record(
                self.source,
                times,
                readings,
                self._meter.ranges_uj,
                window_ns=window_ns,
                marks=marks,
            )
        watts = [value for _, value in self._samples if isinstance(value, float)]
        return power_record(self.source, times, watts, window_ns, marks)


def counter_record(
    source: str,
    times_ns: list[int],
    readings: list[tuple[int, ...]],
    ranges_uj: tuple[int, ...],
    *,
    window_ns: int,
    marks: Iterable[str] = (),
) -> PowerRecord:
    """Return the record of energy counters: differences, wraps included.

    A counter that becomes smaller has wrapped if the difference over its range is the smaller one;
    otherwise it was reset, and the energy is unknown.
    """
    doubts = dict.fromkeys(marks)
    if len(readings) < 2:
        return PowerRecord(source, window_ns, marks=(*doubts, "too_few_samples"))
    total_uj, watts, went_back = 0, [], False
    samples = zip(times_ns, readings, strict=True)
    for (before_ns, before), (after_ns, after) in pairwise(samples):
        used_uj = 0
        for earlier, later, range_uj in zip(before, after, ranges_uj, strict=True):
            difference = later - earlier
            if difference < 0:
                wrapped = difference + range_uj < -difference
                doubts["wrapped" if wrapped else "went_back"] = None
                went_back |= not wrapped
                difference = difference + range_uj if wrapped else 0
            used_uj += difference
        total_uj += used_uj
        watts.append(used_uj * 1e3 / max(after_ns - before_ns, 1))
    joules = total_uj * MICRO
    # Each end of the window falls between two updates of the counter.
    error = 2 * RAPL_UPDATE_S * max(watts) + len(ranges_uj) * MICRO
    return PowerRecord(
        source, window_ns, None if went_back else joules, error, times_ns[1:], watts,
        tuple(doubts),
    )  # fmt: skip


def power_record(
    source: str,
    times_ns: list[int],
    watts: list[float],
    window_ns: int,
    marks: Iterable[str] = (),
) -> PowerRecord:
    """Return the record of sampled power; times are those since the begin of the window."""
    if len(watts) < 2:
        return PowerRecord(source, window_ns, marks=(*marks, "too_few_samples"))
    joules, error = integrate_power(times_ns, watts, 0, window_ns)
    inside = [(at, each) for at, each in zip(times_ns, watts, strict=True) if 0 <= at <= window_ns]
    return PowerRecord(
        source, window_ns, joules, error, [at for at, _ in inside], [each for _, each in inside],
        tuple(marks),
    )  # fmt: skip


def csv_record(path: Path, begin_wall_ns: int, window_ns: int) -> PowerRecord:
    """Return the power during a window of the wall clock, from the log of a meter."""
    name = f"csv:{path}"
    times, watts = read_power_log(path)
    since = [at - begin_wall_ns for at in times]
    if sum(0 <= at <= window_ns for at in since) < 2:
        return PowerRecord(name, window_ns, marks=("too_few_samples",))
    covered = since[0] <= 0 and since[-1] >= window_ns
    # The neighbours of the window determine the power at its ends.
    first = max((i for i, at in enumerate(since) if at <= 0), default=0)
    last = min((i for i, at in enumerate(since) if at >= window_ns), default=len(since) - 1)
    joules, error = integrate_power(since[first : last + 1], watts[first : last + 1], 0, window_ns)
    inside = [(at, each) for at, each in zip(since, watts, strict=True) if 0 <= at <= window_ns]
    return PowerRecord(
        name, window_ns, joules, error, [at for at, _ in inside], [each for _, each in inside],
        () if covered else ("not_covered",),
    )  # fmt: skip


def read_power_log(path: Path) -> tuple[list[int], list[float]]:
    """Return the times [ns since 1970] and the power [W] of a log, sorted by time.

    Raises UsageError without the columns, or with a value that is not a number.
    """

    def refuse(line: int, got: str) -> UsageError:
        return UsageError(
            "The log of the power meter cannot be read", where=f"{path}, line {line}", got=got,
            allowed="the columns time [s since 1970] and watts; rows of two finite numbers",
            action="correct the file",
        )  # fmt: skip

    rows: list[tuple[int, float]] = []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            if not {"time", "watts"} <= set(reader.fieldnames or ()):
                raise refuse(1, ", ".join(reader.fieldnames or ()) or "an empty file")
            for row in reader:
                cells = (row["time"], row["watts"])
                if None in cells or "" in cells:
                    continue  # the line that the meter is writing
                try:
                    at_s, watts = float(cells[0]), float(cells[1])
                except ValueError:
                    raise refuse(reader.line_num, ", ".join(cells)) from None
                if not (math.isfinite(at_s) and math.isfinite(watts)):
                    raise refuse(reader.line_num, ", ".join(cells))
                rows.append((round(at_s * 1e9), watts))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise refuse(0, str(error)) from None
    rows.sort()
    unique = dict(rows)
    return list(unique), list(unique.values())


T = TypeVar("T")


def measured_with(
    sampler: PowerSampler | None, work: Callable[[], T]
) -> tuple[T, PowerRecord | None]:
    """Return the result of `work`, and the power during it; None without a sampler."""
    if sampler is None:
        return work(), None
    sampler.start()
    try:
        result = work()
    except BaseException:
        sampler.finish()
        raise
    return result, sampler.finish()
