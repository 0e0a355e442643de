"""Implementation of `uflip prepare`, after the target was checked."""

from collections.abc import Mapping
from pathlib import Path
from typing import Unpack

from uflip.benchmark import Enforcement, describe_wear, plan_state, wear_of
from uflip.benchmark.plan import check_has_states
from uflip.benchmark.prepare import Opening
from uflip.benchmark.prepare import prepare as carry_out
from uflip.benchmark_options import STATES
from uflip.cli.benchmark_progress import Watching, announce_state
from uflip.cli.options import check_saving, save_device
from uflip.cli.terminal import echo, echo_json
from uflip.data.device import DeviceInfo
from uflip.data.document import plain
from uflip.device.catalogue import inspect_device
from uflip.device.handle import Device
from uflip.errors import unknown_name
from uflip.results.state_record import StateRecord


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
    enforcement = plan_state(info, state, target_size, seed)
    if enforcement is None:  # "as-is" is a state to measure in, not a state to enforce
        raise unknown_name("state", state, STATES[:-1], where="--state")
    wear_text = describe_wear(wear_of(info), enforcement.bytes_written)
    if dry_run:
        text = f"{announce_state(enforcement)}\nwear: {wear_text}"
        _print(_document(device, info, enforcement, None, "dry-run"), text, as_json, quiet)
        return
    quiet = quiet or as_json
    if not quiet and info.outlives_process:
        echo(f"wear: {wear_text}", err=True)

    def save_if_requested(opened: Device) -> None:
        if save is not None:
            save_device(opened, save, force=force)

    with Watching(quiet=quiet) as watch:
        prepared = carry_out(
            device,
            info,
            enforcement,
            watch,
            record=record,
            again=again,
            afterwards=save_if_requested,
            **opening,
        )
    if prepared.done == "was":
        text = f"{device} is in this state already; --again enforces it again"
    else:
        storage = f"; stored in {save}" if save else "; the state is lost when this command ends"
        recorded = f"; recorded in {prepared.record.path}" if prepared.record else storage
        text = f"{device} is in state {enforcement.state_id}{recorded}"
    _print(
        _document(device, info, enforcement, prepared.record, prepared.done), text, as_json, quiet
    )


def _print(document: Mapping[str, object], text: str, as_json: bool, quiet: bool) -> None:
    if as_json:
        echo_json(document)
    elif not quiet:
        echo(text)


def _document(
    device: str, info: DeviceInfo, enforcement: Enforcement, record: StateRecord | None, done: str
) -> Mapping[str, object]:
    wear = wear_of(info)
    return {
        "device": device,
        "done": done,
        "state": enforcement.request,
        "state_id": enforcement.state_id,
        "total_ios": enforcement.total_ios,
        "bytes_written": enforcement.bytes_written,
        "time_ns": enforcement.time_ns,
        "wear": plain(wear) | {"share": wear.share(enforcement.bytes_written)},
        "record": str(record.path) if record else None,
    }
