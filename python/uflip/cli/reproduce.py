"""`uflip reproduce`: figures and tables of the papers, with published values and ours."""

import textwrap
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uflip.cli.completion import matching
from uflip.cli.options import (
    executor_options,
    force_option,
    json_option,
    on_executor,
    path_option,
    quiet_option,
)
from uflip.cli.progress import display, with_time_left
from uflip.cli.terminal import echo, echo_json, echo_table
from uflip.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from uflip.reproduce import Reproduction, ReproductionOutcome, ReproductionRow
    from uflip.reproduce.drives.comparison import SimulatedDrive

EPILOG = """\b
Examples:
  uflip reproduce
  uflip reproduce ofc-fig7 -o fig7.png
  uflip reproduce ofc-throughput --json
  uflip reproduce uflip-table3 --refit
  uflip reproduce uflip-table3 --ablate kingston-dti
  uflip reproduce drives --data tables/ --profiles drives/

\b
A miss is not an error: it is printed with the reason, and nothing is tuned to hide it.
"""

WIDTH = 96
PROFILE_FOLDER = "folder of profiles"
HEADS = ("what", "kind", "published", "ours", "deviation", "tolerance", "within", "")
MAX_NAMED_CONSTANTS = 4
"""Maximum number of fitted constants named in a note; --json has all."""


def _propose_reproductions(
    _context: click.Context, _param: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    from uflip.reproduce import REPRODUCTIONS

    return matching(REPRODUCTIONS, incomplete)


@click.command("reproduce", epilog=EPILOG)
@click.argument(
    "reproduction_id", metavar="[ID]", required=False, shell_complete=_propose_reproductions
)
@path_option(
    "-o",
    "--out",
    metavar="FIGURE",
    help="Also draw the figure: .png, .svg or .pdf; an older one is replaced.",
)
@force_option
@click.option(
    "--refit",
    is_flag=True,
    help="uflip-table3 only: search a structure of a few powers of two for each device, also with "
    "a cell, a column or the device held out, and compare the cells. Takes some 20 minutes.",
)
@click.option(
    "--ablate",
    metavar="DEVICE",
    help="uflip-table3 only: remove each fitted constant of this device in turn, and print the "
    "loss of the row. Takes minutes to hours.",
)
@path_option(
    "--data",
    metavar="FOLDER",
    help="drives only: also fit and predict the drives in these tables (throughput.csv, wear.csv, "
    "response.csv).",
)
@path_option(
    "--profiles",
    metavar="FOLDER",
    help="drives only: write each fitted drive as a simulated device, DRIVE.toml, into a new "
    "folder.",
)
@executor_options
@quiet_option
@json_option
def command(
    *,
    data: Path | None,
    profiles: Path | None,
    reproduction_id: str | None,
    out: Path | None,
    force: bool,
    ablate: str | None,
    refit: bool,
    jobs: int | None,
    workers: int | None,
    scheduler: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run the experiment ID of a paper; without ID, list them."""
    executor = on_executor(jobs, workers, scheduler)
    if ablate is not None:
        _check_table3(reproduction_id, "--ablate", out, exclusive=not refit)
        with executor:
            _ablate(ablate, quiet=quiet, as_json=as_json)
        return
    if refit:
        _check_table3(reproduction_id, "--refit", out, exclusive=True)
        with executor:
            _refit(quiet=quiet, as_json=as_json)
        return
    from uflip.report.figures import matplotlib_chart
    from uflip.reproduce import REPRODUCTIONS, carry_out, figure

    if reproduction_id is None:
        _list(out, as_json)
        return
    if reproduction_id not in REPRODUCTIONS:
        raise unknown_name("reproduction", reproduction_id, REPRODUCTIONS, where="ID")
    if out is not None:
        matplotlib_chart.check_name(out, force=force)
        matplotlib_chart.check_library()
    reproduction = _with_tables(REPRODUCTIONS[reproduction_id], data)
    _check_profiles(reproduction_id, profiles)
    with executor, display(reproduction.steps, quiet=quiet or as_json) as sink:
        sink.draw(0, reproduction.title)
        outcome = carry_out(reproduction, with_time_left(sink, reproduction.steps))
    _write_profiles(outcome, profiles)
    if out is not None:
        figure.write(outcome, out, force=force)
    if as_json:
        echo_json(_document(outcome, out))
        return
    _print(outcome)
    for written in (out, profiles):
        if written is not None and not quiet:
            echo(f"\n{written}")


def _with_tables(reproduction: "Reproduction[Any]", folder: Path | None) -> "Reproduction[Any]":
    """Return the reproduction of drives with more tables."""
    if folder is None:
        return reproduction
    if reproduction.id != "drives":
        raise UsageError(
            "--data needs drives",
            where="--data",
            got=reproduction.id,
            allowed="uflip reproduce drives --data FOLDER",
            action="omit --data, or reproduce drives",
        )
    from uflip.reproduce.drives.comparison import compare_drives
    from uflip.reproduce.drives.tables import BUILT_IN, read_drives

    steps = len(read_drives(BUILT_IN, folder))
    return replace(reproduction, steps=steps, measure=partial(compare_drives, folder=folder))


def _check_profiles(reproduction_id: str, folder: Path | None) -> None:
    """Reject a folder of profiles before anything is measured."""
    if folder is None:
        return
    from uflip.results import outputs

    if reproduction_id != "drives":
        raise UsageError(
            "--profiles needs drives",
            where="--profiles",
            got=reproduction_id,
            allowed="uflip reproduce drives --profiles FOLDER",
            action="omit --profiles, or reproduce drives",
        )
    outputs.check_new_folder(folder, PROFILE_FOLDER, "--profiles")


def _write_profiles(outcome: "ReproductionOutcome", folder: Path | None) -> None:
    if folder is None:
        return
    drives: list[SimulatedDrive] = outcome.data
    from uflip.reproduce.drives.drive_profile import drive_profiles
    from uflip.results import outputs

    with outputs.new_folder(folder, PROFILE_FOLDER, "--profiles") as temporary:
        for name, text in drive_profiles(drives):
            (temporary / f"{name}.toml").write_text(text, "utf-8")


def _check_table3(
    reproduction_id: str | None, option: str, out: Path | None, *, exclusive: bool
) -> None:
    """Reject options that cannot be combined with a study of a device's constants."""
    if reproduction_id == "uflip-table3" and out is None and exclusive:
        return
    raise UsageError(
        "--refit and --ablate need uflip-table3",
        where=option,
        got=f"{reproduction_id or 'no ID'}{' with --out' if out else ''}"
        f"{'' if exclusive else ', with options that cannot be combined'}",
        allowed="uflip-table3 with --refit, or with --ablate DEVICE",
        action="give the ID and one of the two, and omit --out: this study has no figure",
    )


def _ablate(profile: str, *, quiet: bool, as_json: bool) -> None:
    from uflip.device.catalogue import inspect_device
    from uflip.reproduce import ablation, table3

    table3.row_of(profile, where="--ablate")
    values = ablation.values_of(inspect_device(f"sim:{profile}"))
    steps = len(ablation.removable(profile, values)) + 1
    with display(steps, quiet=quiet or as_json) as sink:
        on_step = with_time_left(sink, steps)
        measure = partial(ablation.measure_row, profile)
        unablated, ablations = ablation.ablate(profile, values, measure, on_step)
    if as_json:
        each = [asdict(one) for one in ablations]
        echo_json({"device": profile, "whole": asdict(unablated), "constants": each})
        return
    echo(ablation.text(profile, unablated, ablations))


def _refit(*, quiet: bool, as_json: bool) -> None:
    from uflip.reproduce import table3, table3_structures

    steps = 2 * len(table3.TABLE)
    with display(steps, quiet=quiet or as_json) as sink:
        sink.draw(0, "")
        found = table3_structures.evaluate(with_time_left(sink, steps))
    if as_json:
        echo_json({"devices": [asdict(one) for one in found]})
        return
    echo(table3_structures.text(found))


def _list(out: Path | None, as_json: bool) -> None:
    from uflip.reproduce import REPRODUCTIONS

    if out is not None:
        raise UsageError(
            "--out needs the ID of one reproduction",
            where="--out",
            got=f"--out {out} without an ID",
            allowed=", ".join(REPRODUCTIONS),
            action="give the ID of the figure",
        )
    if as_json:
        keys = ("id", "title", "source")
        echo_json(
            [
                {key: getattr(reproduction, key) for key in keys}
                for reproduction in REPRODUCTIONS.values()
            ]
        )
        return
    rows = [
        (reproduction.id, reproduction.title, reproduction.source)
        for reproduction in REPRODUCTIONS.values()
    ]
    echo_table(("id", "what it reproduces", "where it is published"), rows, left=3)


def _document(outcome: "ReproductionOutcome", out: Path | None) -> Mapping[str, object]:
    reproduction = outcome.reproduction
    return {
        "id": reproduction.id,
        "title": reproduction.title,
        "source": reproduction.source,
        "rows": outcome.rows,
        "series": outcome.data,
        "figure": None if out is None else str(out),
    }


def _print(outcome: "ReproductionOutcome") -> None:
    """Print the rows, and their notes below."""
    echo(f"{outcome.reproduction.title}: {outcome.reproduction.source}\n")
    notes: list[str] = []
    printed = outcome.rows
    if outcome.reproduction.text is not None:
        echo(outcome.reproduction.text(outcome.data))
        printed = [row for row in printed if not row.within]
        if not printed:
            return
        echo()
    rows = [_cells(row, _marks(row, notes)) for row in printed]
    echo_table(HEADS, rows, left=2)
    if notes:
        echo()
    for number, note in enumerate(notes, start=1):
        echo(textwrap.fill(note, WIDTH, initial_indent=f"{number:>2}  ", subsequent_indent="    "))


def _marks(row: "ReproductionRow", notes: list[str]) -> str:
    """Return the numbers of the row's notes; equal notes share one."""
    row_notes = [note for note in (_fitted(row), row.note) if note]
    notes += [note for note in row_notes if note not in notes]
    return " ".join(str(notes.index(note) + 1) for note in row_notes)


def _fitted(row: "ReproductionRow") -> str:
    """Return a note that lists the constants fitted to the value."""
    if not row.fitted_by:
        return ""
    more = len(row.fitted_by) - MAX_NAMED_CONSTANTS
    suffix = f" and {more} more" if more > 0 else ""
    return f"fitted: {', '.join(row.fitted_by[:MAX_NAMED_CONSTANTS])}{suffix}"


def _cells(row: "ReproductionRow", mark: str) -> tuple[str, ...]:
    published, ours = (
        value if isinstance(value, str) else _number(value) for value in (row.published, row.ours)
    )
    return (
        # Do not repeat the unit: "relocated pages [pages]".
        row.what if row.unit in row.what else f"{row.what} [{row.unit}]",
        row.kind,
        published,
        ours,
        "" if row.deviation is None else f"{round(row.deviation, 3) + 0.0:+.1%}",
        row.tolerance,
        "yes" if row.within else "NO",
        mark,
    )


def _number(value: float) -> str:
    """Return a number with three or four digits, without trailing zeros.

    >>> [_number(value) for value in (0.3528, 8.5, 33.3825, 116.62, 45.0)]
    ['0.353', '8.5', '33.4', '116.6', '45']
    """
    digits = 3 if abs(value) < 1 else 2 if abs(value) < 10 else 1
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".")
