"""`uflip cost`: predict the cost of data structures on a device from its measurements."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from uflip.cli.options import ANY_PATH, count_option, json_option, size_option
from uflip.cli.terminal import echo, echo_json, echo_twin
from uflip.errors import UsageError

if TYPE_CHECKING:
    from uflip.cost.predict import Prediction
    from uflip.cost.replay import Replayed

MAX_OPERATIONS = 10_000_000

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
@click.argument("results", type=ANY_PATH)
@click.option("--workload", metavar="NAME", multiple=True, help="Only this workload; repeatable.")
@size_option(
    "--data", help="Amount of data to sort, ingest or index.  [default: 256MiB, or a quarter]"
)
@size_option("--memory", help="Memory of the workload.  [default: 16MiB, or an eighth of the data]")
@size_option("--block", help="Size of sequential I/Os.  [default: 128KiB]")
@size_option("--page", help="Size of a leaf, a record, an update.  [default: 4KiB]")
@size_option("--area", help="Size of the area of updates in place.  [default: 8MiB]")
@count_option(
    "--operations",
    least=1,
    most=MAX_OPERATIONS,
    help="Number of inserts, records, updates.  [default: 4000]",
)
@count_option(
    "--growth",
    least=2,
    most=1000,
    help="Size of each level relative to the one before.  [default: 4]",
)
@click.option(
    "--replay", is_flag=True, help="Replay all I/Os on the simulated device; print the error."
)
@json_option
def command(
    results: Path, workload: tuple[str, ...], replay: bool, as_json: bool, **options: int | None
) -> None:
    """Predict the cost of data structures on the device of RESULTS.

    The prices are the means of its micro-benchmarks: `granularity` is required, `locality` and
    `partitioning` are used if they were measured.
    """
    from uflip.cost.predict import check_priced, parameters, predict
    from uflip.cost.replay import replay as replay_workload
    from uflip.results import Results, summary

    loaded = Results.load(results)
    if loaded.is_open_channel:
        raise UsageError(
            "Cost models need a device with an FTL",
            where=str(results),
            got="a benchmark of an open-channel device",
            allowed="results of the nine micro-benchmarks",
            action="use the results of `uflip run`",
        )
    document = summary(loaded)
    device = document["device"]
    if replay and not device.simulated:
        raise UsageError(
            "The I/Os can be replayed only on a simulated device",
            where="--replay",
            got=device.url,
            allowed="results of sim:NAME",
            action="omit --replay",
        )
    check_priced(document, str(results))
    predictions = predict(document, parameters(device.capacity_bytes, **options), workload)
    pairs = [
        (
            prediction,
            replay_workload(device.url, prediction.workload, prediction.parameters)
            if replay and prediction.parts
            else None,
        )
        for prediction in predictions
    ]
    if as_json:
        rows = [_document(prediction, replayed) for prediction, replayed in pairs]
        twin = device.details.twin
        echo_json({"results": str(results), "device": device.url, "twin": twin, "workloads": rows})
        return
    echo_twin(device.url, device.details.twin)
    for prediction, replayed in pairs:
        _print(prediction, replayed)


def _document(prediction: "Prediction", replayed: "Replayed | None") -> Mapping[str, object]:
    """Return the `--json` document of a workload."""
    return {
        "workload": prediction.workload.name,
        "title": prediction.workload.title,
        "formula": prediction.workload.formula,
        "parameters": prediction.parameters,
        "parts": [
            {"what": operation, "ios": count, "ns_per_io": price}
            for operation, count, price in prediction.parts
        ],
        "missing": prediction.missing,
        "predicted_ns": prediction.time_ns,
        "replayed_ns": None if replayed is None else replayed.time_ns,
        "replayed_ios": None if replayed is None else replayed.every_io,
        "replayed": None
        if replayed is None
        else {
            mode: {"ios": ios, "ns_per_io": replayed.ns_per_io.get(mode)}
            for mode, ios in replayed.ios.items()
        },
        "error": None if replayed is None else prediction.error(replayed.time_ns),
    }


def _print(prediction: "Prediction", replayed: "Replayed | None") -> None:
    from uflip.units import format_count, format_duration_ns

    title, time_ns = prediction.workload.title, prediction.time_ns
    if time_ns is None:
        missing = ", ".join(prediction.missing)
        echo(f"{title}: not predicted, granularity of {missing} was not measured")
        return
    text = format_duration_ns(time_ns)
    if replayed is not None:
        real = f"{format_duration_ns(replayed.time_ns)} ({format_count(replayed.every_io)} I/Os)"
        text += f", replayed {real}: {prediction.error(replayed.time_ns):+.0%} off"
    echo(f"{title}: {text}")
    echo(f"  {prediction.workload.formula}")
    for operation, count, price in prediction.parts:
        echo(f"  {format_count(round(count))} times {operation}, {format_duration_ns(price)} each")
    for mode, mean_ns in ({} if replayed is None else replayed.ns_per_io).items():
        ios = format_count(replayed.ios[mode]) if replayed is not None else ""
        echo(f"  replayed: {ios} {mode}s, {format_duration_ns(mean_ns)} each")
