"""`uflip pattern`: one run of one pattern on a device, as with fio."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import click

from uflip.cli.options import (
    ANY_PATH,
    add_options,
    check_saving,
    device_argument,
    force_option,
    json_option,
    no_cache_option,
    quiet_option,
    save_device,
    save_option,
)
from uflip.cli.pattern_output import print_run, spool_folder, trace_output_path, write_trace
from uflip.cli.pattern_preset import (
    PRESET_DURABILITY,
    preset_batch,
    preset_options,
    preset_traces,
    print_preset,
    refuse_batches,
    run_preset,
)
from uflip.cli.terminal import echo, echo_json
from uflip.data.bounded_read import DocumentKind, read_document
from uflip.data.document import Table, decode
from uflip.device.guard import check_target_allowed
from uflip.errors import UsageError
from uflip.pattern_options import OPENED, PATTERN, STOPPING, only_given, parse_pattern
from uflip.spec import Functions, Replay, read_spec

if TYPE_CHECKING:
    from uflip._native import Trace
    from uflip.data.device import DeviceInfo
    from uflip.data.single_run import OneRun
    from uflip.data.spec import Spec
    from uflip.device.handle import Device
    from uflip.device.identity import TargetStatus
    from uflip.native_wait import OnProgress

EPILOG = """\b
Examples:
  uflip pattern sim:demo --mode write --location random --io-size 32KiB --io-count 1000
  uflip pattern sim:demo --pattern SW --time burst --burst 10 --pause 100ms
  uflip pattern file:scratch.bin --size 1GiB --pattern RR --io-size 4k --trace ios.csv
  uflip pattern sim:demo --pattern SR --mix RW --ratio 4
  uflip pattern sim:demo --pattern RW --until-converged --max-time 1min
  uflip pattern sim:demo --pattern RR --mix RW --first-percent 70 --queue-depth 8
  uflip pattern sim:demo --pattern RW --inside rw    and then: uflip explore rw
  uflip pattern sim:fast-1gb --preset myers-sinclair --batches 2
  echo '{"kind": "basic", "mode": "read", "location": "random"}' | uflip pattern null --spec -

\b
Options that are not given have defaults; --json shows the complete specification.
A read-only pattern opens the device for reading only.
"""


SPEC = DocumentKind(
    "specification",
    1 << 20,
    'write a JSON object such as {"kind": "basic", "mode": "read", "location": "random"}; '
    '`uflip pattern ... --json` prints a complete one under "spec"',
    UsageError,
)

OptionValue = str | int | float | None
"""The parsed value of an option; None, or False of a flag, if it was not given."""

spec_option = click.option(
    "--spec", "spec_file", metavar="FILE|-", help="Read the pattern as JSON instead."
)


class _PatternTarget(TypedDict):
    size: int | None
    buffered: bool
    data: str
    destroy: str | None
    completion: str | None


@click.command("pattern", epilog=EPILOG)
@device_argument
@add_options(*PATTERN, *STOPPING)
@spec_option
@preset_options
@click.option(
    "--trace",
    "trace_file",
    type=ANY_PATH,
    help="Write every I/O to a new .csv or .parquet file.",
)
@click.option(
    "--inside",
    metavar="FOLDER",
    type=ANY_PATH,
    help="Record internal events of a simulated device, and store the run as a new result folder, "
    "for the explorer.",
)
@save_option
@force_option
@add_options(*OPENED)
@no_cache_option
@quiet_option
@json_option
def command(
    *,
    device: str,
    spec_file: str | None,
    preset: str | None,
    batches: int | None,
    trace_file: Path | None,
    inside: Path | None,
    save: Path | None,
    force: bool,
    size: int | None,
    buffered: bool,
    durability: str | None,
    completion: str | None,
    data: str,
    destroy: str | None,
    io_timeout_ns: int,
    quiet: bool,
    as_json: bool,
    **parameters: Any,
) -> None:
    """Execute one I/O pattern on DEVICE and print its response times."""
    durability = PRESET_DURABILITY if preset and durability is None else durability
    spec = _requested_spec(preset, batches, spec_file, parameters)
    writable = spec.writes or size is not None
    target = _PatternTarget(
        size=size, buffered=buffered, data=data, destroy=destroy, completion=completion
    )
    _check_inside(device, preset, inside)
    if writable:  # before plans and numpy are loaded
        check_target_allowed(device, **target)
    from uflip import signals
    from uflip.benchmark.prepare import open_watched
    from uflip.cli.benchmark_progress import Watching, run_display
    from uflip.device.catalogue import inspect_device
    from uflip.device.identity import check_target, count_disturbances
    from uflip.device.resolve import resolve
    from uflip.results.run_statistics import describe

    # Check everything before anything is created or opened for writing.
    for path in [trace_file] if preset is None else preset_traces(trace_file, batches):
        _check_trace_file(path, force)
    info = inspect_device(device, size=size, buffered=buffered)
    check_saving(info, save, force=force)
    _warn_about_seed(complete := resolve(spec, info).spec, info)
    with signals.shielded():
        with Watching(quiet=quiet or as_json) as watch:
            opened = open_watched(
                device, info, watch,
                durability=durability, writable=writable, io_timeout_ns=io_timeout_ns, **target,
            )  # fmt: skip
        with opened, run_display(quiet=quiet or as_json, simulated=info.simulated) as show:
            info = opened.info
            if preset is not None:
                batches_run = run_preset(opened, spec, batches, trace_file, show, force=force)
            else:
                spool = spool_folder(info, trace_file or inside)
                trace, before, after = _run_once(opened, spec, show, spool, inside is not None)
                check_target(before, after, device)
                disturbances = count_disturbances(before, after, [trace], buffered=buffered)
                _store_result(opened, complete, trace, inside)
            if save is not None:
                save_device(opened, save, force=force)
    if preset is not None:
        print_preset(batches_run, as_json=as_json)
        return
    if trace_file is not None:
        write_trace(trace, trace_output_path(trace_file, force))
    _print_result(describe(trace, info, opened.durability), disturbances, device, as_json=as_json)


def _run_once(
    opened: "Device", spec: Functions, show: "OnProgress", spool: Path | None, inside: bool
) -> "tuple[Trace, TargetStatus | None, TargetStatus | None]":
    """Run the pattern; return its trace, and the status of the target before and after."""
    before = opened.target_status()
    opened.looks_inside = inside
    trace = opened.run(spec, show, spool=spool, in_pieces=not inside)
    return trace, before, opened.target_status()


def _print_result(
    document: "OneRun", disturbances: dict[str, int], device: str, *, as_json: bool
) -> None:
    if disturbances:
        document["disturbed"] = disturbances
        counts = ", ".join(f"{name} {count}" for name, count in disturbances.items())
        echo(f"warning: another program used {device} during the run: {counts}", err=True)
    if as_json:
        echo_json(document)
    else:
        print_run(document)


def _requested_spec(
    preset: str | None,
    batches: int | None,
    spec_file: str | None,
    parameters: Mapping[str, OptionValue],
) -> Functions:
    """Return the pattern, or the first batch of a preset."""
    if preset is not None:
        return preset_batch(spec_file, parameters)
    refuse_batches(batches)
    return requested_pattern(spec_file, parameters)


def _check_inside(device: str, preset: str | None, folder: Path | None) -> None:
    if folder is None:
        return
    from uflip.device.guard import check_simulated
    from uflip.results.result_dir import refuse_existing

    check_simulated(device)
    if preset is not None:
        raise UsageError(
            "A preset cannot be stored as a result",
            where="--inside",
            got=f"--preset {preset}",
            allowed="one pattern",
            action="omit --preset or --inside",
        )
    refuse_existing(folder)


def _warn_about_seed(spec: "Spec", info: "DeviceInfo") -> None:
    from uflip.device.resolve import repeats_state

    if repeats_state(spec, info):
        echo(
            f"warning: {spec.seed} is also the seed of the device's state: these I/Os repeat its "
            "writes, address by address; choose another --seed",
            err=True,
        )


def _store_result(opened: "Device", spec: "Spec", trace: "Trace", folder: Path | None) -> None:
    if folder is None:
        return
    from uflip.benchmark.execute import store_run
    from uflip.benchmark.plan import label_of, plan_pattern

    label = label_of(spec)
    plan = plan_pattern(spec, opened.info, label=label, durability=opened.durability)
    store_run(opened, plan, trace, folder)


def _check_trace_file(path: Path | None, force: bool) -> None:
    if path is None:
        return
    from uflip.results import outputs

    outputs.check_ending(path, "trace", "--trace", (".csv", ".parquet"))
    trace_output_path(path, force)


def requested_pattern(spec_file: str | None, parameters: Mapping[str, OptionValue]) -> Functions:
    """Return the specification of the given options."""
    chosen = only_given(parameters)
    return parse_pattern(chosen) if spec_file is None else _read_spec(spec_file, chosen)


def _read_spec(name: str, chosen: Mapping[str, object]) -> Functions:
    if chosen:
        first = next(iter(chosen)).replace("_", "-")
        raise UsageError(
            "--spec cannot be combined with options of the pattern",
            where="--spec",
            got=f"--spec with --{first}",
            action=f"omit --{first}, or write it into the specification",
        )
    path = Path(name)
    content = _read_stdin() if name == "-" else read_document(path, SPEC)
    spec = read_spec(decode(path, SPEC, content, Table))
    if isinstance(spec, Replay):
        raise UsageError(
            "The list of I/Os of this replay is missing",
            where="--spec",
            got="a replay",
            allowed="basic, mix, parallel",
            action="replay the trace itself: `uflip replay TRACE DEVICE`",
        )
    return spec


def _read_stdin() -> bytes:
    if sys.stdin is None:
        raise SPEC.unreadable(Path("-"), "a standard input that is closed")
    try:
        content = sys.stdin.buffer.read(SPEC.limit_bytes + 1)
    except OSError as error:
        raise SPEC.unreadable(Path("-"), error.strerror or str(error)) from error
    if len(content) > SPEC.limit_bytes:
        raise SPEC.unreadable(Path("-"), f"more than {SPEC.limit_bytes} bytes")
    return content


# Options that select the executor of many points: threads, processes or a cluster.


# Threads of one process; processes of one machine.
MAX_JOBS, MAX_WORKERS = 1024, 1024
