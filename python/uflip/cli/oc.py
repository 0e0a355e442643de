"""`uflip oc`: the benchmark of open-channel devices, and single jobs over physical addresses."""

from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uflip.cli.options import (
    check_saving,
    checked_output,
    count_option,
    device_argument,
    duration_option,
    force_option,
    json_option,
    parsed_by,
    path_option,
    quiet_option,
    save_device,
    save_option,
)
from uflip.cli.progress import display
from uflip.cli.show import show_results
from uflip.cli.terminal import echo, echo_json, echo_pairs, echo_table
from uflip.data.spec import Job, table_of
from uflip.errors import DeviceError, UsageError
from uflip.escape import plain
from uflip.options import parse_names

if TYPE_CHECKING:
    from uflip._native import FlashTrace
    from uflip.data.spec import JobTotals
    from uflip.oc.session import FailedCommand, JobStatistics
    from uflip.results.outputs import OutputPath

EPILOG = """\b
Examples:
  uflip oc sim:dfc
  uflip oc sim:dfc --scale quick --only oc0,oc2
  uflip oc sim:dfc --out results/dfc
  uflip run --resume results/dfc            (resume after Ctrl-C)
  uflip oc pattern sim:dfc --channels 8 --threads 8 --blocks 2 --pages 512 --mix WR

\b
Jobs over physical addresses, as in FOX: uflip oc pattern --help
"""

PATTERN_EPILOG = """\b
Examples:
  uflip oc pattern sim:dfc --pages 512 --mix WWWR
  uflip oc pattern sim:dfc --luns 4 --threads 4 --blocks 8 --pages 512 --mix W --log io.csv
  uflip oc pattern sim:dfc --channels 8 --vector 8 --pages 512 --mix W --iteration round_robin
  uflip oc pattern sim:dfc --channels 8 --threads 8 --pages 512 --read 25 --iteration isolated
  uflip oc pattern sim:dfc --pages 512 --mix W --save written.snapshot

\b
Meaning of the options: docs/reference/open-channel.md
"""

MAX_SHARE_ERROR_PERCENT = 1
MISMATCH = "mismatch"  # the status of a read whose data differs


class Oc(click.Group):
    """A group whose default is the benchmark: `uflip oc DEVICE` is `uflip oc run DEVICE`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the subcommand; any other word is a device."""
        if args[0] not in self.commands:
            args = ["run", *args]
        return super().resolve_command(ctx, args)


@click.group("oc", cls=Oc, epilog=EPILOG, subcommand_metavar="[run|pattern] DEVICE [OPTIONS]")
def command() -> None:
    """Measure an open-channel device with uFLIP-OC; `pattern` runs a single job instead."""


@command.command("run")
@device_argument
@click.option(
    "--scale",
    metavar="standard|quick",
    default="standard",
    show_default=True,
    help="standard: 64 blocks and whole blocks, as in the paper; quick: 4 blocks.",
)
@click.option(
    "--only",
    metavar="NAMES",
    multiple=True,
    callback=parsed_by(parse_names),
    help="Only some of oc0, oc1, oc2, oc3, separated by commas.",
)
@click.option(
    "--sacrifice",
    metavar="CHANNEL:LUN:BLOCK",
    help="The block that oc1 wears out.  [default: the last one, on simulated devices only]",
)
@path_option(
    "--out", metavar="FOLDER", help="New folder for the results.  [default: results/DEVICE-TIME]"
)
@click.option(
    "--inside",
    is_flag=True,
    help="Record the operations of LUNs and channels, for the explorer.",
)
@quiet_option
@json_option
def run(
    device: str,
    *,
    scale: str,
    only: tuple[str, ...] | None,
    sacrifice: str | None,
    out: Path | None,
    inside: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run the four micro-benchmarks of uFLIP-OC on DEVICE, and store the results."""
    from uflip.benchmark import BenchmarkRequest, begin
    from uflip.cli.benchmark_progress import BenchmarkProgress
    from uflip.oc.device import open_flash_device

    request = BenchmarkRequest(
        device=device, scale=scale, only=only, sacrifice=sacrifice, inside=inside
    )
    if not request.is_open_channel:
        open_flash_device(device)  # raises an error for a device of another kind
    with BenchmarkProgress(quiet=quiet or as_json) as progress:
        folder = begin(request, out, progress)
    show_results(folder, quiet=True, as_json=as_json)
    if not (quiet or as_json):
        echo(f"\nResults are in {folder}. Next:")
        echo(f"  uflip explore {folder}\n  uflip report {folder} -o report.html")


@command.command("pattern", epilog=PATTERN_EPILOG)
@device_argument
@count_option("--first-channel", help="First channel.  [default: 0]")
@count_option("--channels", help="Channels to cover.  [default: 1]")
@count_option("--first-lun", help="First LUN of each.  [default: 0]")
@count_option("--luns", help="LUNs of each channel.  [default: 1]")
@count_option("--first-block", help="First block.  [default: 0]")
@count_option("--blocks", help="Blocks of each LUN.  [default: 1]")
@count_option("--first-page", help="First page.  [default: 0]")
@count_option("--pages", help="Pages of each block.  [default: 1]")
@click.option("--mix", metavar="LETTERS", help="W and R, repeated, like WWWR.  [default: R]")
@count_option("--read", metavar="PERCENT", most=100, help="The mix as a share of reads.")
@count_option("--threads", help="Submitting threads.  [default: 1]")
@count_option("--vector", metavar="PAGES", help="Pages per command.  [default: 1]")
@duration_option("--sleep", help="Pause between a thread's commands.")
@click.option(
    "--iteration",
    metavar="ORDER",
    help="sequential, round_robin or isolated.  [default: sequential]",
)
@count_option("--repeat", help="Repetitions.  [default: 1]")
@path_option(
    "--log",
    metavar="FILE",
    help="One line per command, with its physical address: .csv or .parquet, a new file.",
)
@save_option
@click.option(
    "--verify", is_flag=True, help="Compare the data of reads with what was written, as FOX does."
)
@force_option
@quiet_option
@json_option
def pattern(
    device: str,
    *,
    read: int | None,
    log: Path | None,
    save: Path | None,
    verify: bool,
    force: bool,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Run one job over physical addresses on DEVICE, as FOX does."""
    from uflip.oc.device import open_flash_device
    from uflip.oc.session import job_statistics

    job = Job(**options)
    if read is not None:
        job = job.but(mix=_mix_for_share(read, job.mix))
    if log is not None:
        _log_output(log, force)
    opened = open_flash_device(device)
    check_saving(opened.info, save, force=force)
    resolved = opened.resolve(job)
    if read is not None:
        _check_share(read, resolved.totals)
    with display(1, quiet=quiet or as_json) as sink:
        trace = opened.run(
            job,
            verify=verify,
            on_progress=lambda done, total, _: sink.draw(done / total, f"{done} of {total}"),
        )
    if save is not None:
        save_device(opened, save, force=force)
    if log is not None:
        _write_log(_log_output(log, force), trace, opened.geometry.sector_bytes)
    job_result = job_statistics(trace, opened.geometry.sector_bytes)
    differing = job_result.failures.get(MISMATCH, 0)
    if as_json:
        job_document = table_of(resolved.job) | {"totals": plain(resolved.totals)}
        echo_json({"device": device, "job": job_document, **asdict(job_result)})
        raise click.exceptions.Exit(DeviceError.exit_code if differing else 0)
    _print_job(resolved.job, job_result)
    if differing:
        raise DeviceError(
            "Data that was read back differs from what was written",
            where=device,
            got=f"{differing} addresses; {_describe_failure(job_result.first_failure)}",
            allowed="the data of the last write of every sector",
            action="--log FILE lists every command with its status",
        )


def _mix_for_share(read: int, mix: str | None) -> str:
    """Return the shortest mix with a share of reads, spread evenly, writes first."""
    from math import gcd

    if mix is not None:
        raise UsageError(
            "The mix of reads and writes is given twice",
            where="--mix and --read",
            got=f"--mix {mix} --read {read}",
            action="omit one of the two",
        )
    common = gcd(read, 100)
    reads, letters = read // common, 100 // common
    reads_before = [reads * letter // letters for letter in range(letters + 1)]
    return "".join("R" if one < other else "W" for one, other in pairwise(reads_before))


def _check_share(read: int, totals: "JobTotals") -> None:
    """Reject a job that is too short for its share of reads, or lacks the threads for it."""
    percent = 100 * totals.pages_read / (totals.pages_read + totals.pages_written)
    if abs(percent - read) > MAX_SHARE_ERROR_PERCENT:
        raise UsageError(
            "The job cannot make this share of reads",
            where="--read",
            got=f"{read} % of reads: {totals.pages_read} pages read, {totals.pages_written} "
            "written",
            allowed=f"a share within {MAX_SHARE_ERROR_PERCENT} %",
            action="cover more pages or blocks, change the number of threads, or give --mix",
        )


def _log_output(log: Path, force: bool) -> "OutputPath":
    return checked_output(log, "LOG", "--log", (".csv", ".parquet"), force=force)


def _write_log(output: "OutputPath", trace: "FlashTrace", sector_bytes: int) -> None:
    from uflip.errors import native_errors
    from uflip.results import outputs

    with outputs.output_file(output) as temporary, native_errors():
        temporary.unlink()  # the native part creates new files only
        if output.path.suffix == ".csv":
            trace.write_csv(str(temporary), sector_bytes)
        else:
            trace.write_parquet(str(temporary), "{}")


def _describe_failure(failure: "FailedCommand | None") -> str:
    if failure is None:
        return ""
    return (
        f"{failure.op} of channel {failure.channel}, LUN {failure.lun}, block {failure.block}, "
        f"page {failure.page} by thread {failure.thread}, {failure.failed} addresses "
        f"{failure.status}"
    )


def _print_job(job: "Job", job_result: "JobStatistics") -> None:
    from uflip.oc.benchmark import format_times
    from uflip.units import format_duration_ns

    echo_pairs(
        [
            ("job", ", ".join(f"{k} {v}" for k, v in table_of(job).items() if k != "kind")),
            ("elapsed", format_duration_ns(job_result.elapsed_ns)),
            ("throughput", f"{job_result.mb_per_s:.2f} MB/s, {job_result.ios_per_s:,.0f} IOPS"),
            ("failed", ", ".join(f"{n} {name}" for name, n in job_result.failures.items()) or "0"),
            ("first failure", _describe_failure(job_result.first_failure)),
        ]
    )
    operations = (
        ("reads", job_result.reads),
        ("writes", job_result.writes),
        ("erases", job_result.erases),
    )
    rows = [
        (name, f"{times['count']:,}", *format_times(times, 3))
        for name, times in operations
        if times is not None
    ]
    echo()
    echo_table(("[ms]", "commands", "mean", "p5", "p50", "p95", "p99", "max"), rows)
