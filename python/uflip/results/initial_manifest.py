"""The manifest of a new result folder: everything that is known before the first run."""

import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from uflip import _native
from uflip.data.device import DeviceInfo
from uflip.data.manifest import UNKNOWN_STATE, DeviceState, Manifest, entry_of, skipped_entry_of
from uflip.data.summary import WarningSummary
from uflip.durability import CACHED


def utc_now() -> str:
    """Return the time as results store it: ISO 8601, UTC, whole seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def new_folder_id() -> str:
    """Draw a unique id for a result folder."""
    return secrets.token_hex(16)


def manifest_of(
    *,
    device: DeviceInfo,
    host: Mapping[str, object],
    harness: Mapping[str, float],
    scale: str,
    seed: int,
    pause_ns: int,
    state: DeviceState = UNKNOWN_STATE,
    target_size_bytes: int | None = None,
    repetitions: int = 1,
    method: str = "paper",
    durability: str = CACHED,
    plan: Sequence[object],
    skipped: Sequence[object] = (),
    warnings: Sequence[WarningSummary] = (),
) -> Manifest:
    """Return the manifest of a benchmark that is about to run.

    Parameters
    ----------
    device, host, harness
        Properties of the device, the host's provenance, the cost of the harness per I/O.
    scale, seed, pause_ns
        As planned.
    state : DeviceState, optional
        The state of the device.
    target_size_bytes : int, optional
        The part of the device that is used, from its beginning.
    repetitions : int
        Number of repetitions of each run.
    method : str
        Rule for the length of runs: "auto" or "paper".
    durability : str
        Durability of writes, see `uflip.durability`.
    plan, skipped
        Planned runs, and skipped ones with reasons: objects with the fields of their entries.
    warnings
        Warnings of the plan, plain dictionaries.

    Returns
    -------
    Manifest
        With status "running".
    """
    return msgspec.convert(
        {
            "uflip_version": _native.__version__,
            "folder_id": new_folder_id(),
            "created_utc": utc_now(),
            "finished_utc": None,
            "status": "running",
            "device": device,
            "host": dict(host),
            "harness": dict(harness),
            "scale": scale,
            "seed": seed,
            "pause_ns": pause_ns,
            "target_size_bytes": target_size_bytes,
            "repetitions": repetitions,
            "method": method,
            "durability": durability,
            "state": state,
            "plan": [entry_of(run) for run in plan],
            "skipped": [skipped_entry_of(each) for each in skipped],
            "warnings": [dict(entry) for entry in warnings],
            "elapsed_s": None,
        },
        Manifest,
    )
