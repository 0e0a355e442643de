"""Options of the command line: click's form of `uflip.options`, and options of several verbs."""

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uflip.cli.completion import alternatives_of, propose_devices, propose_micro_benchmarks
from uflip.device.guard import check_options, check_target_allowed
from uflip.device.url import URL_FORMS, parse_url
from uflip.errors import UsageError, native_errors
from uflip.options import COLUMNS_HELP, OPENING, Option, parse_names
from uflip.units import UNSIGNED, parse_count, parse_duration, parse_number, parse_path, parse_size

if TYPE_CHECKING:
    from uflip._native import Trace
    from uflip.data.device import DeviceInfo
    from uflip.data.document import Table
    from uflip.device.handle import Device
    from uflip.oc.device import FlashDevice
    from uflip.results.outputs import OutputPath

Callback = Callable[[click.Context, click.Parameter, Any], Any]
Decorator = Callable[[Any], Any]

# Readability is checked where a path is opened, not by click.
ANY_PATH = click.Path(path_type=Path, readable=False)
FILE_PATH = click.Path(path_type=Path, dir_okay=False, readable=False)
FOLDER_PATH = click.Path(path_type=Path, file_okay=False, readable=False)


def parsed_by(parse: Callable[[Any, str], Any]) -> Callback:
    """Return a callback that parses a given value; errors name the option."""

    def read(_ctx: click.Context, param: click.Parameter, value: Any) -> Any:
        return None if value is None or value == () else parse(value, option_name(param))

    return read


def _value_option(
    flags: tuple[str, ...], parse: Callable[[Any, str], Any], metavar: str, attributes: "Table"
) -> Decorator:
    attributes |= {"metavar": metavar, "show_default": "default" in attributes}
    return click.option(*flags, callback=parsed_by(parse), **attributes)


def size_option(*flags: str, **attributes: Any) -> Decorator:
    """Return an option for a size, such as 4KiB."""
    return _value_option(flags, parse_size, "SIZE", attributes)


def duration_option(*flags: str, **attributes: Any) -> Decorator:
    """Return an option for a duration, such as 100ms."""
    return _value_option(flags, parse_duration, "DURATION", attributes)


def count_option(
    *flags: str, metavar: str = "N", least: int = 0, most: int = UNSIGNED, **attributes: Any
) -> Decorator:
    """Return an option for a whole number in a range."""
    return _value_option(flags, partial(parse_count, least=least, most=most), metavar, attributes)


def number_option(*flags: str, metavar: str, most: float = 1e9, **attributes: Any) -> Decorator:
    """Return an option for a number from 0 on."""
    return _value_option(flags, partial(parse_number, least=0.0, most=most), metavar, attributes)


def path_option(*flags: str, **attributes: Any) -> Decorator:
    """Return an option for a path, whose readability is checked where it is opened."""
    return click.option(*flags, type=ANY_PATH, **attributes)


def option_name(param: click.Parameter) -> str:
    """Return the long name of an option."""
    return max(param.opts, key=len)


def click_option(option: Option, **changes: Any) -> Decorator:
    """Return the option of the command line; its value arrives parsed, under the field's name."""
    attributes: Table = {"help": option.help, "callback": parsed_by(option.parse)}
    if option.name == "only":
        attributes["shell_complete"] = propose_micro_benchmarks
    if option.form:
        if alternatives := alternatives_of(option.form):
            attributes["shell_complete"] = alternatives
        attributes |= {"metavar": option.form, "default": option.default}
        attributes["show_default"] = option.default is not None
        attributes["multiple"] = option.parse is parse_names
    else:
        attributes["is_flag"] = True
    if option.parse is parse_path:
        attributes["type"] = FILE_PATH
    return click.option(option.flag, option.field, **attributes | changes)


def combine_options(*decorators: Decorator) -> Decorator:
    """Combine several decorators, in the order in which their options are shown."""

    def decorate(function: Any) -> Any:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def add_options(*options: Option) -> Decorator:
    """Add options of a verb, in the order in which they are shown."""
    return combine_options(*map(click_option, options))


device_argument = click.argument("device", shell_complete=propose_devices)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, errors included.")

quiet_option = click.option(
    "-q", "--quiet", is_flag=True, help="Print results only: no progress, no notes, no next steps."
)

force_option = click.option(
    "--force",
    is_flag=True,
    help="Replace an existing file, also one that uflip did not write.",
)


def _disable_cache(context: click.Context, _option: click.Parameter, disabled: bool) -> None:
    if disabled:
        from uflip.device.cache import switched_off

        context.with_resource(switched_off())


no_cache_option = click.option(
    "--no-cache",
    is_flag=True,
    expose_value=False,
    callback=_disable_cache,
    help="Build simulated devices instead of taking them from the cache; see `uflip cache`.",
)

open_options = combine_options(add_options(*OPENING), no_cache_option)


def check_target(device: str, opening: "Table", *, write: bool = True) -> None:
    """Check a target and its options before plans and numpy are loaded."""
    names = ("size", "buffered", "data", "destroy", "completion", "power")
    target = {name: opening[name] for name in names if name in opening}
    if write:
        check_target_allowed(device, **target)
    else:
        check_options(parse_url(device), **target)


def read_snapshot_name(
    _ctx: click.Context, _param: click.Parameter, value: Path | None
) -> Path | None:
    """Check the name of a snapshot to be written."""
    if value is None:
        return None
    from uflip.device.url import check_snapshot_name

    check_snapshot_name(value)
    return value


def check_saving(info: "DeviceInfo", save: Path | None, *, force: bool) -> None:
    """Check before the run that the device is simulated and that the file can be written."""
    if save is None:
        return
    if not info.simulated:
        raise UsageError(
            "Only a simulated device can be saved",
            where="--save",
            got=f"{info.url} with --save {save}",
            allowed="sim:NAME",
            action="omit --save",
        )
    checked_output(save, "SNAPSHOT", "--save", force=force)


def save_device(device: "Device | FlashDevice", save: Path, *, force: bool) -> None:
    """Write a snapshot of a simulated device."""
    from uflip.results import outputs

    output = checked_output(save, "SNAPSHOT", "--save", force=force)
    with outputs.output_file(output) as temporary:
        temporary.unlink()  # the simulator creates new files only
        device.save(temporary)


def checked_output(
    path: Path, kind: str, option: str, endings: Iterable[str] = (), *, force: bool
) -> "OutputPath":
    """Check the ending and the name of an output file; `kind` is a name of `uflip.results.outputs`.

    Checked before any work, and again when the file is written.
    """
    from uflip.results import outputs

    if endings:
        outputs.check_ending(path, kind.lower(), option, endings)
    return outputs.check(path, getattr(outputs, kind), option, force=force)


def trace_output(path: Path, *, force: bool) -> "OutputPath":
    """Check the name of a trace file."""
    return checked_output(path, "TRACE", "--trace", (".csv", ".parquet"), force=force)


def check_traces(paths: Iterable[Path | None], force: bool) -> None:
    """Check the names of trace files before anything is opened."""
    for path in filter(None, paths):
        trace_output(path, force=force)


def write_trace(trace: "Trace", output: "OutputPath") -> None:
    """Write every I/O of a run, all columns, as CSV or Parquet."""
    from uflip.results import outputs

    with outputs.output_file(output) as temporary:
        if output.path.suffix == ".parquet":
            temporary.unlink()  # the native part creates new files only
            with native_errors():
                trace.write_table(str(temporary), "[]", trace.columns)
        else:
            _write_csv(trace, temporary)


def _write_csv(trace: "Trace", path: Path) -> None:
    from uflip.results.outputs import cell

    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerow(map(cell, ["index", *trace.columns]))
    with native_errors():
        trace.append_csv(str(path), None, trace.columns)


save_option = path_option(
    "--save",
    metavar="FILE.snapshot",
    callback=read_snapshot_name,
    help="Store the final state of the simulated device; sim:FILE.snapshot opens it again.",
)


def check_resume_options(
    options: Mapping[str, object], allowed: str, noun: str = "benchmark"
) -> None:
    """Reject options that cannot be changed on --resume; names of arguments are in capitals."""
    for name, value in options.items():
        if value:
            stem = name.removesuffix("_ns").removesuffix("_file").replace("_", "-")
            option = name if name.isupper() else f"--{stem}"
            raise UsageError(
                f"{option} cannot be changed on --resume",
                where=option,
                got=f"{option} with --resume",
                allowed=allowed,
                action=f"omit {option}, or start another {noun}",
            )


def no_device(verb: str) -> UsageError:
    """Return the error of a command that names neither a device nor results to resume."""
    return UsageError(
        "No device was named",
        where="DEVICE",
        allowed=URL_FORMS,
        action=f"name a device, or a folder with --resume; see `uflip {verb} --help`",
    )


# Threads of one process; processes of one machine.
MAX_JOBS, MAX_WORKERS = 1024, 1024

response_time_options = combine_options(
    click.option(
        "--column", metavar="NAME", help="Column of a table.  [default: response_time_ns]"
    ),
    click.option(
        "--unit", type=click.Choice(["ns", "us", "ms", "s"]), help="Unit of the response times."
    ),
    click.option(
        "--format", "file_format", metavar="FORMAT", help="Format of FILE, if not recognised."
    ),
    click.option("--columns", metavar="MAP", help=COLUMNS_HELP),
)
"""How to read the response times of a file."""

executor_options = combine_options(
    count_option(
        "--jobs",
        least=1,
        most=MAX_JOBS,
        help="Maximum number of threads of this process.  [default: all cores]",
    ),
    count_option(
        "--workers",
        least=1,
        most=MAX_WORKERS,
        help="Number of processes on this machine, with Dask.",
    ),
    click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Use the workers of a Dask scheduler, as in tls://host:8786.",
    ),
)


@contextmanager
def on_executor(
    jobs: int | None, workers: int | None, scheduler: str | None, *, wait_on_cancel: bool = False
) -> Iterator[None]:
    """Run the points of this block on the executor that the options select.

    With `wait_on_cancel`, threads of this process are waited for when they are cancelled.
    """
    options = {"--jobs": jobs, "--workers": workers, "--scheduler": scheduler}
    chosen = [f"{option} {value}" for option, value in options.items() if value is not None]
    if len(chosen) > 1:
        raise UsageError(
            "Only one of these options can be given",
            where=chosen[1].split()[0],
            got=" ".join(chosen),
            allowed="one of " + ", ".join(options),
            action="omit the others",
        )
    from uflip.executors import Threads, cluster, using

    if scheduler is not None:
        with cluster.connect(scheduler) as executor, using(executor):
            yield
    elif workers is not None:
        with cluster.local(workers) as executor, using(executor):
            yield
    else:
        with using(Threads(jobs, wait_on_cancel=wait_on_cancel)):
            yield
