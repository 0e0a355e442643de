"""`uflip pattern --preset`: the micro-benchmarks of other papers, several runs of one pattern."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from uflip._native import Trace
from uflip.cli.options import combine_options, count_option, trace_output, write_trace
from uflip.cli.terminal import echo, echo_json, echo_pairs
from uflip.data.device import DeviceInfo
from uflip.durability import FUA
from uflip.errors import UsageError
from uflip.pattern_options import OptionValue, only_given
from uflip.spec import Functions
from uflip.units import format_count, format_duration_ns

if TYPE_CHECKING:
    from uflip.benchmark.myers_sinclair import Findings
    from uflip.device.handle import Device
    from uflip.native_wait import OnProgress
    from uflip.spec import Basic
    from uflip.stats import LatencyClass, LatencyClasses

PRESETS = ("myers-sinclair",)

# Their latency is "the time it takes to perform the write *and* flush that write" (§4).
PRESET_DURABILITY = FUA

# A class with at least this share is the rule, and its spacing carries no information.
MIN_COMMON_SHARE = 0.5

# A class that spans less of the series than this occurred only for a while.
MIN_SERIES_SHARE = 0.5

# Each batch has a trace file of its own, checked before the first run.
MAX_BATCHES = 10_000

preset_options = combine_options(
    click.option(
        "--preset",
        type=click.Choice(PRESETS),
        help="Random writes of 4 KiB in batches of 100,000, with latency classes.",
    ),
    count_option("--batches", least=1, most=MAX_BATCHES, help="Batches of a preset.  [default: 5]"),
)


@dataclass(frozen=True)
class PresetRun:
    """A finished preset: device, pattern and findings."""

    device: DeviceInfo
    durability: str
    spec: Functions
    batches: int
    findings: "Findings"

    def document(self) -> Mapping[str, object]:
        """Return the `--json` document: everything but the single response times."""
        findings = self.findings
        return {
            "device": self.device,
            "preset": PRESETS[0],
            "durability": self.durability,
            "spec": self.spec,
            "batches": self.batches,
            "ios": findings.ios,
            "analysis": findings.analysis,
            "startup": findings.startup,
            "steady": findings.steady,
        }


def preset_batch(spec_file: str | None, parameters: Mapping[str, OptionValue]) -> "Basic":
    """Return the first batch; only its length and seed can be chosen."""
    from uflip.benchmark.myers_sinclair import batch

    typed = only_given(parameters)
    count, seed = typed.pop("io_count", None), typed.pop("seed", None)
    if typed or spec_file is not None:
        raise UsageError(
            "A preset cannot be combined with options of the pattern",
            where="--preset",
            got=", ".join([*typed, *(["spec"] if spec_file is not None else [])]),
            allowed="--io-count (of a batch), --seed, --batches",
            action="omit the other options, or the preset",
        )
    chosen = {"batch_ios": count, "seed": seed}
    return batch(0, **{name: int(each) for name, each in chosen.items() if each is not None})


def preset_traces(trace_file: Path | None, batches: int | None) -> list[Path]:
    """Return the trace file of each batch: FILE-1, FILE-2, ..."""
    from uflip.benchmark.myers_sinclair import BATCHES

    if trace_file is None:
        return []
    numbers = range(1, (BATCHES if batches is None else batches) + 1)
    return [
        trace_file.with_name(f"{trace_file.stem}-{number}{trace_file.suffix}") for number in numbers
    ]


def run_preset(
    device: "Device",
    first: Functions,
    batches: int | None,
    trace_file: Path | None,
    show: "OnProgress | None",
    *,
    force: bool,
) -> PresetRun:
    """Run all batches; write the trace of each before the next, if requested."""
    from uflip.benchmark import myers_sinclair

    traces = preset_traces(trace_file, batches)

    def store_trace(number: int, trace: Trace) -> None:
        if traces:
            write_trace(trace, trace_output(traces[number], force=force))

    count = myers_sinclair.BATCHES if batches is None else batches
    findings = myers_sinclair.run(
        device,
        batches=count,
        batch_ios=first.ios,
        seed=first.seed or 0,
        on_batch=store_trace,
        on_progress=show,
    )
    return PresetRun(device.info, device.durability, first, count, findings)


def print_preset(run: PresetRun, *, as_json: bool) -> None:
    """Print the phases, then the latency classes of each."""
    if as_json:
        echo_json(run.document())
        return
    times = f"{run.batches} × {format_count(run.spec.ios)} random writes of 4 KiB"
    echo(f"{times} on {run.device.url}", bold=True)
    findings = run.findings
    echo_pairs([("start-up", _startup(findings))], "  ")
    if findings.startup is not None:
        _print_classes("start-up", findings.startup)
    _print_classes("steady state", findings.steady)


def _startup(findings: "Findings") -> str:
    if findings.startup is not None:
        return f"the first {format_count(findings.startup.ios)} writes"
    too_short = findings.analysis.phase == "too-short"
    return "too few writes for a verdict; give a larger --io-count" if too_short else "none found"


def _print_classes(title: str, classes: "LatencyClasses") -> None:
    mean = format_duration_ns(classes.mean_ns)
    echo(f"  {title}: {format_count(classes.ios)} writes, mean {mean}")
    groups = ((classes.bins, " – "), (classes.peaks, " to "))
    echo_pairs(
        [
            (_limits(each, join), _class(each, each.mean_ns, classes.ios))
            for group, join in groups
            for each in group
            if each.mean_ns is not None
        ],
        "    ",
    )


def _limits(each: "LatencyClass", separator: str) -> str:
    low, high = format_duration_ns(each.low_ns), format_duration_ns(each.high_ns)
    if each.low_ns == 0:
        return f"below {high}"
    return low if low == high else f"{low}{separator}{high}"


def _class(each: "LatencyClass", mean_ns: float, ios: int) -> str:
    share = f"{each.share:.2%}"
    if share == "0.00%":
        share = f"{each.ios} in all"
    return f"{share}, mean {format_duration_ns(mean_ns)}{_spacing(each, ios)}"


def _spacing(each: "LatencyClass", ios: int) -> str:
    """Return the mean spacing of a class, unless most writes belong to it."""
    spacing = each.spacing_ios
    if spacing is None or each.share > MIN_COMMON_SHARE:
        return ""
    every = f", every {spacing:,.1f} writes" if spacing < 10 else f", every {spacing:,.0f} writes"
    span_ios = round(spacing * (each.ios - 1)) + 1
    return (
        every
        if span_ios >= MIN_SERIES_SHARE * ios
        else f"{every}, all within {format_count(span_ios)}"
    )
