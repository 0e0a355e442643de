"""An open device, and one run on it: a specification goes down, a trace comes up."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Self, TypeVar

from msgspec.structs import replace

from uflip import _native
from uflip import durability as durabilities
from uflip.data.device import DeviceInfo, read_info
from uflip.data.spec import Spec, text_of
from uflip.device.cache import cached, name_of
from uflip.device.disturbance import Standing
from uflip.device.management import Managed
from uflip.device.resolve import resolve_state
from uflip.device.snapshot_file import Saved
from uflip.errors import InterruptedRun, UsageError, native_errors
from uflip.native_wait import COMPUTING_PATIENCE_S, OnProgress, finished
from uflip.units import parse_duration

T = TypeVar("T")


class Device(Managed, Saved):
    """An open device. Runs follow each other on it, and its state stays between them.

    Made by `open_device`; closed at the end of a `with` statement, or when it is released.

    Parameters
    ----------
    native : _native.Device
        What does the I/O.
    url : str
        How it was named.
    durability : str
        What writes wait for: cached, fua or flush:N.
    """

    def __init__(
        self, native: _native.Device, url: str, durability: str = durabilities.CACHED
    ) -> None:
        self._native: _native.Device | None = native
        self._copied = Lock()
        self.url = url
        self.info = _read_info(native, url)
        """What is known about the device; it goes into the manifest."""
        self.durability = durability
        """What writes wait for: cached, fua or flush:N, see `uflip.durability`."""
        self.io_timeout_ns = 0
        """How long an I/O on a real device may take [ns]; 0: for ever."""
        self._ios: _native.Ios | None = None
        self.looks_inside = False  # whether what happens inside of it is recorded with each run
        self._state_name: str | None = None
        """The name of its state for the cache, as long as that is known."""

    def _opened(self) -> _native.Device:
        if self._native is None:
            raise UsageError(
                "The device is closed", where=self.url, action="open it again with open_device"
            )
        return self._native

    def native(self) -> _native.Device:
        """Return the native part, to be worked on by others; its state is then as they leave it."""
        self._state_name = None
        return self._opened()

    def counters(self) -> dict[str, int] | None:
        """Return what the device counted since it was opened.

        Returns
        -------
        dict or None
            Programs, erases, moved pages, ...; None where that is unknowable.
        """
        with native_errors():
            text = self._opened().counters_json()
        return None if text is None else json.loads(text)

    def standing(self) -> Standing | None:
        """Return how a file or block device stands now; None for any other device.

        Asked before and after a run, by `uflip.device.disturbance`.
        """
        with native_errors():
            text = self._opened().standing_json()
        return None if text is None else json.loads(text)

    def idle(self, duration_ns: int) -> None:
        """Let the device idle: sleep on a real device, let time pass on a simulated one.

        Parameters
        ----------
        duration_ns : int
            For so long [ns].

        Raises
        ------
        UsageError
            If that is no duration.
        KeyboardInterrupt
            At most `SLICE_S` after Ctrl-C, however long the pause.
        """
        duration = parse_duration(duration_ns, "duration_ns")
        self._state_name = None
        if duration > 0:
            finished(lambda: self._opened().idle(duration))

    def give(self, ios: _native.Ios) -> None:
        """Let `run` find the I/Os of a list, which the specification of a replay only names.

        Parameters
        ----------
        ios : _native.Ios
            The I/Os of a recorded trace.
        """
        self._ios = ios

    def run(
        self,
        spec: Spec,
        on_progress: OnProgress | None = None,
        *,
        spool: Path | None = None,
        in_pieces: bool = False,
        samples: bool = False,
    ) -> _native.Trace:
        """Execute one pattern and return the trace of all of its I/Os.

        Parameters
        ----------
        spec : Spec
            What to do, as made by `uflip.spec`.
        on_progress : callable, optional
            Called about ten times a second with (done, total, last_response_ns).
        spool : Path, optional
            A folder for the I/Os of a long run, to which they go while it lasts. Without one those
            of a simulated device stay in memory, packed; those of a real one as they are.
        in_pieces : bool
            Only parts of the columns will be read of a trace that is in a file. Without it, memory
            for whole columns must be free before a long run begins.
        samples : bool
            Look inside a simulated device, for `uflip.device.counter_samples`.

        Returns
        -------
        Trace
            One row per I/O.

        Raises
        ------
        UsageError
            If the specification does not make sense, or does not fit the device.
        DeviceError
            If an I/O fails.
        InterruptedRun
            After Ctrl-C; the run is stopped and its trace dropped.
        """
        self._state_name = None
        text = text_of(spec)
        place = None if spool is None else str(spool)
        inside = self.looks_inside or (samples and self.info.simulated)
        rest = self.durability, place, self._ios, inside, in_pieces
        return self._finished(lambda: self._opened().start(text, *rest), on_progress, measures=True)

    def run_series(
        self, specs: Sequence[Spec], on_progress: OnProgress | None = None
    ) -> list[tuple[int, _native.Trace]]:
        """Execute patterns one right after the other, without a rest of the device between them.

        Parameters
        ----------
        specs : sequence of Spec
            What to do; none of them may find its length itself.
        on_progress : callable, optional
            Called about ten times a second with (done, total, last_response_ns) of all together.

        Returns
        -------
        list of (int, Trace)
            For each pattern when it began, since the first one did [ns], and its I/Os.

        Raises
        ------
        UflipError
            As `run`; the traces of all are dropped then.
        """
        self._state_name = None
        texts = [text_of(spec) for spec in specs]
        return self._finished(
            lambda: self._opened().start_series(texts, self.durability), on_progress, measures=True
        )

    def _finished(
        self,
        start: Callable[[], _native.Handle[T]],
        on_progress: OnProgress | None,
        *,
        measures: bool = False,
    ) -> T:
        """Do what the device is to do; raise `InterruptedRun` after Ctrl-C."""
        try:
            return finished(start, on_progress, io_timeout_ns=self.io_timeout_ns, measures=measures)
        except KeyboardInterrupt:
            raise InterruptedRun(
                "The run was interrupted",
                where=self.url,
                action="start it again when it suits you; no part of its trace was kept",
            ) from None

    def enforce(
        self,
        state: Mapping[str, object],
        skip_ios: int = 0,
        on_progress: OnProgress | None = None,
    ) -> None:
        """Make the writes that bring the device into a state (uFLIP §4.1).

        On a simulated device in functional mode: no time passes.

        Parameters
        ----------
        state : mapping
            As `resolve_state` takes it.
        skip_ios : int
            Leave out so many writes, which were made before.
        on_progress : callable, optional
            Called about ten times a second, and at the end, whatever ends it.

        Raises
        ------
        UsageError
            If the state does not make sense, or does not fit the device.
        DeviceError
            If a write fails.
        InterruptedRun
            After Ctrl-C.
        """
        before, self._state_name = self._state_name, None
        if before is None or skip_ios:
            self._enforce(state, skip_ios, on_progress)
            return

        made = False

        def make() -> _native.Device:
            nonlocal made
            made = True
            self._enforce(state, skip_ios, on_progress)
            return self._opened()

        # The same writes to the same simulated device: it may be in the cache.
        after = name_of(before, "enforce", state)
        self._native = cached(after, make)
        self._state_name = after
        if on_progress is not None and not made:
            total = resolve_state(state, self.info).totals.total_ios
            on_progress(total, total, 0)

    def _enforce(
        self, state: Mapping[str, object], skip_ios: int, on_progress: OnProgress | None
    ) -> None:
        text = json.dumps(state)
        self._finished(lambda: self._opened().enforce(text, skip_ios), on_progress)

    def clone(self) -> "Device":
        """Return a simulated device of its own in the same state.

        Raises
        ------
        UsageError
            If the device is not simulated.
        """
        copy = Device(self.native_copy(), self.url, self.durability)
        copy.info, copy._state_name = self.info, self._state_name
        return copy

    def native_copy(self) -> _native.Device:
        """Copy the native part; threads that share a device may ask for copies at the same time."""
        with self._copied:
            return finished(lambda: self._opened().clone(), patience_s=COMPUTING_PATIENCE_S)

    def apply(self, spec: Spec) -> dict[str, int]:
        """Do what a pattern asks for in functional mode of a simulated device.

        No time passes and no trace is kept; for bringing a device into a state, and for studies of
        write amplification.

        Parameters
        ----------
        spec : Spec
            Any pattern that `run` takes.

        Returns
        -------
        dict
            What was counted, by the names of `counters`.

        Raises
        ------
        UsageError
            If the device is not simulated, or the specification does not fit it.
        """
        self._state_name = None
        text = finished(lambda: self._opened().apply(text_of(spec)))
        counted: dict[str, int] = json.loads(text)
        return counted

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._native = None  # the last reference: the native part closes the device


def _read_info(native: _native.Device, url: str) -> DeviceInfo:
    with native_errors():
        info = read_info(native.info_json())
    # A simulated device has the overrides of its URL in its name.
    return replace(info, url=url) if info.simulated else info
