"""A benchmark of an open-channel device (uFLIP-OC) from its name to its results, as any other's.

Its plan is a list of jobs over physical addresses, which follow from the geometry and the scale. A
simulated device is rebuilt when a benchmark goes on: the jobs that are there are carried out again,
and must take the times that they took.
"""

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from uflip import ends
from uflip._native import FlashTrace
from uflip.errors import InterruptedRun, ResultsError, UflipError, UsageError, unknown_name
from uflip.experiment import PlannedRun
from uflip.methodology import RunFinished, RunProgress, RunStarted, measure_harness
from uflip.oc.benchmark import check_names, layout
from uflip.oc.device import FlashDevice, open_flash_device
from uflip.oc.jobs import SCALES, Place
from uflip.oc.session import check_unused, choose_sacrifice, execute
from uflip.results import Results, ResultsWriter, host_provenance
from uflip.session.events import JobsBegin, OnEvent, ignore
from uflip.session.request import SCALE, Request


def begin_jobs(
    request: Request,
    out: Path,
    on_event: OnEvent = ignore,
    *,
    command: Sequence[str] | None = None,
) -> Path:
    """Plan, open the device, and carry out every job.

    Parameters
    ----------
    request : Request
        What is wanted: `device`, `scale`, `only` and `sacrifice`; nothing else applies.
    out : Path
        New folder for the results.
    on_event : callable
        Told about everything that takes time.
    command : sequence of str, optional
        What is written down as the command; without it, that of this process.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    InterruptedRun
        After Ctrl-C; finished jobs are stored, and `uflip.session.resume` makes the others.
    RefusedError
        If the block to sacrifice is in use, or none is named for a device that is not simulated.
    UflipError
        All that can be wrong is looked for before anything is created or written.
    """
    request.check_jobs()
    scale = request.scale or SCALE
    if scale not in SCALES:
        raise unknown_name("scale", scale, SCALES, where="--scale")
    names = check_names(None if request.only is None else list(request.only))
    device = open_flash_device(request.device)
    wears = "oc1" in names
    block = choose_sacrifice(device.info, device.geometry, request.sacrifice) if wears else None
    place = Place(device.geometry, SCALES[scale], block)
    check_unused(device, place)
    runs = layout(place, names)
    with ends.shielded():
        writer = ResultsWriter.create(
            out,
            device=device.info,
            host=host_provenance(sys.argv if command is None else command),
            harness=measure_harness(),
            scale=scale,
            seed=int(device.info["details"]["profile"].get("state", {}).get("seed", 1)),
            pause_ns=0,
            plan=[run.as_dict() for run in runs],
        )
        _carry_out(device, writer, runs, on_event)
    return out


def go_on_with_jobs(folder: Path, device: str | None, on_event: OnEvent) -> None:
    """Carry out the jobs of a folder that are not there.

    Raises
    ------
    ResultsError
        If the folder is complete, or the device does not do what it did before.
    """
    results = Results.load(folder)
    url = str(results.manifest.device["url"])
    if device is not None and device != url:
        raise UsageError(
            "These results are of another device",
            where="DEVICE",
            got=device,
            allowed=url,
            action="leave DEVICE out: the results say which it is",
        )
    before = {run.id: run for run in results.runs}
    writer = ResultsWriter.resume(folder)
    try:
        opened = open_flash_device(url)
        if opened.geometry != results.manifest.device["details"]["geometry"]:
            raise ResultsError(
                "This is not the device that was measured",
                where=url,
                got="another geometry",
                allowed="the one that its manifest has",
                action="start another benchmark with a new --out",
            )
        runs = [_planned(entry) for entry in writer.manifest.plan]
        writer.replan([run.as_dict() for run in runs])
    except BaseException:
        writer.close()
        raise
    _carry_out(opened, writer, runs, on_event, {name: before[name].log() for name in writer.done})


def _planned(entry: Any) -> PlannedRun:
    names = ("id", "micro_benchmark", "pattern", "parameter", "value", "unit", "spec", "repetition")
    return PlannedRun(**{name: getattr(entry, name) for name in names})


def _carry_out(
    device: FlashDevice,
    writer: ResultsWriter,
    runs: Sequence[PlannedRun],
    on_event: OnEvent,
    before: dict[str, FlashTrace] | None = None,
) -> None:
    known = before or {}
    finished = len(known)
    on_event(JobsBegin(device.url, len(runs), finished))
    try:
        for index, run in enumerate(runs):
            ends.check()
            on_event(RunStarted(index, run))
            log = _made(device, run, index, on_event)
            if run.id in known:
                _check_the_same(run, known[run.id], log)
            else:
                writer.commit(run, log)
                finished += 1
            on_event(RunFinished(index, run, log.elapsed_ns()))
    except (KeyboardInterrupt, InterruptedRun):
        writer.finish("interrupted")
        raise InterruptedRun(
            f"Interrupted after {finished} of {len(runs)} jobs",
            where=str(writer.path),
            action=f"finished jobs are kept; `uflip run --resume {writer.path}` makes the others",
        ) from None
    except BaseException as error:
        # The disk may be full: then there is no second error to tell, the first one says it.
        with suppress(ResultsError):
            writer.finish("failed")
        if isinstance(error, UflipError):
            kept = f"the {finished} finished jobs are kept, see `uflip show {writer.path}`"
            error.action = "\n".join(part for part in (error.action, kept) if part)
        raise
    writer.finish("complete")


def _made(device: FlashDevice, run: PlannedRun, index: int, on_event: OnEvent) -> FlashTrace:
    def told(done: int, total: int, last_ns: int) -> None:
        on_event(RunProgress(index, run, done, total, last_ns))

    return execute(device, run, told)


def _check_the_same(run: PlannedRun, before: FlashTrace, now: FlashTrace) -> None:
    name = "response_time_ns" if "response_time_ns" in before.columns else "erase_ns"
    if np.array_equal(np.asarray(before.column(name)), np.asarray(now.column(name))):
        return
    raise ResultsError(
        what="The simulated device does not do what it did before",
        where=run.id,
        got="other response times from the same plan",
        allowed="the same version of uflip on the same results",
        action="start another benchmark with a new --out",
    )
