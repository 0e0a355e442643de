"""Benchmarks of several devices at once: a result folder for each, in one folder.

::

    FOLDER/
      devices.json      the devices, and the common options (`uflip.data.multi_device`)
      sim-demo/         results, as of any benchmark
      file-scratch.bin/

All checks precede the first benchmark. After that no failure stops the others: each device has its
own outcome and error. Real devices of this machine are measured one after the other with nothing
beside them, since devices that share a bus, a disk or processors disturb each other. Simulated ones
have virtual time, and run wherever the executor has room. The folder is locked during the work.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import msgspec
from msgspec import structs

from uflip import _native
from uflip.benchmark.device_names import check_names, folder_names, split_host
from uflip.benchmark.limits import check_worth_running
from uflip.benchmark.multi_device_task import (
    DeviceOutcome,
    DeviceTask,
    destroy_for,
    fetch_results,
    run_task,
    status_of,
)
from uflip.benchmark.remote_results import WorkerGoneError
from uflip.benchmark.request import BenchmarkRequest
from uflip.benchmark.session import check_out, folder_name
from uflip.data import multi_device as document
from uflip.data.multi_device import DeviceEntry, MultiDeviceManifest, MultiDeviceOptions
from uflip.errors import InterruptedRun, UflipError, UnavailableError, UsageError
from uflip.executors import CallingThread, Executor, current, iterate_outcomes, using
from uflip.executors.executor import MAX_WORKER_DEATHS
from uflip.executors.progress_messages import Remote, subscribe
from uflip.results import outputs, result_dir
from uflip.results.atomic import write_file

OnDeviceProgress = Callable[[int, float, str], None]
"""Called with (index of the device, finished share, current activity)."""


def begin_all(
    request: BenchmarkRequest,
    devices: Sequence[str],
    out: Path | None = None,
    *,
    tokens: Sequence[str] = (),
    together: bool = False,
    on_progress: OnDeviceProgress = lambda _index, _share, _text: None,
) -> tuple[Path, list[DeviceOutcome]]:
    """Run the same benchmark on several devices.

    Parameters
    ----------
    request : BenchmarkRequest
        The common request; its own `device`, `destroy`, `plan_file` and `record` are not used.
    devices : sequence of str
        Their names.
    out : Path, optional
        New folder for all; without it one under `results/`, named by the time.
    tokens : sequence of str
        Permissions to destroy, as `destroy` of a request; each device takes its own.
    together : bool
        Measure real devices of this machine at the same time, too.
    on_progress : callable
        Receives the progress of each device.

    Returns
    -------
    folder : Path
    outcomes : list of DeviceOutcome
        In the order of the devices.

    Raises
    ------
    InterruptedRun
        After Ctrl-C; finished runs are stored, and `resume_all` makes the others.
    UflipError
        From the checks before the first benchmark.
    """
    folder = Path("results") / folder_name("devices") if out is None else out
    names = [*devices]
    check_names(names)
    check_out(folder)
    common = {name: getattr(request, name) for name in MultiDeviceOptions.__struct_fields__}
    options = msgspec.convert(common, MultiDeviceOptions)
    entries = [DeviceEntry(*pair) for pair in zip(names, folder_names(names), strict=True)]
    manifest = MultiDeviceManifest(
        uflip_version=_native.__version__,
        created_utc=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        id=uuid4().hex,
        options=options,
        devices=entries,
    )
    points = _points(manifest, folder, tokens)
    _check_tokens(tokens, _check(points))
    with outputs.new_folder(folder, "folder of results") as temporary:
        write_file(temporary / document.FILE_NAME, document.encode(manifest))
    return folder, _carry_out(folder, points, [], together, on_progress)


def resume_all(
    folder: Path,
    *,
    tokens: Sequence[str] = (),
    together: bool = False,
    max_time_ns: int | None = None,
    on_progress: OnDeviceProgress = lambda _index, _share, _text: None,
) -> list[DeviceOutcome]:
    """Resume the benchmarks of several devices; complete ones are skipped.

    Parameters
    ----------
    folder : Path
        From `begin_all`.
    tokens, together, on_progress
        As for `begin_all`.
    max_time_ns : int, optional
        After this time no run begins [ns].

    Raises
    ------
    UflipError
        From `begin_all`; if another process works in the folder.
    """
    manifest = document.read(folder)
    points = _points(manifest, folder, tokens, max_time_ns)
    complete = [
        DeviceOutcome(point.index, point.device, str(point.out), "complete")
        for point in points
        if point.out.exists() and status_of(point.out) == "complete"
    ]
    remaining = [
        point
        for point in points
        if point.index not in {iterate_outcomes.index for iterate_outcomes in complete}
    ]
    _check([point for point in remaining if not point.out.exists()])
    return _carry_out(folder, remaining, complete, together, on_progress)


def is_multi_device(folder: Path) -> bool:
    """Return whether a folder is one of `begin_all`."""
    return (folder / document.FILE_NAME).is_file()


def _carry_out(
    folder: Path,
    points: list[DeviceTask],
    complete: list[DeviceOutcome],
    together: bool,
    on_progress: OnDeviceProgress,
) -> list[DeviceOutcome]:
    outcomes = {outcome.index: outcome for outcome in complete}
    folder_lock = result_dir.acquire_exclusive_lock(folder)
    try:
        with subscribe(lambda message: on_progress(*message)) as name:
            for executor, batch in _batches([replace(p, topic=name) for p in points], together):
                for outcome in _outcomes(executor, batch):
                    outcomes[outcome.index] = outcome
                    on_progress(outcome.index, 1.0, "")
    except (KeyboardInterrupt, InterruptedRun):
        raise InterruptedRun(
            f"Interrupted after {len(outcomes)} of {len(points) + len(complete)} devices",
            where=str(folder),
            action=f"finished runs are stored; `uflip run --resume {folder}` makes the others",
        ) from None
    finally:
        result_dir.release_lock(folder_lock)
    return [outcomes[index] for index in sorted(outcomes)]


def _outcomes(executor: Executor, batch: list[DeviceTask]) -> Iterator[DeviceOutcome]:
    """Yield the outcomes of a batch, with the results of each on this machine."""
    remaining = {point.index: point for point in batch}
    deaths = 0
    while remaining:
        try:
            with (
                using(executor),
                closing(cast("Any", iterate_outcomes(run_task, [*remaining.values()]))) as outcomes,
            ):
                for _, outcome in outcomes:
                    try:
                        yield fetch_results(executor, outcome, remaining[outcome.index])
                    except WorkerGoneError:  # its folder still exists; a retry finds it complete
                        deaths += 1
                        if deaths > MAX_WORKER_DEATHS * len(batch):
                            raise
                    else:
                        del remaining[outcome.index]
        except InterruptedRun:
            raise
        except UflipError as error:
            # From the executor: a task whose workers crash, or no worker left for the rest.
            affected = [point for point in remaining.values() if point.device == error.where]
            for point in affected or [*remaining.values()]:
                del remaining[point.index]
                yield DeviceOutcome.from_error(point, error)


def _batches(
    points: list[DeviceTask], together: bool
) -> Iterator[tuple[Executor, list[DeviceTask]]]:
    """Yield the batches of tasks with their executors, in order."""
    executor = current()
    elsewhere = isinstance(executor, Remote) and executor.elsewhere
    sequential = [point for point in points if not (point.needs or point.simulated)]
    if together and not elsewhere:
        sequential = []
    for point in sequential:
        yield CallingThread(), [point]
    if concurrent := [replace(p, remote=elsewhere) for p in points if p not in sequential]:
        yield executor, concurrent


def _points(
    manifest: MultiDeviceManifest,
    folder: Path,
    tokens: Sequence[str],
    max_time_ns: int | None = None,
) -> list[DeviceTask]:
    options = structs.asdict(manifest.options)
    if max_time_ns is not None:
        options["max_time_ns"] = max_time_ns
    return [
        DeviceTask(
            index=index,
            device=entry.device,
            needs=split_host(entry.device)[0],
            id=manifest.id,
            request=BenchmarkRequest(device=split_host(entry.device)[1], **options),
            tokens=tuple(tokens),
            out=folder / entry.folder,
            command=tuple(sys.argv),
        )
        for index, entry in enumerate(manifest.devices)
    ]


def _check(points: Sequence[DeviceTask]) -> set[str | None]:
    """Check all devices before anything is created or written.

    Returns
    -------
    set of str
        The used permissions to destroy.

    Raises
    ------
    UflipError
    """
    used: set[str | None] = set()
    for point in points:
        if point.needs:
            _check_host(point)
            used.update(point.tokens)  # one of them may be for it; only its host knows
            continue
        request = replace(point.request, destroy=destroy_for(point))
        used.add(request.destroy)
        if request.is_open_channel:
            request.check_jobs()
            continue
        request.check()
        check_worth_running(request.plan(request.inspect()))
    return used


def _check_host(point: DeviceTask) -> None:
    """Refuse a host without a worker; its device is checked there.

    Raises
    ------
    UflipError
    """
    executor = current()
    labels = executor.labels() if isinstance(executor, Remote) else set()
    if point.needs in labels:
        return
    if not isinstance(executor, Remote) or not executor.elsewhere:
        raise UsageError(
            "A device of another machine needs --scheduler",
            where="DEVICE",
            got=point.device,
            allowed="a device of this machine, or HOST@DEVICE with --scheduler",
            action="name the scheduler that the workers of that machine belong to",
        )
    raise UnavailableError(
        "No worker has this label",
        where=point.device,
        got=point.needs,
        allowed=", ".join(sorted(labels)) or "no worker has a label",
        action=f"start `dask worker` with --resources {point.needs}=1 on the machine of the drive",
    )


def _check_tokens(tokens: Sequence[str], used: set[str | None]) -> None:
    """Refuse permissions to destroy that no device needs.

    Raises
    ------
    UsageError
    """
    if unused := {*tokens} - used:
        raise UsageError(
            "No device matches this --destroy",
            where="--destroy",
            got=min(unused),
            allowed="the token from `uflip devices`, of a device that needs one",
            action="omit it, or name its device",
        )
