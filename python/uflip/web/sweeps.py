"""Sweeps for the page: varied values and measures, as one number per point and axis.

A page that draws ten thousand lines needs rows of numbers and their meaning: an axis has its unit,
and whether less or more is better; a value that is not a number is an index into a list of words.
A sweep in progress is shown as far as it is.
"""

from functools import partial
from math import isfinite

from uflip.data import sweep as document
from uflip.data.spec import Functions
from uflip.data.sweep import Range, SweepManifest, Value
from uflip.errors import UflipError
from uflip.microbench.labels import pattern_title
from uflip.sweeping.data_set import ALL, PARTS, read_data_set
from uflip.sweeping.measure_point import SweepRow
from uflip.sweeping.ranking import COSTS, RATES, WRITE_AMPLIFICATION, measured, measures
from uflip.web.api_types import Failed, Sweep, SweepAxis, SweepGlance
from uflip.web.open_results import Folders, Latest, ResultFolder, refuse_names, stamp_of

MAX_OPEN = 4
"""Number of sweeps that stay open, some ten megabytes each."""
MAX_LISTED = 200
"""Maximum number of sweeps in the list, since each manifest is read."""
SWEEP_FILES = (document.FILE_NAME, PARTS, ALL)
"""Files of which one changes when a sweep progresses."""
# An axis with at least this ratio of maximum to minimum is logarithmic.
LOG_AXIS_RATIO = 30.0
UNITS = {"iops": "per_s", "bytes_per_s": "bytes_per_s", WRITE_AMPLIFICATION: ""}
UNITS |= dict.fromkeys(COSTS, "bytes")


class Sweeps:
    """The sweeps below some folders."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._glances: Latest[SweepGlance | Failed] = Latest(MAX_LISTED)
        self._sweeps: Latest[Sweep] = Latest(MAX_OPEN)

    def listed(self) -> list[SweepGlance | Failed]:
        """Return the row of every sweep, from its manifest."""
        return [
            self._glances.get(folder.key, stamp_of(folder, SWEEP_FILES), partial(_glance, folder))
            for folder in self._folders.sweeps()[:MAX_LISTED]
        ]

    def get(self, key: str) -> Sweep:
        """Return a sweep with its rows."""
        folder = self._folders.find_sweep(key)
        return self._sweeps.get(key, stamp_of(folder, SWEEP_FILES), partial(_read_sweep, folder))


def _glance(folder: ResultFolder) -> SweepGlance | Failed:
    try:
        refuse_names(folder)
        return _overview(folder, document.read(folder.path))
    except UflipError as error:
        return {"key": folder.key, "name": folder.name, "error": error.parts()}


def _overview(folder: ResultFolder, manifest: SweepManifest) -> SweepGlance:
    design = manifest.design
    assert isinstance(design.spec, Functions), "document.read accepts no other"
    return {
        "key": folder.key,
        "name": folder.name,
        "device": design.device,
        "pattern": pattern_title(design.spec),
        "vary": [*design.vary],
        "points": len(manifest.points),
        "complete": manifest.rows is not None,
        "created_utc": manifest.created_utc,
    }


def _read_sweep(folder: ResultFolder) -> Sweep:
    manifest, rows_by_number = read_data_set(folder.path)
    rows = [rows_by_number[number] for number in sorted(rows_by_number)]
    varied = [_varied(name, manifest, rows) for name in manifest.design.vary]
    names = [*COSTS, *measures(manifest.design.spec, timed=manifest.design.timed)]
    counted = [_measured(name, rows) for name in names]
    columns = [*varied, *(each for each in counted if any(value is not None for value in each[1]))]
    return {
        **_overview(folder, manifest),
        "axes": [axis for axis, _ in columns],
        "places": sorted(rows_by_number),
        "devices": [row.device for row in rows],
        "rows": [list(values) for values in zip(*(each for _, each in columns), strict=True)],
    }


Column = tuple[SweepAxis, list[float | None]]


def _varied(name: str, manifest: SweepManifest, rows: list[SweepRow]) -> Column:
    vary, values = manifest.design.vary[name], [row.values[name] for row in rows]
    unit = "bytes" if name.endswith("_bytes") or name == "io_size" else ""
    unit = "ns" if name.endswith("_ns") else unit
    axis: SweepAxis = {
        "name": name,
        "varies": True,
        "better": 0,
        "unit": unit,
        "logarithmic": isinstance(vary, Range) and vary.logarithmic,
        "words": None,
    }
    if all(_is_number(value) for value in values):
        return axis, [float(value) for value in values]
    listed = [] if isinstance(vary, Range) else [_word(value) for value in vary]
    words = list(dict.fromkeys([*listed, *map(_word, values)]))
    return axis | {"words": words, "unit": ""}, [float(words.index(_word(each))) for each in values]


def _measured(name: str, rows: list[SweepRow]) -> Column:
    values = [measured(row, name) for row in rows]
    finite = [value for value in values if value is not None and isfinite(value)]
    wide = bool(finite) and min(finite) > 0 and max(finite) > LOG_AXIS_RATIO * min(finite)
    axis: SweepAxis = {
        "name": name,
        "varies": False,
        "better": 1 if name in RATES else -1,
        "unit": UNITS.get(name, "ns"),
        "logarithmic": wide,
        "words": None,
    }
    return axis, [value if value is None or isfinite(value) else None for value in values]


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _word(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
