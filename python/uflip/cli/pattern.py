"""`uflip pattern`: one run of one pattern on a device, as with fio."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from uflip import signals
from uflip._native import Trace
from uflip.cli.find import find_and_print, find_options, load_target
from uflip.cli.options import (
    add_options,
    check_saving,
    check_target,
    check_traces,
    device_argument,
    force_option,
    json_option,
    no_cache_option,
    path_option,
    quiet_option,
    save_device,
    save_option,
    trace_output,
    write_trace,
)
from uflip.cli.preset import (
    PRESET_DURABILITY,
    PRESETS,
    preset_batch,
    preset_options,
    preset_traces,
    print_preset,
    run_preset,
)
from uflip.cli.terminal import echo, echo_json, echo_pairs
from uflip.cli.time_rows import live_interval, live_options, live_printer
from uflip.data.device import DeviceInfo, twin_text
from uflip.data.document import DocumentKind, Table, decode, read_document
from uflip.data.run import ModeDocument, OneRun, SeriesDocument, StopDocument
from uflip.data.spec import PLURALS
from uflip.data.summary import ResponseTime, StatisticsSummary
from uflip.durability import CACHED, describe_durability
from uflip.errors import UsageError
from uflip.pattern_options import (
    OPENED,
    PATTERN,
    STOPPING,
    VERIFY,
    OptionValue,
    only_given,
    parse_pattern,
)
from uflip.spec import Functions, Mix, MixPart, Parallel, Pattern, Replay, changed, read_spec
from uflip.units import format_count, format_duration_ns, format_size

if TYPE_CHECKING:
    from uflip.data.run import RunFacts
    from uflip.data.spec import Spec
    from uflip.device.handle import Device
    from uflip.native_wait import OnLive, OnProgress


EPILOG = """\b
Examples:
  uflip pattern sim:demo --mode write --location random --io-size 32KiB --io-count 1000
  uflip pattern sim:demo --pattern SW --time burst --burst 10 --pause 100ms
  uflip pattern file:scratch.bin --size 1GiB --pattern RR --io-size 4k --trace ios.csv
  uflip pattern sim:demo --pattern SR --mix RW --ratio 4
  uflip pattern sim:demo --pattern RW --until-converged --max-time 1min
  uflip pattern sim:demo --pattern RR --mix RW --first-percent 70 --queue-depth 8
  uflip pattern sim:demo --pattern RW --inside rw    and then: uflip explore rw
  uflip pattern sim:fast-1gb --preset myers-sinclair --batches 2
  uflip pattern sim:demo --fio-job job.fio
  uflip pattern sim:demo --pattern RR --io-size 4k --find rate --p99 2ms
  uflip pattern file:scratch.bin --size 1GiB --pattern RW --verify
  uflip pattern sim:demo --pattern RW --io-count 100k --live
  echo '{"kind": "basic", "mode": "read", "location": "random"}' | uflip pattern null --spec -

\b
Options that are not given have defaults; --json shows the complete specification.
A read-only pattern opens the device for reading only.
"""

SPEC = DocumentKind(
    "specification",
    1 << 20,
    'write a JSON object such as {"kind": "basic", "mode": "read", "location": "random"}; '
    '`uflip pattern ... --json` prints a complete one under "spec"',
    UsageError,
)


spec_option = click.option(
    "--spec", "spec_file", metavar="FILE|-", help="Read the pattern as JSON instead."
)

fio_job_option = path_option(
    "--fio-job",
    metavar="FILE",
    help="Read the patterns from a job file of fio instead: jobs side by side, and stages.",
)


@click.command("pattern", epilog=EPILOG)
@device_argument
@add_options(*PATTERN, *STOPPING)
@spec_option
@fio_job_option
@preset_options
@find_options
@path_option("--trace", "trace_file", help="Write every I/O to a new .csv or .parquet file.")
@path_option(
    "--inside",
    metavar="FOLDER",
    help="Record internal events of a simulated device, and store the run as a new result folder, "
    "for the explorer.",
)
@live_options
@save_option
@force_option
@add_options(VERIFY, *OPENED)
@no_cache_option
@quiet_option
@json_option
def command(
    *,
    device: str,
    spec_file: str | None,
    fio_job: Path | None,
    preset: str | None,
    batches: int | None,
    trace_file: Path | None,
    inside: Path | None,
    save: Path | None,
    force: bool,
    verify: bool,
    live: bool,
    every: int | None,
    quiet: bool,
    as_json: bool,
    find: str | None,
    **parameters: Any,
) -> None:
    """Execute one I/O pattern on DEVICE and print its response times."""
    others = {"preset": preset, "trace": trace_file, "inside": inside, "save": save, "live": live}
    live_ns = live_interval(every, live=live, preset=preset)
    target = load_target(find, parameters, others)
    opening = {option.field: parameters.pop(option.field) for option in OPENED}
    if preset is not None and opening["durability"] is None:
        opening["durability"] = PRESET_DURABILITY
    device = _verified_device(device, preset, find) if verify else device
    inspect = partial(_inspect, device, opening["size"], buffered=opening["buffered"])
    job = None if fio_job is None else (fio_job, lambda: inspect().capacity_bytes)
    stages = _requested_stages(job, preset, batches, spec_file, parameters)
    spec = stages[0]
    opening["writable"] = any(each.writes for each in stages) or opening["size"] is not None
    _check_inside(device, preset, inside)
    _check_stages(len(stages), find, inside)
    if opening["writable"]:
        check_target(device, opening)
    if target is not None:
        find_and_print(device, spec, target, opening, quiet=quiet, as_json=as_json)
        return
    from uflip.benchmark.prepare import open_watched
    from uflip.cli.benchmark_progress import BenchmarkProgress
    from uflip.cli.progress import run_display
    from uflip.device.resolve import resolve, with_resets

    # Check everything before anything is created or opened for writing.
    traces = _trace_files(trace_file, len(stages))
    check_traces(traces if preset is None else preset_traces(trace_file, batches), force)
    info = inspect()
    check_saving(info, save, force=force)
    stages = [with_resets(each, info) for each in stages]
    _warn_about_seed(complete := [resolve(each, info).spec for each in stages], info)
    with signals.shielded():
        with BenchmarkProgress(quiet=quiet or as_json) as progress:
            opened = open_watched(device, info, progress, **opening)
        hidden, timed = quiet or as_json or live, any(each.time_limit_ns for each in complete)
        with opened, run_display(quiet=hidden, simulated=info.simulated, timed=timed) as show:
            info, opened.live_ns = opened.info, live_ns
            on_live = None if live_ns is None else live_printer(info, as_json=as_json)
            if preset is not None:
                batches_run = run_preset(opened, spec, batches, trace_file, show, force=force)
            else:
                results = _run_stages(
                    opened, zip(stages, complete, traces, strict=True), show, force=force,
                    inside=inside, verify=verify, on_live=on_live,
                )  # fmt: skip
            if save is not None:
                save_device(opened, save, force=force)
    if preset is not None:
        print_preset(batches_run, as_json=as_json)
        return
    _print_results(results, device, as_json=as_json, in_one_line=live)


def _inspect(device: str, size: int | None, *, buffered: bool) -> DeviceInfo:
    from uflip.device.catalogue import inspect_device

    return inspect_device(device, size=size, buffered=buffered)


def _describe_run(device: "Device", trace: Trace, more: "RunFacts") -> OneRun:
    from uflip.results.run_statistics import describe
    from uflip.results.slow_traits import summarise_host

    described = describe(trace, device.info, device.durability, device.power_record)
    document: OneRun = {**described, **more}
    if device.host_record is not None:
        document["host"] = summarise_host(trace.column, len(trace), device.host_record)
    return document


def _check_stages(stages: int, find: str | None, inside: Path | None) -> None:
    if stages > 1 and (find is not None or inside is not None):
        option = "--inside" if find is None else "--find"
        raise UsageError(
            f"{option} needs a single stage",
            where="--fio-job",
            got=f"{stages} stages (stonewall)",
            allowed="one stage",
            action="write each stage into a file of its own",
        )


def _trace_files(trace_file: Path | None, stages: int) -> list[Path | None]:
    """Return the trace file of each stage."""
    if trace_file is None or stages == 1:
        return [trace_file] * stages
    return [*preset_traces(trace_file, stages)]


def _requested_stages(
    fio_job: tuple[Path, Callable[[], int]] | None,
    preset: str | None,
    batches: int | None,
    spec_file: str | None,
    parameters: Mapping[str, OptionValue],
) -> list[Functions]:
    """Return the pattern, the first batch of a preset, or the stages of a job file."""
    if fio_job is not None:
        return read_fio_job(*fio_job, {"spec": spec_file, "preset": preset, **parameters})
    if preset is not None:
        return [preset_batch(spec_file, parameters)]
    if batches is not None:
        raise UsageError(
            "--batches needs --preset",
            where="--batches",
            got=str(batches),
            action=f"give --preset {PRESETS[0]} as well, or omit --batches",
        )
    return [requested_pattern(spec_file, parameters)]


def requested_pattern(spec_file: str | None, parameters: Mapping[str, OptionValue]) -> Functions:
    """Return the specification of the given options."""
    chosen = only_given(parameters)
    return parse_pattern(chosen) if spec_file is None else _read_spec(spec_file, chosen)


def read_fio_job(
    path: Path, capacity: Callable[[], int], others: Mapping[str, OptionValue]
) -> list[Functions]:
    """Return the stages of a job file of fio; of the options only `io_ignore` changes them."""
    from uflip.benchmark.fio_job_file import read_job_file

    chosen = only_given(others)
    ignored = chosen.pop("io_ignore", None)
    if chosen:
        first = next(iter(chosen)).replace("_", "-")
        raise UsageError(
            "--fio-job cannot be combined with options of the pattern",
            where="--fio-job",
            got=f"--fio-job with --{first}",
            action=f"omit --{first}, or write it into the job",
        )
    stages = read_job_file(path, capacity)
    return stages if ignored is None else [changed(each, "io_ignore", ignored) for each in stages]


def _read_spec(name: str, chosen: Mapping[str, object]) -> Functions:
    if chosen:
        first = next(iter(chosen)).replace("_", "-")
        raise UsageError(
            "--spec cannot be combined with options of the pattern",
            where="--spec",
            got=f"--spec with --{first}",
            action=f"omit --{first}, or write it into the specification",
        )
    path = Path(name)
    content = _read_stdin() if name == "-" else read_document(path, SPEC)
    spec = read_spec(decode(path, SPEC, content, Table))
    if isinstance(spec, Replay):
        raise UsageError(
            "The list of I/Os of this replay is missing",
            where="--spec",
            got="a replay",
            allowed="basic, mix, parallel",
            action="replay the trace itself: `uflip replay TRACE DEVICE`",
        )
    return spec


def _read_stdin() -> bytes:
    if sys.stdin is None:
        raise SPEC.unreadable(Path("-"), "a standard input that is closed")
    try:
        content = sys.stdin.buffer.read(SPEC.limit_bytes + 1)
    except OSError as error:
        raise SPEC.unreadable(Path("-"), error.strerror or str(error)) from error
    if len(content) > SPEC.limit_bytes:
        raise SPEC.unreadable(Path("-"), f"more than {SPEC.limit_bytes} bytes")
    return content


def _check_inside(device: str, preset: str | None, folder: Path | None) -> None:
    if folder is None:
        return
    from uflip.device.guard import check_simulated
    from uflip.results.result_dir import refuse_existing

    check_simulated(device)
    if preset is not None:
        raise UsageError(
            "A preset cannot be stored as a result",
            where="--inside",
            got=f"--preset {preset}",
            allowed="one pattern",
            action="omit --preset or --inside",
        )
    refuse_existing(folder)


def _verified_device(device: str, preset: str | None, find: str | None) -> str:
    """Return the name under which the device can be verified."""
    from uflip.device.catalogue import verifiable

    if preset is not None or find is not None:
        raise UsageError(
            "A preset or a search cannot be verified",
            where="--verify",
            got=f"--find {find}" if preset is None else f"--preset {preset}",
            allowed="one pattern",
            action="omit --verify",
        )
    return verifiable(device)


def _warn_about_seed(specs: "Sequence[Spec]", info: DeviceInfo) -> None:
    from uflip.device.resolve import repeats_state

    for spec in specs:
        if repeats_state(spec, info):
            echo(
                f"warning: {spec.seed} is also the seed of the device's state: these I/Os repeat "
                "its writes, address by address; choose another --seed",
                err=True,
            )


def spool_folder(info: DeviceInfo, output: Path | None) -> Path | None:
    """Return the folder for the I/Os of a long run while it lasts.

    That is the folder of the requested output, or the nearest one above it that exists; without
    an output, the folder for large temporary files: TMPDIR, or /var/tmp, since /tmp is often in
    memory. The null device is faster than any file: its I/Os stay in memory.
    """
    if info.null:
        return None
    if output is not None:
        return next(folder for folder in output.absolute().parents if folder.is_dir())
    if "TMPDIR" not in os.environ and os.access("/var/tmp", os.W_OK | os.X_OK):
        return Path("/var/tmp")
    return Path(tempfile.gettempdir())


def _run_stages(
    opened: "Device",
    stages: Iterable[tuple[Functions, "Spec", Path | None]],
    show: "OnProgress",
    *,
    force: bool,
    inside: Path | None,
    verify: bool,
    on_live: "OnLive | None",
) -> list[OneRun]:
    """Run the patterns one after another; write the trace of each before the next.

    `stages`: each as given and in full, and the file of its trace.
    """
    results = []
    for spec, complete, output in stages:
        trace, document = _run_undisturbed(
            opened, spec, show=show, trace_file=output, inside=inside, verify=verify,
            on_live=on_live,
        )  # fmt: skip
        _store_result(opened, complete, trace, inside)
        if output is not None:
            write_trace(trace, trace_output(output, force=force))
        results.append(document)
    return results


def _run_undisturbed(
    opened: "Device",
    spec: Functions,
    *,
    show: "OnProgress",
    trace_file: Path | None,
    inside: Path | None,
    verify: bool,
    on_live: "OnLive | None",
) -> tuple[Trace, OneRun]:
    """Run the pattern, as `_run_once`; return its trace and its result.

    The result contains the accesses of other programs meanwhile.
    """
    from uflip.device.identity import check_target as check_unchanged
    from uflip.device.identity import count_disturbances

    spool = spool_folder(opened.info, trace_file or inside)
    before = opened.target_status()
    trace, drive = _run_once(opened, spec, show, spool, inside, verify=verify, on_live=on_live)
    after = opened.target_status()
    check_unchanged(before, after, opened.url)
    document = _describe_run(opened, trace, drive)
    if counts := count_disturbances(before, after, [trace], buffered=opened.info.buffered):
        document["disturbed"] = counts
    return trace, document


def _run_once(
    opened: "Device",
    spec: Functions,
    show: "OnProgress",
    spool: Path | None,
    inside: Path | None,
    *,
    verify: bool,
    on_live: "OnLive | None",
) -> "tuple[Trace, RunFacts]":
    """Run the pattern; return its trace, and the change of the drive's counters."""
    from uflip.data.counters import change_of

    before = opened.drive_counters()
    opened.looks_inside = inside is not None
    trace = opened.run(
        spec, show, spool=spool, in_pieces=inside is None, verify=verify, on_live=on_live
    )
    after = opened.drive_counters()
    more: RunFacts = {}
    if trace.verified_sectors is not None:
        more["verified_sectors"] = trace.verified_sectors
    if before.counters or after.counters:
        more["drive"] = change_of(before, after, trace.bytes_written)
    return trace, more


def _store_result(opened: "Device", spec: "Spec", trace: Trace, folder: Path | None) -> None:
    if folder is None:
        return
    from uflip.benchmark.execute import store_run
    from uflip.benchmark.plan import label_of, plan_pattern

    label = label_of(spec)
    plan = plan_pattern(spec, opened.info, label=label, durability=opened.durability)
    store_run(opened, plan, trace, folder)


def _print_results(
    results: Sequence[OneRun], device: str, *, as_json: bool, in_one_line: bool
) -> None:
    for document in results:
        if disturbances := document.get("disturbed"):
            counts = ", ".join(f"{name} {count}" for name, count in disturbances.items())
            echo(f"warning: another program used {device} during the run: {counts}", err=True)
    if as_json and len(results) > 1 and not in_one_line:
        echo_json(results)
        return
    for document in results:
        if as_json:
            echo_json(document, in_one_line=in_one_line)
        else:
            print_run(document)


# The printed run: a line for each topic.


def print_run(document: OneRun) -> None:
    """Print a run as text, one line per topic."""
    from uflip.microbench.labels import pattern_title

    device = document["device"]
    echo(f"{pattern_title(document['spec'])} on {device.url}", bold=True)
    twin = device.details.twin
    pairs = [] if twin is None else [("device", twin_text(twin))]
    pairs += [("I/Os", _amount(document)), ("rate", _rate(document))]
    pairs += _times("", document["statistics"])
    by_mode = document.get("by_mode", {})
    for mode, numbers in by_mode.items():
        pairs += _mode_lines(mode, numbers)
    spec = document["spec"]
    # The mode already separates two patterns of one mode each.
    if isinstance(spec, Mix) and len(by_mode) != len(spec.parts):
        named = dict(zip(spec.part_names, _names(spec), strict=True))
        for name, statistics in document.get("components", {}).items():
            pairs += _times(f"{named[name]}: ", statistics)
    if (sectors := document.get("verified_sectors")) is not None:
        pairs.append(("verified", f"{format_count(sectors)} sectors as written"))
    pairs += _convergence(document["ended"], document["spec"])
    if document["durability"] != CACHED:
        pairs.append(
            (
                "durability",
                f"{document['durability']}: {describe_durability(document['durability'])}",
            )
        )
    pairs.append(("time spent on", _causes(document)))
    pairs += _counters(document)
    if (energy := document.get("energy")) is not None:
        from uflip.report.energy import energy_facts

        pairs += energy_facts(energy)
    if (host := document.get("host")) is not None:
        from uflip.results.slow_traits import host_facts

        pairs += host_facts(host)
    if (change := document.get("drive")) is not None:
        from uflip.report.drive_counters import change_facts

        pairs += change_facts(change)
    echo_pairs(pairs, "  ")


def _amount(document: OneRun) -> str:
    clock = " of virtual time" if document["device"].simulated else ""
    ignored = document["ignored"]
    ignored_text = f", {format_count(ignored)} of them not in the statistics" if ignored else ""
    return (
        f"{format_count(document['ios'])} ({format_size(document['bytes'])}) in "
        f"{format_duration_ns(document['elapsed_ns'])}{clock}{ignored_text}"
    )


def _rate(document: OneRun | ModeDocument) -> str:
    ios, size = document["ios_per_s"], document["bytes_per_s"]
    if ios is None or size is None:
        return ""
    return f"{format_count(round(ios))} IOPS, {format_size(round(size))}/s"


def _times(prefix: str, statistics: StatisticsSummary) -> list[tuple[str, str]]:
    """Return the paper's four statistics, and the percentiles that the sample supports."""
    main: list[ResponseTime] = ["mean_ns", "std_ns", "min_ns", "max_ns"]
    percentiles = [name for name in get_args(ResponseTime) if name.startswith("p")]
    return [
        (f"{prefix}response time", _durations(statistics, main)),
        (f"{prefix}percentiles", _durations(statistics, percentiles)),
    ]


def _durations(statistics: StatisticsSummary, names: list[ResponseTime]) -> str:
    return "  ".join(
        f"{name.removesuffix('_ns').replace('_', '.')} {format_duration_ns(ns)}"
        for name in names
        if (ns := statistics[name]) is not None
    )


def _mode_lines(mode: str, numbers: ModeDocument) -> list[tuple[str, str]]:
    """Return the number of I/Os of a mode, their volume, rate and response times."""
    statistics = numbers["statistics"]
    count = format_count(int(statistics["count"] or 0))
    amount = f"{count} ({format_size(numbers['bytes'])})"
    return [
        (f"{PLURALS[mode]}", ", ".join(filter(None, (amount, _rate(numbers))))),
        *_times(f"{mode}: ", statistics),
    ]


def _names(mix: Mix) -> tuple[str, ...]:
    """Return names for the patterns of a mix: the first property in which all of them differ."""
    properties: tuple[Callable[[MixPart], str], ...] = (
        lambda part: part.mode,
        lambda part: part.location,
        lambda part: format_size(part.io_bytes),
    )
    for read in properties if mix.others or mix.weights else properties[:2]:
        names = tuple(read(part) for part in mix.parts)
        if len(set(names)) == len(names):
            return names
    return tuple(name.replace("_", " ") for name in mix.part_names)


def _convergence(stop: StopDocument | None, spec: Pattern) -> list[tuple[str, str]]:
    """Return whether the mean has converged, how precisely, and if not, why."""
    if stop is None:
        return []
    return [
        (f"{prefix}mean is known", _precision(stop, series))
        for prefix, series in zip(_prefixes(spec), stop["series"], strict=True)
    ]


def _prefixes(spec: Pattern) -> list[str]:
    """Return names of the series of a pattern: two for a mix in turns, one per parallel pattern."""
    if isinstance(spec, Mix) and spec.ratio is not None:
        return [f"{name}: " for name in _names(spec)]
    if not isinstance(spec, Parallel):
        return [""]
    parts = enumerate(spec.patterns, start=1)
    return [f"{number}: {name}" for number, part in parts for name in _prefixes(part)]


def _precision(stop: StopDocument, series: SeriesDocument) -> str:
    from uflip.analysis import REASONS

    mean_ns, half_width_ns = series["mean_ns"], series["half_width_ns"]
    width = "" if half_width_ns is None else f"within {half_width_ns / mean_ns:.2%}"
    if stop["converged"]:
        return width
    reasons = "; ".join(REASONS[name] for name in series["reasons"]) or "not twice in a row"
    return f"no, ended by {stop['ended_by']}: " + ", ".join(filter(None, (width, reasons)))


def _causes(document: OneRun) -> str:
    """Return the causes of an average I/O's time, the largest first."""
    from uflip.results.causes import cause_name

    causes = {name: value for name, value in document["causes_ns"].items() if value > 0}
    total = sum(causes.values())
    ordered = sorted(causes.items(), key=lambda item: -item[1])
    return ", ".join(f"{cause_name(name)} {value / total:.1%}" for name, value in ordered)


def _counters(document: OneRun) -> list[tuple[str, str]]:
    from uflip.data.energy import is_energy
    from uflip.report.labels import counter_name

    counters, ratio = document["counters"], document["write_amplification"]
    if counters is None:
        return []
    counted = {name: n for name, n in counters.items() if n and not is_energy(name)}
    text = ", ".join(f"{counter_name(name)} {format_count(n)}" for name, n in counted.items())
    # Unlike the times above: work for an I/O may happen long after it.
    scope = ", of the whole run" if document["ignored"] else ""
    amplified = "" if ratio is None else f"{ratio:.2f}{scope}"
    return [("counters", text and text + scope), ("write amplification", amplified)]
