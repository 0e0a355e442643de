"""`uflip deallocate`: tell a device, or a part of it, that nobody needs what is there any more."""

from pathlib import Path

import click

from uflip.cli.common import (
    device_argument,
    force_option,
    json_option,
    open_options,
    quiet_option,
    read_size,
    save_option,
)
from uflip.device.guard import check_before_all
from uflip.device.options import check_options
from uflip.device.url import parse_url

EPILOG = """\b
Examples:
  uflip deallocate /dev/nvme1n1 --destroy "TOKEN" --dry-run
  uflip deallocate /dev/nvme1n1 --destroy "TOKEN"
  uflip deallocate file:scratch.bin --target-offset 256MiB --target-size 256MiB
  uflip deallocate sim:demo --target-size 512MiB --save half.snapshot

\b
What was stored there is lost, as if it had been written over; blkdiscard, fstrim and hdparm do the
same. What reads and writes cost afterwards: uflip run DEVICE --suite today --only deallocate
"""


@click.command("deallocate", epilog=EPILOG)
@device_argument
@click.option(
    "--target-offset",
    metavar="SIZE",
    callback=read_size,
    default="0",
    help="Where the range begins.  [default: 0]",
)
@click.option(
    "--target-size",
    metavar="SIZE",
    callback=read_size,
    help="How long it is.  [default: up to the end of the device]",
)
@save_option
@force_option
@open_options
@click.option("--dry-run", is_flag=True, help="Say what would be deallocated; touch nothing.")
@quiet_option
@json_option
def command(
    *,
    device: str,
    target_offset: int,
    target_size: int | None,
    save: Path | None,
    force: bool,
    size: int | None,
    buffered: bool,
    data: str,
    destroy: str | None,
    io_timeout: int,
    dry_run: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Deallocate DEVICE or a range of it (TRIM, discard): what is stored there is lost.

    A block device is told to discard, a file gets a hole, an NBD server is told to trim, and a
    simulated device forgets the pages. In trims of up to 128 MiB, each of which is timed.
    """
    if dry_run:
        check_options(parse_url(device), size, data, destroy, buffered=buffered)
    else:
        check_before_all(device, size=size, buffered=buffered, data=data, destroy=destroy)
    from uflip import signals
    from uflip.cli.common import check_saving, save_device
    from uflip.cli.progress_events import Watching
    from uflip.cli.terminal import echo, echo_json
    from uflip.device.catalogue import inspect_device
    from uflip.session.deallocate import trims_of
    from uflip.session.open_device import open_watched
    from uflip.session.state import believed
    from uflip.units import format_duration_ns, format_size

    info = inspect_device(device, size=size, buffered=buffered)
    check_saving(info, save, force=force)
    trims = trims_of(info, target_offset, target_size)
    size_bytes = sum(each.ios * each.io_bytes for each in trims)
    count = sum(each.ios for each in trims)
    told: dict[str, object] = {
        "device": device,
        "done": "dry-run" if dry_run else "deallocated",
        "offset_bytes": target_offset,
        "size_bytes": size_bytes,
        "trims": count,
    }
    what = f"{format_size(size_bytes)} of {device}"
    if dry_run:
        text = f"{what} would be deallocated, in {count} trims"
    else:
        with (
            Watching(quiet=quiet or as_json) as watch,
            signals.shielded(),
            open_watched(
                device,
                info,
                watch,
                size=size,
                buffered=buffered,
                data=data,
                destroy=destroy,
                io_timeout_ns=io_timeout,
            ) as opened,
        ):
            record = believed(opened.info, device)
            traces = [opened.run(each) for each in trims]
            if record is not None:
                record.forget()
            if save is not None:
                save_device(opened, save, force=force)
        took = [int(ns) for trace in traces for ns in memoryview(trace.column("response_time_ns"))]
        told |= {"elapsed_ns": sum(took), "longest_ns": max(took)}
        longest = f"the longest {format_duration_ns(max(took))}"
        took_text = format_duration_ns(sum(took))
        text = f"{what} are deallocated: {count} trims took {took_text}, {longest}"
    if as_json:
        echo_json(told)
    elif not quiet:
        echo(text)
