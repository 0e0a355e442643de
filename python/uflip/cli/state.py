"""What `prepare`, `plan` and `run` share about states: options, what is known, enforcement."""

from pathlib import Path
from typing import Any

import click

from uflip.cli.common import read_size, together
from uflip.cli.progress import state_display
from uflip.cli.terminal import echo
from uflip.methodology import (
    STATES,
    Enforcement,
    History,
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
    "[default: random; for a simulated device that of its profile]",
)


AS_IS = {"state": "as-is", "state_id": None, "known_from": None, "request": None}
"""A device that is measured as it was found, in the manifest."""


def record_of(info: DeviceInfo, url: str, given: Path | None) -> StateRecord | None:
    """Open the record of a device; None where the device does not outlive the process."""
    if info["kind"] not in ("file", "block"):
        return None
    return open_record(default_path(url) if given is None else given, info)


def known_state(
    info: DeviceInfo, wanted: Enforcement | None, record: StateRecord | None
) -> dict[str, Any] | None:
    """Describe the state that a device is in already, as the manifest holds it.

    Returns
    -------
    dict or None
        None where the wanted state has to be enforced.
    """
    if info["kind"] == "sim":
        return _known_of_simulated(info, wanted)
    if wanted is None:
        return dict(AS_IS)
    known = record.state if record else None
    if known is None or known.request != wanted.request or known.state_id is None:
        return None
    since = {"since_runs": known.runs_since, "since_bytes_written": known.bytes_written_since}
    return _document(wanted, known.state_id, "record") | since


def _known_of_simulated(info: DeviceInfo, wanted: Enforcement | None) -> dict[str, Any] | None:
    """Describe a device that was just made or restored."""
    profile, snapshot = info["details"]["profile"], info["details"].get("snapshot")
    if wanted is None:
        if snapshot is None:
            return dict(AS_IS)
        return AS_IS | {"state_id": state_of_profile(profile, snapshot), "known_from": "snapshot"}
    request = wanted.request
    whole = request["target_offset"] == 0 and request["target_size"] == info["capacity_bytes"]
    if snapshot is not None or profile["state"]["state"] != request["state"] or not whole:
        return None
    return _document(wanted, state_of_profile(profile), "profile")


def used_bytes(wanted: Enforcement | None, record: StateRecord | None) -> int:
    """Return up to where earlier plans have written sequentially in the state that is wanted."""
    known = record.state if record else None
    if wanted is None or known is None or known.request != wanted.request:
        return 0
    return known.used_bytes if known.state_id is not None else 0


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
) -> dict[str, Any]:
    """Enforce a state, with progress; returns its description for the manifest."""
    known = record.state if record else None
    goes_on = known is not None and known.state_id is None and known.request == wanted.request
    done_ios = known.done_ios if known and goes_on else 0
    if not quiet:
        echo(announce_state(wanted, done_ios), err=True)
    with state_display(wanted, done_ios, quiet=quiet) as show:
        History(None, record).enforce(device, wanted, show)
    return _document(wanted, wanted.state_id, "enforced")


def _document(wanted: Enforcement, state_id: str, known_from: str) -> dict[str, Any]:
    return {
        "state": wanted.request["state"],
        "state_id": state_id,
        "known_from": known_from,
        "request": wanted.request,
    }
