"""`uflip hints`: check design hints against the results of a device."""

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from uflip.cli.options import ANY_PATH, count_option, json_option, number_option
from uflip.cli.terminal import echo, echo_json
from uflip.errors import UsageError
from uflip.escape import plain
from uflip.table import text_width

if TYPE_CHECKING:
    from uflip.hints import Advice

# Verdicts have a column of their own.
INDENT = 17
MAX_PRICE = 1e9
# No index fits an entry that is larger than the largest page.
MAX_ENTRY_BYTES = 1 << 20

EPILOG = """\b
Examples:
  uflip hints results/demo
  uflip hints results/demo --device-price 120 --memory-price 4
  uflip hints results/demo --json

\b
The seven hints of uFLIP (2009, §5.3), each compared with the measurements. A hint is
  confirmed      it holds for this device
  contradicted   it does not
  undecided      a run measured the start-up or the write cache, or an interval
                 includes the limit; the run that would decide it is named
  not measured   the results lack the runs
"""


@click.command("hints", epilog=EPILOG)
@click.argument("results", type=ANY_PATH)
@count_option(
    "--entry-bytes",
    metavar="BYTES",
    least=1,
    most=MAX_ENTRY_BYTES,
    help="Size of an index entry, for hint 2.  [default: 20]",
)
@number_option(
    "--device-price",
    metavar="PRICE",
    most=MAX_PRICE,
    help="Price of the device, for the five-minute rule.",
)
@number_option(
    "--memory-price",
    metavar="PRICE",
    most=MAX_PRICE,
    help="Price of a GiB of memory, in the same currency.",
)
@json_option
def command(
    results: Path,
    entry_bytes: int | None,
    device_price: float | None,
    memory_price: float | None,
    as_json: bool,
) -> None:
    """Check which design hints hold for the device of RESULTS, and give advice."""
    from uflip.hints import ENTRY_BYTES, advise
    from uflip.results import Results, summary
    from uflip.results.summary_document import describe_device

    prices = _prices(device_price, memory_price)
    loaded = Results.load(results)
    if loaded.is_open_channel:
        raise UsageError(
            "Design hints need a device with an FTL",
            where=str(results),
            got="a benchmark of an open-channel device",
            allowed="results of the nine micro-benchmarks",
            action="`uflip show` lists the rules for an open-channel device",
        )
    document = summary(loaded)
    advice = advise(document, entry_bytes=entry_bytes or ENTRY_BYTES, prices=prices)
    if as_json:
        echo_json(
            {"results": str(results), "device": document["device"].url, **to_builtins(advice)}
        )
        return
    _print(describe_device(plain(document["device"])), advice)


def _prices(device: float | None, memory: float | None) -> tuple[float, float] | None:
    if device is None and memory is None:
        return None
    if not device or not memory:
        raise UsageError(
            "--device-price and --memory-price must be given together",
            where="--memory-price" if device else "--device-price",
            got=str(memory if device else device),
            allowed="a price above 0",
            action="give both prices, in one currency",
        )
    return device, memory


def _print(device: str, advice: "Advice") -> None:
    device_class = advice.classified
    echo(f"{device}\nclass {device_class.name}: {device_class.meaning}")
    for hint in advice.hints:
        echo("")
        head = f"{hint.number}  {hint.verdict}"
        echo(_wrapped(f"{head:<{INDENT}}{hint.statement}", ""))
        echo(_wrapped(hint.because, " " * INDENT))
        if hint.advice:
            echo(_wrapped(f"→ {hint.advice}", " " * INDENT))
        if hint.decided_by:
            echo(f"{' ' * INDENT}to decide: {hint.decided_by}")


def _wrapped(text: str, first: str) -> str:
    return textwrap.fill(text, text_width(), initial_indent=first, subsequent_indent=" " * INDENT)
