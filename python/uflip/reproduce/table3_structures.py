"""Table 3 from one optimiser: five powers of two a device, and four means that calibrate it.

The profiles of the seven devices have 123 constants that were set with the table in view. Here a
device has the NAND of its class, five constants that SR, RR, SW and RW determine (calibration, not
scored), and a structure: a log, two yes-or-no mechanisms and five powers of two. One search finds
the structures of all devices and scores the six other columns: fitted, and with a cell, a column or
a device held out.

```text
class of NAND ─▶ structure ─▶ calibration by four means ─▶ six cells ─▶ loss of the cells in use
                     ▲                                                            │
                     └────────────── one key after the other, whole range ◀───────┘
```

**Source**: uFLIP (CIDR 2009) Table 3, §5.1 (IOIgnore, IOCount, pauses); data sheets of NAND of 2008
(K9K8G08, K9GAG08); cross-validation (Stone 1974).
**Faithful**: cells are compared by the rules of `uflip.results.key_characteristics` and
`uflip.reproduce.table3`; a held-out cell influences neither structure nor calibration.
**Simplified**: devices have 2 GiB, fewer I/Os in some runs, a shorter random state, and a channel
for each die; each experiment runs on a copy of the same device.
**Ambiguous**: the menu of mechanisms was chosen with the table in view, so that a held-out cell
tests the structure and not the menu. Ties keep the value from which the search started.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cache, partial
from math import inf, log
from statistics import median_low
from typing import Any

import numpy as np

from uflip.data.summary import ExperimentSummary
from uflip.device.cache import switched_off
from uflip.device.handle import Device
from uflip.device.opener import open_device
from uflip.errors import UsageError
from uflip.executors import OnStep, ignore, on_all
from uflip.hints import REPEATS
from uflip.hints.means import MAX_PROCESSES
from uflip.reproduce import null_models, table3
from uflip.reproduce.simulated_device import device_url
from uflip.results.key_characteristics import (
    LIKE_FACTOR,
    MIN_AREA_BYTES,
    MIN_PARTITIONS,
    characteristics,
    without_degradation,
)
from uflip.spec import baseline, basic
from uflip.table import Table

KIB, MIB = 1 << 10, 1 << 20
IO_SIZE = 32 * KIB
CAPACITY = 2048 * MIB
MEANS, SCORED = table3.COLUMNS[:4], table3.COLUMNS[4:]

SLC = {
    "page_bytes": 4096, "spare_bytes": 128, "pages_per_block": 64, "read_ns": 25_000,
    "program_ns": 200_000, "program_high_ns": 200_000, "erase_ns": 1_500_000,
    "channel_bytes_per_s": 80_000_000,
}  # fmt: skip
MLC = {
    "page_bytes": 8192, "spare_bytes": 256, "pages_per_block": 128, "read_ns": 60_000,
    "program_ns": 800_000, "program_high_ns": 800_000, "erase_ns": 2_000_000,
    "channel_bytes_per_s": 40_000_000,
}  # fmt: skip
"""Data sheets of 2008: two SLC chips side by side (16 bits at 25 ns), and MLC with two planes."""
MLC_DEVICES = ("transcend-mlc", "kingston-dthx", "kingston-dti")
COMMON: dict[str, float | str] = {
    "page_order": "ascending", "metadata_pages": 0, "sector_bytes": 512, "buses": 0,
    "bus_bytes_per_s": 1, "collect_ns": 0, "cache_program": True, "commands_at_once": 1,
    "spare_factor": 0.2, "random_overwrites": 0.02, "link_bytes_per_s": 150_000_000,
    "cluster_bytes": IO_SIZE, "merge_map_pages": 0,
}  # fmt: skip
LOG_OF_UNITS: dict[str, float | str] = {
    "ftl": "linear",
    "backward_clusters": 0,
    "rewrites": 0,
    "open_map_pages": 0,
}
SHARED_LOG: dict[str, float | str] = {
    "ftl": "stream_hybrid", "evict_single": False, "own_channels": False, "log_members": 0,
    "small_cluster_bytes": 0, "small_log_clusters": 0, "small_log_units": 0, "reads_per_step": 0,
    "bypass_partial_clusters": False, "log_map_pages": 0,
}  # fmt: skip


@dataclass(frozen=True)
class Structure:
    """Three mechanisms and five powers of two; by default the start of a search."""

    # One log for all units, merged when it is full; one that is compacted, and merged from its
    # oldest cluster on; a log for each open unit (BAST at the granularity of units).
    log: str = "shared"
    reverse_streams: bool = False
    rewrite_buffer: bool = False
    unit_bytes: int = 2 * MIB
    open_units: int = 4
    log_clusters: int = 16
    banks: int = 2
    switch_map_pages: int = 0


CHOICES: Mapping[str, tuple[Any, ...]] = {
    "log": ("shared", "compacted", "unit"),
    "reverse_streams": (False, True),
    "rewrite_buffer": (False, True),
    "unit_bytes": tuple(256 * KIB << k for k in range(6)),
    "open_units": (1, 2, 4, 8, 16),
    "log_clusters": tuple(2 << k for k in range(7)),
    "banks": (1, 2, 4, 8),
    "switch_map_pages": (0, 1, 2, 4, 8, 16, 32),
}
"""Key of a structure -> its values."""
CENTRE = Structure()
"""Start of a search that may not use other devices."""

UNCALIBRATED = {
    "command_read_ns": 0, "seek_read_ns": 0, "command_write_ns": 0, "relocate_ns": 0,
}  # fmt: skip
WIDEST = 3
"""Largest number of dies of a bank [log2]."""
CALIBRATIONS, CALIBRATED = 8, 0.01
"""Limit of the steps of a calibration, and the deviation of the means that ends it earlier."""
FAR, IMPOSSIBLE = 1.0, 100.0
"""Distance of the means from which cells are not measured, and the loss of such a structure."""

AREAS = tuple(MIN_AREA_BYTES << k for k in range(7))
PARTITIONS = tuple(1 << k for k in range(6))
GAPS = (32, 64, 128, 256)
PAUSES_NS = tuple(1_600_000 << k for k in range(5))
IOS = 512
RUNS: Mapping[str, tuple[str, ...]] = {
    "order": ("Reverse", "In-place", "Large Incr"), "partitioning": ("Partitions",),
    "locality": ("Locality",), "pause": ("Pause",),
}  # fmt: skip
"""Micro-benchmark -> its columns, the cheaper ones first."""
STATEMENTS: Mapping[str, tuple[float, float]] = {
    "larger": (REPEATS, inf), "degenerate": (1 / LIKE_FACTOR, LIKE_FACTOR),
    "pauses": (1 / REPEATS, inf),
}  # fmt: skip
"""Hint of §5.3 -> its limits: small reads cost more per byte, parallel writers cost as much as
partitions, and pauses do not save time."""


def device_keys(profile: str, structure: Structure, width: int) -> dict[str, float | str]:
    """Return the keys of a device that is not calibrated; `width`: dies of a bank."""
    nand = MLC if profile in MLC_DEVICES else SLC
    banks, log_clusters = structure.banks, structure.log_clusters
    block = nand["page_bytes"] * nand["pages_per_block"]
    unit = max(structure.unit_bytes, width * block)
    unit_clusters = unit // IO_SIZE
    keys = {
        **COMMON, **nand, "channels": width * banks, "dies_per_channel": 1,
        "blocks_per_die": CAPACITY * 5 // 4 // (width * banks * block), "unit_bytes": unit,
        "banks": banks, "switch_map_pages": structure.switch_map_pages,
    }  # fmt: skip
    if structure.log == "unit":
        return keys | LOG_OF_UNITS | {
            "open_units": structure.open_units, "log_clusters": min(log_clusters, unit_clusters),
        }  # fmt: skip
    compacted, log_units = structure.log == "compacted", -(-log_clusters // unit_clusters)
    return keys | SHARED_LOG | {
        "streams": structure.open_units, "resumed_streams": structure.open_units,
        "fold_clusters": unit_clusters // 4, "merges_at_once": banks,
        "log_clusters": log_clusters, "log_units": 2 * log_units + 1 if compacted else log_units,
        "compact_log": compacted,
        "free_clusters": min(table3.START_UP.get(profile, 0), log_clusters),
        "reverse_streams": structure.reverse_streams,
        "rewrite_buffer": structure.rewrite_buffer,
    }  # fmt: skip


class StructureBench:
    """Runs experiments, each on a copy of one simulated device."""

    def __init__(
        self, profile: str, structure: Structure, width: int, constants: Mapping[str, int]
    ) -> None:
        base = "kingston-dti" if structure.log == "unit" else "kingston-dthx"
        self._url = device_url(base, **device_keys(profile, structure, width), **constants)
        # The first writes evict what the log has from the random state.
        self._ignored = table3.START_UP.get(profile, 0) + structure.log_clusters
        self._rest_ns = table3.PAUSE_NS.get(profile, table3.OTHER_PAUSE_NS)
        with switched_off():
            self._device = open_device(self._url)

    def mean(self, label: str, **changes: Any) -> float:
        """Return the mean response time of a baseline with some parameters changed [ms]."""
        copy = Device(self._device.native_copy(), self._url)
        copy.idle(self._rest_ns)
        location = changes.pop("location", None)
        ignored = self._ignored if label == "RW" or location == "ordered" else 0
        changes = {"io_size": IO_SIZE, "io_count": IOS + ignored, "seed": 5} | changes
        spec = basic("write", location, **changes) if location else baseline(label, **changes)
        times = np.asarray(copy.run(spec).column("response_time_ns"))[ignored:]
        return float(times.mean()) / 1e6

    def baselines(self) -> dict[str, float]:
        """Measure the four means [ms]."""
        return {label: self.mean(label) for label in MEANS}

    def experiments(self, name: str, means: Mapping[str, float]) -> list[Any]:
        """Run a micro-benchmark; return its runs as `characteristics` reads them."""
        label, curve = getattr(self, f"_{name}")(means)
        return [
            {"pattern": label, "value": value, "spec": {"io_size": IO_SIZE},
             "statistics": {"mean_ns": mean * 1e6}}
            for value, mean in curve.items()
        ]  # fmt: skip

    def statements(self, means: Mapping[str, float]) -> dict[str, float]:
        """Measure hints 1, 6 and 7 of §5.3, which no structure is fitted to."""
        small = self.mean("SR", io_size=4 * KIB) * IO_SIZE / (4 * KIB)
        writers = self.mean("SW", parallel_degree=MAX_PROCESSES, target_size=CAPACITY // 2)
        parts = self.mean(
            "SW", location="partitioned", partitions=MAX_PROCESSES, target_size=CAPACITY // 2
        )
        _label, paused = self._pause(means)
        return {
            "larger": small / means["SR"], "degenerate": writers / MAX_PROCESSES / parts,
            "pauses": min(pause_ns / 1e6 + mean for pause_ns, mean in paused.items()) / means["RW"],
        }  # fmt: skip

    def _order(self, _means: Mapping[str, float]) -> tuple[str, dict[int, float]]:
        most = CAPACITY // IO_SIZE
        curve = {}
        for incr in (-1, 0, *GAPS):
            # As the micro-benchmark: addresses that wrap must not meet those of the first round.
            ios = min(max(abs(incr), 1) * (IOS + self._ignored), most - 1)
            curve[incr] = self.mean("SW", location="ordered", incr=incr, target_size=ios * IO_SIZE)
        return "SW", curve

    def _partitioning(self, means: Mapping[str, float]) -> tuple[str, dict[int, float]]:
        def run(partitions: int) -> float:
            target = {"location": "partitioned", "target_size": CAPACITY // 2}
            return self.mean("SW", partitions=partitions, **target)

        return "SW", _until_degraded(PARTITIONS, run, means, MIN_PARTITIONS)

    def _locality(self, means: Mapping[str, float]) -> tuple[str, dict[int, float]]:
        def run(area: int) -> float:
            return self.mean("RW", target_size=area)

        return "RW", _until_degraded(AREAS, run, means, MIN_AREA_BYTES)

    def _pause(self, means: Mapping[str, float]) -> tuple[str, dict[int, float]]:
        def run(pause_ns: int) -> float:
            return self.mean("RW", time="pause", pause=pause_ns)

        longest = {PAUSES_NS[-1]: run(PAUSES_NS[-1])}
        if longest[PAUSES_NS[-1]] > means["RW"] / 2:
            return "RW", longest
        return "RW", {pause_ns: run(pause_ns) for pause_ns in PAUSES_NS[:-1]} | longest


def _until_degraded(
    values: Iterable[int], run: Callable[[int], float], means: Mapping[str, float], least: int
) -> dict[int, float]:
    """Measure a curve up to the first value with significant degradation."""
    curve: dict[int, float] = {}
    for value in values:
        curve[value] = run(value)
        found = without_degradation(curve, means["SW"], means["RW"], least)
        if len(curve) > 2 and found.value != value:
            break
    return curve


@cache
def width_of(profile: str, banks: int) -> int:
    """Return the fewest dies of a bank with which SR and SW are not slower than printed [log2]."""
    structure, row = replace(CENTRE, banks=banks), table3.row_of(profile)
    printed = {"SR": row.means[0], "SW": row.means[2]}
    for width in range(WIDEST):
        bench = StructureBench(profile, structure, 1 << width, UNCALIBRATED)
        limits = {label: float(text) + _digit(text) / 2 for label, text in printed.items()}
        if all(bench.mean(label) <= limit for label, limit in limits.items()):
            return width
    return WIDEST


def _digit(printed: str) -> float:
    return float(10 ** -len(printed.partition(".")[2]))


def deviation(printed: str, ours: float) -> float:
    """Return the logarithm of ours over a printed mean; 0 if the two agree."""
    value = float(printed)
    tolerance = max(_digit(printed) / 2, table3.REPEATABILITY * value)
    return 0.0 if abs(ours - value) <= tolerance else abs(log(ours / value))


def distance(profile: str, means: Mapping[str, float]) -> float:
    """Return the sum of the deviations of the four means."""
    return sum(map(deviation, table3.row_of(profile).means, means.values()))


def calibrate(
    profile: str, structure: Structure, width: int, start: Mapping[str, int]
) -> tuple[dict[str, int], StructureBench, dict[str, float]]:
    """Set the constants of SR, RR, SW and RW in a few steps; return the device and its means."""
    targets = dict(zip(MEANS, table3.row_of(profile).means_ms, strict=True))
    # The first step assumes that every page of a unit is copied, one after the other.
    page_bytes = (MLC if profile in MLC_DEVICES else SLC)["page_bytes"]
    pages = structure.unit_bytes / page_bytes
    found, previous = dict(start), None
    for step in range(CALIBRATIONS):
        bench = StructureBench(profile, structure, width, found)
        ours = bench.baselines()
        missing = {label: (targets[label] - ours[label]) * 1e6 for label in MEANS}
        if all(abs(missing[label]) < CALIBRATED * targets[label] * 1e6 for label in MEANS):
            break
        rise = partial(_rise, (found, ours), previous)
        # Programs of the cells hide a processor's time that is shorter.
        hidden = missing["SW"] > 0
        changes = {
            "command_read_ns": missing["SR"], "seek_read_ns": missing["RR"] - missing["SR"],
            "command_write_ns": missing["SW"] / (
                max(rise("command_write_ns", "SW", 1), 1 / 16) if hidden else 1
            ),
            "relocate_ns": missing["RW"] / max(rise("relocate_ns", "RW", pages), 1),
        }  # fmt: skip
        changed = {key: max(round(found[key] + change), 0) for key, change in changes.items()}
        if changed == found or step == CALIBRATIONS - 1:
            break
        found, previous = changed, (found, ours)
    return found, bench, ours


def _rise(
    here: tuple[dict[str, int], dict[str, float]],
    previous: tuple[dict[str, int], dict[str, float]] | None,
    key: str,
    label: str,
    guess: float,
) -> float:
    """Return the rise of a mean with a constant since the previous step; a guess without one."""
    if previous is None or here[0][key] == previous[0][key]:
        return guess
    return (here[1][label] - previous[1][label]) * 1e6 / (here[0][key] - previous[0][key])


@dataclass
class MeasuredStructure:
    """A structure of a device: its calibration, and the cells that were needed so far."""

    profile: str
    structure: Structure
    constants: dict[str, int] = field(default_factory=dict)
    means: dict[str, float] = field(default_factory=dict)
    uncalibrated: float = inf  #: Distance of the means after the calibration.
    cells: dict[str, table3.Cell] = field(default_factory=dict)
    width: int = 0  #: Dies of a bank [log2].
    bench: StructureBench | None = None  #: The device while it is measured.

    def measure_means(self, start: Mapping[str, int]) -> None:
        """Calibrate the device; `start`: constants of a similar one."""
        for width in range(width_of(self.profile, self.structure.banks), WIDEST + 1):
            self.width = width
            try:
                self.constants, self.bench, self.means = calibrate(
                    self.profile, self.structure, 1 << width, start
                )
            except UsageError:
                return
            if self.constants["command_write_ns"] > 0:
                break
        self.uncalibrated = distance(self.profile, self.means)

    def loss(self, columns: Iterable[str], limit: float = inf) -> float:
        """Return the distance of the means, and 1 and a part of its distance for each miss.

        Measures only until the loss exceeds a limit.
        """
        if self.uncalibrated > FAR:
            return IMPOSSIBLE + self.uncalibrated
        total, used = self.uncalibrated, set(columns)
        for name, of_run in RUNS.items():
            for column in used.intersection(of_run):
                cell = self.cell(name, column)
                total += 0.0 if cell.within else 1 + min(table3.miss(cell), 2.0) / 4
            if total >= limit:
                break
        self.bench = None
        return total

    def row(self, columns: Sequence[str]) -> dict[str, table3.Cell | None]:
        """Return some cells; None if there is no such device."""
        self.loss(columns)
        return {column: self.cells.get(column) for column in columns}

    def statements(self) -> dict[str, float]:
        """Return the measures of `STATEMENTS`."""
        return self._on_bench().statements(self.means)

    def _on_bench(self) -> StructureBench:
        if self.bench is None:
            self.bench = StructureBench(
                self.profile, self.structure, 1 << self.width, self.constants
            )
        return self.bench

    def cell(self, name: str, column: str) -> table3.Cell:
        """Return a cell; runs its micro-benchmark when it is needed first."""
        if column not in self.cells:
            runs: dict[str, list[ExperimentSummary]] = {
                name: self._on_bench().experiments(name, self.means)
            }
            row = characteristics(self.means, runs)
            compared = table3.compare(table3.row_of(self.profile), row)
            self.cells |= {one.column: one for one in compared if one.column in RUNS[name]}
        return self.cells[column]


class StructureSearch:
    """Searches structures of one device; equal structures are measured once."""

    def __init__(self, profile: str) -> None:
        self.profile = profile
        self._measured: dict[tuple[Any, ...], MeasuredStructure] = {}
        self._calibrated: dict[tuple[Any, ...], dict[str, int]] = {}

    @property
    def devices(self) -> int:
        """Number of structures that were measured."""
        return len(self._measured)

    def measured(self, structure: Structure) -> MeasuredStructure:
        """Return a structure with its calibration."""
        # Some keys have no effect with some logs.
        key = tuple(sorted(device_keys(self.profile, structure, 1).items()))
        if key not in self._measured:
            similar = (structure.log, structure.unit_bytes, structure.banks)
            measured = MeasuredStructure(self.profile, structure)
            measured.measure_means(self._calibrated.get(similar, UNCALIBRATED))
            self._calibrated.setdefault(similar, measured.constants or UNCALIBRATED)
            self._measured[key] = measured
        return self._measured[key]

    def best(self, columns: Iterable[str], start: Structure) -> Structure:
        """Return the structure with the least loss over some columns.

        Begins at `start` with each of the logs, and changes one key after the other. Equal losses
        keep the earlier value, so that a key without effect stays where it started.
        """
        used = tuple(columns)
        found = [self._descend(used, replace(start, log=kind)) for kind in CHOICES["log"]]
        return min(found, key=lambda one: self.measured(one).loss(used))

    def _descend(self, columns: Sequence[str], start: Structure) -> Structure:
        best, least = start, self.measured(start).loss(columns)
        improved = True
        while improved:
            improved = False
            for key, values in CHOICES.items():
                here = values.index(getattr(best, key))
                for value in sorted(values, key=lambda one: abs(values.index(one) - here)):
                    tried = replace(best, **{key: value})
                    if (loss := self.measured(tried).loss(columns, least)) < least:
                        best, least, improved = tried, loss, True
        return best


WAYS = ("fitted", "cell held out", "column held out", "device held out")
"""The cells that a structure was found without."""


@dataclass
class StructureScore:
    """The structures of a device, and its scored cells in each of `WAYS`."""

    profile: str
    structure: Structure  #: Found with all scored cells.
    constants: dict[str, int]  #: Its calibration.
    means: dict[str, float]  #: SR, RR, SW and RW after the calibration [ms].
    cells: dict[str, dict[str, table3.Cell | None]]  #: Way -> column -> cell; None: no such device.
    statements: dict[str, float]  #: The measures of `STATEMENTS`, with the fitted structure.
    structures: int = 0  #: Number of structures that were measured.


def evaluate(on_step: OnStep = ignore) -> list[StructureScore]:
    """Search all devices, several in parallel, and hold out cells, columns and devices."""
    searches = [StructureSearch(row.profile) for row in table3.TABLE]
    scores = on_all(_search_alone, searches, on_step, _profile_of)
    structures = {score.profile: score.structure for score in scores}
    with_others = partial(_search_with_others, structures)
    return on_all(with_others, list(zip(searches, scores, strict=True)), on_step, _profile_of)


def _profile_of(point: Any) -> str:
    search = point[0] if isinstance(point, tuple) else point
    return str(search.profile)


def _without(column: str) -> tuple[str, ...]:
    return tuple(other for other in SCORED if other != column)


def _held_out(search: StructureSearch, start: Structure) -> dict[str, table3.Cell | None]:
    """Return each scored cell on the structure that was found without it."""
    cells = {}
    for column in SCORED:
        measured = search.measured(search.best(_without(column), start))
        cells[column] = measured.row([column])[column]
    return cells


def _search_alone(search: StructureSearch) -> StructureScore:
    """Search a device without any knowledge of the others."""
    found = search.measured(search.best(SCORED, CENTRE))
    cells = {WAYS[0]: found.row(SCORED), WAYS[2]: _held_out(search, CENTRE)}
    statements = found.statements()
    found.bench = None
    return StructureScore(
        search.profile, found.structure, found.constants, found.means, cells, statements
    )


def _search_with_others(
    structures: Mapping[str, Structure], point: tuple[StructureSearch, StructureScore]
) -> StructureScore:
    """Start at the structure that is typical of the others; and take that of the nearest one."""
    search, score = point
    others = {name: one for name, one in structures.items() if name != search.profile}
    score.cells[WAYS[1]] = _held_out(search, typical(list(others.values())))
    nearest = min(others, key=partial(_gap_of_means, search.profile))
    score.cells[WAYS[3]] = search.measured(others[nearest]).row(SCORED)
    score.structures = search.devices
    return score


def typical(structures: Sequence[Structure]) -> Structure:
    """Return the commonest mechanisms and the medians of the numbers.

    >>> one = typical([Structure("unit", banks=1), Structure("unit", banks=4), Structure(banks=8)])
    >>> one.log, one.banks
    ('unit', 4)
    """
    rows = zip(*map(astuple, structures), strict=True)
    return Structure(*(
        Counter(values).most_common(1)[0][0]
        if isinstance(values[0], str | bool)
        else median_low(values)
        for values in rows
    ))  # fmt: skip


def _gap_of_means(one: str, other: str) -> float:
    pairs = zip(table3.row_of(one).means_ms, table3.row_of(other).means_ms, strict=True)
    return sum(log(mine / theirs) ** 2 for mine, theirs in pairs)


def text(scores: Sequence[StructureScore]) -> str:
    """Format the cells, the structures and the scores beside those without any simulator."""
    cells, structures = [], []
    for score in scores:
        row = table3.row_of(score.profile)
        printed = [cell.published for cell in score.cells[WAYS[0]].values() if cell is not None]
        cells.append((row.name, *(printed or [row.words(column) for column in SCORED])))
        cells += [(f"  {way}", *map(_words, score.cells[way].values())) for way in WAYS]
        means = [
            f"{score.means[label]:.3g}" + "!" * (not agrees)
            for label, agrees in zip(MEANS, means_agree(score), strict=True)
        ]
        structures.append((row.name, *map(str, astuple(score.structure)), *means))
    counted = [
        (way, *(str(agreeing(scores, way, column)) for column in SCORED), str(_total(scores, way)))
        for way in WAYS
    ]
    nulls = [
        (f"no simulator: {name}", *map(str, numbers), str(sum(numbers)))
        for name in null_models.NULL_MODELS
        for numbers in [[
            sum(null_models.score(row.profile, name, (column,)) for row in table3.TABLE)
            for column in SCORED
        ]]
    ]  # fmt: skip
    return "\n\n".join((
        Table(("", *SCORED), cells).text(),
        "! does not agree; the means are the calibration, and not scored",
        Table(("", *CHOICES, *(f"{label} [ms]" for label in MEANS)), structures).text(),
        Table(("cells of 7 that agree", *SCORED, "of 42"), [*counted, *nulls]).text(),
        Table(("statement, not fitted", *(table3.row_of(one.profile).name for one in scores)), [
            (name, *(
                f"{one.statements[name]:.2f}" + "!" * (not low <= one.statements[name] <= high)
                for one in scores
            ))
            for name, (low, high) in STATEMENTS.items()
        ]).text(),
        f"{sum(score.structures for score in scores)} structures were measured",
    ))  # fmt: skip


def means_agree(score: StructureScore) -> list[bool]:
    """Return which of the four means agree with the printed ones."""
    row = table3.row_of(score.profile)
    return [
        deviation(printed, ours) == 0.0
        for printed, ours in zip(row.means, score.means.values(), strict=True)
    ]


def agreeing(scores: Sequence[StructureScore], way: str, column: str) -> int:
    """Return how many devices agree in a column."""
    cells = [score.cells[way][column] for score in scores]
    return sum(cell is not None and cell.within for cell in cells)


def _total(scores: Sequence[StructureScore], way: str) -> int:
    return sum(agreeing(scores, way, column) for column in SCORED)


def _words(cell: table3.Cell | None) -> str:
    return "no such device!" if cell is None else cell.ours + "!" * (not cell.within)
