"""`uflip infer`: infer the properties of a device, and write a profile of its twin."""

import textwrap
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from uflip.cli.options import (
    ANY_PATH,
    add_options,
    check_target,
    force_option,
    json_option,
    quiet_option,
)
from uflip.cli.terminal import echo, echo_json, echo_table
from uflip.errors import UsageError
from uflip.options import MICRO_BENCHMARKS, OPENING
from uflip.table import text_width
from uflip.units import format_duration_ns, format_size

if TYPE_CHECKING:
    from uflip.data.document import Table
    from uflip.data.inference import Property, StoredInference
    from uflip.inference.check import PatternError
    from uflip.inference.from_table import TableInference
    from uflip.inference.infer import Inference, InferenceDocument
    from uflip.results import outputs

TOML = ".toml"
LIMITS = tuple(option for option in MICRO_BENCHMARKS if option.name == "max_bytes_written")

EPILOG = """\b
Examples:
  uflip infer sim:demo -o twin.toml
  uflip infer results/demo-inside --json      the same from a stored result
  uflip infer --observations drive.csv        from published measurements of a drive
  uflip infer --check sim:demo twin.toml      patterns that no probe uses, on both; the errors are
                                              stored in twin.toml, and shown with its predictions
  uflip pattern sim:twin.toml --pattern RW

\b
The probes write 3 times the capacity of the device; all of its data is lost. After an
interruption `uflip run --resume FOLDER` makes the remaining runs, and `uflip infer FOLDER` infers.
docs/explanation/inverse.md describes what can be inferred, and what cannot.
"""


@click.command("infer", epilog=EPILOG)
@click.argument("target", metavar="[DEVICE|RESULT]", required=False)
@click.argument("twin", metavar="[TWIN.toml]", required=False, type=ANY_PATH)
@click.option(
    "--out",
    type=ANY_PATH,
    help="New folder for the runs of the probes.  [default: results/DEVICE-TIME]",
)
@click.option(
    "--observations",
    metavar="FILE",
    type=ANY_PATH,
    help="Infer from a table of rates, write amplification and response times, CSV or JSON.",
)
@click.option("-o", "twin_out", metavar="TWIN.toml", type=ANY_PATH, help="Write the twin.")
@click.option("--check", is_flag=True, help="Compare DEVICE with its TWIN.toml on other patterns.")
@add_options(*LIMITS, *OPENING)
@force_option
@quiet_option
@json_option
@click.pass_context
def command(
    context: click.Context,
    /,
    *,
    target: str | None,
    twin: Path | None,
    out: Path | None,
    observations: Path | None,
    twin_out: Path | None,
    check: bool,
    force: bool,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Infer the properties of DEVICE, as a black box, and write a profile of its twin.

    The probes of the suite `inside` run on DEVICE; or RESULT contains their runs. Each property is
    printed with its interval, or with the reason why it is not identified. `--observations` infers
    from a table of measurements instead: inverse.md describes its columns.
    """
    if observations is not None:
        _check_alone(context)
        _infer_table(observations, twin_out, force=force, as_json=as_json)
        return
    if target is None:
        raise UsageError(
            "An inference needs a device, a result or a table",
            where="uflip infer",
            got="none of them",
            allowed="DEVICE, RESULT or --observations FILE",
            action="name one of these",
        )
    if check != (twin is not None):
        raise UsageError(
            "A check needs a device and its twin",
            where="uflip infer",
            got="--check without TWIN.toml" if check else f"{twin} without --check",
            allowed="uflip infer DEVICE [-o TWIN.toml], or uflip infer --check DEVICE TWIN.toml",
            action="write one of these",
        )
    if twin is not None:
        _check(target, twin, options, as_json=as_json)
        return
    from uflip.inference.channels import check_library
    from uflip.inference.from_result import read_observations
    from uflip.inference.infer import infer, stored
    from uflip.results import Results, outputs
    from uflip.results.stored_inference import store_inference

    check_library()
    output = _checked_output(twin_out, force=force)
    is_result = Path(target).is_dir()
    folder = Path(target) if is_result else _measure(target, out, options, quiet=quiet or as_json)
    results = Results.load(folder)
    found = infer(read_observations(results))
    document = stored(found, results)
    store_inference(results, document)
    if output is not None and found.twin is not None:
        device = target if not is_result else Results.load(folder).manifest.device.url
        text = found.twin.text(f"twin of {target}, by uflip infer", device)
        outputs.write(output, text.encode())
    if as_json:
        echo_json(_document(found, folder, twin_out))
    else:
        _print(found, document, folder, twin_out)


WITH_OBSERVATIONS = {"observations", "twin_out", "force", "quiet", "as_json"}


def _check_alone(context: click.Context) -> None:
    """Refuse what needs a device beside a table."""
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if given and name not in WITH_OBSERVATIONS:
            shown = {"target": "DEVICE", "twin": "TWIN.toml"}.get(name, parameter.opts[0])
            raise UsageError(
                f"--observations cannot be combined with {shown}",
                where="--observations",
                got=f"{shown} {context.params[name]}",
                allowed="uflip infer --observations FILE [-o TWIN.toml]",
                action=f"omit {shown}: the device of a table is not here",
            )


def _checked_output(twin_out: Path | None, *, force: bool) -> "outputs.OutputPath | None":
    from uflip.results import outputs

    if twin_out is None:
        return None
    outputs.check_ending(twin_out, "profile", "-o", (TOML,))
    return outputs.check(twin_out, outputs.PROFILE, "-o", force=force)


def _infer_table(table: Path, twin_out: Path | None, *, force: bool, as_json: bool) -> None:
    from uflip.data.inference import Property
    from uflip.inference.from_table import TableDocument, infer_table
    from uflip.results import outputs

    output = _checked_output(twin_out, force=force)
    found = infer_table(table)
    if output is not None and not found.why_no_twin:
        outputs.write(output, found.twin_text(table.name).encode())
    if as_json:
        written = None if output is None or found.why_no_twin else str(twin_out)
        echo_json(
            TableDocument(
                str(table), found.drive.name, found.estimates, found.rows(), written,
                found.why_no_twin,
            )
        )  # fmt: skip
        return
    _print_estimates([Property(*astuple(each)) for each in found.estimates])
    echo()
    _print_rows(found)
    echo()
    _print_twin(found.why_no_twin, f"--observations {table}", twin_out)


def _print_rows(found: "TableInference") -> None:
    """Print every row of the table beside the model."""
    rows = [
        (
            f"{row.pattern} {row.details}".strip(),
            f"{row.capacity_gib:g}",
            row.quantity,
            f"{row.measured:.4g}",
            "not simulated" if row.twin is None else f"{row.twin:.4g}",
            "" if row.twin is None else f"{row.twin / row.measured - 1:+z.0%}",
            "fitted" if row.fitted else "",
        )
        for row in found.rows()
    ]
    echo_table(("phase", "GiB", "quantity", "measured", "model", "error", ""), rows, left=1)


def _measure(device: str, out: Path | None, options: "Table", *, quiet: bool) -> Path:
    check_target(device, options)
    from uflip.benchmark import BenchmarkRequest, begin
    from uflip.cli.benchmark_progress import BenchmarkProgress
    from uflip.inference.probes import PAUSE_NS, SUITE, check_device
    from uflip.microbench import varied_micro_benchmarks

    request = BenchmarkRequest(
        device=device,
        suite=SUITE,
        only=tuple(varied_micro_benchmarks(SUITE)),
        state="as-is",
        pause_ns=PAUSE_NS,
        **options,
    )
    check_device(request.inspect())
    with BenchmarkProgress(quiet=quiet) as progress:
        return begin(request, out, progress)


def _check(target: str, twin: Path, options: "Table", *, as_json: bool) -> None:
    check_target(target, options)
    from uflip.device.opener import open_device
    from uflip.inference.check import CheckDocument, check
    from uflip.results import outputs

    outputs.check_ending(twin, "profile", "TWIN.toml", (TOML,))
    output = outputs.check(twin, outputs.PROFILE, "TWIN.toml", force=True)
    opening = {key: value for key, value in options.items() if key != "max_bytes_written"}
    with open_device(f"sim:{twin}") as simulated, open_device(target, **opening) as device:
        if simulated.info.capacity_bytes != device.info.capacity_bytes:
            raise UsageError(
                "The twin is that of another device",
                where=str(twin),
                got=f"a capacity of {format_size(simulated.info.capacity_bytes)}",
                allowed=f"the {format_size(device.info.capacity_bytes)} of {target}",
                action="name the twin that `uflip infer` wrote for this device",
            )
        errors = list(check(device, simulated))
    outputs.write(output, _with_errors(twin, device.info.url, errors).encode())
    if as_json:
        echo_json(CheckDocument(target, str(twin), errors))
        return
    echo_table(
        ("pattern", "device mean", "twin", "error", "device p99", "twin", "error"),
        [_cells(each) for each in errors],
    )


def _with_errors(twin: Path, device: str, errors: "Sequence[PatternError]") -> str:
    """Return the profile of the twin with its errors: each prediction by it shows them."""
    from uflip.data.device import TwinErrors, TwinPattern
    from uflip.inference.twin import errors_table
    from uflip.profiles import with_twin_errors

    patterns = tuple(TwinPattern(one.pattern, one.mean_error, one.p99_error) for one in errors)
    return with_twin_errors(twin.read_text("utf-8"), errors_table(TwinErrors(device, patterns)))


def _cells(error: "PatternError") -> Sequence[str]:
    return (
        error.pattern,
        format_duration_ns(error.measured_mean_ns),
        format_duration_ns(error.twin_mean_ns),
        f"{error.mean_error:+z.1%}",
        format_duration_ns(error.measured_p99_ns),
        format_duration_ns(error.twin_p99_ns),
        f"{error.p99_error:+z.1%}",
    )


def _document(found: "Inference", folder: Path, written: Path | None) -> "InferenceDocument":
    from uflip.inference.infer import InferenceDocument

    return InferenceDocument(
        str(folder),
        found.estimates,
        found.observations.bytes_written,
        None if found.twin is None else found.twin.values,
        None if found.twin is None or written is None else str(written),
        found.why_no_twin,
        found.errors,
    )


def _print_estimates(properties: "Sequence[Property]") -> None:
    """Print the identified properties, and the others by the reason why they are not."""
    from uflip.report.inside import interval_text, value_text

    identified = [each for each in properties if each.value is not None]
    if identified:
        rows = [
            (each.key, value_text(each), interval_text(each), each.probe, each.reason)
            for each in identified
        ]
        echo_table(("property", "value", "90 % interval", "probe", "how"), rows, left=5)
    by_reason: dict[tuple[str, str], list[str]] = {}
    for each in properties:
        if each.value is None:
            by_reason.setdefault((each.probe, each.reason), []).append(each.key)
    if by_reason:
        echo("\nNot identified")
    for (probe, reason), keys in by_reason.items():
        echo(f"  {reason}{f' ({probe})' if probe else ''}")
        echo(textwrap.indent(textwrap.fill(", ".join(keys), text_width() - 4), "    "))


def _print_twin(why_no_twin: str, source: str, twin_out: Path | None) -> None:
    if why_no_twin:
        echo(f"No twin: {why_no_twin}.")
    elif twin_out is None:
        echo(f"Write the twin: uflip infer {source} -o twin.toml")
    else:
        echo(f"The twin is in {twin_out}: uflip pattern sim:{twin_out} --pattern RW")


def _print(
    found: "Inference", document: "StoredInference", folder: Path, twin_out: Path | None
) -> None:
    _print_estimates(document.properties)
    echo()
    echo(f"Written: {format_size(found.observations.bytes_written)}. Runs: {folder}")
    _print_twin(found.why_no_twin, str(folder), twin_out)
