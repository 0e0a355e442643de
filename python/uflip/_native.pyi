"""The door to the native part: one call per run goes down, one trace comes up."""

from types import GenericAlias
from typing import Any, Generic, TypeVar, final

import numpy as np
from numpy.typing import NDArray

_T = TypeVar("_T")

__all__ = [
    "SIMULATOR_VERSION",
    "Column",
    "Device",
    "FlashDevice",
    "FlashTrace",
    "Handle",
    "Ios",
    "Listener",
    "NativeError",
    "Recording",
    "Trace",
    "__version__",
    "analyse",
    "autocorrelation",
    "check_block",
    "check_data_file",
    "check_durability",
    "check_file",
    "check_polled",
    "check_traces",
    "clock_ns",
    "digest",
    "digest_files",
    "half_width",
    "inspect_block",
    "inspect_file",
    "inspect_flash",
    "inspect_sim",
    "inspect_snapshot",
    "known_blocks",
    "pelt",
    "profile_faults",
    "profile_interface",
    "profile_sources",
    "read_fio_log",
    "read_flash_trace",
    "read_inside",
    "read_metadata",
    "read_quantity",
    "read_recording",
    "read_specification",
    "read_trace",
    "recording_formats",
    "registry_json",
    "report_block",
    "resolve_pattern",
    "resolve_state",
    "run_length",
    "serve",
    "student_quantile",
    "toml_to_json",
    "wear",
]
__version__: str
SIMULATOR_VERSION: str
"""Names the very source of the simulator: what a snapshot must be of to be restored."""

class NativeError(Exception):
    """args: (kind, what, where, got, allowed, action); kind as in `uflip.errors`."""

@final
class Column:
    """A read-only column; `numpy.asarray(column)` is a view of it, not a copy."""

    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Trace:
    """Every I/O of one run, stream after stream, in submission order within a stream."""

    def __len__(self) -> int: ...
    @property
    def spec_json(self) -> str:
        """The resolved pattern specification."""
    @property
    def metadata_json(self) -> str:
        """What `write_parquet` was given; "" for a trace that comes from a run."""
    @property
    def columns(self) -> list[str]:
        """Names for `column`, in order.

        stream (uint16), submit_ns (uint64), response_time_ns (uint64), offset_bytes (uint64),
        io_size_bytes (uint32), mode (uint8: 0 read, 1 write, as `uflip.data.spec_base.MODES`),
        component (uint8: 0 first, 1 second pattern of a mix), ignored (uint8: 1 = inside
        io_ignore), then on simulated devices one uint64 column per cause, named in `causes`;
        their sum is response_time_ns.
        """
    @property
    def causes(self) -> list[str]: ...
    def column(self, name: str, start: int = 0, stop: int | None = None) -> Column:
        """I/Os `start` to `stop` of a column; of a long trace, which is in a file, only they are
        read."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Every I/O as record batches, for `pyarrow.table(trace)` and whatever else knows Arrow's C
        stream interface: a column `index`, then `columns`, with `mode` as words and `ignored` as
        booleans. What is in memory is lent, not copied; a long trace is read batch by batch."""
    @property
    def bytes_read(self) -> int: ...
    @property
    def bytes_written(self) -> int:
        """What the host wrote in all, start-up included."""
    @property
    def bytes_trimmed(self) -> int:
        """What the host deallocated in all, start-up included."""
    def counters_json(self) -> str | None:
        """Device counters of this run (after minus before); None where unknowable or loaded."""
    @property
    def ended_json(self) -> str | None:
        """How a run with `stop` came to its length: converged, ended_by, stop, ios, startup_ios
        and series; None for a run whose length was given."""
    def elapsed_ns(self) -> int:
        """From the first submission to the last completion, on the device's clock [ns]."""
    @property
    def has_inside(self) -> bool:
        """Whether it was recorded what happened inside the device."""
    def write_inside(self, path: str, about_json: str) -> None:
        """Write what was recorded inside the device to a new Parquet file; fsync."""
    def write_parquet(self, path: str, metadata_json: str) -> None:
        """Write stream, gap_ns, response_time_ns and causes; fsync. Fails if `path` exists, and
        with kind "internal" if the trace makes no physical sense."""
    def append_csv(self, path: str, prefix: str | None, columns: list[str]) -> None:
        """Append a line an I/O: `prefix` as it is, if there is one, the number of the I/O, then
        `columns`, 0 for names that this trace does not have; modes are words."""
    def write_table(self, path: str, constants_json: str, columns: list[str]) -> None:
        """Write constant text columns ([["run", "0001-…"], …]), the number of each I/O and
        `columns` as Parquet, 0 for names that this trace does not have; modes are words. fsync."""

@final
class Handle(Generic[_T]):
    """Work on a device, in progress on a thread of its own, and what comes out of it."""

    def __class_getitem__(cls, _item: Any) -> GenericAlias: ...
    def wait(self, timeout_s: float) -> bool:
        """Block at most `timeout_s` [s] without the interpreter lock; True once it is over."""
    def progress(self) -> tuple[int, int, int]:
        """(I/Os done, I/Os in all, last response time [ns]; 0 in functional mode)."""
    def cancel(self) -> None: ...
    def overdue(self, limit_ns: int) -> None:
        """Raise kind "device" where an I/O on a real device is seen under way for longer [ns]."""
    def check_target(self) -> None:
        """Raise kind "device" where the file that is worked on was cut by somebody."""
    def result(self) -> _T:
        """Wait for the end, and what came out; raises the work's error, or kind "interrupted" after
        `cancel`."""

@final
class Listener:
    """A socket at which clients of `serve` come in; the file of a UNIX socket goes with it."""

    @staticmethod
    def unix(path: str) -> Listener:
        """Mode 0600; kind "refused" where something of that name is."""
    @staticmethod
    def tcp(address: str) -> Listener:
        """IP:PORT; port 0 is any that is free."""
    @property
    def address(self) -> str:
        """The path, or the address with its port."""
    @property
    def is_unix(self) -> bool: ...

def serve(
    listeners: list[Listener],
    exports: list[tuple[Device, str, str | None, bool, str | None]],
    slowdown_permille: int,
    statistics: Listener | None = None,
    record: str | None = None,
) -> Handle[tuple[str, NativeError | None]]:
    """Serve devices as NBD exports (device, name, data file or None for memory, read-only, what of
    the file may be lost), so many thousandths of the wall clock slow (0: as fast as they are
    computed), until `cancel`. What was served (JSON) comes out, and why the recording is not whole;
    the devices are back then. Whoever connects to `statistics` gets it meanwhile; `record` is a
    new file for every read and write, in the form of MSR Cambridge."""

@final
class Device:
    @staticmethod
    def sim(name: str, profile_toml: str, source: str, overrides_json: str) -> Handle[Device]: ...
    @staticmethod
    def restore(path: str) -> Handle[Device]:
        """The simulated device that `save` wrote; kind "results" for anything else."""
    def save(self, path: str) -> Handle[None]:
        """Write the whole state to a new file, at once and synced. Simulated only."""
    @staticmethod
    def file(
        path: str,
        *,
        writable: bool,
        buffered: bool,
        data: str,
        size_bytes: int | None,
        destroy: str | None,
    ) -> Handle[Device]:
        """Open a regular file; with `size_bytes` create it or grow it (filled with data) first.
        Cancelled or failed, the file is as it was. When writable, kind "refused" for one that is in
        use, and for one that uflip did not make unless `destroy` is its path and what it holds."""
    @staticmethod
    def block(
        path: str,
        *,
        writable: bool,
        buffered: bool,
        data: str,
        destroy: str | None,
        brand: str | None,
    ) -> Device:
        """Open a block device; when writable exclusively (O_EXCL), and only if nobody uses it and
        `destroy` is its token (as `report_block` gives it), else kind "refused". `brand` is that of
        data written before, where none is found."""
    @staticmethod
    def nbd(
        address: str, *, writable: bool, durability: str = "cached", io_timeout_ns: int = 0
    ) -> Device:
        """An export of an NBD server: unix:PATH or HOST:PORT, and :exportname=NAME where it is not
        the first; kind "refused" where it is to be written and is read-only, "usage" where its
        server cannot do what `durability` asks of writes. A request that is not answered within
        `io_timeout_ns` is an error; 0: never."""
    @staticmethod
    def null(capacity_bytes: int) -> Device: ...
    def choose_completion(self, name: str) -> bool:
        """Say how ends of I/Os in a queue are learned of: "auto", "interrupt" or "polled", which is
        refused, kind "usage", of a device that cannot; returns whether it is polled."""
    def info_json(self) -> str: ...
    def counters_json(self) -> str | None: ...
    def standing_json(self) -> str | None:
        """How a file or block device stands now, and who else was there since it was opened; None
        for any other device."""
    def idle(self, pause_ns: int) -> Handle[None]:
        """Let the device idle: sleep on a real device, let virtual time pass on a simulated one."""
    def clone(self) -> Handle[Device]:
        """A simulated device of its own in the same state; kind "usage" for any other."""
    def apply(self, spec_json: str) -> Handle[str]:
        """Do what a pattern asks for in functional mode: no time passes, no trace; processes of
        a parallel pattern one after another. Returns what was counted (JSON). Simulated only."""
    def cut_power(
        self,
        after_ns: int,
        spec_json: str | None = None,
        durability: str = "cached",
        at_once: int = 1,
    ) -> Handle[str]:
        """Let a simulated device do what a pattern asks for, so many I/Os at a time, until its
        power is cut after so long on its clock, and recover. Returns what that cost (JSON)."""
    def trim(self, offset_bytes: int, size_bytes: int) -> None:
        """The range, whole sectors, holds nothing any more: a discard of a block device, a hole of
        a file, a trim over NBD; of a simulated device flash pages that are covered whole."""
    def zones_json(self) -> str | None:
        """All zones as they are now, see `uflip.data.zones`; None where there are none."""
    def zone_command(self, command: str, offset_bytes: int, size_bytes: int) -> int:
        """One I/O of any mode, here and now: its response time [ns]."""
    def prepare_zones(self, spec_json: str) -> Handle[None]:
        """Zones that the pattern writes are reset, those that it only reads are filled, and no
        other is left open or closed."""
    def start(
        self,
        spec_json: str,
        durability: str = "cached",
        spool: str | None = None,
        ios: Ios | None = None,
        inside: bool = False,
        in_pieces: bool = False,
    ) -> Handle[Trace]:
        """Run a pattern whose writes wait for what `durability` says. With `spool`, the I/Os of a
        long run go to a file without a name in that folder while it lasts: memory is bounded. A
        replay takes the I/Os of the list that it names. With `inside`, a simulated device is looked
        into meanwhile (`Trace.has_inside`). With `in_pieces`, the caller reads no whole column of a
        trace in a file, so that no memory for that is asked for before the run."""
    def start_series(
        self, specs_json: list[str], durability: str = "cached"
    ) -> Handle[list[tuple[int, Trace]]]:
        """Run patterns of given lengths one right after the other, with no rest between them; for
        each there is when it began, since the first one did [ns], and its trace."""
    def enforce(self, state_json: str, skip_ios: int) -> Handle[None]:
        """Make the writes of a state after the first `skip_ios`; untimed on a simulated device."""

@final
class Recording:
    """What a trace of another tool says that was done: any places, lengths and times."""

    def __len__(self) -> int: ...
    def summary_json(self) -> str:
        """format, ios, reads, bytes_read, bytes_written, bytes_trimmed, end (of the last byte),
        span_ns (None without times), left_out (what is not replayed, how often), sources."""
    def without_trims(self) -> Recording:
        """The same for a device that has no command to deallocate; `left_out` counts them."""
    def fit(self, capacity_bytes: int, sector_bytes: int, how: str, speed_ppm: int | None) -> Ios:
        """A list for a device; `how` is refuse, wrap or scale. At the times that were recorded,
        speed_ppm / 1,000,000 times as fast; with None each I/O after the one before."""

@final
class Ios:
    """I/Os that a device can do, in order."""

    def __len__(self) -> int: ...
    def spec_json(self, queue_depth: int) -> str:
        """The pattern that names the list."""
    @property
    def widened(self) -> int:
        """How many were widened to whole sectors."""
    @property
    def split(self) -> int:
        """How many trims became several, as no I/O is that long."""
    @property
    def moved(self) -> int:
        """How many are at another place than they were."""

def read_recording(path: str, kind: str | None = None) -> Recording:
    """Read a trace of one of `recording_formats`; without a name, of the one it looks like."""

def read_fio_log(path: str) -> tuple[Trace, str]:
    """What fio logged of its response times, as the trace of a run, and about it (JSON):
    has_offsets, trims, end."""

def recording_formats() -> list[str]: ...
def registry_json() -> str:
    """Registered names by kind: ftl, gc (victim policies), allocator, data."""

def inspect_file(path: str, buffered: bool) -> str:
    """Info of a file (JSON) as `Device.file` would tell it, without opening it for writing."""

def inspect_sim(name: str, profile_toml: str, source: str, overrides_json: str) -> str:
    """Info of a simulated device (JSON) as `Device.sim` would make it, without making it."""

def inspect_snapshot(path: str, interface: str | None = None) -> str:
    """Info of the device in a snapshot (JSON), "snapshot" in its details; the state is not read.
    With `interface`, "block" or "open_channel", a device with the other is refused."""

def inspect_block(path: str) -> str:
    """Info of a block device (JSON) from sysfs, and the brand of its data where it may be read."""

def known_blocks(paths: list[str]) -> list[tuple[str, str]]:
    """`inspect_block` and `report_block` of each that can be named and has a size."""

def report_block(path: str) -> str:
    """Who uses a block device ("in_use": text, "" for nobody), what it "holds" (names of libblkid),
    and the "token" that `Device.block` wants (JSON)."""

def check_durability(text: str) -> None:
    """Raise unless `text` is cached, fua or flush:N."""

def check_block(path: str, destroy: str | None) -> None:
    """Raise what `Device.block` would, opened for writing; opens nothing for writing."""

def check_file(path: str, destroy: str | None) -> None:
    """Raise what `Device.file` would, opened for writing; opens nothing for writing."""

def check_data_file(path: str, size_bytes: int, read_only: bool, destroy: str | None) -> None:
    """Raise what `serve` would for a data file of a device of this size; opens nothing for
    writing."""

def check_polled(path: str, buffered: bool) -> None:
    """Raise, kind "usage", where the disk below a file, or below the folder of one that is not
    there yet, cannot be polled, or the file is to be `buffered`."""

def wear(path: str) -> str:
    """What the device at `path`, or below a file or folder, says about its wear (JSON):
    percentage_used of its rated endurance, bytes_written by the host; or "unknown": why."""

def resolve_pattern(spec_json: str, capacity_bytes: int, sector_bytes: int, kind: str) -> str:
    """Validate a pattern, fill in defaults; adds "total_ios", "bytes_read", "bytes_written",
    "pause_ns" (the sum of its pauses) under the key "totals". `kind` as the info has it."""

def resolve_state(state_json: str, capacity_bytes: int, sector_bytes: int) -> str:
    """Validate a state, fill in defaults; adds "totals": total_ios, bytes_written."""

def read_trace(path: str, expected: tuple[int, str] | None = None) -> Trace:
    """Read a trace that `write_parquet` wrote; with `expected` (bytes, digest) only if it is that.
    Whatever is in the file, it is a trace that makes physical sense, or kind "results"."""

def read_inside(
    path: str, expected: tuple[int, str] | None = None
) -> tuple[list[tuple[str, Column]], str]:
    """Read the columns that `write_inside` wrote, and its metadata; with `expected` (bytes, digest)
    only if it is that."""

def read_metadata(path: str) -> str | None:
    """The metadata of a trace in a file whose numbers may be damaged; None if there is none."""

def read_specification(path: str) -> str | None:
    """The specification that a run file says to be of, a pattern or a job, as JSON; nothing of it
    is checked, and no number is read. None if it says none."""

def check_traces(paths: list[str]) -> list[str | None]:
    """Why each file is no trace that makes sense; None where it is one. On all processors."""

def digest(content: bytes) -> str:
    """The digest of bytes (BLAKE3, hexadecimal)."""

def digest_files(paths: list[str]) -> list[tuple[int, str, str]]:
    """(bytes, digest, "") of each file, or (0, "", what is wrong). On all processors."""

def clock_ns() -> float:
    """Cost of one reading of the clock [ns]."""

def analyse(
    times_ns: NDArray[np.float64], *, confidence: float | None, half_width: float | None
) -> str:
    """Phases, period, interval and doubts of response times [ns], as JSON; see
    `uflip.analysis.Analysis`. None is the native default."""

def run_length(
    times_ns: NDArray[np.float64],
    *,
    confidence: float | None,
    half_width: float | None,
    min_ios: int,
) -> str:
    """Where the stop rule of the engine would have ended a run with these response times [ns]:
    the last verdict as JSON, with "stop" false if it never would have."""

def autocorrelation(series: NDArray[np.float64], max_lag: int) -> list[float]:
    """Pearson's coefficients of the series with itself at lags 0 to max_lag."""

def pelt(means: NDArray[np.float64], penalty: float) -> list[int]:
    """First indices of the segments after the first: the exact optimum for a squared-error cost."""

def half_width(means: list[float], confidence: float) -> float:
    """Half the width of the interval for the mean of two or more nearly independent means:
    Student's, stretched for their skewness and for the correlation of neighbours."""

def student_quantile(p: float, freedom: float) -> float:
    """What the amount of a Student variable exceeds with probability p."""

@final
class FlashDevice:
    """An open-channel device that jobs can be started on, one at a time."""

    @staticmethod
    def sim(name: str, profile_toml: str, source: str, overrides_json: str) -> Handle[FlashDevice]:
        """Make a simulated device; overrides are {key: value}."""
    @staticmethod
    def restore(path: str) -> Handle[FlashDevice]:
        """As `Device.restore`."""
    def save(self, path: str) -> Handle[None]:
        """As `Device.save`."""
    def counters_json(self) -> str: ...
    def clone(self) -> Handle[FlashDevice]:
        """A device of its own in the same state."""
    def resolve(self, job_json: str) -> str:
        """A job, complete, with its totals."""
    def block_state(self, channel: int, lun: int, block: int) -> tuple[int, int, bool]:
        """Erases, pages written, whether it is retired."""
    def command(
        self, op: str, addresses: list[tuple[int, int, int, int, int, int]]
    ) -> tuple[int, list[str]]:
        """One command, here and now: "read", "write" or "erase", and addresses of channel, LUN,
        block, plane, page, sector. Its response time [ns], and the status of every address."""
    def start(self, job_json: str, prepare: bool, inside: bool = False) -> Handle[FlashTrace]:
        """Start a job; with `prepare`, blocks are erased, and what is only read is written,
        before. With `inside`, the device is inspected meanwhile, unless the job wears a block
        out (`FlashTrace.has_inside`)."""

@final
class FlashTrace:
    """Every command of a job, thread after thread, or every cycle of a wear job."""

    statuses: list[str]
    """Names of the numbers in the column `status`."""

    def __len__(self) -> int: ...
    @property
    def metadata_json(self) -> str:
        """What `write_parquet` was given; "" for a log that comes from a job."""
    @property
    def job_json(self) -> str: ...
    @property
    def columns(self) -> list[str]: ...
    @property
    def causes(self) -> list[str]: ...
    @property
    def erase_failed(self) -> bool:
        """Whether a wear job ended with an erase that failed."""
    def column(self, name: str) -> Column: ...
    def elapsed_ns(self) -> int:
        """From the first submission to the last completion [ns]."""
    def write_parquet(self, path: str, run_json: str) -> None:
        """Write every column; fsync. Fails if `path` exists."""
    @property
    def has_inside(self) -> bool:
        """Whether it was recorded what happened inside the device."""
    def write_inside(self, path: str, about_json: str) -> None:
        """As `Trace.write_inside`."""
    def write_csv(self, path: str, sector_bytes: int) -> None:
        """Write a line a command with the columns of FOX. Fails if `path` exists."""

def read_flash_trace(path: str, expected: tuple[int, str] | None = None) -> FlashTrace:
    """Read a log that `FlashTrace.write_parquet` wrote; with `expected` its length and digest are
    these, or nothing of it is interpreted."""

def inspect_flash(name: str, profile_toml: str, source: str, overrides_json: str) -> str:
    """What is known of a `FlashDevice`, without making it; details hold interface and geometry."""

def profile_sources(profile_toml: str, source: str) -> str:
    """Where each constant of a profile comes from, as JSON; errors for one without a source."""

def toml_to_json(text: str) -> str:
    """Any TOML as JSON: texts, numbers of 64 bits, booleans, lists, tables; no dates, no nan."""

def profile_interface(profile_toml: str, source: str) -> str:
    """How a profile's device is addressed: "block" or "open_channel"."""

def profile_faults(profile_toml: str, source: str) -> str:
    """All that is wrong with a profile, as JSON: a list of line, key, got, allowed."""

def read_quantity(thing: str, text: str) -> int:
    """A "size" [bytes], a "duration" [ns] or a "count" as people write them."""
