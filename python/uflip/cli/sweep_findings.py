"""Findings of `uflip sweep` in its rows: best point, Pareto front, sensitivity."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from uflip.cli.sweep_output import print_rows
from uflip.cli.terminal import echo, echo_table
from uflip.errors import UsageError
from uflip.units import format_count, format_duration_ns, format_size

if TYPE_CHECKING:
    from uflip.sweeping import Design, PlannedSweep, SweepRow
    from uflip.sweeping.ranking import SobolIndex


@dataclass(frozen=True)
class FindingOptions:
    """The requested findings: a measure for each kind, or None."""

    best: str | None
    objectives: tuple[str, ...] | None
    sensitivity: str | None


@dataclass(frozen=True)
class Best:
    """The best row by a measure, and its value; None if no row can be ranked."""

    by: str
    row: "SweepRow | None"
    value: float | None


@dataclass(frozen=True)
class SweepFindings:
    """The best row, the indices of the rows on the front, and the shares of a variance."""

    best: Best | None
    front: tuple[tuple[str, ...], list[int]] | None
    sensitivity: "tuple[str, Sequence[SobolIndex]] | None"
    doubt: str | None = None
    """Why the shares are doubtful, or why they are missing."""

    def document(self) -> Mapping[str, object]:
        """Return the `--json` document."""
        content: dict[str, object] = {}
        if self.best is not None:
            row = self.best.row
            content["best"] = {
                "by": self.best.by,
                "value": self.best.value,
                "values": None if row is None else row.values,
                "device": None if row is None else row.device,
            }
        if self.front is not None:
            objectives, points = self.front
            content["pareto"] = {"objectives": objectives, "points": points}
        if self.sensitivity is not None:
            measure, indices = self.sensitivity
            content["sensitivity"] = {"of": measure, "indices": indices, "doubt": self.doubt}
        return content


def check_finding_options(requested: FindingOptions, planned: "PlannedSweep") -> None:
    """Reject findings that the rows of a sweep cannot support, before any work is done.

    Raises
    ------
    UsageError
    UnavailableError
    """
    from uflip.sweeping.ranking import check_measure, check_objectives, check_sensitivity

    design = planned.design
    for option, measure in (("--best", requested.best), ("--sensitivity", requested.sensitivity)):
        if measure is not None:
            check_measure(measure, design.spec, timed=design.timed, where=option)
    if requested.objectives is not None:
        check_objectives(requested.objectives, design.spec, timed=design.timed)
    if requested.sensitivity is None:
        return
    if design.sample is None or design.sample.method != "sobol":
        raise UsageError(
            "Sobol' indices need their design",
            where="--sensitivity",
            got="combinations of another design",
            allowed="--sample sobol:N",
            action="give --sample sobol:N; N is a power of two, 64 or more",
        )
    check_sensitivity(planned.points, requested.sensitivity, timed=design.timed)


def findings(requested: FindingOptions, rows: "list[SweepRow]") -> SweepFindings:
    """Return the requested findings."""
    from uflip.sweeping.ranking import pareto_front

    objectives, measure = requested.objectives, requested.sensitivity
    indices, doubted = ([], None) if measure is None else _shares(rows, measure)
    return SweepFindings(
        None if requested.best is None else _best(rows, requested.best),
        None if objectives is None else (objectives, pareto_front(rows, objectives)),
        None if measure is None else (measure, indices),
        doubted,
    )


def _shares(rows: "list[SweepRow]", measure: str) -> "tuple[Sequence[SobolIndex], str | None]":
    """Return the shares of a variance with a doubt about them, or why they are missing."""
    from uflip.sweeping.ranking import sensitivity, why_sensitivity_doubtful

    try:
        return sensitivity(rows, measure), why_sensitivity_doubtful(rows)
    except UsageError as error:
        return [], f"{error.what}: {error.got}; {error.action}"


def print_findings(findings: SweepFindings, rows: "list[SweepRow]", names: list[str]) -> None:
    """Print the findings."""
    if findings.front is not None:
        objectives, points = findings.front
        echo(f"\nPareto front of {', '.join(objectives)}: {len(points)} of {len(rows)} points")
        print_rows([rows[index] for index in points], names, objectives)
    if findings.sensitivity is not None:
        measure, indices = findings.sensitivity
        echo(f"\nshare of the variance of {measure} that a name explains")
        cells = [
            (
                each.name,
                f"{each.first:.2f} ± {each.first_half_width:.2f}",
                f"{each.total:.2f} ± {each.total_half_width:.2f}",
            )
            for each in indices
        ]
        if cells:
            echo_table(("name", "alone", "with interactions"), cells)
        if findings.doubt is not None:
            echo(f"warning: {findings.doubt}")
    if findings.best is not None:
        echo(_best_line(findings.best))


def draw(
    rows: "list[SweepRow]", design: "Design", requested: FindingOptions, out: Path, *, force: bool
) -> None:
    """Draw the figure that fits the options: a front, a sample, or a grid."""
    from uflip.report.figures import design_space
    from uflip.report.figures.points import draw_points
    from uflip.sweeping.ranking import pareto_front

    if requested.objectives is not None and design.sample is None:
        on_front = pareto_front(rows, requested.objectives)
        first, *_, last = (_column(rows, name) for name in requested.objectives)
        design_space.draw_front(first, last, on_front, design.device, out, force=force)
    elif design.sample is not None:
        on_front = pareto_front(rows, requested.objectives) if requested.objectives else []
        measures = requested.objectives or [
            requested.best or requested.sensitivity or _default(rows)
        ]
        varied = [(name, [row.values[name] for row in rows]) for name in design.vary]
        columns = [*varied, *(_column(rows, name) for name in measures)]
        design_space.draw_parallel(columns, design.device, out, front=on_front, force=force)
    else:
        draw_points(rows, design.device, out, force=force)


def _default(rows: "list[SweepRow]") -> str:
    """Return the measure that is drawn by default."""
    modes = [*rows[0].times]
    if not modes:
        return "write_amplification"
    return "mean" if len(modes) == 1 else f"{modes[0]}_mean"


def _column(rows: "list[SweepRow]", name: str) -> tuple[str, list[float | None]]:
    """Return a measure of every row, in the unit of its label."""
    from uflip.sweeping.ranking import COSTS, RATES, WRITE_AMPLIFICATION, measured

    values = [measured(row, name) for row in rows]
    if name in (*RATES, WRITE_AMPLIFICATION):
        return name.replace("_", " "), values
    label, unit = (f"{name[:-6]} [MiB]", 1 << 20) if name in COSTS else (f"{name} [ms]", 10**6)
    return label.replace("_", " "), [None if value is None else value / unit for value in values]


def _best(rows: "list[SweepRow]", by: str) -> Best:
    from uflip.sweeping.ranking import best, measured

    row = best(rows, by)
    return Best(by, row, None if row is None else measured(row, by))


def _best_line(best: Best) -> str:
    """Return a line about the best point."""
    by, row, value = best.by, best.row, best.value
    if row is None or value is None:
        return f"best {by}: no point has enough I/Os for it"
    point = " ".join(f"{name}={each}" for name, each in row.values.items())
    if by == "iops":
        return f"best {by}: {point}, {format_count(round(value))} IOPS"
    if by == "bytes_per_s":
        return f"best {by}: {point}, {format_size(round(value))}/s"
    text = f"{value:.2f}" if by == "write_amplification" else format_duration_ns(value)
    return f"best {by}: {point}, {text}"
