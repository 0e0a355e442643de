"""`uflip prepare`: precondition a device.

SNIA and fio call it preconditioning; uFLIP calls it enforcing a state: writes that bring a device
into a well-defined state.
"""

from pathlib import Path

import click

from uflip.cli.options import (
    add_options,
    device_argument,
    force_option,
    int_parser,
    json_option,
    open_options,
    quiet_option,
    save_option,
)
from uflip.device.guard import check_options, check_target_allowed
from uflip.device.url import parse_url
from uflip.options import TARGET

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
    metavar="random|sequential",
    default="random",
    show_default=True,
    help="random: writes of random size all over; sequential: one rewrite, faster, less stable.",
)
@click.option(
    "--seed",
    metavar="N",
    callback=int_parser(),
    default="1",
    show_default=True,
    help="Seed of sizes and positions.",
)
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
    size: int | None,
    buffered: bool,
    data: str,
    destroy: str | None,
    io_timeout_ns: int,
    again: bool,
    dry_run: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Precondition DEVICE: bring it into a well-defined state, to make measurements repeatable.

    The whole target is written once sequentially, and, for the random state, three times as much
    by writes of random size (up to 128 KiB) at random places. All data stored there is lost.
    """
    if dry_run:
        check_options(parse_url(device), size, data, destroy, buffered=buffered)
    else:
        # Before anything else is loaded.
        check_target_allowed(device, size=size, buffered=buffered, data=data, destroy=destroy)
    from uflip.cli.prepare_device import prepare

    prepare(
        device,
        state=state,
        seed=seed,
        target_size=target_size,
        record=record,
        save=save,
        force=force,
        size=size,
        buffered=buffered,
        data=data,
        destroy=destroy,
        io_timeout_ns=io_timeout_ns,
        again=again,
        dry_run=dry_run,
        quiet=quiet,
        as_json=as_json,
    )
