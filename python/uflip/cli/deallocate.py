"""`uflip deallocate`: deallocate (TRIM) a device, or a range of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uflip.cli.options import (
    check_saving,
    check_target,
    device_argument,
    force_option,
    json_option,
    open_options,
    quiet_option,
    save_device,
    save_option,
    size_option,
)

if TYPE_CHECKING:
    from uflip.data.device import DeviceInfo
    from uflip.data.document import Table
    from uflip.data.spec import Spec

EPILOG = """\b
Examples:
  uflip deallocate /dev/nvme1n1 --destroy "TOKEN" --dry-run
  uflip deallocate /dev/nvme1n1 --destroy "TOKEN"
  uflip deallocate file:scratch.bin --target-offset 256MiB --target-size 256MiB
  uflip deallocate sim:demo --target-size 512MiB --save half.snapshot

\b
The data stored there is lost, as if it had been overwritten; blkdiscard, fstrim and hdparm do the
same. To measure its effect on reads and writes: uflip run DEVICE --suite today --only deallocate
"""


@click.command("deallocate", epilog=EPILOG)
@device_argument
@size_option("--target-offset", default="0", help="Start of the range.")
@size_option("--target-size", help="Length of the range.  [default: up to the end of the device]")
@save_option
@force_option
@open_options
@click.option("--dry-run", is_flag=True, help="Print what would be deallocated; touch nothing.")
@quiet_option
@json_option
def command(
    *,
    device: str,
    target_offset: int,
    target_size: int | None,
    save: Path | None,
    force: bool,
    dry_run: bool,
    quiet: bool,
    as_json: bool,
    **opening: Any,
) -> None:
    """Deallocate DEVICE or a range of it (TRIM, discard): the data stored there is lost.

    A block device gets discard requests, a file a hole, an NBD server trim requests, and a
    simulated device unmaps the pages. Each trim is up to 128 MiB, and is timed.
    """
    check_target(device, opening, write=not dry_run)
    from uflip.benchmark.prepare import split_into_trims
    from uflip.cli.terminal import echo, echo_json
    from uflip.device.catalogue import inspect_device
    from uflip.units import format_duration_ns, format_size

    info = inspect_device(device, size=opening["size"], buffered=opening["buffered"])
    check_saving(info, save, force=force)
    trims = split_into_trims(info, target_offset, target_size)
    size_bytes = sum(each.ios * each.io_bytes for each in trims)
    count = sum(each.ios for each in trims)
    document: dict[str, object] = {
        "device": device,
        "done": "dry-run" if dry_run else "deallocated",
        "offset_bytes": target_offset,
        "size_bytes": size_bytes,
        "trims": count,
    }
    extent = f"{format_size(size_bytes)} of {device}"
    if dry_run:
        text = f"{extent} would be deallocated, in {count} trims"
    else:
        times_ns = _deallocate(
            device,
            info,
            trims,
            opening,
            save=save,
            force=force,
            quiet=quiet or as_json,
        )
        total_ns, longest_ns = sum(times_ns), max(times_ns)
        document |= {"elapsed_ns": total_ns, "longest_ns": longest_ns}
        text = (
            f"{extent} are deallocated: {count} trims took {format_duration_ns(total_ns)}, "
            f"the longest {format_duration_ns(longest_ns)}"
        )
    if as_json:
        echo_json(document)
    elif not quiet:
        echo(text)


def _deallocate(
    device: str,
    info: "DeviceInfo",
    trims: "Sequence[Spec]",
    opening: "Table",
    *,
    save: Path | None,
    force: bool,
    quiet: bool,
) -> list[int]:
    """Run the trims, and store a snapshot if requested; return their response times [ns]."""
    from uflip import signals
    from uflip.benchmark.prepare import open_watched, valid_record
    from uflip.cli.benchmark_progress import BenchmarkProgress

    with (
        BenchmarkProgress(quiet=quiet) as progress,
        signals.shielded(),
        open_watched(device, info, progress, **opening) as opened,
    ):
        record = valid_record(opened.info, device)
        traces = [opened.run(each) for each in trims]
        if record is not None:
            record.forget()
        if save is not None:
            save_device(opened, save, force=force)
    return [int(ns) for trace in traces for ns in memoryview(trace.column("response_time_ns"))]
