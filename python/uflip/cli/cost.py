"""`uflip cost`: what data structures will take on a device, from what was measured on it."""

from pathlib import Path
from typing import Any

import click

from uflip.cli.common import json_option, read_size, whole
from uflip.cli.terminal import echo, echo_json, plain
from uflip.errors import UsageError

MOST_OPERATIONS = 10_000_000

EPILOG = """\b
Examples:
  uflip cost results/demo
  uflip cost results/demo --workload sort --data 512MiB --memory 8MiB
  uflip cost results/demo --replay

\b
Workloads: sort (external merge sort), b-tree (random inserts), levels (a log-structured tree),
log (appended records), focus (updates in place of an area). The formulas are in
docs/explanation/cost-models.md.
"""


@click.command("cost", epilog=EPILOG)
@click.argument("results", type=click.Path(path_type=Path))
@click.option("--workload", metavar="NAME", multiple=True, help="Only this one; may be repeated.")
@click.option(
    "--data",
    metavar="SIZE",
    callback=read_size,
    help="What is sorted, ingested or indexed.  [default: 256MiB, or a quarter]",
)
@click.option(
    "--memory",
    metavar="SIZE",
    callback=read_size,
    help="What the workload has of it.  [default: 16MiB, or an eighth of the data]",
)
@click.option(
    "--block",
    metavar="SIZE",
    callback=read_size,
    help="Size of sequential I/Os.  [default: 128KiB]",
)
@click.option(
    "--page",
    metavar="SIZE",
    callback=read_size,
    help="Size of a leaf, a record, an update.  [default: 4KiB]",
)
@click.option(
    "--area",
    metavar="SIZE",
    callback=read_size,
    help="Where updates in place go.  [default: 8MiB]",
)
@click.option(
    "--operations",
    metavar="N",
    callback=whole(1, MOST_OPERATIONS),
    help="Inserts, records, updates.  [default: 4000]",
)
@click.option(
    "--growth",
    metavar="N",
    callback=whole(2, 1000),
    help="How many times larger each level is than the one before.  [default: 4]",
)
@click.option(
    "--replay", is_flag=True, help="Do all I/Os on the simulated device, and say how wrong it is."
)
@json_option
def command(
    results: Path, workload: tuple[str, ...], replay: bool, as_json: bool, **given: int | None
) -> None:
    """Predict what data structures take on the device of RESULTS.

    The prices are the means of its micro-benchmarks: `granularity` is needed, `locality` and
    `partitioning` are used where they were measured.
    """
    from uflip.cost.predict import parameters, predict
    from uflip.results import Results, summary

    loaded = Results.load(results)
    if loaded.is_open_channel:
        raise UsageError(
            "The workloads are of devices that place data themselves",
            where=str(results),
            got="a benchmark of an open-channel device",
            allowed="results of the nine micro-benchmarks",
            action="take the results of `uflip run`",
        )
    document = summary(loaded)
    device = document["device"]
    if replay and not device.simulated:
        raise UsageError(
            "Only a simulated device can be replayed on",
            where="--replay",
            got=device.url,
            allowed="results of sim:NAME",
            action="leave --replay away",
        )
    found = predict(document, parameters(device.capacity_bytes, **given), workload)
    rows = []
    for each in found:
        row = each.as_dict() | {
            "replayed_ns": None, "replayed_ios": None, "replayed": None, "error": None,
        }  # fmt: skip
        if replay and each.time_ns is not None:
            row |= _replayed(device.url, each)
        rows.append(row)
    if as_json:
        echo_json({"results": str(results), "device": device.url, "workloads": rows})
    else:
        _print(rows)


def _replayed(url: str, each: Any) -> dict[str, Any]:
    from uflip.cost.replay import replay

    found = replay(url, each.workload, each.given)
    modes = {
        mode: {"ios": ios, "ns_per_io": found.ns_per_io.get(mode)}
        for mode, ios in found.ios.items()
    }
    return {
        "replayed_ns": found.time_ns,
        "replayed_ios": sum(found.ios.values()),
        "replayed": modes,
        "error": each.time_ns / found.time_ns - 1,
    }


def _print(rows: list[dict[str, Any]]) -> None:
    from uflip.units import format_count, format_duration_ns

    for row in plain(rows):
        if row["missing"]:
            lacks = ", ".join(row["missing"])
            echo(f"{row['title']}: not predicted, granularity of {lacks} was not measured")
            continue
        told = format_duration_ns(row["predicted_ns"])
        if row["replayed_ns"] is not None:
            real = format_duration_ns(row["replayed_ns"])
            told += (
                f", replayed {real} ({format_count(row['replayed_ios'])} I/Os): "
                f"{row['error']:+.0%} off"
            )
        echo(f"{row['title']}: {told}")
        echo(f"  {row['formula']}")
        for part in row["parts"]:
            each = format_duration_ns(part["ns_per_io"])
            echo(f"  {format_count(round(part['ios']))} times {part['what']}, {each} each")
        for mode, real in (row["replayed"] or {}).items():
            if real["ios"]:
                each = format_duration_ns(real["ns_per_io"])
                echo(f"  replayed: {format_count(real['ios'])} {mode}s, {each} each")
