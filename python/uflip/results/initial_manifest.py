"""The manifest that a result folder begins with: everything that is known before the first run."""

import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from uflip import _native
from uflip.data.device import DeviceInfo
from uflip.data.manifest import UNKNOWN_STATE, DeviceState, Manifest, entry_of, left_of
from uflip.data.summary import WarningSummary
from uflip.durability import CACHED


def utc_now() -> str:
    """Now, as results write it: ISO 8601, UTC, whole seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def new_folder_id() -> str:
    """Draw what tells a result folder from all others."""
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
    """Say what is about to be measured.

    Parameters
    ----------
    device, host, harness
        What is known about the device, the host's provenance, what the harness costs per I/O.
    scale, seed, pause_ns
        Of the plan.
    state : DeviceState, optional
        In which state the device is.
    target_size_bytes : int, optional
        The part of the device that is used, from its beginning.
    repetitions : int
        How often each run is made.
    method : str
        How long runs are: "auto" or "paper".
    durability : str
        What writes wait for, see `uflip.durability`.
    plan, skipped
        Planned runs, and what was left out and why: objects with the fields of their entries.
    warnings
        Doubts of the plan, plain dictionaries.

    Returns
    -------
    Manifest
        Of a benchmark that is running.
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
            "skipped": [left_of(each) for each in skipped],
            "warnings": [dict(entry) for entry in warnings],
            "elapsed_s": None,
        },
        Manifest,
    )
