"""A subprocess that makes the runs: `python -m uflip.play.player FOLDER MEMORY_BYTES`.

It reads its request as one line from standard input, writes its progress as lines to standard
output, and ends when its standard input is closed::

    < {"url": "sim:demo?spare_factor=0.3", "benchmark": "pattern", "spec": {…}, "label": "RW"}
    > {"share": 0.41, "words": "0001-pattern-RW-io_size-4096"}
    > {"error": {…}}                                  only if it failed

A device that exceeds the memory limit ends only this process. The parent ends it after the time
limit.
"""

import json
import os
import resource
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from threading import Thread

import msgspec

from uflip import signals
from uflip.benchmark import (
    BenchmarkEvent,
    BenchmarkRequest,
    RunProgress,
    begin,
    new_benchmark_run,
)
from uflip.benchmark.events import RunsBegin, StateProgress
from uflip.benchmark.plan import plan_pattern
from uflip.benchmark.prepare import AS_IS, open_watched
from uflip.data.spec import spec_hook
from uflip.device.catalogue import inspect_device
from uflip.errors import UflipError
from uflip.play.form import PATTERN, PlayRequest


def main() -> None:
    """Make the run that the first line of the standard input requests."""
    signals.install()
    play_request = msgspec.json.decode(sys.stdin.readline(), type=PlayRequest, dec_hook=spec_hook)
    Thread(target=_exit_with_parent, daemon=True).start()
    memory_bytes = int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    signals.start_work()
    try:
        play(play_request, Path(sys.argv[1]), ProgressPrinter())
    except UflipError as error:
        _print_document({"error": error.parts()})
    except MemoryError:
        _print_document(
            {
                "error": UflipError(
                    "Not enough memory",
                    where=play_request.url,
                    action="make the device or the pattern smaller",
                ).parts()
            }
        )


def play(play_request: PlayRequest, folder: Path, reporter: "ProgressPrinter") -> None:
    """Make a result folder for a request."""
    if play_request.benchmark != PATTERN:
        request = BenchmarkRequest(
            device=play_request.url,
            scale="quick",
            only=[play_request.benchmark],
            suite=play_request.suite,
            inside=True,
        )
        begin(request, folder, reporter)
        return
    info = inspect_device(play_request.url)
    assert play_request.spec is not None, "a request of a pattern has a spec"
    plan = plan_pattern(play_request.spec, info, label=play_request.label, durability="cached")
    with signals.shielded(), open_watched(play_request.url, info, reporter) as device:
        device.looks_inside = True
        new_benchmark_run(device, plan, folder, AS_IS, command=["uflip", "explore"]).carry_out(
            on_event=reporter
        )


class ProgressPrinter:
    """Reports the progress of the runs."""

    def __init__(self) -> None:
        self._runs = 1
        self._last = ""

    def __call__(self, event: BenchmarkEvent) -> None:
        """Report an event."""
        if isinstance(event, RunsBegin):
            self._runs = len(event.plan.runs)
        elif isinstance(event, StateProgress):
            self._print(0.0, f"bringing the device into its state: {event.done / event.total:.0%}")
        elif isinstance(event, RunProgress):
            share = (event.index + event.done / max(event.total, 1)) / self._runs
            self._print(share, event.run.id)

    def _print(self, share: float, words: str) -> None:
        line = f"{share:.2f} {words}"
        if line != self._last:
            self._last = line
            _print_document({"share": round(share, 2), "words": words})


def _print_document(document: Mapping[str, object]) -> None:
    print(json.dumps(document), flush=True)


def _exit_with_parent() -> None:
    while sys.stdin.readline():
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
