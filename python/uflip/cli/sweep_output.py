"""Output of `uflip sweep`: a table of its rows, and a CSV file with all numbers."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from uflip.cli.terminal import echo_table
from uflip.data.spec_base import MODES, PLURALS
from uflip.units import format_count, format_duration_ns, format_size

if TYPE_CHECKING:
    from uflip.results.outputs import OutputPath
    from uflip.sweeping import PlannedSweep, SweepRow

# Costs of a row that can be printed.
COSTS = ("spare_bytes", "memory_bytes")
# Printed response times of a row.
STATISTICS = ("mean", "p50", "p99", "max")


def impossible_line(planned: "PlannedSweep") -> str:
    """Return how many combinations of a sample make no device, and the reason for the first."""
    count, total = len(planned.impossible), len(planned.impossible) + len(planned.points)
    values, error = planned.impossible[0]
    first = " ".join(f"{name}={value}" for name, value in values.items())
    return f"{count} of {total} combinations make no device; {first}: {error.what}"


def print_rows(rows: "list[SweepRow]", names: list[str], others: Sequence[str] = ()) -> None:
    """Print the table; costs in `others` are printed before the measurements."""
    present_modes = {mode for row in rows for mode in row.times}
    modes = [mode for mode in MODES if mode in present_modes]
    costs = [name for name in COSTS if name in others]
    head = [*names, *(name.removesuffix("_bytes") for name in costs)]
    if modes:
        head.append("IOPS")
        prefixes = [f"{PLURALS[mode]} " if len(modes) > 1 else "" for mode in modes]
        head += [prefix + name for prefix in prefixes for name in STATISTICS]
    head += ["write amplification", "valid pages per victim"]
    echo_table(head, [_cells(row, names, costs, modes) for row in rows], left=len(names))


def _cells(row: "SweepRow", names: list[str], costs: list[str], modes: list[str]) -> list[str]:
    cells = [str(row.values[name]) for name in names]
    sizes = [getattr(row, name) for name in costs]
    cells += ["" if size is None else format_size(size) for size in sizes]
    if modes:
        cells.append("" if row.ios_per_s is None else format_count(round(row.ios_per_s)))
    for mode in modes:
        statistics = row.times.get(mode, {})
        times = [statistics.get(f"{name}_ns") for name in STATISTICS]
        cells += ["" if time is None else format_duration_ns(time) for time in times]
    ratios = (row.write_amplification, row.relocated_pages_per_block)
    return cells + ["" if ratio is None else f"{ratio:.2f}" for ratio in ratios]


def check_table(path: Path | None, force: bool) -> None:
    """Check the name of the table before any work is done."""
    if path is None:
        return
    from uflip.results import outputs

    outputs.check_ending(path, "table", "--csv", (".csv",))
    output_path(path, force)


def output_path(path: Path, force: bool) -> "OutputPath":
    """Return the path of the table."""
    from uflip.results import outputs

    return outputs.check(path, outputs.TABLE, "--csv", force=force)


def write_table(rows: "list[SweepRow]", output: "OutputPath") -> None:
    """Write one line per point: the varied values, then every number under its name."""
    from uflip.results.outputs import write_table as write
    from uflip.sweeping.data_set import columns, flatten

    names = columns(rows)
    write(output, names, ([values.get(name) for name in names] for values in map(flatten, rows)))
