"""Creates a result folder and commits one run at a time.

A benchmark is killed, the disk fills up, the power goes: whatever happens, the runs that finished
before are there and whole. A run is written under a temporary name, fsynced and renamed before the
next one starts; the manifest, which names every planned run, is written before the first.

While it lives, the writer holds a lock on the folder: see `lock`.
"""

import json
import os
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from uflip import _native
from uflip.errors import ResultsError, UflipError, native_errors
from uflip.results import atomic, lock, manifest, outputs
from uflip.results.warnings import (
    Examiner,
    StoredWarning,
    about_conditions,
    about_interference,
    of_the_plan,
)


class Named(Protocol):
    """A planned run, as far as the writer cares: the entry of its id is in the plan."""

    @property
    def id(self) -> str:
        """The name of the run in this folder."""


def refuse_existing(path: Path) -> None:
    """Raise if a result folder cannot be made here because something has this name.

    Raises
    ------
    ResultsError
        If `path` exists, whatever it is: results are never overwritten.
    RefusedError
        Inside of another result folder.
    """
    outputs.refuse_results(path, "results", str(path))
    if path.exists() or path.is_symlink():
        raise ResultsError(
            what="Results are never overwritten",
            where=str(path),
            got="a folder that exists" if path.is_dir() else "a file that exists",
            allowed="a name that is not taken",
            action="choose another --out, or move the old results away",
        )


def utc_now() -> str:
    """Now, as results write it: ISO 8601, UTC, whole seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class ResultsWriter:
    """A result folder that is being filled; make one with `create`."""

    def __init__(self, path: Path, content: dict[str, Any], held: int) -> None:
        self.path = path
        self._manifest = content
        self._held = held
        self._began = time.monotonic()
        self._before_s = 0.0
        self.done: list[str] = []
        """Ids of the runs that were there when the benchmark went on."""
        self._planned = {entry["id"]: entry for entry in content["plan"]}
        self._examiner = Examiner(content["device"], content["harness"])

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        device: Mapping[str, Any],
        host: Mapping[str, Any],
        harness: Mapping[str, Any],
        scale: str,
        seed: int,
        pause_ns: int,
        state: Mapping[str, Any] = manifest.UNKNOWN_STATE,
        target_size_bytes: int | None = None,
        repetitions: int = 1,
        method: str = "paper",
        plan: Sequence[Mapping[str, Any]],
        skipped: Sequence[Mapping[str, Any]] = (),
        warnings: Sequence[Mapping[str, Any]] = (),
    ) -> "ResultsWriter":
        """Make a result folder with its manifest.

        Parameters
        ----------
        path
            A name that is not taken; missing parents are made.
        device, host, harness
            The device's info, the host's provenance, what the harness costs per I/O.
        scale, seed, pause_ns
            Of the plan.
        state
            In which state the device is: state, state_id, known_from, request.
        target_size_bytes
            The part of the device that is used, from its beginning.
        repetitions
            How often each run is made.
        method
            How long runs are: "auto" or "paper".
        plan, skipped, warnings
            Planned runs, what was left out and why, doubts of the plan; plain dictionaries.

        Raises
        ------
        ResultsError
            If the path exists, or cannot be made or written.
        """
        folder = Path(path)
        content: dict[str, Any] = {
            "format": manifest.FORMAT,
            "format_version": manifest.FORMAT_VERSION,
            "uflip_version": _native.__version__,
            "created_utc": utc_now(),
            "finished_utc": None,
            "resumed_utc": [],
            "status": "running",
            "device": dict(device),
            "host": dict(host),
            "harness": dict(harness),
            "scale": scale,
            "seed": seed,
            "pause_ns": pause_ns,
            "target_size_bytes": target_size_bytes,
            "repetitions": repetitions,
            "method": method,
            "state": dict(state),
            "phases": None,
            "interference": None,
            "plan": [dict(entry) for entry in plan],
            "skipped": [dict(entry) for entry in skipped],
            "warnings": [dict(entry) for entry in warnings],
            "elapsed_s": None,
        }
        refuse_existing(folder)
        _make_folders(folder)
        held = lock.acquire(folder)
        try:
            manifest.write(folder, content)
        except BaseException:
            lock.release(held)
            _remove_empty(folder)
            raise
        return cls(folder, content, held)

    @classmethod
    def resume(cls, path: str | os.PathLike[str]) -> "ResultsWriter":
        """Go on in a folder whose benchmark was cut short; `done` says what is there.

        Raises
        ------
        ResultsError
            If it is no result folder, is complete, is open in another process, or was written by
            a version of the format that does not know how to go on; nothing is changed then.
        """
        folder = Path(path)
        content = manifest.read(folder)
        if content["status"] == "complete":
            raise ResultsError(
                what="These results are complete",
                where=str(folder),
                got=f"{len(content['plan'])} finished runs",
                allowed="a folder whose benchmark was interrupted",
                action="start another benchmark with a new --out",
            )
        if content["format_version"] < manifest.FORMAT_VERSION:
            raise ResultsError(
                what="These results cannot be gone on with",
                where=str(folder),
                got=f"format_version {content['format_version']}, which keeps no state",
                allowed=f"format_version {manifest.FORMAT_VERSION}",
                action="start another benchmark with a new --out",
            )
        held = lock.acquire_alone(folder)
        try:
            writer = cls(folder, content, held)
            writer._take_up()
        except BaseException:
            lock.release(held)
            raise
        return writer

    def _take_up(self) -> None:
        """Find what is there, and look at it again."""
        for entry in self._manifest["plan"]:
            path = self._file(entry["id"])
            if not path.exists():
                continue
            with native_errors():
                trace = _native.read_trace(str(path))
            self._examiner.look(entry, trace)
            self.done.append(entry["id"])
        self._before_s = float(self._manifest["elapsed_s"] or 0.0)
        self._manifest["warnings"] = of_the_plan(self._manifest["warnings"])

    def note(self, key: str, value: Mapping[str, Any]) -> None:
        """Store what was found out about the device: `phases` or `interference`."""
        self._manifest[key] = dict(value)
        manifest.write(self.path, self._manifest)

    def trace_of(self, run_id: str) -> _native.Trace | None:
        """Read a finished run; None where it is not there."""
        path = self._file(run_id)
        if not path.exists():
            return None
        with native_errors():
            return _native.read_trace(str(path))

    def replan(self, plan: Sequence[Mapping[str, Any]]) -> None:
        """Note that the benchmark goes on, and with which plan; runs keep their ids.

        Lets go of what a kill left half written.
        """
        for entry in self._manifest["plan"]:
            atomic.temporary_name(self._file(entry["id"])).unlink(missing_ok=True)
        self._manifest |= {
            "status": "running",
            "finished_utc": None,
            "elapsed_s": None,
            "resumed_utc": [*self._manifest["resumed_utc"], utc_now()],
            "plan": [dict(entry) for entry in plan],
        }
        self._planned = {entry["id"]: entry for entry in self._manifest["plan"]}
        manifest.write(self.path, self._manifest)

    @property
    def manifest(self) -> Mapping[str, Any]:
        """What the manifest says now."""
        return self._manifest

    def _file(self, run_id: str) -> Path:
        return self.path / manifest.RUNS / f"{run_id}.parquet"

    def commit(
        self, run: Named, trace: _native.Trace, extra: Mapping[str, Any] | None = None
    ) -> Path:
        """Store a finished run durably, before the next one starts.

        Parameters
        ----------
        run
            One of the planned runs.
        trace
            Every I/O of it.
        extra
            More metadata to store beside the plan's entry and the device's counters.

        Returns
        -------
        Path
            The Parquet file.

        Raises
        ------
        ResultsError
            If the run is not in the plan, is there already, or cannot be written (a full disk);
            nothing is left of it then.
        """
        entry = self._entry(run.id)
        path = self._file(run.id)
        if path.exists():
            raise ResultsError(
                what="A run is committed once", where=str(path), got="the same run again"
            )
        counters = trace.counters_json()
        metadata = {
            "format": "uflip-run",
            "format_version": manifest.FORMAT_VERSION,
            "uflip_version": _native.__version__,
            **entry,
            "finished_utc": utc_now(),
            "elapsed_ns": trace.elapsed_ns(),
            "counters": json.loads(counters) if counters is not None else None,
            **(extra or {}),
        }
        _write_run(path, trace, json.dumps(metadata, allow_nan=False))
        self._examiner.look(entry, trace)
        return path

    def finish(self, status: str, warnings: Sequence[Mapping[str, Any]] = ()) -> None:
        """Write the last manifest: how it ended, and every doubt about the data.

        Parameters
        ----------
        status
            "complete", "interrupted" or "failed".
        warnings
            More doubts, beside those of the plan and of the data.

        Raises
        ------
        ResultsError
            If the manifest cannot be written; the runs are readable all the same.
        """
        seen: list[StoredWarning] = [
            *about_conditions(
                self._manifest["device"], self._manifest["host"], self._manifest["state"]
            ),
            *about_interference(self._manifest["interference"]),
            *self._examiner.warnings(),
        ]
        content = self._manifest | {
            "status": status,
            "finished_utc": utc_now(),
            "elapsed_s": round(self._before_s + time.monotonic() - self._began, 3),
            "warnings": [
                *self._manifest["warnings"],
                *(dict(warning) for warning in warnings),
                *(warning.as_dict() for warning in seen),
            ],
        }
        try:
            manifest.write(self.path, content)
        finally:
            self.close()

    def close(self) -> None:
        """Let go of the folder; without `finish` its benchmark counts as interrupted."""
        lock.release(self._held)
        self._held = lock.NONE

    def _entry(self, run_id: str) -> dict[str, Any]:
        entry: dict[str, Any] | None = self._planned.get(run_id)
        if entry is None:
            raise ResultsError(
                what="This run is not in the plan of these results",
                where=str(self.path),
                got=run_id,
                allowed=f"one of the {len(self._planned)} planned runs",
            )
        return entry


def _write_run(path: Path, trace: _native.Trace, metadata_json: str) -> None:
    """Write, fsync (native), rename, fsync the folder; on failure leave nothing."""
    temporary = atomic.temporary_name(path)
    try:
        with native_errors():
            trace.write_parquet(str(temporary), metadata_json)
        atomic.publish(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, ResultsError) or not isinstance(error, (OSError, UflipError)):
            raise
        raise ResultsError(
            what="The run could not be stored",
            where=str(path),
            got=error.got or error.what if isinstance(error, UflipError) else str(error.strerror),
            allowed="a writable folder with free space",
            action="free some space and run again with another --out; earlier runs are kept",
        ) from error


def _make_folders(folder: Path) -> None:
    try:
        folder.mkdir(parents=True)
        (folder / manifest.RUNS).mkdir()
        atomic.fsync_directory(folder)
        atomic.fsync_directory(folder.parent)
    except OSError as error:
        raise ResultsError(
            what="The result folder could not be made",
            where=str(folder),
            got=error.strerror or str(error),
            allowed="a name that is not taken, in a folder that can be written",
            action="choose another --out",
        ) from error


def _remove_empty(folder: Path) -> None:
    for path in (folder / manifest.RUNS, folder):
        try:
            path.rmdir()
        except OSError:  # not ours to insist: the error that brought us here is the one to show
            return
