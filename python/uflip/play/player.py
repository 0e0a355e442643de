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
from uflip.data.spec import spec_hook
from uflip.device.catalogue import inspect_device
from uflip.errors import UflipError
from uflip.methodology import RunProgress
from uflip.play.play_request import PATTERN, PlayRequest
from uflip.session import BenchmarkRequest, SessionEvent, begin, new_benchmark_run, single
from uflip.session.events import RunsBegin, StateProgress
from uflip.session.open_device import open_watched
from uflip.session.state import AS_IS


def main() -> None:
    """Make the run that the first line of the standard input requests."""
    signals.install()
    wanted = msgspec.json.decode(sys.stdin.readline(), type=PlayRequest, dec_hook=spec_hook)
    Thread(target=_end_with_the_other, daemon=True).start()
    most = int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    signals.start_work()
    try:
        play(wanted, Path(sys.argv[1]), Teller())
    except UflipError as error:
        _tell({"error": error.parts()})
    except MemoryError:
        _tell(
            {
                "error": UflipError(
                    "Not enough memory",
                    where=wanted.url,
                    action="make the device or the pattern smaller",
                ).parts()
            }
        )


def play(wanted: PlayRequest, folder: Path, teller: "Teller") -> None:
    """Make a result folder for a request."""
    if wanted.benchmark != PATTERN:
        request = BenchmarkRequest(
            device=wanted.url, scale="quick", only=[wanted.benchmark], inside=True
        )
        begin(request, folder, teller)
        return
    info = inspect_device(wanted.url)
    assert wanted.spec is not None, "a request of a pattern has a spec"
    plan = single.plan_pattern(wanted.spec, info, label=wanted.label, durability="cached")
    with signals.shielded(), open_watched(wanted.url, info, teller) as device:
        device.looks_inside = True
        new_benchmark_run(device, plan, folder, AS_IS, command=["uflip", "explore"]).carry_out(
            on_event=teller
        )


class Teller:
    """Reports the progress of the runs."""

    def __init__(self) -> None:
        self._runs = 1
        self._last = ""

    def __call__(self, event: SessionEvent) -> None:
        """Report an event."""
        if isinstance(event, RunsBegin):
            self._runs = len(event.plan.runs)
        elif isinstance(event, StateProgress):
            self._say(0.0, f"bringing the device into its state: {event.done / event.total:.0%}")
        elif isinstance(event, RunProgress):
            share = (event.index + event.done / max(event.total, 1)) / self._runs
            self._say(share, event.run.id)

    def _say(self, share: float, words: str) -> None:
        line = f"{share:.2f} {words}"
        if line != self._last:
            self._last = line
            _tell({"share": round(share, 2), "words": words})


def _tell(document: Mapping[str, object]) -> None:
    print(json.dumps(document), flush=True)


def _end_with_the_other() -> None:
    while sys.stdin.readline():
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
