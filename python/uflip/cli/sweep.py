"""`uflip sweep`: one pattern on many simulated devices, every combination of what varies."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uflip.cli.common import (
    device_argument,
    durability_option,
    echo_table,
    force_option,
    json_option,
    no_cache_option,
    quiet_option,
    real,
    whole,
)
from uflip.cli.displays import display
from uflip.cli.pattern_options import given_pattern, pattern_options, spec_option, stop_options
from uflip.cli.terminal import echo, echo_json
from uflip.device.url import read_override
from uflip.durability import chosen
from uflip.errors import UsageError
from uflip.stats.summary import STATISTICS
from uflip.units import format_count, format_duration_ns, format_size

if TYPE_CHECKING:
    from uflip.results.outputs import Place
    from uflip.sweeping import Row

# Steady states are reached after a few; what is beyond takes days.
MOST_WARM_UP = 1000.0
# The response times of a row that are printed.
SHOWN = ("mean", "p50", "p99", "max")
# Threads of one process.
MOST_JOBS = 1024

EPILOG = """\b
Examples:
  uflip sweep sim:ofc --vary spare_factor=0.3,0.45,0.6 --vary gc=greedy,cyclic --pattern RW
  uflip sweep sim:demo --vary queue_depth=1,2,4,8,16 --pattern RR --io-size 4k -o depth.png
  uflip sweep sim:tlc-nvme --vary die_queue=fifo,reads_first --pattern RR --mix RW --ratio 3 \
    --best read_p99
  uflip sweep sim:demo --vary gc=d_choices:2,d_choices:10 --pattern RW --warm-up 4 --untimed

\b
A NAME is a parameter of the pattern (io_size, queue_depth, pattern, ...), durability, or else a
key of the profile. Each combination is a device of its own, in the state of its profile; they run
on all cores, and the rows come in order.
"""


@click.command("sweep", epilog=EPILOG)
@device_argument
@click.option(
    "--vary",
    metavar="NAME=V1,V2,...",
    multiple=True,
    required=True,
    help="What varies; more than one: every combination.",
)
@pattern_options
@stop_options
@spec_option
@durability_option
@click.option(
    "--warm-up",
    metavar="TIMES",
    callback=real(0, MOST_WARM_UP),
    default="0",
    help="Before: write so many times the device's size by the same pattern, untimed.",
)
@click.option(
    "--untimed",
    is_flag=True,
    help="Functional: counters at the speed of memory, no times.",
)
@click.option("--jobs", metavar="N", callback=whole(1, MOST_JOBS), help="[default: all cores]")
@click.option(
    "-o",
    "--out",
    metavar="FIGURE",
    type=click.Path(path_type=Path),
    help="Draw a figure: .png, .svg or .pdf; an older one is replaced.",
)
@click.option(
    "--csv",
    "table",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the rows to a new .csv file.",
)
@click.option(
    "--best",
    "by",
    metavar="MEASURE",
    help="Say which point is best: iops, mean, p50, p99, max, write_amplification, ...; of a mix "
    "read_p99, write_p99, ...",
)
@force_option
@no_cache_option
@quiet_option
@json_option
def command(
    *,
    device: str,
    vary: tuple[str, ...],
    spec_file: str | None,
    durability: str | None,
    warm_up: float,
    untimed: bool,
    jobs: int | None,
    out: Path | None,
    table: Path | None,
    by: str | None,
    force: bool,
    quiet: bool,
    as_json: bool,
    **parameters: Any,
) -> None:
    """Run one pattern on every combination of values of the simulated DEVICE."""
    from uflip import sweeping as sweep
    from uflip.ranking import check_measure
    from uflip.report.figures import files

    varied = _read_varied(vary)
    spec = given_pattern(spec_file, parameters)
    if by is not None:
        check_measure(by, spec, timed=not untimed)
    _check_table(table, force)
    if out is not None:
        files.check_name(out, force=force)
        files.check_library()
    waits_for = chosen(durability)
    total = len(sweep.points(device, spec, varied, waits_for))
    with display(total, quiet=quiet or as_json) as sink:
        sink.draw(0, "")
        rows = sweep.sweep(
            device,
            spec,
            varied,
            durability=waits_for,
            warm_up=warm_up,
            timed=not untimed,
            jobs=jobs,
            on_step=sink.draw,
        )
    if table is not None:
        _write_table(rows, _place_of(table, force))
    if out is not None:
        from uflip.report.figures.points import draw_points

        draw_points([row.as_dict() for row in rows], device, out, force=force)
    if as_json:
        echo_json(
            {
                "device": device,
                "spec": spec,
                "vary": varied,
                "warm_up": warm_up,
                "timed": not untimed,
                "rows": [row.as_dict() for row in rows],
                **({"best": _best(rows, by)} if by is not None else {}),
            }
        )
        return
    _print(rows, list(varied))
    if by is not None:
        echo(_best_line(_best(rows, by)))


def _read_varied(given: Sequence[str]) -> dict[str, list[Any]]:
    """Read NAME=V1,V2,... as often as it was given."""
    varied: dict[str, list[Any]] = {}
    for text in given:
        name, equals, values = text.partition("=")
        found = [value.strip() for value in values.split(",") if value.strip()]
        if not equals or not name or not found or name in varied:
            raise UsageError(
                "What varies cannot be read" if name not in varied else "A name varies once",
                where="--vary",
                got=text,
                allowed="NAME=V1,V2,... as in spare_factor=0.1,0.2",
                action="give a name and its values, separated by commas",
            )
        # Units stay texts until the pattern or the profile reads them.
        varied[name.strip()] = [read_override("", value) for value in found]
    return varied


def _best(rows: "list[Row]", by: str) -> dict[str, Any]:
    """Return the best point as plain data; its values are null where no point can be ranked."""
    from uflip.ranking import best, measured

    row = best(rows, by)
    if row is None:
        return {"by": by, "value": None, "values": None, "device": None}
    return {"by": by, "value": measured(row, by), "values": row.values, "device": row.device}


def _best_line(found: dict[str, Any]) -> str:
    by, value = found["by"], found["value"]
    if value is None:
        return f"best {by}: no point has so many I/Os that it can be told"
    point = " ".join(f"{name}={each}" for name, each in found["values"].items())
    if by == "iops":
        return f"best {by}: {point}, {format_count(round(value))} IOPS"
    if by == "bytes_per_s":
        return f"best {by}: {point}, {format_size(round(value))}/s"
    text = f"{value:.2f}" if by == "write_amplification" else format_duration_ns(value)
    return f"best {by}: {point}, {text}"


def _print(rows: "list[Row]", names: list[str]) -> None:
    modes = [mode for mode in ("reads", "writes") if any(getattr(row, mode) for row in rows)]
    head = [*names]
    if modes:
        head.append("IOPS")
        prefixes = [f"{mode} " if len(modes) > 1 else "" for mode in modes]
        head += [prefix + name for prefix in prefixes for name in SHOWN]
    head += ["write amplification", "valid pages per victim"]
    echo_table(head, [_cells(row, names, modes) for row in rows], left=len(names))


def _cells(row: "Row", names: list[str], modes: list[str]) -> list[str]:
    cells = [str(row.values[name]) for name in names]
    if modes:
        cells.append("" if row.ios_per_s is None else format_count(round(row.ios_per_s)))
    for mode in modes:
        statistics = getattr(row, mode) or {}
        times = [statistics.get(f"{name}_ns") for name in SHOWN]
        cells += ["" if time is None else format_duration_ns(time) for time in times]
    ratios = (row.write_amplification, row.relocated_pages_per_block)
    return cells + ["" if ratio is None else f"{ratio:.2f}" for ratio in ratios]


def _check_table(path: Path | None, force: bool) -> None:
    if path is None:
        return
    from uflip.results import outputs

    outputs.check_ending(path, "table", "--csv", (".csv",))
    _place_of(path, force)


def _place_of(path: Path, force: bool) -> "Place":
    from uflip.results import outputs, seals

    return outputs.check(path, seals.TABLE, "--csv", force=force)


def _write_table(rows: "list[Row]", place: "Place") -> None:
    """Write one line a point: what varied, then every number under its name."""
    from uflip.results.csv_text import write_table

    flat = [_flat(row) for row in rows]
    write_table(place, list(flat[0]), (row.values() for row in flat))


def _flat(row: "Row") -> dict[str, Any]:
    document = row.as_dict()
    values, counters = document.pop("values"), document.pop("counters")
    of_modes: dict[str, Any] = {}
    for mode in ("read", "write"):
        statistics = document.pop(f"{mode}s")
        of_modes |= {f"{mode}_{name}": (statistics or {}).get(name) for name in STATISTICS}
    flat: dict[str, Any] = values | document | of_modes | counters
    return flat
