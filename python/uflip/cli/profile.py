"""`uflip profile`: create, print and check profiles of simulated devices."""

from pathlib import Path

import click
import msgspec

from uflip import _native
from uflip.cli.options import (
    ANY_PATH,
    device_argument,
    force_option,
    json_option,
    size_option,
)
from uflip.cli.terminal import echo, echo_json
from uflip.data.document import DocumentKind, read_text
from uflip.device.catalogue import HEAD, profile_text
from uflip.device.opener import inspect_sim
from uflip.device.url import DeviceUrl
from uflip.errors import UsageError, native_errors
from uflip.escape import escape_line
from uflip.profiles import MAX_PROFILE_BYTES, without_twin_errors
from uflip.units import format_size

TOML = ".toml"
CHECKED = DocumentKind(
    "profile", MAX_PROFILE_BYTES, "check the path; `uflip profile new` creates one", UsageError
)

EPILOG = """\b
Examples:
  uflip profile export sim:demo              a device as TOML, complete, with its sources
  uflip profile new sim:demo mine.toml       the same with comments, as a file to start from
  uflip profile check mine.toml              list all faults, by line
  uflip profile import ssdconfig.xml mqsim.toml    a configuration of MQSim as a profile
  uflip run sim:mine.toml --scale quick

\b
Meaning of the keys: docs/reference/profiles.md
"""


class Fault(msgspec.Struct, frozen=True):
    """A fault in a profile, with its place."""

    line: int
    key: str
    got: str
    allowed: str


@click.group("profile", epilog=EPILOG, subcommand_metavar="new|import|export|check ...")
def command() -> None:
    """Create, print and check profiles: simulated devices of your own."""


@command.command("export")
@device_argument
def export(device: str) -> None:
    """Print DEVICE as a profile: every key, every source."""
    echo(profile_text(device), newline=False)


@command.command("new")
@device_argument
@click.argument("path", metavar="FILE.toml", type=ANY_PATH)
@force_option
def new(device: str, path: Path, force: bool) -> None:
    """Write the profile of DEVICE, with a comment on every key."""
    from uflip.results import outputs

    outputs.check_ending(path, "profile", "FILE", (TOML,))
    output = outputs.check(path, outputs.PROFILE, "FILE", force=force)
    text = HEAD.format(url=escape_line(device), path=escape_line(str(path)))
    outputs.write(output, (text + profile_text(device, comments=True)).encode())
    echo(
        f"{escape_line(str(path))} is written; "
        f"`uflip profile check {escape_line(str(path))}` checks it"
    )


@command.command("import")
@click.argument("configuration", metavar="CONFIGURATION", type=ANY_PATH)
@click.argument("path", metavar="FILE.toml", type=ANY_PATH)
@click.option("--model", metavar="NAME", help="SSD of NVMeVirt's file, such as SAMSUNG_970PRO.")
@size_option("--capacity", help="Memory that NVMeVirt reserves.  [default: 16GiB]")
@force_option
def import_configuration(
    configuration: Path, path: Path, model: str | None, capacity: int | None, force: bool
) -> None:
    """Translate the CONFIGURATION of another simulator into a profile.

    CONFIGURATION is MQSim's ssdconfig.xml, a script or command line with FEMU's options, NVMeVirt's
    ssd_config.h, or a .cfg of SimpleSSD.
    """
    from uflip.profiles.simulators import import_profile
    from uflip.results import outputs

    outputs.check_ending(path, "profile", "FILE", (TOML,))
    output = outputs.check(path, outputs.PROFILE, "FILE", force=force)
    imported = import_profile(configuration, model, capacity)
    text = imported.text(configuration.name)
    outputs.write(output, text.encode())
    echo(f"{path} is written, from a configuration of {imported.simulator}")
    for assumption in imported.assumptions:
        echo(f"  assumed: {assumption}")
    if imported.unused:
        echo("  without a counterpart: " + ", ".join(imported.unused))
    _print_faults(str(path), _faults_of(text, str(path)))


@command.command("check")
@click.argument("path", metavar="FILE.toml")
@json_option
def check(path: str, as_json: bool) -> None:
    """List all faults of a profile: keys, units, values, sources."""
    if not path.endswith(TOML):
        raise UsageError(
            "Not the name of a profile",
            where="FILE",
            got=path,
            allowed="a path that ends in .toml",
            action="give the whole name; built-in profiles need no check",
        )
    text = read_text(Path(path), CHECKED)
    faults = _faults_of(text, path)
    if as_json:
        echo_json({"profile": path, "faults": faults})
        raise click.exceptions.Exit(UsageError.exit_code if faults else 0)
    _print_faults(path, faults)
    if faults:
        raise UsageError(
            "The profile is not valid",
            where=path,
            got=f"{len(faults)} fault" + "s" * (len(faults) > 1),
            action="correct them, and check again; docs/reference/profiles.md explains every key",
        )


def _faults_of(text: str, path: str) -> list[Fault]:
    with native_errors():
        return msgspec.json.decode(
            _native.profile_faults(without_twin_errors(text), path), type=list[Fault]
        )


def _print_faults(path: str, faults: list[Fault]) -> None:
    for fault in faults:
        allowed = f"; allowed: {escape_line(fault.allowed)}" if fault.allowed else ""
        name = f" [{escape_line(fault.key)}]" if fault.key else ""
        echo(f"{escape_line(path)}:{fault.line}:{name} {escape_line(fault.got)}{allowed}")
    if not faults:
        info = inspect_sim(DeviceUrl(f"sim:{path}", "sim", path), any_interface=True)
        echo(f"{escape_line(path)}: no fault; {format_size(info.capacity_bytes)}")
