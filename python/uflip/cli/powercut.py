"""`uflip powercut`: cut the power of a simulated device during I/O, and report the losses."""

import click

from uflip.benchmark_options import MAX_IOS, MAX_IOS_IN_FLIGHT
from uflip.cli.options import (
    add_options,
    count_option,
    device_argument,
    duration_option,
    json_option,
    size_option,
)
from uflip.cli.progress import display
from uflip.cli.terminal import echo_json, echo_pairs, echo_table
from uflip.data.device import PowerLoss
from uflip.data.document import plain
from uflip.device.catalogue import with_power_loss
from uflip.options import DURABILITY
from uflip.spec import BASELINES, baseline
from uflip.units import UNSIGNED, format_count, format_duration_ns

EPILOG = """\b
Examples:
  uflip powercut sim:demo
  uflip powercut sim:demo --io-size 4KiB --queue-depth 8 --after 20ms --cuts 10
  uflip powercut "sim:demo?write_cache_bytes=1MiB" --durability flush:16
  uflip powercut "sim:demo?write_cache_bytes=1MiB&power_loss_protection=true"

\b
A device without [power_loss] in its profile gets power_loss_protection=false and
spare_read_bytes=16. Each further cut hits the device that recovered from the last.
"""

SEEDS = UNSIGNED + 1

HEAD = ("cut", "I/Os", "torn", "not begun", "half erased", "in cache", "lost", "read", "ready in")


@click.command("powercut", epilog=EPILOG)
@device_argument
@duration_option(
    "--after", default="100ms", help="Time of I/O before each cut, on the clock of the device."
)
@click.option(
    "--pattern",
    metavar="|".join(BASELINES),
    default="RW",
    show_default=True,
    help="Pattern of the host's I/Os.",
)
@size_option("--io-size", default="32KiB", help="Size of an I/O.")  # fmt: skip
@count_option("--queue-depth", least=1, most=MAX_IOS_IN_FLIGHT, default="1", help="I/Os in flight.")
@count_option(
    "--cuts", least=1, most=10_000, default="1", help="Number of cuts, one after the other."
)
@count_option("--seed", default="2009", help="Seed of random I/Os.")
@add_options(DURABILITY)
@json_option
def command(
    *,
    device: str,
    after: int,
    pattern: str,
    io_size: int,
    queue_depth: int,
    cuts: int,
    seed: int,
    durability: str | None,
    as_json: bool,
) -> None:
    """Cut the power of the simulated DEVICE during I/O, let it recover, and report what was lost
    and how long the recovery took.
    """
    url = with_power_loss(device)
    # More I/Os than the device can make before the power cut.
    specs = [
        baseline(pattern, io_size=io_size, io_count=MAX_IOS, seed=(seed + number) % SEEDS)
        for number in range(cuts)
    ]
    from uflip.device.opener import open_device

    losses: list[PowerLoss] = []
    with display(cuts, quiet=as_json) as sink:

        def show_creation(*_: int) -> None:
            sink.draw(len(losses), f"creating {url}")

        def show_cut(ios_done: int, *_: int) -> None:
            text = f"cut {len(losses) + 1} of {cuts}  {format_count(ios_done)} I/Os"
            sink.draw(len(losses), text)

        show_creation()
        with open_device(url, durability=durability, on_progress=show_creation) as opened:
            for spec in specs:
                show_cut(0)
                losses.append(opened.cut_power(after, spec, queue_depth, show_cut))
    if as_json:
        echo_json([plain(each) for each in losses])
    elif cuts == 1:
        _echo_one(losses[0])
    else:
        echo_table(HEAD, [_row(number, each) for number, each in enumerate(losses, 1)], left=0)


def _row(number: int, loss: PowerLoss) -> tuple[str, ...]:
    cut, recovery = loss.cut, loss.recovery
    numbers = (
        number,
        loss.ios_completed,
        cut.pages_torn,
        cut.pages_not_begun,
        cut.blocks_half_erased,
        cut.pages_in_cache,
        cut.pages_lost,
        recovery.spare_areas_read + recovery.metadata_pages_read,
    )
    return (*map(str, numbers), format_duration_ns(recovery.took_ns))


def _echo_one(loss: PowerLoss) -> None:
    cut, recovery = loss.cut, loss.recovery
    echo_pairs(
        (
            ("power cut at", format_duration_ns(cut.at_ns)),
            ("I/Os completed", f"{loss.ios_completed}, {cut.ios_under_way} under way"),
            (
                "flash pages",
                f"{cut.pages_torn} torn, {cut.pages_not_begun} not begun; "
                f"{cut.blocks_half_erased} blocks half erased",
            ),
            ("write cache", f"{cut.pages_in_cache} pages not yet in flash"),
            ("lost", f"{cut.pages_lost} pages of the host read as an older version"),
            ("restored", f"{cut.pages_come_back} deallocated pages hold data again"),
            (
                "scanned",
                f"{recovery.spare_areas_read} spare areas, "
                f"{recovery.metadata_pages_read} metadata pages",
            ),
            ("found", f"{recovery.pages_found} pages of the host"),
            ("ready after", format_duration_ns(recovery.took_ns)),
            ("  reading", format_duration_ns(recovery.reading_ns)),
            (
                "  erasing",
                f"{format_duration_ns(recovery.erasing_ns)}, {recovery.blocks_erased} blocks",
            ),
            (
                "  merging",
                f"{format_duration_ns(recovery.merging_ns)}, {recovery.pages_merged} pages, "
                f"{recovery.blocks_dropped} blocks",
            ),
            (
                "  putting back",
                f"{format_duration_ns(recovery.putting_back_ns)}, {recovery.pages_put_back} pages",
            ),
        )
    )
