"""Opening a device by its URL, and one run on it: a specification goes down, a trace comes up."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Self, TypeVar

from uflip import _native
from uflip import durability as durabilities
from uflip.device_cache import cached, name_of
from uflip.device_url import SNAPSHOT, DeviceUrl, parse_url
from uflip.disturbance import Standing
from uflip.errors import InterruptedRun, UsageError, native_errors, unknown_name
from uflip.simulated import inspect_sim, open_sim, state_name
from uflip.spec import Spec
from uflip.units import parse_size
from uflip.waiting import COMPUTING_PATIENCE_S, OnProgress, finished

T = TypeVar("T")

DeviceInfo = dict[str, Any]
"""What is known about a device: url, kind, capacity_bytes, sector_bytes, clock, ..."""

IO_TIMEOUT_NS = 60 * 10**9
"""How long an I/O on a real device may take where nobody says so [ns]: longer than any device that
works, and than the kernel's own patience with one (30 s) before it gives up or resets it."""

DATA = ("random", "zeros")
# Every device has sectors of a multiple of this [bytes].
SMALLEST_SECTOR = 512
# A null device has no end of its own; this one holds every target of the standard plan.
NULL_CAPACITY_BYTES = 64 << 30


class Device:
    """An open device. Runs follow each other on it, and its state stays between them.

    Made by `open_device`; closed at the end of a `with` statement, or when it is released.
    """

    def __init__(
        self, native: _native.Device, url: str, durability: str = durabilities.CACHED
    ) -> None:
        self._native: _native.Device | None = native
        self._copied = Lock()
        self.url = url
        self.info = _read_info(native, url)
        """What is known about the device; plain data that goes into the manifest."""
        self.durability = durability
        """What writes wait for: cached, fua or flush:N, see `uflip.durability`."""
        self.io_timeout_ns = 0
        """How long an I/O on a real device may take [ns]; 0: for ever."""
        self._state_name: str | None = None
        """The name of its state for the cache, as long as that is known."""

    def _opened(self) -> _native.Device:
        if self._native is None:
            raise UsageError(
                "The device is closed", where=self.url, action="open it again with open_device"
            )
        return self._native

    def counters(self) -> dict[str, Any] | None:
        """Return what the device counted since it was opened; None where that is unknowable."""
        with native_errors():
            text = self._opened().counters_json()
        return None if text is None else json.loads(text)

    def standing(self) -> Standing | None:
        """Return how a file or block device stands now; None for any other device.

        Asked before and after a run, by `uflip.disturbance`.
        """
        with native_errors():
            text = self._opened().standing_json()
        return None if text is None else json.loads(text)

    def idle(self, duration_ns: int) -> None:
        """Let the device idle [ns]: sleep on a real device, let time pass on a simulated one.

        Raises
        ------
        KeyboardInterrupt
            At most `SLICE_S` after Ctrl-C, however long the pause.
        """
        self._state_name = None
        if duration_ns > 0:
            finished(lambda: self._opened().idle(duration_ns))

    def run(self, spec: Spec, on_progress: OnProgress | None = None) -> _native.Trace:
        """Execute one pattern and return the trace of all of its I/Os.

        Parameters
        ----------
        spec : Spec
            What to do, as made by `uflip.spec`.
        on_progress : callable, optional
            Called about ten times a second with (done, total, last_response_ns).

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
        text = json.dumps(spec)
        return self._finished(lambda: self._opened().start(text, self.durability), on_progress)

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
        texts = [json.dumps(spec) for spec in specs]
        return self._finished(
            lambda: self._opened().start_series(texts, self.durability), on_progress
        )

    def _finished(
        self, start: Callable[[], _native.Handle[T]], on_progress: OnProgress | None
    ) -> T:
        """Do what the device is to do; raise `InterruptedRun` after Ctrl-C."""
        try:
            return finished(start, on_progress, io_timeout_ns=self.io_timeout_ns)
        except KeyboardInterrupt:
            raise InterruptedRun(
                "The run was interrupted",
                where=self.url,
                action="start it again when it suits you; no part of its trace was kept",
            ) from None

    def enforce(
        self, state: Spec, skip_ios: int = 0, on_progress: OnProgress | None = None
    ) -> None:
        """Make the writes that bring the device into a state (uFLIP §4.1).

        On a simulated device in the untimed gear: no time passes.

        Parameters
        ----------
        state : Spec
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
            total = resolve_state(state, self.info)["totals"]["total_ios"]
            on_progress(total, total, 0)

    def _enforce(self, state: Spec, skip_ios: int, on_progress: OnProgress | None) -> None:
        self._finished(lambda: self._opened().enforce(json.dumps(state), skip_ios), on_progress)

    def save(self, path: str | Path) -> None:
        """Write a simulated device with its whole state to a new file.

        `open_device("sim:" + path)` opens it again; it then goes on as this one would.

        Parameters
        ----------
        path : str or Path
            Ends in ".snapshot"; nothing of that name may exist.

        Raises
        ------
        UsageError
            If the device is not simulated, or the name ends otherwise.
        ResultsError
            If the file exists.
        DeviceError
            If it cannot be written.
        """
        check_snapshot_name(path)
        finished(lambda: self._opened().save(str(path)), patience_s=COMPUTING_PATIENCE_S)

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
        """Do what a pattern asks for in the untimed gear of a simulated device.

        No time passes and no trace is kept; for bringing a device into a state, and for studies of
        write amplification.

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
        text = finished(lambda: self._opened().apply(json.dumps(spec)))
        counted: dict[str, int] = json.loads(text)
        return counted

    def trim(self, offset_bytes: int, size_bytes: int) -> None:
        """Tell a simulated device that a range is not needed any more [bytes].

        Flash pages that are covered only in part keep their data.

        Raises
        ------
        UsageError
            If the device is not simulated, or the range lies outside of it.
        """
        self._state_name = None
        with native_errors():
            self._opened().trim(offset_bytes, size_bytes)

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
        info: DeviceInfo = json.loads(native.info_json())
    # A simulated device has the overrides of its URL in its name.
    return info | {"url": url} if info["kind"] == "sim" else info


def open_device(
    url: str,
    *,
    size: str | int | None = None,
    buffered: bool = False,
    durability: str | None = None,
    data: str = "random",
    writable: bool = True,
    destroy: str | None = None,
    brand: str | None = None,
    io_timeout_ns: int = IO_TIMEOUT_NS,
    on_progress: OnProgress | None = None,
) -> Device:
    """Open a device for runs.

    Parameters
    ----------
    url : str
        One of the forms in `uflip.device_url`.
    size : str or int, optional
        For `file:`, create the file, or grow it, to this size [bytes]; for `null`, its size.
        Without it a file must exist, and is used as it is.
    buffered : bool
        Accept I/O through the page cache, where direct I/O is not possible or not wanted.
    durability : str, optional
        What a write waits for: "cached", "fua" or "flush:N" (`uflip.durability`). Without it
        "cached", and "fua" where the page cache would take the data.
    data : str
        What is written: "random" (incompressible) or "zeros".
    writable : bool
        Open for writing as well.
    destroy : str, optional
        For a block device that is to be written: its token, as `uflip devices` shows it. For a file
        that is there and was not made by uflip: its path once more. Both with what they hold, as in
        "+ext4".
    brand : str, optional
        For a block device: the brand that data on it had before, where none is found there.
    io_timeout_ns : int
        How long an I/O on a file or block device may take [ns]; 0: for ever. One that takes longer
        is given up as a `DeviceError`.
    on_progress : callable, optional
        Called about ten times a second while a file is brought to its size, with (writes made,
        writes in all, last response time [ns]).

    Returns
    -------
    Device

    Raises
    ------
    UsageError
        For an unknown device or profile, or options that do not fit the device.
    RefusedError
        For writing to anything that is in use, to a block device without its exact token, or to a
        file that uflip did not make.
    DeviceError
        If it cannot be opened, or a file not be brought to its size; it is then as it was.
    InterruptedRun
        After Ctrl-C while a file is brought to its size; it is then as it was.

    Examples
    --------
    >>> open_device("null").info["kind"]
    'null'
    """
    target = parse_url(url)
    size_bytes = check_options(target, size, data, destroy, buffered=buffered)
    durability = durabilities.chosen(durability, buffered=buffered)
    if target.kind == "sim":
        return _open_simulated(target, durability)
    if target.kind == "null":
        return Device(open_null(size_bytes), url, durability)
    if target.kind == "block":
        with native_errors():
            block = _native.Device.block(
                target.name,
                writable=writable,
                buffered=buffered,
                data=data,
                destroy=destroy,
                brand=brand,
            )
        return _with_timeout(Device(block, url, durability), io_timeout_ns)
    present = Path(target.name).exists()

    def make() -> _native.Handle[_native.Device]:
        return _native.Device.file(
            target.name,
            writable=writable,
            buffered=buffered,
            data=data,
            size_bytes=size_bytes,
            destroy=destroy,
        )

    file = _file_of_its_size(make, url, on_progress, io_timeout_ns, present=present)
    return _with_timeout(Device(file, url, durability), io_timeout_ns)


def _with_timeout(device: Device, io_timeout_ns: int) -> Device:
    device.io_timeout_ns = io_timeout_ns
    return device


def _file_of_its_size(
    make: Callable[[], _native.Handle[_native.Device]],
    url: str,
    on_progress: OnProgress | None,
    io_timeout_ns: int,
    *,
    present: bool,
) -> _native.Device:
    """Wait until a file has the size that was asked for."""
    done, total = 0, 0

    def progress(made: int, in_all: int, response_ns: int) -> None:
        nonlocal done, total
        done, total = made, in_all
        if on_progress is not None:
            on_progress(made, in_all, response_ns)

    try:
        return finished(make, progress, io_timeout_ns=io_timeout_ns)
    except KeyboardInterrupt:
        raise InterruptedRun(
            f"Interrupted after {done} of {total} MiB of the file were written",
            where=url,
            action="the file is as long as it was before" if present else "the file was removed",
        ) from None


def _open_simulated(target: DeviceUrl, durability: str) -> Device:
    device = Device(open_sim(target), target.text, durability)
    if target.name.endswith(SNAPSHOT):
        device.info = inspect_sim(target) | {"url": target.text}
    device._state_name = state_name(device.info)
    return device


def check_snapshot_name(path: str | Path) -> None:
    """Refuse a name by which a snapshot would not be found again.

    Raises
    ------
    UsageError
        If it does not end in ".snapshot".
    """
    if not str(path).endswith(SNAPSHOT):
        raise UsageError(
            "The name of the snapshot does not say what it is",
            where=str(path),
            allowed=f"FILE{SNAPSHOT}",
            action=f"call it {path}{SNAPSHOT}",
        )


def resolve(spec: Spec, info: DeviceInfo) -> Spec:
    """Check a specification against a device and fill in the defaults; nothing is touched.

    Parameters
    ----------
    spec : Spec
        As made by `uflip.spec`.
    info : DeviceInfo
        The device.

    Returns
    -------
    Spec
        Complete, and with "totals": total_ios, bytes_read, bytes_written, pause_ns.

    Raises
    ------
    UsageError
        If it does not make sense, or does not fit the device.

    Examples
    --------
    >>> info = open_device("null").info
    >>> resolve({"kind": "basic", "mode": "read", "location": "random"}, info)["io_size"]
    32768
    """
    with native_errors():
        text = _native.resolve_pattern(
            json.dumps(spec), info["capacity_bytes"], info["sector_bytes"], info["kind"]
        )
    resolved: Spec = json.loads(text)
    return resolved


def resolve_state(state: Spec, info: DeviceInfo) -> Spec:
    """Check a state against a device and fill in the defaults; nothing is touched.

    Parameters
    ----------
    state : Spec
        state ("random" or "sequential"); optional target_offset, target_size, io_size_max,
        random_bytes [bytes], seed.
    info : DeviceInfo
        The device.

    Returns
    -------
    Spec
        Complete, and with "totals": total_ios, bytes_written.

    Raises
    ------
    UsageError
        If it does not make sense, or does not fit the device.

    Examples
    --------
    >>> info = open_device("null", size="1MiB").info
    >>> resolve_state({"state": "sequential"}, info)["totals"]
    {'total_ios': 8, 'bytes_written': 1048576}
    """
    with native_errors():
        text = _native.resolve_state(
            json.dumps(state), info["capacity_bytes"], info["sector_bytes"]
        )
    resolved: Spec = json.loads(text)
    return resolved


def check_options(
    target: DeviceUrl,
    size: str | int | None = None,
    data: str = DATA[0],
    destroy: str | None = None,
    *,
    buffered: bool = False,
) -> int | None:
    """Check what can be checked before any device is touched; return the size [bytes].

    Raises
    ------
    UsageError
        For options that do not belong to the device, or a size that no device has.
    """
    if data not in DATA:
        raise unknown_name("data", data, DATA, where="--data")
    if data != DATA[0] and target.kind not in ("file", "block"):
        raise UsageError(
            "--data belongs to files and block devices only",
            where="--data",
            got=f"{target.text} with --data {data}",
            allowed="file:PATH, /dev/NAME",
            action="leave --data away: nothing is stored on this device",
        )
    if buffered and target.kind not in ("file", "block"):
        raise UsageError(
            "--buffered belongs to files and block devices only",
            where="--buffered",
            got=f"{target.text} with --buffered",
            allowed="file:PATH, /dev/NAME",
            action="leave --buffered away: no page cache lies before this device",
        )
    # A file's own name, and behind it what it holds.
    of_file = target.kind == "file" and (destroy or "").startswith(target.name)
    its_own = of_file and (destroy or "").removeprefix(target.name)[:1] in ("", "+")
    if destroy is not None and target.kind != "block" and not its_own:
        raise UsageError(
            "--destroy belongs to block devices, and to a file by its own name",
            where="--destroy",
            got=f"{target.text} with --destroy {destroy}",
            action="leave --destroy away",
        )
    if size is None:
        return None
    if target.kind not in ("file", "null"):
        raise UsageError(
            "--size belongs to files only",
            where="--size",
            got=f"{target.text} with --size {size}",
            allowed="file:PATH, null",
            action="leave --size away: the device has a size of its own",
        )
    size_bytes = parse_size(size, where="--size")
    if size_bytes == 0 or size_bytes % SMALLEST_SECTOR:
        raise UsageError(
            "The size is not a whole number of sectors",
            where="--size",
            got=f"{size} ({size_bytes} bytes)",
            allowed=f"multiples of {SMALLEST_SECTOR} bytes, as in 64MiB, 1GiB",
            action="give another --size",
        )
    return size_bytes


def open_null(size_bytes: int | None) -> _native.Device:
    """Make a null device of a size [bytes], or of a size that fits everything."""
    with native_errors():
        return _native.Device.null(NULL_CAPACITY_BYTES if size_bytes is None else size_bytes)
