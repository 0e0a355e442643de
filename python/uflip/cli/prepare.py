"""`uflip prepare`: precondition a device, and know how far that got.

SNIA and fio call it preconditioning what uFLIP calls enforcing a state: writes that bring a device
into a well-defined one.
"""

from pathlib import Path
from typing import Any

import click

from uflip import ends
from uflip.cli.common import (
    check_saving,
    device_argument,
    force_option,
    json_option,
    open_options,
    quiet_option,
    save_device,
    save_option,
    whole,
)
from uflip.cli.state import target_options
from uflip.cli.terminal import echo, echo_json
from uflip.cli.watching import Watching, announce_state
from uflip.data.device import DeviceInfo
from uflip.data.document import plain
from uflip.device.catalogue import inspect_device
from uflip.device.options import check_options
from uflip.device.url import parse_url
from uflip.errors import unknown_name
from uflip.methodology import STATES, Enforcement, describe_wear, plan_state, wear_of
from uflip.results.state_record import StateRecord
from uflip.session.opening import check_before_all, open_watched
from uflip.session.state import bring_into_state, record_of

EPILOG = """\b
Examples:
  uflip prepare file:scratch.bin --size 1GiB
  uflip prepare /dev/nvme1n1 --destroy "TOKEN" --dry-run
  uflip prepare file:scratch.bin --state sequential --target-size 256MiB

\b
Ctrl-C stops it; the same command goes on from there.
"""


@click.command("prepare", epilog=EPILOG)
@device_argument
@click.option(
    "--state",
    metavar="random|sequential",
    default="random",
    show_default=True,
    help="random: writes of random size all over; sequential: one rewrite, faster, less stable.",
)
@click.option(
    "--seed",
    metavar="N",
    callback=whole(),
    default="1",
    show_default=True,
    help="Seed of sizes and positions.",
)
@target_options
@save_option
@force_option
@open_options
@click.option("--again", is_flag=True, help="Even if the device is known to be in this state.")
@click.option("--dry-run", is_flag=True, help="Say what would be written; touch nothing.")
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
    size: int | None,
    buffered: bool,
    data: str,
    destroy: str | None,
    io_timeout: int,
    again: bool,
    dry_run: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Precondition DEVICE: bring it into a well-defined state, to make measurements repeatable.

    The whole target is written once sequentially, and, for the random state, three times as much
    by writes of random size (up to 128 KiB) at random places. What was stored there is lost.
    """
    how: dict[str, Any] = {"size": size, "buffered": buffered, "data": data, "destroy": destroy}
    if dry_run:
        check_options(parse_url(device), size, data, destroy, buffered=buffered)
    else:
        check_before_all(device, **how)
    info = inspect_device(device, size=size, buffered=buffered)
    check_saving(info, save, force=force)
    wanted = plan_state(info, state, target_size, seed)
    if wanted is None:  # "as-is" is a state to measure in, not one to bring a device into
        raise unknown_name("state", state, STATES[:-1], where="--state")
    worn = describe_wear(wear_of(info), wanted.bytes_written)
    if dry_run:
        text = f"{announce_state(wanted)}\nwear: {worn}"
        _tell(_document(device, info, wanted, None, "dry-run"), text, as_json, quiet)
        return
    quiet = quiet or as_json
    if not quiet and info.outlives_process:
        echo(f"wear: {worn}", err=True)
    with (
        Watching(quiet=quiet) as watch,
        ends.shielded(),
        open_watched(device, info, watch, **how, io_timeout_ns=io_timeout) as opened,
    ):
        kept = record_of(opened.info, device, record)
        known = kept.state if kept else None
        there = known and known.request == wanted.request and known.state_id == wanted.state_id
        if there and not again:
            text = f"{device} is in this state already; --again writes it once more"
            _tell(_document(device, info, wanted, kept, "was"), text, as_json, quiet)
            return
        bring_into_state(opened, wanted, kept, watch)
        if save is not None:
            save_device(opened, save, force=force)
    kept_in = f"; kept in {save}" if save else "; it ends with this command"
    noted = f"; noted in {kept.path}" if kept else kept_in
    text = f"{device} is in state {wanted.state_id}{noted}"
    _tell(_document(device, info, wanted, kept, "enforced"), text, as_json, quiet)


def _tell(document: dict[str, Any], text: str, as_json: bool, quiet: bool) -> None:
    if as_json:
        echo_json(document)
    elif not quiet:
        echo(text)


def _document(
    device: str, info: DeviceInfo, wanted: Enforcement, record: StateRecord | None, done: str
) -> dict[str, Any]:
    wear = wear_of(info)
    return {
        "device": device,
        "done": done,
        "state": wanted.request,
        "state_id": wanted.state_id,
        "total_ios": wanted.total_ios,
        "bytes_written": wanted.bytes_written,
        "time_ns": wanted.time_ns,
        "wear": plain(wear) | {"share": wear.share(wanted.bytes_written)},
        "record": str(record.path) if record else None,
    }
