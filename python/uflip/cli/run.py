"""`uflip run`: the micro-benchmarks on a device, into a new result folder."""

import os
import re
import sys
import textwrap
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from uflip import ends
from uflip.catalogue import inspect_device
from uflip.cli.common import durability_option, json_option, open_options, quiet_option
from uflip.cli.opening import check_before_all, open_shown
from uflip.cli.planning import Durable, Request, plan_options
from uflip.cli.progress import PlanProgress, display
from uflip.cli.resuming import Resumed, go_on
from uflip.cli.state import bring_into_state, known_state, record_of, state_option, target_options
from uflip.cli.terminal import echo, echo_json, plain
from uflip.device_url import URL_FORMS
from uflip.errors import InterruptedRun, ResultsError, UsageError
from uflip.methodology import (
    Estimate,
    Found,
    History,
    Plan,
    Wear,
    check_worth_running,
    describe_wear,
    estimate,
    execute,
    measure_harness,
    wear_of,
)
from uflip.results import ResultsWriter, host_provenance
from uflip.run import DeviceInfo
from uflip.units import format_count, format_duration_ns, format_size
from uflip.virtual import behind_device

EPILOG = """\b
Examples:
  uflip run sim:demo --out results/demo
  uflip run file:scratch.bin --size 1GiB --out results/disk --scale quick
  uflip run file:scratch.bin --only granularity,order
  uflip run --resume results/disk
  uflip run /dev/nvme1n1 --destroy "TOKEN"      (see `uflip devices`)

\b
Ctrl-C ends the run at hand; all runs finished before are kept, and --resume makes the others.
"""


@click.command("run", epilog=EPILOG)
@click.argument("device", required=False)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="New folder for the results.  [default: results/DEVICE-TIME]",
)
@plan_options
@click.option(
    "--plan",
    "file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Execute the plan in this file, see `uflip plan --out`.",
)
@click.option(
    "--resume",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Go on with the benchmark in this folder, which was cut short.",
)
@state_option
@target_options
@durability_option
@open_options
@quiet_option
@json_option
def command(
    *,
    device: str | None,
    out: Path | None,
    file: Path | None,
    resume: Path | None,
    state: str | None,
    target_size: int | None,
    record: Path | None,
    size: int | None,
    buffered: bool,
    durability: str | None,
    data: str,
    destroy: str | None,
    io_timeout: int,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Run the micro-benchmarks on DEVICE and keep the results.

    Without --only, all nine micro-benchmarks of uFLIP and the long baseline runs. A device that is
    not known to be in a well-defined state is brought into one first (see `uflip prepare`).
    Everything that is stored on a block device, and in a file, is overwritten.
    """
    quiet = quiet or as_json
    if resume is not None:
        given = {"out": out, "plan": file, "state": state, "target_size": target_size}
        given |= {"size": size, "buffered": buffered, "durability": durability}
        _check_alone(given | {name: each for name, each in options.items() if name != "max_time"})
        with ends.shielded():
            work = go_on(resume, device, destroy, record, io_timeout, quiet=quiet)
            with work.device:
                _execute(work, options["max_time"], quiet=quiet)
        _conclude(resume, quiet, as_json)
        return
    if device is None:
        raise UsageError(
            "No device was named",
            where="DEVICE",
            allowed=URL_FORMS,
            action="name a device, or a folder with --resume; see `uflip run --help`",
        )
    # All that can be wrong is looked for before anything is created, written or opened for writing.
    how: dict[str, Any] = {"size": size, "buffered": buffered, "data": data, "destroy": destroy}
    check_before_all(device, **how)
    wanted = Durable(durability, buffered=buffered)
    request = Request(device, state, target_size, record, options, wanted, file)
    out = Path("results") / _folder_name(device) if out is None else out
    _check_out(out)
    info = inspect_device(device, size=size, buffered=buffered)
    planned = request.plan(info)
    check_worth_running(planned)
    how |= {"io_timeout_ns": io_timeout, "durability": planned.durability}
    estimate(planned)
    # Signals are asked for where there is something to wait for; nothing else is cut in the middle.
    with (
        ends.shielded(),
        open_shown(device, info, quiet=quiet, **how) as opened,
    ):
        plan = request.plan(opened.info)
        kept = record_of(opened.info, device, record)
        begun = known_state(opened.info, plan.state, kept)
        if begun is None and plan.state is not None:
            begun = bring_into_state(opened, plan.state, kept, quiet=quiet)
        assert begun is not None
        begun |= {"record": None if kept is None else str(kept.path)}
        wear = _tell_wear(opened.info, plan, quiet=quiet)
        history = History(begun["state_id"], kept)
        writer = _new_folder(out, plan, begun, wear)
        work = Resumed(opened, plan, writer, history, Found(plan, writer), None)
        _execute(work, options["max_time"], quiet=quiet)
    _conclude(out, quiet, as_json)


def _check_alone(given: dict[str, Any]) -> None:
    """Refuse options that a benchmark which goes on has had already."""
    for name, value in given.items():
        if value:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(
                "A benchmark goes on as it began",
                where=option,
                got=f"{option} with --resume",
                allowed="--resume FOLDER, with --max-time, --destroy, --record, --io-timeout, "
                "--quiet, --json",
                action=f"leave {option} out, or start another benchmark",
            )


def _tell_wear(info: DeviceInfo, plan: Plan, *, quiet: bool) -> Wear:
    """Say what the runs will take of the device's endurance, before the first of them."""
    wear = wear_of(info)
    if not quiet and info["kind"] != "null" and not (info["simulated"] and wear.unknown):
        echo(f"wear: {describe_wear(wear, estimate(plan).bytes_written)}", err=True)
    return wear


def _new_folder(out: Path, plan: Plan, begun: dict[str, Any], wear: Wear) -> ResultsWriter:
    details = plan.device["details"] | {"wear": wear.as_dict()}
    return ResultsWriter.create(
        out,
        device=plan.device | {"details": details},
        host=host_provenance(sys.argv) | {"virtual_disk": behind_device(plan.device)},
        harness=measure_harness(),
        scale=plan.scale,
        seed=plan.seed,
        pause_ns=plan.pause_ns,
        target_size_bytes=plan.target_size,
        repetitions=plan.repetitions,
        method=plan.method,
        durability=plan.durability,
        state=begun,
        plan=[run.as_dict() for run in plan.runs],
        skipped=[skip.as_dict() for skip in plan.skipped],
        warnings=plan.warnings,
    )


def _execute(work: Resumed, max_time_ns: int | None, *, quiet: bool) -> None:
    plan = work.plan
    estimated = estimate(plan)
    if not quiet:
        echo(_announce(plan, estimated, len(work.writer.done)), err=True)
    with display(len(plan.runs), quiet=quiet) as sink:
        execute(
            plan,
            work.device,
            work.writer,
            PlanProgress(plan, estimated, sink),
            history=work.history,
            found=work.found,
            max_time_ns=max_time_ns,
            done=work.writer.done,
            replay=work.replay,
        )


def _announce(plan: Plan, estimated: Estimate, done: int) -> str:
    skipped = f", {len(plan.skipped)} skipped" if plan.skipped else ""
    open_ended = estimated.fewest.ios != estimated.ios
    least = f" at most, {format_duration_ns(estimated.fewest.time_ns)} at least"
    there = f" ({done} of them finished before)" if done else ""
    return (
        f"{plan.device['url']}: {estimated.runs} runs{there}{skipped}, "
        f"{format_count(estimated.ios)} I/Os, "
        f"{format_size(estimated.bytes_read)} to read, "
        f"{format_size(estimated.bytes_written)} to write, "
        f"about {format_duration_ns(estimated.time_ns)}{least if open_ended else ''}"
    )


def _conclude(out: Path, quiet: bool, as_json: bool) -> None:
    """Show what was found; whatever stops that, the results are there."""
    try:
        _show(out, quiet, as_json)
    except KeyboardInterrupt:
        raise InterruptedRun(
            "Interrupted while the results were shown",
            where=str(out),
            action=f"nothing is lost: see `uflip show {out}`",
        ) from None


def _show(out: Path, quiet: bool, as_json: bool) -> None:
    from uflip.results import Results, summary

    document: dict[str, Any] = summary(Results.load(out))
    if as_json:
        echo_json({"results": str(out)} | document)
        return
    if quiet:
        return
    from uflip.report.text import next_commands, render

    echo(render(plain(document)))
    echo(f"\nResults are in {out}. Next:")
    echo(textwrap.indent(next_commands(str(out)), "  "))


def _folder_name(device: str) -> str:
    """Make a name from the device and the time, for people who do not want to choose one."""
    slug = re.sub(r"[^A-Za-z0-9.]+", "-", device).strip("-.")
    return f"{slug[-60:]}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"


def _check_out(out: Path) -> None:
    """Fail now rather than after the device was opened, if no folder can be made there."""
    from uflip.results.writer import refuse_existing

    refuse_existing(out)
    ancestor = next(folder for folder in out.absolute().parents if folder.exists())
    if ancestor.is_dir() and os.access(ancestor, os.W_OK | os.X_OK):
        return
    raise ResultsError(
        "The result folder cannot be made",
        where=f"--out {out}",
        got=f"{ancestor} is {'not writable' if ancestor.is_dir() else 'not a folder'}",
        allowed="a new name in a folder that can be written",
        action="choose another --out",
    )
