"""`uflip prepare`: precondition a device.

SNIA and fio call it preconditioning; uFLIP calls it enforcing a state: writes that bring a device
into a well-defined state.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uflip.benchmark_options import STATES
from uflip.cli.options import (
    add_options,
    check_saving,
    check_target,
    count_option,
    device_argument,
    force_option,
    json_option,
    open_options,
    quiet_option,
    save_device,
    save_option,
)
from uflip.cli.terminal import echo, echo_json
from uflip.errors import unknown_name
from uflip.options import TARGET

if TYPE_CHECKING:
    from uflip.benchmark import Enforcement
    from uflip.data.device import DeviceWear
    from uflip.device.handle import Device
    from uflip.results.state_record import StateRecord

EPILOG = """\b
Examples:
  uflip prepare file:scratch.bin --size 1GiB
  uflip prepare /dev/nvme1n1 --destroy "TOKEN" --dry-run
  uflip prepare file:scratch.bin --state sequential --target-size 256MiB

\b
Ctrl-C stops it; the same command continues from there.
"""


@click.command("prepare", epilog=EPILOG)
@device_argument
@click.option(
    "--state",
    metavar="random|sequential|empty",
    default="random",
    show_default=True,
    help="random: writes of random size all over; sequential: one rewrite, faster, less stable; "
    "empty: deallocate everything, as on a new device.",
)
@count_option("--seed", default="1", help="Seed of sizes and positions.")
@add_options(*TARGET)
@save_option
@force_option
@open_options
@click.option(
    "--again", is_flag=True, help="Precondition even if the device is already in this state."
)
@click.option("--dry-run", is_flag=True, help="Print what would be written; touch nothing.")
@quiet_option
@json_option
def command(
    *,
    device: str,
    state: str,
    seed: int,
    target_size: int | None,
    record: Path | None,
    save: Path | None,
    force: bool,
    again: bool,
    dry_run: bool,
    quiet: bool,
    as_json: bool,
    **opening: Any,
) -> None:
    """Precondition DEVICE: bring it into a well-defined state, to make measurements repeatable.

    The whole target is written once sequentially, and, for the random state, three times as much
    by writes of random size (up to 128 KiB) at random places; for the empty state it is
    deallocated instead. All data stored there is lost.
    """
    check_target(device, opening, write=not dry_run)
    from uflip.benchmark import describe_wear, plan_state, wear_of
    from uflip.benchmark import prepare as session
    from uflip.benchmark.plan import check_has_states
    from uflip.cli.benchmark_progress import BenchmarkProgress, announce_state
    from uflip.device.catalogue import inspect_device

    info = inspect_device(device, size=opening["size"], buffered=opening["buffered"])
    check_has_states(info)
    check_saving(info, save, force=force)
    enforcement = plan_state(info, state, target_size, seed)
    if enforcement is None:  # "as-is" is a state to measure in, not a state to enforce
        raise unknown_name("state", state, STATES[:-1], where="--state")
    wear = wear_of(info)
    wear_text = describe_wear(wear, enforcement.bytes_written)
    if dry_run:
        text = f"{announce_state(enforcement)}\nwear: {wear_text}"
        _print(_document(device, enforcement, wear, None, "dry-run"), text, as_json, quiet)
        return
    quiet = quiet or as_json
    if not quiet and info.outlives_process:
        echo(f"wear: {wear_text}", err=True)

    def save_if_requested(opened: "Device") -> None:
        if save is not None:
            save_device(opened, save, force=force)

    with BenchmarkProgress(quiet=quiet) as progress:
        prepared = session.prepare(
            device,
            info,
            enforcement,
            progress,
            record=record,
            again=again,
            afterwards=save_if_requested,
            **opening,
        )
    if prepared.done == "was":
        text = f"{device} is in this state already; --again enforces it again"
    else:
        storage = f"; stored in {save}" if save else "; the state is lost when this command ends"
        recorded = f"; recorded in {prepared.record.path}" if prepared.record else storage
        text = f"{device} is in state {enforcement.state_id}{recorded}"
    _print(
        _document(device, enforcement, wear, prepared.record, prepared.done), text, as_json, quiet
    )


def _print(document: Mapping[str, object], text: str, as_json: bool, quiet: bool) -> None:
    if as_json:
        echo_json(document)
    elif not quiet:
        echo(text)


def _document(
    device: str,
    enforcement: "Enforcement",
    wear: "DeviceWear",
    record: "StateRecord | None",
    done: str,
) -> Mapping[str, object]:
    from uflip.data.document import plain

    return {
        "device": device,
        "done": done,
        "state": enforcement.request,
        "state_id": enforcement.state_id,
        "total_ios": enforcement.total_ios,
        "bytes_written": enforcement.bytes_written,
        "time_ns": enforcement.time_ns,
        "wear": plain(wear) | {"share": wear.share(enforcement.bytes_written)},
        "record": str(record.path) if record else None,
    }
