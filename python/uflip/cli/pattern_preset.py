"""`uflip pattern --preset`: micro-benchmarks of other papers, several runs of one pattern."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uflip.cli.common import echo_pairs, together, whole
from uflip.cli.pattern_output import trace_place, write_trace
from uflip.cli.terminal import echo
from uflip.durability import FUA
from uflip.errors import UsageError
from uflip.units import format_count, format_duration_ns

if TYPE_CHECKING:
    from uflip._native import Trace
    from uflip.device.opened import Device
    from uflip.spec import Basic, Functions
    from uflip.waiting import OnProgress

PRESETS = ("myers-sinclair",)
# Their latency is "the time it takes to perform the write *and* flush that write" (§4).
PRESET_DURABILITY = FUA

# From this share on a class is the rule, and its spacing tells nothing.
COMMON = 0.5
# A trace of each has a name of its own, looked at before the first.
MOST_BATCHES = 10_000

preset_options = together(
    [
        click.option(
            "--preset",
            type=click.Choice(PRESETS),
            help="Random writes of 4 KiB in batches of 100,000, with latency classes.",
        ),
        click.option(
            "--batches",
            metavar="N",
            callback=whole(1, MOST_BATCHES),
            help="Batches of a preset; 5 without it.",
        ),
    ]
)


def refuse_batches(batches: int | None) -> None:
    """Refuse --batches where there is no preset."""
    if batches is not None:
        raise UsageError(
            "Only a preset runs in batches",
            where="--batches",
            got=str(batches),
            action=f"give --preset {PRESETS[0]} as well, or leave --batches away",
        )


def preset_batch(spec_file: str | None, parameters: dict[str, Any]) -> "Basic":
    """Return the first batch; of a preset only length and seed can be chosen."""
    from uflip.methodology.myers_sinclair import batch

    given = {name: value for name, value in parameters.items() if value not in (None, False)}
    count, seed = given.pop("io_count", None), given.pop("seed", None)
    if given or spec_file is not None:
        raise UsageError(
            "A preset has a pattern of its own",
            where="--preset",
            got=", ".join([*given, *(["spec"] if spec_file is not None else [])]),
            allowed="--io-count (of a batch), --seed, --batches",
            action="leave the other options away, or the preset",
        )
    chosen = {} if count is None else {"batch_ios": count}
    return batch(0, **chosen, **({} if seed is None else {"seed": seed}))


def preset_traces(trace_file: Path | None, batches: int | None) -> list[Path]:
    """Name the file of each batch: FILE-1, FILE-2, ..."""
    from uflip.methodology.myers_sinclair import BATCHES

    if trace_file is None:
        return []
    numbers = range(1, (BATCHES if batches is None else batches) + 1)
    return [
        trace_file.with_name(f"{trace_file.stem}-{number}{trace_file.suffix}") for number in numbers
    ]


def run_preset(
    device: "Device",
    first: "Functions",
    batches: int | None,
    trace_file: Path | None,
    show: "OnProgress | None",
    *,
    force: bool,
) -> dict[str, Any]:
    """Run all batches; each is written out before the next, where a trace is wanted."""
    from uflip.methodology import myers_sinclair

    traces = preset_traces(trace_file, batches)

    def keep(number: int, trace: "Trace") -> None:
        if traces:
            write_trace(trace, trace_place(traces[number], force))

    count = myers_sinclair.BATCHES if batches is None else batches
    found = myers_sinclair.run(
        device,
        batches=count,
        batch_ios=first.ios,
        seed=first.seed or 0,
        on_batch=keep,
        on_progress=show,
    )
    return {
        "device": device.info,
        "preset": PRESETS[0],
        "durability": device.durability,
        "spec": first,
        "batches": count,
        **found.as_dict(),
    }


def print_preset(document: dict[str, Any]) -> None:
    """Print what was found: the phases, then the classes of each."""
    url, ios, batches = document["device"].url, document["spec"].ios, document["batches"]
    times = f"{batches} × {format_count(ios)} random writes of 4 KiB"
    echo(f"{times} on {url}", bold=True)
    echo_pairs([("start-up", _startup(document))], "  ")
    for name in ("startup", "steady"):
        if document[name] is not None:
            _print_classes("start-up" if name == "startup" else "steady state", document[name])


def _startup(document: dict[str, Any]) -> str:
    if document["startup"] is not None:
        return f"the first {format_count(document['startup']['ios'])} writes"
    too_short = document["analysis"]["phase"] == "too-short"
    return "too few writes to tell; more of them: --io-count" if too_short else "none found"


def _print_classes(title: str, classes: dict[str, Any]) -> None:
    mean = format_duration_ns(classes["mean_ns"])
    echo(f"  {title}: {format_count(classes['ios'])} writes, mean {mean}")
    pairs: list[tuple[str, str]] = []
    for group, join in (("bins", " – "), ("peaks", " to ")):
        some = [each for each in classes[group] if each["ios"]]
        pairs.extend((_limits(each, join), _class(each)) for each in some)
    echo_pairs(pairs, "    ")


def _limits(each: dict[str, Any], join: str) -> str:
    low, high = (format_duration_ns(each[end]) for end in ("low_ns", "high_ns"))
    if each["low_ns"] == 0:
        return f"below {high}"
    return low if low == high else f"{low}{join}{high}"


def _class(each: dict[str, Any]) -> str:
    share = f"{each['share']:.2%}"
    if share == "0.00%":
        share = f"{each['ios']} in all"
    return f"{share}, mean {format_duration_ns(each['mean_ns'])}{_every(each)}"


def _every(each: dict[str, Any]) -> str:
    """Say how far it is from one to the next, where most writes are something else."""
    spacing = each["spacing_ios"]
    if spacing is None or each["share"] > COMMON:
        return ""
    return f", every {spacing:,.1f} writes" if spacing < 10 else f", every {spacing:,.0f} writes"
