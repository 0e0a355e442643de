"""An open device, and runs on it: each takes a specification and returns a trace."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Self, TypeVar

from msgspec.structs import replace

from uflip import _native
from uflip import durability as durabilities
from uflip.benchmark_options import MAX_IOS_IN_FLIGHT
from uflip.data.counters import DriveCounters
from uflip.data.device import (
    DeviceInfo,
    PowerLoss,
    Zone,
    ZoneReport,
    read_info,
    read_power_loss,
    read_zones,
)
from uflip.data.document import plain
from uflip.data.energy import PowerRecord
from uflip.data.host_load import HostRecord
from uflip.data.spec import Spec, text_of
from uflip.device.cache import cache_key, cached_device
from uflip.device.counters import CounterReader
from uflip.device.host_load import HostSampler
from uflip.device.identity import TargetStatus
from uflip.device.power import PowerSampler, measured_with
from uflip.device.resolve import resolve_state
from uflip.device.url import check_snapshot_name
from uflip.errors import InterruptedRun, UsageError, native_errors
from uflip.native_wait import COMPUTE_CANCEL_TIMEOUT_S, OnLive, OnProgress, run_native
from uflip.units import parse_count, parse_duration

T = TypeVar("T")

COMMANDS = ("reset", "finish", "open", "close")
"""Zone commands without data."""

MAX_COUNTER_SAMPLES = 128
"""Number of samples stored with a run: more than its rounds."""


class Saved:
    """The method of `Device` and `FlashDevice` that saves it to a file."""

    def _opened(self) -> _native.Device | _native.FlashDevice:
        raise NotImplementedError

    def save(self, path: str | Path) -> None:
        """Write a simulated device with its whole state to a new file.

        `open_device("sim:" + path)`, or `open_flash_device` for an open-channel device, opens it
        again; it then continues as this one would.

        `path`: ends in ".snapshot"; the name must not exist. Raises UsageError if the device is not
        simulated, or the name has another ending. Raises ResultsError if the file exists, or cannot
        be written.
        """
        check_snapshot_name(path)
        run_native(
            lambda: self._opened().save(str(path)), cancel_timeout_s=COMPUTE_CANCEL_TIMEOUT_S
        )


class Device(Saved):
    """An open device. Its state persists from run to run.

    Made by `open_device`; closed at the end of a `with` statement, or when it is released.

    Parameters
    ----------
    native : _native.Device
        The native device, which makes the I/Os.
    url : str
        Its name.
    durability : str
        Durability of writes: cached, fua or flush:N.
    """

    def __init__(
        self, native: _native.Device, url: str, durability: str = durabilities.CACHED
    ) -> None:
        self._native: _native.Device | None = native
        self._copied = Lock()
        self.url = url
        self.info = _read_info(native, url)
        """Properties of the device, for the manifest."""
        self.durability = durability
        """Durability of writes: cached, fua or flush:N, see `uflip.durability`."""
        self.io_timeout_ns = 0
        """Time limit of an I/O on a real device [ns]; 0: none."""
        self._ios: _native.Ios | None = None
        self._counter_reader: CounterReader | None = None
        self.power: PowerSampler | None = None
        """Meter that is sampled during each run."""
        self.power_record: PowerRecord | None = None
        """The power during the last run; None without a meter."""
        self.host_record: HostRecord | None = None
        """The load of the host during the last run; None of a simulated device."""
        self.live_ns: int | None = None  # interval of the rows for on_live, on the device's clock
        self.looks_inside = False  # whether a device log is recorded with each run
        self._state_name: str | None = None
        """The cache name of its state, while that is known."""

    def _opened(self) -> _native.Device:
        if self._native is None:
            raise UsageError(
                "The device is closed", where=self.url, action="open it again with open_device"
            )
        return self._native

    def native(self) -> _native.Device:
        """Return the native device for other code; its state is unknown afterwards."""
        self._state_name = None
        return self._opened()

    def counters(self) -> dict[str, int] | None:
        """Return the counters of the device since it was opened.

        Returns
        -------
        dict or None
            Programs, erases, moved pages, ...; None for a device without counters.
        """
        with native_errors():
            text = self._opened().counters_json()
        return None if text is None else json.loads(text)

    def drive_counters(self) -> DriveCounters:
        """Read the counters of the drive of a real device; other devices have no counters.

        Returns
        -------
        DriveCounters
            With the reason, if the device has no counters.

        Examples
        --------
        >>> from uflip import open_device
        >>> open_device("null").drive_counters().problem
        'the null device is not a drive'
        """
        if self._counter_reader is None:
            self._counter_reader = CounterReader(self.info)
        return self._counter_reader.read()

    def target_status(self) -> TargetStatus | None:
        """Return the current status of a file or block device; None for any other device.

        `uflip.device.identity` compares it before and after a run.
        """
        with native_errors():
            text = self._opened().standing_json()
        return None if text is None else json.loads(text)

    def idle(self, duration_ns: int) -> None:
        """Let the device idle: sleep on a real device, let time pass on a simulated one.

        Parameters
        ----------
        duration_ns : int
            The idle time [ns].

        Raises
        ------
        UsageError
            If it is not a duration.
        KeyboardInterrupt
            At most `SLICE_S` after Ctrl-C, however long the pause.
        """
        duration = parse_duration(duration_ns, "duration_ns")
        self._state_name = None
        if duration > 0:
            run_native(lambda: self._opened().idle(duration))

    def set_replay_ios(self, ios: _native.Ios) -> None:
        """Provide the I/Os of a list, which the specification of a replay only identifies.

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
        durability: str | None = None,
        verify: bool = False,
        on_live: OnLive | None = None,
    ) -> _native.Trace:
        """Execute one pattern and return the trace of all of its I/Os.

        Parameters
        ----------
        spec : Spec
            The specification, from `uflip.spec`.
        on_progress : callable, optional
            Called about ten times a second with (done, total, last_response_ns).
        spool : Path, optional
            A folder for the I/Os of a long run during the run. Without one those of a simulated
            device stay in memory, compressed; those of a real one uncompressed.
        in_pieces : bool
            Only parts of the columns will be read from a trace in a file. Without it, memory for
            whole columns must be free before a long run begins.
        samples : bool
            Record a simulated device's log, for `counter_samples`.
        durability : str, optional
            Durability of the writes of this run; without it that of the device.
        verify : bool
            Write stamped data, and compare it after the run.
        on_live : callable, optional
            Called during the run with its rows of `live_ns` each; see
            `uflip.results.time_rows.live_rows`.

        Returns
        -------
        Trace
            One row per I/O.

        Raises
        ------
        UsageError
            If the specification is invalid, or does not fit the device.
        DeviceError
            If an I/O fails, or data differs.
        InterruptedRun
            After Ctrl-C; the run is stopped and its trace dropped.
        """
        self._state_name = None
        text = text_of(spec)
        spool_folder = None if spool is None else str(spool)
        inside = self.looks_inside or (samples and self.info.simulated)
        settings = (
            durability or self.durability,
            spool_folder,
            self._ios,
            inside,
            in_pieces,
            verify,
            None if on_live is None else self.live_ns,
        )
        return self._wait_for_result(
            lambda: self._opened().start(text, *settings),
            on_progress,
            on_live=on_live,
            measures=True,
        )

    def run_series(
        self, specs: Sequence[Spec], on_progress: OnProgress | None = None
    ) -> list[tuple[int, _native.Trace]]:
        """Execute patterns one right after the other, without idle time between them.

        Parameters
        ----------
        specs : sequence of Spec
            The specifications, without stop rules.
        on_progress : callable, optional
            Called about ten times a second with (done, total, last_response_ns) of all together.

        Returns
        -------
        list of (int, Trace)
            For each pattern its begin after that of the first [ns], and its I/Os.

        Raises
        ------
        UflipError
            From `run`; all traces are dropped then.
        """
        self._state_name = None
        texts = [text_of(spec) for spec in specs]
        return self._wait_for_result(
            lambda: self._opened().start_series(texts, self.durability), on_progress, measures=True
        )

    def _wait_for_result(
        self,
        start: Callable[[], _native.Handle[T]],
        on_progress: OnProgress | None,
        *,
        on_live: OnLive | None = None,
        measures: bool = False,
    ) -> T:
        """Wait for the work of the device; raise `InterruptedRun` after Ctrl-C."""
        host = HostSampler() if measures and self.info.real else None
        handles: list[_native.Handle[T]] = []

        def start_run() -> _native.Handle[T]:
            handles.append(start())
            return handles[0]

        if host is not None:
            host.start()
        try:
            result, self.power_record = measured_with(
                self.power if measures else None,
                lambda: run_native(
                    start_run,
                    on_progress,
                    on_live=on_live,
                    io_timeout_ns=self.io_timeout_ns,
                    measures=measures,
                ),
            )
            return result
        except KeyboardInterrupt:
            raise InterruptedRun(
                "The run was interrupted",
                where=self.url,
                action="start it again; no part of its trace was stored",
            ) from None
        finally:
            if host is not None:
                self.host_record = host.finish(handles[0].began_ns() if handles else 0)

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
            As for `resolve_state`.
        skip_ios : int
            Number of writes to skip, which were made before.
        on_progress : callable, optional
            Called about ten times a second, and at the end, also after an error.

        Raises
        ------
        UsageError
            If the state is invalid, or does not fit the device.
        DeviceError
            If a write fails.
        InterruptedRun
            After Ctrl-C.
        """
        before, self._state_name = self._state_name, None
        if before is None or skip_ios:
            self._enforce(state, skip_ios, on_progress)
            return

        was_enforced = False

        def make() -> _native.Device:
            nonlocal was_enforced
            was_enforced = True
            self._enforce(state, skip_ios, on_progress)
            return self._opened()

        # The same writes to the same simulated device may be in the cache.
        after = cache_key(before, "enforce", state)
        self._native = cached_device(after, make)
        self._state_name = after
        if on_progress is not None and not was_enforced:
            total = resolve_state(state, self.info).totals.total_ios
            on_progress(total, total, 0)

    def _enforce(
        self, state: Mapping[str, object], skip_ios: int, on_progress: OnProgress | None
    ) -> None:
        text = json.dumps(state)
        self._wait_for_result(lambda: self._opened().enforce(text, skip_ios), on_progress)

    def clone(self) -> Device:
        """Return an independent copy of a simulated device, in the same state.

        Raises
        ------
        UsageError
            If the device is not simulated.
        """
        copy = Device(self.native_copy(), self.url, self.durability)
        copy.info, copy._state_name = self.info, self._state_name
        return copy

    def native_copy(self) -> _native.Device:
        """Copy the native device; threads that share a device may copy it concurrently."""
        with self._copied:
            return run_native(
                lambda: self._opened().clone(), cancel_timeout_s=COMPUTE_CANCEL_TIMEOUT_S
            )

    def apply(self, spec: Spec) -> dict[str, int]:
        """Execute a pattern in functional mode of a simulated device.

        No time passes and no trace is kept. Use it to bring a device into a state, or to study
        write amplification.

        Parameters
        ----------
        spec : Spec
            Any pattern for `run`.

        Returns
        -------
        dict
            Counters, by the names of `counters`.

        Raises
        ------
        UsageError
            If the device is not simulated, or the specification does not fit it.
        """
        self._state_name = None
        text = run_native(lambda: self._opened().apply(text_of(spec)))
        counted: dict[str, int] = json.loads(text)
        return counted

    def trim(self, offset_bytes: int, size_bytes: int) -> None:
        """Deallocate a range of the device: its data is lost.

        A discard, a hole in a file, a trim over NBD; on a simulated device whole flash pages.

        Parameters
        ----------
        offset_bytes, size_bytes : int
            The range [bytes], whole sectors.

        Raises
        ------
        UflipError
            If the range is outside the device, the device does not support it, or is read-only.
        """
        offset = parse_count(offset_bytes, "offset_bytes")
        size = parse_count(size_bytes, "size_bytes")
        self._state_name = None
        with native_errors():
            self._opened().trim(offset, size)

    def zones(self) -> ZoneReport:
        """Return the current zones of the device.

        Returns
        -------
        ZoneReport

        Raises
        ------
        UsageError
            If the device has no zones.
        DeviceError
            If the zones cannot be read.

        Examples
        --------
        >>> from uflip.device.opener import open_device
        >>> with open_device("sim:zns") as device:
        ...     device.append(3, 8192), device.append(3, 4096), device.zones().zones[3].state
        ((301989888, 4060), (301998080, 2780), 'implicitly_open')
        """
        with native_errors():
            text = self._opened().zones_json()
        if text is None:
            raise UsageError(
                "The device has no zones",
                where=self.url,
                allowed="a simulated device with zones (sim:zns), a zoned disk or NVMe namespace",
                action="see `uflip info DEVICE`",
            )
        return read_zones(text)

    def zone(self, number: int) -> Zone:
        """Return one zone; see `zones`.

        Parameters
        ----------
        number : int
            Its number, from 0 on.

        Raises
        ------
        UsageError
            If it is not the number of a zone.
        """
        number = parse_count(number, "number of a zone", -(2**63))
        zones = self.zones().zones
        if not 0 <= number < len(zones):
            raise UsageError(
                "The device has no such zone",
                where=self.url,
                got=str(number),
                allowed=f"0 to {len(zones) - 1}",
                action="`uflip zones DEVICE` lists them",
            )
        return zones[number]

    def append(self, number: int, size_bytes: int) -> tuple[int, int]:
        """Append to a zone: the device chooses the address of the data.

        Parameters
        ----------
        number : int
            Number of the zone.
        size_bytes : int
            Size of the data [bytes], whole sectors.

        Returns
        -------
        tuple of int
            Address of the data on the device [bytes], and the response time [ns].

        Raises
        ------
        UflipError
            If the zone refuses it; on a block device, which has no append: see nvme:/dev/NAME.
        """
        zone, size = self.zone(number), parse_count(size_bytes, "size_bytes")
        response_ns = self._command("append", zone.start_bytes, size)
        return zone.write_pointer_bytes, response_ns

    def manage_zone(self, command: str, number: int) -> int:
        """Reset, finish, open or close a zone.

        Parameters
        ----------
        command : str
            One of `COMMANDS`. A reset deletes the data of the zone.
        number : int
            Number of the zone.

        Returns
        -------
        int
            The response time [ns].

        Raises
        ------
        UflipError
            For an unknown zone or command, or if the state of the zone does not permit it.
        """
        if command not in COMMANDS:
            raise UsageError(
                "Unknown zone command",
                got=command,
                allowed=", ".join(COMMANDS),
                action="name one of these",
            )
        return self._command(command, self.zone(number).start_bytes, self.zones().zone_bytes)

    def _command(self, command: str, offset_bytes: int, size_bytes: int) -> int:
        self._state_name = None
        with native_errors():
            return self._opened().zone_command(command, offset_bytes, size_bytes)

    def prepare_zones(self, spec: Spec) -> None:
        """Bring the zones of a pattern into the state that it needs; their data is lost.

        Zones that it writes are reset, zones that it only reads are filled, and no other zone is
        left open or closed. On a simulated device that takes no time.

        Parameters
        ----------
        spec : Spec
            The specification for `run`.

        Raises
        ------
        UflipError
            If the device has no zones, or refuses.
        """
        self._state_name = None
        run_native(lambda: self._opened().prepare_zones(text_of(spec)))

    def cut_power(
        self,
        after_ns: int = 0,
        spec: Spec | None = None,
        queue_depth: int = 1,
        on_progress: OnProgress | None = None,
    ) -> PowerLoss:
        """Cut the power of a simulated device while it works, and let it recover.

        Its profile needs the table `[power_loss]`: `sim:demo?power_loss_protection=false` and
        `spare_read_bytes=16` add it. Writes have the durability of the device.

        Parameters
        ----------
        after_ns : int
            Time before the power cut, with the pattern or idle [ns].
        spec : Spec, optional
            The load of the host until then: any pattern for `run`; its I/Os follow each other, and
            after it the device idles.
        queue_depth : int
            Number of I/Os in flight.
        on_progress : callable, optional
            Called about ten times a second, while it recovers too, with (I/Os made, I/Os of the
            pattern, 0).

        Returns
        -------
        PowerLoss
            Lost data, pages read for recovery, and the time until the device was ready again.

        Raises
        ------
        UsageError
            If the device is not simulated, or does not track the content of its flash; for an
            invalid time or depth.
        """
        after = parse_duration(after_ns, "after_ns")
        depth = parse_count(queue_depth, "queue_depth", 1, MAX_IOS_IN_FLIGHT)
        self._state_name = None
        text = None if spec is None else text_of(spec)
        arguments = (after, text, self.durability, depth)
        report = run_native(lambda: self._opened().cut_power(*arguments), on_progress)
        return read_power_loss(report)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._native = None  # the last reference: the native part closes the device


def _read_info(native: _native.Device, url: str) -> DeviceInfo:
    with native_errors():
        info = read_info(native.info_json())
    # The name of a simulated device includes the overrides of its URL.
    return replace(info, url=url) if info.simulated else info


def zone_rows(report: ZoneReport) -> list[dict[str, object]]:
    """Return each zone with its number, as plain data."""
    return [{"zone": number, **plain(zone)} for number, zone in enumerate(report.zones)]


def counter_samples(trace: _native.Trace) -> dict[str, list[int]]:
    """Return samples of the host's writes and the programmed pages during a run.

    `trace`: from `Device.run` with `samples`. Returns `written_bytes` [bytes] and
    `pages_programmed` (n,) since the run began; empty for a real device.
    """
    import numpy as np  # a list of devices does not wait for it

    if not trace.has_inside:
        return {}
    with TemporaryDirectory(prefix="uflip-samples-") as folder, native_errors():
        path = str(Path(folder) / "inside.parquet")
        trace.write_inside(path, "{}")
        columns, _ = _native.read_inside(path)
        series = {name: np.asarray(column) for name, column in columns}
    samples = {}
    for name in ("written_bytes", "pages_programmed"):
        values = series[f"sample_{name}"]
        step = max(-(-len(values) // MAX_COUNTER_SAMPLES), 1)
        samples[name] = [int(value) for value in [*values[:-1:step], values[-1]]]
    return samples
