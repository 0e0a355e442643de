"""`uflip plan`: what `uflip run` would do, how much, and for how long; touches nothing."""

from typing import Any

import click

from uflip.catalogue import inspect_device
from uflip.cli.common import (
    buffered_option,
    device_argument,
    echo_json,
    echo_table,
    json_option,
    plan_options,
    size_option,
    split_names,
)
from uflip.cli.progress import format_value
from uflip.experiment import BASELINE_IO_SIZE
from uflip.methodology import Estimate, Plan, estimate, make_plan
from uflip.units import format_count, format_duration_ns, format_size

EPILOG = """\b
Examples:
  uflip plan sim:demo
  uflip plan file:scratch.bin --size 1GiB --scale quick
  uflip plan file:scratch.bin --only order --runs
"""

HEAD = ("micro-benchmark", "runs", "skipped", "I/Os", "read", "written", "about")


@click.command("plan", epilog=EPILOG)
@device_argument
@plan_options
@size_option
@buffered_option
@click.option("--runs", "each", is_flag=True, help="List every run, in order.")
@json_option
def command(
    *,
    device: str,
    scale: str,
    only: tuple[str, ...],
    seed: int,
    io_size: int | None,
    pause: int | None,
    size: int | None,
    buffered: bool,
    each: bool,
    as_json: bool,
) -> None:
    """Show what `uflip run` would do on DEVICE: runs, I/Os, bytes, time. Touches nothing."""
    info = inspect_device(device, size=size, buffered=buffered)
    plan = make_plan(
        info,
        scale,
        seed,
        split_names(only),
        io_size=BASELINE_IO_SIZE if io_size is None else io_size,
        pause_ns=pause,
    )
    estimated = estimate(plan)
    if as_json:
        echo_json(_document(plan, estimated))
        return
    echo_table(HEAD, _rows(plan, estimated))
    click.echo(f"\nassumed: {estimated.assumptions}")
    if each:
        click.echo()
        echo_table(("run", "target at", "I/Os", "about"), _run_rows(plan, estimated))
    for reason, names in _skipped(plan).items():
        click.echo(f"skipped: {', '.join(names)}: {reason}")
    for warning in plan.warnings:
        click.echo(f"warning: {warning['message']}\n         {warning['advice']}")


def _rows(plan: Plan, estimated: Estimate) -> list[tuple[str, ...]]:
    names = dict.fromkeys(
        [run.micro_benchmark for run in plan.runs] + [skip.micro_benchmark for skip in plan.skipped]
    )
    rows = [_row(name, plan, estimated) for name in names]
    return [*rows, _row(None, plan, estimated)]


def _row(name: str | None, plan: Plan, estimated: Estimate) -> tuple[str, ...]:
    """Sum up one micro-benchmark, or (without a name) all of them."""
    pairs = zip(plan.runs, estimated.each, strict=True)
    chosen = [cost for run, cost in pairs if name in (None, run.micro_benchmark)]
    skipped = sum(name in (None, skip.micro_benchmark) for skip in plan.skipped)
    return (
        name or "total",
        str(len(chosen)),
        str(skipped),
        format_count(sum(cost.ios for cost in chosen)),
        format_size(sum(cost.bytes_read for cost in chosen)),
        format_size(sum(cost.bytes_written for cost in chosen)),
        format_duration_ns(sum(cost.time_ns for cost in chosen)),
    )


def _run_rows(plan: Plan, estimated: Estimate) -> list[tuple[str, ...]]:
    return [
        (
            run.id,
            _places(run.spec),
            format_count(cost.ios),
            format_duration_ns(cost.time_ns),
        )
        for run, cost in zip(plan.runs, estimated.each, strict=True)
    ]


def _places(spec: dict[str, Any]) -> str:
    parts = [spec["first"], spec["second"]] if spec["kind"] == "mix" else [spec]
    return " / ".join(
        f"{format_size(part.get('target_offset', 0))} + {format_size(part['target_size'])}"
        for part in parts
    )


def _skipped(plan: Plan) -> dict[str, list[str]]:
    """Gather what is skipped by reason."""
    reasons: dict[str, list[str]] = {}
    units = {run.parameter: run.unit for run in plan.runs}
    for skip in plan.skipped:
        value = format_value(skip.value, units.get(skip.parameter, ""))
        name = f"{skip.micro_benchmark} {skip.pattern} {skip.parameter} {value}"
        reasons.setdefault(skip.reason, []).append(name)
    return reasons


def _document(plan: Plan, estimated: Estimate) -> dict[str, Any]:
    return {
        "device": plan.device,
        "scale": plan.scale,
        "seed": plan.seed,
        "pause_ns": plan.pause_ns,
        "estimate": {
            "runs": estimated.runs,
            "ios": estimated.ios,
            "bytes_read": estimated.bytes_read,
            "bytes_written": estimated.bytes_written,
            "time_ns": estimated.time_ns,
            "assumptions": estimated.assumptions,
        },
        "runs": [run.as_dict() for run in plan.runs],
        "skipped": [skip.as_dict() for skip in plan.skipped],
        "warnings": list(plan.warnings),
    }
