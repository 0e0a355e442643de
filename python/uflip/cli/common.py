"""Shared parts of the verbs: option parsers, groups of options, tables."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from uflip import table
from uflip.cli.terminal import echo
from uflip.device.guard import COMPLETIONS, DATA
from uflip.device.url import URL_FORMS
from uflip.durability import FORMS, durability_or_default
from uflip.errors import UsageError
from uflip.escape import escape_line, plain
from uflip.table import Table
from uflip.units import UNSIGNED, parse_count, parse_duration, parse_number, parse_size

if TYPE_CHECKING:
    from uflip.data.device import DeviceInfo
    from uflip.device.handle import Device
    from uflip.oc.device import FlashDevice
    from uflip.results.outputs import OutputPath

Function = TypeVar("Function", bound=Callable[..., Any])
Number = TypeVar("Number", int, float)
Reader = Callable[[click.Context, click.Parameter, str | None], Number | None]
Decorator = Callable[[Function], Function]


# Readability is checked where a path is opened, not by click.
ANY_PATH = click.Path(path_type=Path, readable=False)
FILE_PATH = click.Path(path_type=Path, dir_okay=False, readable=False)
FOLDER_PATH = click.Path(path_type=Path, file_okay=False, readable=False)


def read_size(_ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """Parse the value of an option as a size [bytes]; errors name the option."""
    return None if value is None else parse_size(value, where=option_name(param))


def read_duration(_ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """Parse the value of an option as a duration [ns]; errors name the option."""
    return None if value is None else parse_duration(value, where=option_name(param))


def int_parser(least: int = 0, most: int = UNSIGNED) -> Reader[int]:
    """Return a parser of whole numbers in a range; errors name the option."""

    def read(_ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
        return None if value is None else parse_count(value, option_name(param), least, most)

    return read


def float_parser(least: float = 0.0, most: float = 1e9) -> Reader[float]:
    """Return a parser of numbers in a range; errors name the option."""

    def read(_ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
        return None if value is None else parse_number(value, option_name(param), least, most)

    return read


def option_name(param: click.Parameter) -> str:
    """Return the long name of an option."""
    return max(param.opts, key=len)


def combine_options(decorators: Sequence[Callable[[Any], Any]]) -> Decorator[Any]:
    """Combine several decorators, in the order in which their options are shown."""

    def decorate(function: Any) -> Any:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


device_argument = click.argument("device")

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, errors included.")

quiet_option = click.option(
    "-q", "--quiet", is_flag=True, help="Print results only: no progress, no notes, no next steps."
)

force_option = click.option(
    "--force",
    is_flag=True,
    help="Replace an existing file, also one that uflip did not write.",
)

size_option = click.option(
    "--size",
    metavar="SIZE",
    callback=read_size,
    help="file: only: create the file, or enlarge it, to this size.",
)

buffered_option = click.option(
    "--buffered",
    is_flag=True,
    help="file: and /dev/ only: accept I/O through the page cache instead of direct I/O.",
)


def read_durability(_ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Parse a durability; errors name the option."""
    if value is None:
        return None
    try:
        return durability_or_default(value)
    except UsageError as error:
        error.where = option_name(param)
        raise


durability_option = click.option(
    "--durability",
    metavar=FORMS,
    callback=read_durability,
    help="When a write is complete: when the device has the data; when they survive a power loss; "
    "after a flush every N writes.  [default: cached; fua with --buffered]",
)


completion_option = click.option(
    "--completion",
    metavar="|".join(COMPLETIONS),
    help="file: and /dev/ only: how completions in a queue are detected.  [default: auto, polled "
    "if the device supports it]",
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
    _output_path(save, force=force)


def save_device(device: "Device | FlashDevice", save: Path, *, force: bool) -> None:
    """Write a snapshot of a simulated device."""
    from uflip.results import outputs

    with outputs.output_file(_output_path(save, force=force)) as temporary:
        temporary.unlink()  # the simulator creates new files only
        device.save(temporary)


def _output_path(save: Path, *, force: bool) -> "OutputPath":
    from uflip.results import outputs

    return outputs.check(save, outputs.SNAPSHOT, "--save", force=force)


save_option = click.option(
    "--save",
    metavar="FILE.snapshot",
    type=ANY_PATH,
    callback=read_snapshot_name,
    help="Store the final state of the simulated device; sim:FILE.snapshot opens it again.",
)

io_timeout_option = click.option(
    "--io-timeout",
    metavar="DURATION",
    callback=read_duration,
    default="60s",
    show_default=True,
    help="Give up if an I/O on a file, block device or export takes longer; 0s: never.",
)

data_option = click.option(
    "--data",
    metavar="|".join(DATA),
    default=DATA[0],
    show_default=True,
    help="Data to write; random data cannot be compressed by the device.",
)


def destroy_option(*, multiple: bool = False) -> Decorator[Any]:
    """Return the option that confirms the loss of data, once or once for each device."""
    return click.option(
        "--destroy",
        metavar="TOKEN|PATH",
        multiple=multiple,
        help="Confirm the loss of all data on exactly this block device (see `uflip devices`), or "
        "in this file that uflip did not create; name its contents, as in +ext4."
        + (" Repeat it for each device that needs it." if multiple else ""),
    )


# Options for opening a device; with several devices each has its own --destroy.
open_options, open_several_options = (
    combine_options(
        [
            size_option,
            buffered_option,
            data_option,
            destroy_option(multiple=multiple),
            io_timeout_option,
            no_cache_option,
        ]
    )
    for multiple in (False, True)
)


def split_names(values: Sequence[str], where: str = "--only") -> list[str] | None:
    """Split names that are separated by commas, or given by repeating the option.

    Examples
    --------
    >>> split_names(["mix,order", "pause"]), split_names([])
    (['mix', 'order', 'pause'], None)
    """
    if not values:
        return None
    names = [name.strip() for value in values for name in value.split(",") if name.strip()]
    if not names:
        raise UsageError(
            "No name was given",
            where=where,
            got=repr(",".join(values)),
            allowed="names separated by commas, as in granularity,order",
            action="name a micro-benchmark, or omit the option",
        )
    return names


def echo_pairs(pairs: Iterable[tuple[str, str]], indent: str = "") -> None:
    """Print names and values in two columns; pairs without a value are omitted."""
    for line in table.pairs([(escape_line(n), escape_line(v)) for n, v in pairs if v], indent):
        echo(line)


def echo_table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> None:
    """Print a table; the first `left` columns are left-aligned, the others right-aligned."""
    text_table = Table(plain(list(head)), [plain(list(row)) for row in rows], "l" * left + "r")
    first, *others = text_table.lines()
    echo(first, bold=True)
    for line in others:
        echo(line)


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
