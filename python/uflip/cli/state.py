"""What `prepare` and `run` share: the options of a state, its announcement, its enforcement."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from uflip.cli.common import read_size, together
from uflip.cli.progress import state_display
from uflip.methodology import (
    STATES,
    Enforcement,
    enforce_state,
    plan_state,
    state_of_profile,
)
from uflip.results.state_record import StateRecord, default_path, open_record
from uflip.run import Device, DeviceInfo
from uflip.units import format_count, format_duration_ns, format_size

target_options = together(
    [
        click.option(
            "--target-size",
            metavar="SIZE",
            callback=read_size,
            help="Use only so much of the device, from its beginning.  [default: all of it]",
        ),
        click.option(
            "--record",
            metavar="FILE",
            type=click.Path(path_type=Path, dir_okay=False),
            help="Where the state of the device is noted.  [default: results/states/DEVICE.json]",
        ),
    ]
)

state_option = click.option(
    "--state",
    metavar="|".join(STATES),
    help="State to be enforced where the device is not known to be in it.  "
    "[default: random; a simulated device is in the state of its profile]",
)


@dataclass(frozen=True)
class InState:
    """What is known about the state of a device before the first run.

    Attributes
    ----------
    document : dict
        As the manifest holds it.
    record : StateRecord or None
        Where it is noted; None for devices that end with the process.
    wanted : Enforcement or None
        What is enforced again in a reset; None for "as-is".
    """

    document: dict[str, Any]
    record: StateRecord | None
    wanted: Enforcement | None


def default_state(info: DeviceInfo) -> str:
    """Return the state that is enforced if nobody says which."""
    return "random" if info["kind"] in ("file", "block") else "as-is"


def record_of(info: DeviceInfo, url: str, given: Path | None) -> StateRecord | None:
    """Open the record of a device; None where the device does not outlive the process."""
    if info["kind"] not in ("file", "block"):
        return None
    return open_record(default_path(url) if given is None else given, info)


def announce_state(wanted: Enforcement, done_ios: int = 0) -> str:
    """Say what enforcing a state takes, before it begins."""
    left = 1 - done_ios / wanted.total_ios
    head = f"{wanted.request['state']} state over {format_size(wanted.request['target_size'])}"
    gone_on = f"going on after {done_ios / wanted.total_ios:.0%}, " if done_ios else ""
    return (
        f"{head}: {gone_on}{format_count(wanted.total_ios - done_ios)} writes, "
        f"{format_size(round(wanted.bytes_written * left))}, "
        f"about {format_duration_ns(wanted.time_ns * left)}"
    )


def bring_into_state(
    device: Device, wanted: Enforcement, record: StateRecord | None, *, quiet: bool
) -> None:
    """Enforce a state, from where an earlier attempt was cut short, with progress."""
    keeper = _Forgets() if record is None else record
    done_ios = keeper.begin(wanted.request, wanted.total_ios)
    if not quiet:
        click.echo(announce_state(wanted, done_ios), err=True)
    with state_display(wanted, done_ios, quiet=quiet) as show:
        enforce_state(device, wanted, keeper, done_ios, show)
    keeper.enforced(wanted.state_id)


def ensure_state(
    device: Device,
    url: str,
    state: str | None,
    target_size: int | None,
    record_path: Path | None,
    *,
    quiet: bool,
) -> InState:
    """Bring a device into the state that a benchmark begins in, unless it is known to be in it."""
    info = device.info
    name = default_state(info) if state is None else state
    wanted = plan_state(info, name, target_size)
    record = record_of(info, url, record_path)
    if wanted is None:
        return InState(_found(info), record, None)
    known = record.state if record else None
    if known and known.request == wanted.request and known.state_id is not None:
        how = {"since_runs": known.runs_since, "since_bytes_written": known.bytes_written_since}
        return InState(_document(wanted, known.state_id, "record") | how, record, wanted)
    bring_into_state(device, wanted, record, quiet=quiet)
    return InState(_document(wanted, wanted.state_id, "enforced"), record, wanted)


def _document(wanted: Enforcement, state_id: str, known_from: str) -> dict[str, Any]:
    return {
        "state": wanted.request["state"],
        "state_id": state_id,
        "known_from": known_from,
        "request": wanted.request,
    }


def _found(info: DeviceInfo) -> dict[str, Any]:
    """Describe a device that is measured as it is."""
    if not info["simulated"]:
        return {"state": "as-is", "state_id": None, "known_from": None, "request": None}
    profile = info["details"]["profile"]
    return {
        "state": profile["state"]["state"],
        "state_id": state_of_profile(profile),
        "known_from": "profile",
        "request": None,
    }


class _Forgets:
    """In place of a record, for devices that end with the process."""

    def begin(self, _request: dict[str, Any], _total_ios: int) -> int:
        """Begin at the first write."""
        return 0

    def reached(self, done_ios: int) -> None:
        """Forget it."""

    def enforced(self, state_id: str) -> None:
        """Forget it."""
