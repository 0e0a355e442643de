"""Results as tidy tables for other programs: one row per I/O, one row per run, and all meanings.

Layout of an export::

    OUT/columns.csv     every column: name, unit, meaning
    OUT/summary.csv     one row per run: varied parameter, statistics, causes of time
    OUT/ios.csv         csv:      one row per I/O of every run
    OUT/ios/<run>.parquet         parquet: the same rows, a file per run; the folder is one table
    OUT/<run>.fio       fio-job:  a fio job for each run, see `fio_job`; no other files
    OUT/<run>.json.gz   perfetto: a trace for ui.perfetto.dev for each run; no other files
    OUT/logs/<run>.csv            open-channel devices: a row per command, with the columns of FOX,
    OUT/logs/<run>.parquet        or of the log; of a wear job a row per cycle, always Parquet

Both tables of I/Os have the same columns in the same order, units in names, and modes as words.
Every row contains the run's name, micro-benchmark, pattern, parameter and value, so that each file
can be read alone. The folder appears under its name only when it is complete.
"""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from uflip.data.spec import MODES, PLURALS
from uflip.data.summary import ExperimentSummary
from uflip.errors import UsageError, native_errors, unknown_name
from uflip.results import outputs
from uflip.results.fio_job import write_jobs
from uflip.results.outputs import cell
from uflip.results.perfetto import write_perfetto
from uflip.results.reader import Results, StoredRun
from uflip.results.run_summary import OPS
from uflip.results.startup_check import marks_of
from uflip.results.summary_document import experiment

FORMATS = ("csv", "parquet", "fio-job", "perfetto")
RATES: tuple[Literal["bytes", "ios_per_s", "bytes_per_s"], ...] = (
    "bytes", "ios_per_s", "bytes_per_s",
)  # fmt: skip
"""Columns beside the statistics of the reads and of the writes of a run."""

# Columns that identify the run of a row.
RUN_COLUMNS = ("run", "micro_benchmark", "pattern", "parameter", "value", "unit")

MEANINGS: dict[str, tuple[str, str]] = {
    "run": ("", "id of the run"),
    "micro_benchmark": ("", "micro-benchmark that the run belongs to; baseline: the long runs"),
    "pattern": ("", "SR RR SW RW: sequential/random read/write; A/B: a mix of two"),
    "parameter": ("", "the varying parameter, empty if none"),
    "value": ("see unit", "its value"),
    "unit": ("", "the unit of that value"),
    "index": ("", "number of the I/O within the run, from 0; stream after stream"),
    "stream": ("", "the process that submitted it (parallel patterns), else 0"),
    "submit_ns": ("ns", "when it was submitted, on the device's clock"),
    "response_time_ns": ("ns", "completed - submitted"),
    "offset_bytes": ("bytes", "where it began on the device"),
    "io_size_bytes": ("bytes", "its size"),
    "mode": ("", "read, write or trim"),
    "component": ("", "of a mix: 0 = first pattern, 1 = second"),
    "ignored": ("", "1 = within io_ignore (start-up), left out of all statistics"),
    "host_gap_ns": ("ns", "how long it was due before the host submitted it; of real devices"),
    "io_count": ("I/Os", "I/Os in the run"),
    "io_ignore": ("I/Os", "of these, start-up left out of the statistics"),
    "elapsed_ns": ("ns", "first submission to last completion"),
    "ios_per_s": (
        "I/Os a second",
        "of the I/Os in the statistics, while all streams go on",
    ),
    "bytes": ("bytes", "size of the I/Os in the statistics together"),
    "bytes_per_s": ("bytes a second", "of the same I/Os as ios_per_s"),
    "count": ("I/Os", "I/Os in the statistics"),
    "min_ns": ("ns", "shortest response time"),
    "max_ns": ("ns", "longest response time"),
    "mean_ns": ("ns", "mean response time"),
    "std_ns": ("ns", "sample standard deviation"),
    "energy_source": ("", "simulated, or the power meter"),
    "joules": ("J", "energy of all repetitions, start-up included"),
    "joules_error": ("J", "largest error of a meter by the times of its samples"),
    "mean_watts": ("W", "mean power"),
    "uj_per_io": ("µJ", "energy per I/O"),
    "nj_per_byte": ("nJ", "energy per byte of the I/Os"),
    "write_amplification": ("", "bytes programmed over bytes the host wrote, in the run"),
}

SCOPES = {
    "first": "first pattern of a mix",
    "second": "second pattern of a mix",
    **{mode: f"of the {PLURALS[mode]} alone" for mode in MODES},
    **{op: f"of the {op} of a job" for op in OPS},
}
"""Prefix of a column name -> the I/Os that it covers."""


def export(results: Results, out: Path, file_format: str) -> list[Path]:
    """Export a result folder.

    `results`: the results; only finished runs are exported. `out`: the folder to make; it must not
    exist. `file_format`: one of `FORMATS`.
    """
    if file_format not in FORMATS:
        raise unknown_name("export format", file_format, FORMATS, where="--format")
    with outputs.new_folder(out, "export") as temporary:
        _fill(results, temporary, file_format)
    return sorted(out.iterdir())


def _fill(results: Results, folder: Path, file_format: str) -> None:
    if file_format == "fio-job":
        _check_addresses(results, "fio does not support physical addresses", file_format)
        write_jobs(results, folder)
        return
    if file_format == "perfetto":
        _check_addresses(results, "Perfetto's tracks are those of host I/Os", file_format)
        for run in results.runs:
            write_perfetto(run, folder / f"{run.id}.json.gz")
        return
    marks = marks_of(results.warnings)
    rows = [_summary_row(run, experiment(results.summary_of([run]), marks)) for run in results.runs]
    _write_rows(folder / "summary.csv", rows)
    if results.is_open_channel:
        _write_logs(results, folder / "logs", file_format)
        _write_meanings(folder, [*RUN_COLUMNS, *_names(rows)])
        return
    # An open-loop run has one more column, 0 elsewhere.
    columns = list(dict.fromkeys(name for run in results.runs for name in run.trace().columns))
    if file_format == "parquet":
        (folder / "ios").mkdir()
        for run in results.runs:
            _write_parquet(run, folder / "ios" / f"{run.id}.parquet", columns)
    else:
        _write_csv(results.runs, folder / "ios.csv", columns)
    names = [*RUN_COLUMNS, "index", *columns, *_names(rows)]
    _write_meanings(folder, names)


def _check_addresses(results: Results, what: str, file_format: str) -> None:
    if results.is_open_channel:
        raise UsageError(
            what,
            where="--format",
            got=f"{file_format} of an open-channel device",
            allowed="csv, parquet",
            action="export the logs as a table",
        )


def _write_meanings(folder: Path, names: Sequence[str]) -> None:
    _write_rows(folder / "columns.csv", [_meaning(name) for name in dict.fromkeys(names)])


def _write_logs(results: Results, folder: Path, file_format: str) -> None:
    """Write the log of each job over physical addresses."""
    folder.mkdir()
    sector_bytes = results.manifest.device.geometry.sector_bytes
    for run in results.runs:
        log = run.log()
        with native_errors():
            if file_format == "csv" and "submit_ns" in log.columns:
                log.write_csv(str(folder / f"{run.id}.csv"), sector_bytes)
            else:
                log.write_parquet(str(folder / f"{run.id}.parquet"), "{}")


def _write_parquet(run: StoredRun, path: Path, columns: list[str]) -> None:
    with native_errors():
        run.trace().write_table(str(path), json.dumps([*_constants(run).items()]), columns)


def _write_csv(runs: Sequence[StoredRun], path: Path, columns: list[str]) -> None:
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(map(cell, [*RUN_COLUMNS, "index", *columns]))
    for run in runs:
        with native_errors():
            run.trace().append_csv(str(path), _prefix(run), columns)


def _prefix(run: StoredRun) -> str:
    """Return the constant columns before each I/O of a run, as CSV."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(map(cell, _constants(run).values()))
    return line.getvalue()


def _constants(run: StoredRun) -> dict[str, str]:
    """Return the run's own columns as text, the same in CSV and Parquet; empty for None."""
    values = (run.id, run.micro_benchmark, run.pattern, run.parameter, run.value, run.unit)
    return {
        name: "" if value is None else str(value)
        for name, value in zip(RUN_COLUMNS, values, strict=True)
    }


def _summary_row(run: StoredRun, document: ExperimentSummary) -> Mapping[str, object]:
    row: dict[str, object] = dict(_constants(run))
    row["io_count"], row["io_ignore"] = document["io_count"], document["io_ignore"]
    row["elapsed_ns"], row["ios_per_s"] = document["elapsed_ns"], document["ios_per_s"]
    row |= document["statistics"] or {}
    for name, component in document.get("components", {}).items():
        row |= {f"{name}_{key}": value for key, value in (component["statistics"] or {}).items()}
    for mode, statistics_by_mode in document.get("by_mode", {}).items():
        row |= {f"{mode}_{name}": statistics_by_mode[name] for name in RATES}
        row |= {
            f"{mode}_{key}": value
            for key, value in (statistics_by_mode["statistics"] or {}).items()
        }
    for cause, mean_ns in document.get("time_spent_ns", {}).items():
        row[f"mean_{cause}"] = mean_ns
    for name, counted in document.get("counters", {}).items():
        row[f"counter_{name}"] = counted
    if (energy := document.get("energy")) is not None:
        row["energy_source"], row["joules"] = energy["source"], energy["joules"]
        row["joules_error"], row["mean_watts"] = energy["error_joules"], energy["mean_watts"]
        row["uj_per_io"], row["nj_per_byte"] = energy["uj_per_io"], energy["nj_per_byte"]
    if "write_amplification" in document:
        row["write_amplification"] = document["write_amplification"]
    return row


def _names(rows: Sequence[Mapping[str, object]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _write_rows(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write dictionaries as CSV; a missing column, or None, stays empty."""
    names = _names(rows)
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(map(cell, names))
        writer.writerows([cell(row.get(name, "")) for name in names] for row in rows)


def _meaning(name: str) -> dict[str, str]:
    unit, meaning = MEANINGS.get(name) or _derived_meaning(name)
    return {"column": name, "unit": unit, "meaning": meaning}


def _derived_meaning(name: str) -> tuple[str, str]:
    """Return unit and meaning of a column with a derived name."""
    unit = "ns" if name.endswith("_ns") else ""
    if name.startswith("counter_"):
        return unit, f"device counter {name.removeprefix('counter_')} over the whole run"
    prefix, _, base_name = name.partition("_")
    if (scope := SCOPES.get(prefix)) is not None:
        return _meaning(base_name)["unit"], f"{_meaning(base_name)['meaning']}; {scope}"
    if name.startswith("mean_"):
        return unit, f"mean time per I/O, cause: {_cause(name.removeprefix('mean_'))}"
    if name.startswith("p") and name[1:2].isdigit():
        percent = name.removeprefix("p").removesuffix("_ns").replace("_", ".")
        return unit, f"{percent} % of the I/Os were not slower; empty if too few I/Os for that"
    return unit, f"part of the response time, cause: {_cause(name)}"


def _cause(name: str) -> str:
    return name.removesuffix("_ns").replace("_", " ")
