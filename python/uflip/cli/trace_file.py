"""The trace file of `uflip pattern`: every I/O, as CSV or Parquet."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING

from uflip._native import Trace
from uflip.errors import native_errors

if TYPE_CHECKING:
    from uflip.results.outputs import OutputPath


def check_trace_file(path: Path | None, force: bool) -> None:
    """Check the ending and the name of a trace file before anything is opened."""
    if path is None:
        return
    from uflip.results import outputs

    outputs.check_ending(path, "trace", "--trace", (".csv", ".parquet"))
    trace_output_path(path, force)


def trace_output_path(path: Path, force: bool) -> "OutputPath":
    """Check the name of a trace file before the run."""
    from uflip.results import outputs

    return outputs.check(path, outputs.TRACE, "--trace", force=force)


def write_trace(trace: Trace, output: "OutputPath") -> None:
    """Write every I/O of a run, all columns, as CSV or Parquet."""
    from uflip.results import outputs

    with outputs.output_file(output) as temporary:
        if output.path.suffix == ".parquet":
            temporary.unlink()  # the native part creates new files only
            with native_errors():
                trace.write_table(str(temporary), "[]", trace.columns)
        else:
            _write_csv(trace, temporary)


def _write_csv(trace: Trace, path: Path) -> None:
    from uflip.results.outputs import cell

    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerow(map(cell, ["index", *trace.columns]))
    with native_errors():
        trace.append_csv(str(path), None, trace.columns)
