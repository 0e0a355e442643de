"""Scheduling of runs: one at a time, with limits; and storage of the latest results."""

import json
import shutil
import subprocess
import sys
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from threading import Lock, Thread, Timer
from time import monotonic

import msgspec

from uflip.errors import UflipError, UnavailableError, UsageError
from uflip.play.form import MAX_MEMORY_BYTES, MAX_SECONDS, NO_TWINS, PlayRequest, Twins

MAX_RESULTS = 12
"""Number of results that are stored."""
STOP_TIMEOUT_S = 2.0
"""Maximum time for a run to end after a request."""
LINES = 20
"""Number of last output lines stored, for a process that crashed."""


@dataclass
class Played:
    """One run."""

    number: int  #: Number of the run, from 1.
    request: PlayRequest  #: The request.
    folder: Path  #: Its result folder.
    state: str = "running"  #: running, done, failed or stopped.
    share: float = 0.0  #: Finished share.
    words: str = "creating the device"  #: Current step.
    error: dict[str, str] | None = None  #: Why it failed, as from `UflipError.parts`.
    began: float = field(default_factory=monotonic)
    took_s: float = 0.0  #: Duration of a run that has ended [s].


class Stage:
    """Makes runs, one at a time; `close` ends the current run and removes all results."""

    def __init__(self, memory_bytes: int = MAX_MEMORY_BYTES, twins: Twins = NO_TWINS) -> None:
        self.twins = twins
        self._memory_bytes = memory_bytes
        self._lock = Lock()
        self._root: Path | None = None
        self._played: deque[Played] = deque()
        self._process: subprocess.Popen[str] | None = None
        self._begun = 0

    def played(self) -> list[Played]:
        """Return the runs, the latest last."""
        with self._lock:
            return [*self._played]

    def begin(self, request: PlayRequest) -> Played:
        """Start a run."""
        with self._lock:
            if self._process is not None:
                raise UsageError(
                    "Another run is in progress",
                    where="play",
                    got=f"a run during that on {self._played[-1].request.url}",
                    allowed="one at a time",
                    action="wait until it is over, or stop it",
                )
            self._begun += 1
            run = Played(self._begun, request, self._result_root() / str(self._begun))
            self._process = _start_player(run, self._memory_bytes)
            self._played.append(run)
            Thread(target=self._follow, args=(self._process, run), daemon=True).start()
        return run

    def stop(self) -> None:
        """End the current run, and discard its result."""
        with self._lock:
            process = self._process
            if process is not None:
                self._played[-1].state = "stopped"
        if process is not None:
            _end(process)

    def close(self) -> None:
        """End the current run, and remove everything."""
        self.stop()
        with self._lock:
            if self._root is not None:
                shutil.rmtree(self._root.parent, ignore_errors=True)
                self._root = None

    def _result_root(self) -> Path:
        if self._root is None:
            try:
                self._root = Path(mkdtemp(prefix="uflip-")).resolve() / "play"
                self._root.mkdir()
            except OSError as error:
                raise UnavailableError(
                    "No temporary folder can be written",
                    where="TMPDIR",
                    got=error.strerror or str(error),
                    allowed="a folder that can be written",
                    action="set TMPDIR to one, and start `uflip explore` again",
                ) from error
        return self._root

    def _follow(self, process: "subprocess.Popen[str]", run: Played) -> None:
        """Record the output of the process until it ends."""
        time_limit = Timer(MAX_SECONDS, self._too_long, (process, run))
        time_limit.daemon = True
        time_limit.start()
        last_lines: deque[str] = deque(maxlen=LINES)
        with process:
            assert process.stdout is not None, "it is a pipe"
            for line in process.stdout:
                try:
                    message = json.loads(line)
                except ValueError:  # last output of the native part or Python
                    last_lines.append(line)
                    continue
                run.share = message.get("share", run.share)
                run.words = message.get("words", run.words)
                run.error = message.get("error", run.error)
        code = process.returncode
        time_limit.cancel()
        if code and run.error is None:
            run.error = _crash_error(run, code, last_lines).parts()
        with self._lock:
            self._process = None
            run.took_s = monotonic() - run.began
            if run.state == "stopped":
                self._played.remove(run)
            if run.state == "stopped" or run.error is not None:
                shutil.rmtree(run.folder, ignore_errors=True)
            # Only a run that ended by itself replaces an older one.
            while len(self._played) > MAX_RESULTS:
                shutil.rmtree(self._played.popleft().folder, ignore_errors=True)
            if run.state == "running":
                run.state = "done" if run.error is None else "failed"

    def _too_long(self, process: "subprocess.Popen[str]", run: Played) -> None:
        run.error = UsageError(
            "The run takes too long for the explorer",
            where=run.request.url,
            got=f"{run.share:.0%} done after {MAX_SECONDS} s",
            allowed=f"at most {MAX_SECONDS} s",
            action="use fewer I/Os, a smaller device, or `uflip run` on the command line",
        ).parts()
        _end(process)


def _start_player(run: Played, memory_bytes: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "uflip.play.player", str(run.folder), str(memory_bytes)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,  # Ctrl-C in the terminal is for the explorer, which ends this one
    )
    assert process.stdin is not None, "it is a pipe"
    with suppress(OSError):  # it ended at once: see its exit code
        process.stdin.write(msgspec.json.encode(run.request).decode() + "\n")
        process.stdin.flush()
    return process


def _end(process: "subprocess.Popen[str]") -> None:
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _crash_error(run: Played, code: int, last_lines: "deque[str]") -> UflipError:
    words = next((line.strip() for line in reversed(last_lines) if line.strip()), "")
    return UflipError(
        "The run ended early",
        where=run.request.url,
        got=words or f"exit code {code}",
        action="use a smaller device: it needs less memory",
    )
