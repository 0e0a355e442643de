"""Implementation of `uflip prepare`, after the target was checked."""

from collections.abc import Mapping
from pathlib import Path
from typing import Unpack

from uflip.benchmark_options import STATES
from uflip.cli.common import check_saving, save_device
from uflip.cli.progress_events import Watching, announce_state
from uflip.cli.terminal import echo, echo_json
from uflip.data.device import DeviceInfo
from uflip.data.document import plain
from uflip.device.catalogue import inspect_device
from uflip.device.handle import Device
from uflip.errors import unknown_name
from uflip.methodology import Enforcement, describe_wear, plan_state, wear_of
from uflip.methodology.plan_options import check_has_states
from uflip.results.state_record import StateRecord
from uflip.session.prepare import Opening
from uflip.session.prepare import prepare as carry_out


def prepare(
    device: str,
    *,
    state: str,
    seed: int,
    target_size: int | None,
    record: Path | None,
    save: Path | None,
    force: bool,
    again: bool,
    dry_run: bool,
    quiet: bool,
    as_json: bool,
    **opening: Unpack[Opening],
) -> None:
    """Bring a device into a state and report it; the options are those of the verb."""
    info = inspect_device(device, size=opening["size"], buffered=opening["buffered"])
    check_has_states(info)
    check_saving(info, save, force=force)
    wanted = plan_state(info, state, target_size, seed)
    if wanted is None:  # "as-is" is a state to measure in, not a state to enforce
        raise unknown_name("state", state, STATES[:-1], where="--state")
    worn = describe_wear(wear_of(info), wanted.bytes_written)
    if dry_run:
        text = f"{announce_state(wanted)}\nwear: {worn}"
        _tell(_document(device, info, wanted, None, "dry-run"), text, as_json, quiet)
        return
    quiet = quiet or as_json
    if not quiet and info.outlives_process:
        echo(f"wear: {worn}", err=True)

    def keep(opened: Device) -> None:
        if save is not None:
            save_device(opened, save, force=force)

    with Watching(quiet=quiet) as watch:
        found = carry_out(
            device, info, wanted, watch, record=record, again=again, afterwards=keep, **opening
        )
    if found.done == "was":
        text = f"{device} is in this state already; --again writes it once more"
    else:
        kept_in = f"; kept in {save}" if save else "; it ends with this command"
        noted = f"; noted in {found.record.path}" if found.record else kept_in
        text = f"{device} is in state {wanted.state_id}{noted}"
    _tell(_document(device, info, wanted, found.record, found.done), text, as_json, quiet)


def _tell(document: Mapping[str, object], text: str, as_json: bool, quiet: bool) -> None:
    if as_json:
        echo_json(document)
    elif not quiet:
        echo(text)


def _document(
    device: str, info: DeviceInfo, wanted: Enforcement, record: StateRecord | None, done: str
) -> Mapping[str, object]:
    wear = wear_of(info)
    return {
        "device": device,
        "done": done,
        "state": wanted.request,
        "state_id": wanted.state_id,
        "total_ios": wanted.total_ios,
        "bytes_written": wanted.bytes_written,
        "time_ns": wanted.time_ns,
        "wear": plain(wear) | {"share": wear.share(wanted.bytes_written)},
        "record": str(record.path) if record else None,
    }
