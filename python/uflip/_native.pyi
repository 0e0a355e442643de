"""Interface of the native extension (Rust): Python starts a run, and gets its trace back."""

from collections.abc import Sequence
from types import GenericAlias
from typing import Any, Generic, TypeVar, final

import numpy as np
from matplotlib.axes import Axes
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
    "causes_json",
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
    "inspect_nvme",
    "inspect_sim",
    "inspect_snapshot",
    "known_blocks",
    "locations_json",
    "pelt",
    "profile_faults",
    "profile_interface",
    "profile_keys_json",
    "profile_sources",
    "query_drive",
    "read_flash_trace",
    "read_inside",
    "read_metadata",
    "read_numbers",
    "read_quantity",
    "read_rates",
    "read_recording",
    "read_series",
    "read_specification",
    "read_trace",
    "recognised_format",
    "recording_formats",
    "registry_json",
    "report_block",
    "resolve_pattern",
    "resolve_state",
    "run_length",
    "serve",
    "student_quantile",
    "toml_to_json",
    "unit_of_name",
]
__version__: str
SIMULATOR_VERSION: str
"""Digest of the simulator's source code; only snapshots of the same version can be restored."""

class NativeError(Exception):
    """An error with args (kind, what, where, got, allowed, action); kinds as in `uflip.errors`."""

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
        """The metadata passed to `write_parquet`; "" for a trace that was not read from a file."""
    @property
    def columns(self) -> list[str]:
        """Names for `column`, in order.

        stream (uint16), submit_ns (uint64), response_time_ns (uint64), offset_bytes (uint64),
        io_size_bytes (uint32), mode (uint8: 0 read, 1 write, as `uflip.data.spec.MODES`),
        component (uint8: 0 first, 1 second pattern of a mix), ignored (uint8: 1 = inside
        io_ignore), then on simulated devices one uint64 column per cause, named in `causes`;
        their sum is response_time_ns.
        """
    @property
    def causes(self) -> list[str]: ...
    def column(self, name: str, start: int = 0, stop: int | None = None) -> Column:
        """Return I/Os `start` to `stop` of a column. A long trace is stored in a file, of which
        only this range is read."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export every I/O as record batches through Arrow's C stream interface, as for
        `pyarrow.table(trace)`: a column `index`, then `columns`, with `mode` as text and `ignored`
        as booleans. Data in memory is not copied; a long trace is read batch by batch."""
    @property
    def verified_sectors(self) -> int | None:
        """The number of sectors that a verified run compared; None without verification."""
    @property
    def bytes_read(self) -> int: ...
    @property
    def bytes_written(self) -> int:
        """Bytes that the host wrote, start-up included."""
    @property
    def bytes_trimmed(self) -> int:
        """Bytes that the host deallocated, start-up included."""
    def counters_json(self) -> str | None:
        """Return the device counters of this run (after minus before); None if the device has none,
        or if the trace was read from a file."""
    @property
    def ended_json(self) -> str | None:
        """The end of a run with a stop rule: converged, ended_by, stop, ios, startup_ios and
        series; None for a run of fixed length."""
    def elapsed_ns(self) -> int:
        """Return the time from the first submission to the last completion, on the device's clock
        [ns]."""
    @property
    def mean(self) -> float:
        """Mean response time without the start-up [ns], by `uflip.trace`."""
    def percentiles(self, percent: Sequence[float]) -> NDArray[np.float64]:
        """Return percentiles (n,) of the response time without the start-up [ns]; NaN where the
        run is too short. By `uflip.trace`."""
    def plot(self, ax: Axes | None = None) -> Axes:
        """Plot every I/O and the running average with matplotlib, by `uflip.trace`."""
    @property
    def has_inside(self) -> bool:
        """Whether the trace has a device log: the internal operations of the device."""
    def write_inside(self, path: str, about_json: str) -> None:
        """Write the device log to a new Parquet file; fsync."""
    def write_parquet(self, path: str, metadata_json: str) -> None:
        """Write stream, gap_ns, response_time_ns and causes; fsync. Fails if `path` exists, and
        with kind "internal" if the trace is physically impossible."""
    def append_csv(self, path: str, prefix: str | None, columns: list[str]) -> None:
        """Append a line for each I/O: `prefix` unchanged, if given; the number of the I/O; then
        `columns`, with 0 for columns that this trace lacks. Modes are text."""
    def write_table(self, path: str, constants_json: str, columns: list[str]) -> None:
        """Write constant text columns ([["run", "0001-…"], …]), the number of each I/O and
        `columns` as Parquet, with 0 for columns that this trace lacks. Modes are text. fsync."""

@final
class Handle(Generic[_T]):
    """An operation that runs on its own thread, and its result."""

    def __class_getitem__(cls, _item: Any) -> GenericAlias: ...
    def wait(self, timeout_s: float) -> bool:
        """Wait at most `timeout_s` [s] without the interpreter lock; return whether it has
        ended."""
    def progress(self) -> tuple[int, int, int]:
        """Return (I/Os done, I/Os in total, last response time [ns]; 0 in functional mode)."""
    def began_ns(self) -> int:
        """Return the zero of all times of the run on the device's clock [ns]; 0 before it."""
    def live_rows(self) -> list[tuple[list[int], int | None]]:
        """Return the new rows of a run. Each has start,
        length [ns], I/Os, bytes, bytes written, the sum of the response times, p50, p99, p99.9
        [ns], and the pages programmed."""
    def cancel(self) -> None: ...
    def overdue(self, limit_ns: int) -> None:
        """Raise kind "device" if an I/O on a real device has been in flight for longer [ns]."""
    def check_target(self) -> None:
        """Raise kind "device" if the target file was truncated by another process."""
    def result(self) -> _T:
        """Wait for the end, and return the result; raise the error of the operation, or kind
        "interrupted" after `cancel`."""

@final
class Listener:
    """A listening socket for clients of `serve`; it removes the file of a UNIX socket at its
    end."""

    @staticmethod
    def unix(path: str) -> Listener:
        """Create a UNIX socket with mode 0600; kind "refused" if the path exists."""
    @staticmethod
    def tcp(address: str) -> Listener:
        """Listen on IP:PORT; port 0 selects a free port."""
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
    """Serve devices as NBD exports until `cancel`. An export is (device, name, data file or None
    for memory, read-only, token that permits overwriting the file). Simulated times are stretched
    by `slowdown_permille` / 1000; 0 serves as fast as possible.

    The result is the statistics (JSON), and the error of an incomplete recording; the devices can
    be used again then. A client of `statistics` receives the statistics while serving. `record` is
    a new file that receives every read and write, in the format of MSR Cambridge."""

@final
class Device:
    @staticmethod
    def sim(name: str, profile_toml: str, source: str, overrides_json: str) -> Handle[Device]: ...
    @staticmethod
    def restore(path: str) -> Handle[Device]:
        """Restore the simulated device in a snapshot; kind "results" for any other file."""
    def save(self, path: str) -> Handle[None]:
        """Write a snapshot of a simulated device to a new file, atomically and synced."""
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
        """Open a regular file; with `size_bytes`, first create or enlarge it and fill it with data.
        After a cancellation or failure the file is unchanged. If writable: kind "refused" for a
        file in use, and for a file that uflip did not create, unless `destroy` is its path and
        contents."""
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
        """Open a block device. If writable, open it exclusively (O_EXCL); kind "refused" if it is
        in use, or if `destroy` is not its token (see `report_block`). `brand` is the brand of data
        written earlier, for a device on which no brand is found."""
    @staticmethod
    def nvme(
        path: str, *, writable: bool, data: str, destroy: str | None, brand: str | None
    ) -> Device:
        """Open the NVMe namespace whose block device is at `path`, which is examined and claimed as
        by `block`; I/Os are commands of the drive, by io_uring passthrough."""
    @staticmethod
    def nbd(
        address: str, *, writable: bool, durability: str = "cached", io_timeout_ns: int = 0
    ) -> Device:
        """Open an export of an NBD server: unix:PATH or HOST:PORT, with :exportname=NAME unless it
        is the first. Kind "refused" if it is opened for writing and is read-only; "usage" if the
        server does not support `durability`. A request without a reply after `io_timeout_ns` is an
        error; 0: no limit."""
    @staticmethod
    def null(capacity_bytes: int) -> Device: ...
    def choose_completion(self, name: str) -> bool:
        """Select how completions of queued I/Os are detected: "auto", "interrupt" or "polled";
        return whether they are polled. Kind "usage" for "polled" on a device that does not support
        it."""
    def info_json(self) -> str: ...
    def counters_json(self) -> str | None: ...
    def standing_json(self) -> str | None:
        """Return the current status of a file or block device, and accesses by other processes
        since it was opened; None for any other device."""
    def idle(self, pause_ns: int) -> Handle[None]:
        """Let the device idle: sleep on a real device, let virtual time pass on a simulated one."""
    def clone(self) -> Handle[Device]:
        """Return a copy of a simulated device; kind "usage" for any other device."""
    def apply(self, spec_json: str) -> Handle[str]:
        """Run a pattern on a simulated device in functional mode: without times and without a
        trace, the processes of a parallel pattern one after another. Returns the counters
        (JSON)."""
    def cut_power(
        self,
        after_ns: int,
        spec_json: str | None = None,
        durability: str = "cached",
        at_once: int = 1,
    ) -> Handle[str]:
        """Run a pattern on a simulated device with `at_once` I/Os in flight, cut its power after
        `after_ns` on its clock, and let it recover. Returns losses and recovery costs (JSON)."""
    def trim(self, offset_bytes: int, size_bytes: int) -> None:
        """Deallocate a range of whole sectors: by a discard on a block device, a hole in a file, a
        trim over NBD. A simulated device deallocates the flash pages inside the range."""
    def zones_json(self) -> str | None:
        """Return the current state of all zones, see `uflip.data.device`; None without zones."""
    def zone_command(self, command: str, offset_bytes: int, size_bytes: int) -> int:
        """Make one I/O of any mode; return its response time [ns]."""
    def prepare_zones(self, spec_json: str) -> Handle[None]:
        """Prepare the zones for a pattern: reset those that it writes, fill those that it only
        reads, and leave no other zone open or closed."""
    def start(
        self,
        spec_json: str,
        durability: str = "cached",
        spool: str | None = None,
        ios: Ios | None = None,
        inside: bool = False,
        in_pieces: bool = False,
        verify: bool = False,
        live_ns: int | None = None,
    ) -> Handle[Trace]:
        """Start a pattern; `durability` defines when its writes are complete.

        With `spool`, the I/Os of a long run are stored in an unnamed file in that folder, which
        bounds memory. A replay uses the list `ios`. With `inside`, a simulated device records its
        device log (`Trace.has_inside`). With `in_pieces`, the caller does not read whole columns
        of a spooled trace, so that no memory is reserved for them before the run. With
        `live_ns`, `Handle.live_rows` returns a row for each such interval [ns]."""
    def start_series(
        self, specs_json: list[str], durability: str = "cached"
    ) -> Handle[list[tuple[int, Trace]]]:
        """Run patterns of fixed lengths without a pause between them. The result has the beginning
        of each, relative to that of the first [ns], and its trace."""
    def enforce(self, state_json: str, skip_ios: int) -> Handle[None]:
        """Make the writes of a state, without the first `skip_ios`; untimed on a simulated
        device."""

@final
class Recording:
    """A trace of another tool: I/Os with any addresses, lengths and times."""

    def __len__(self) -> int: ...
    def summary_json(self) -> str:
        """Return what the trace contains and how it was understood: format, ios, reads, bytes_read,
        bytes_written, bytes_trimmed, end (of the last byte), span_ns (None without times),
        left_out (kinds of I/Os that are not replayed, and their numbers), sources, has_offsets,
        response_times (a count), version, quantity, unit, columns, notes, odd_lines,
        first_odd_line (number and text), zero_times, steps_back, averaged_ns."""
    def response_times(self) -> Column:
        """Return the recorded response times as float64 [ns], in the order of the file."""
    def device_times(self) -> Column:
        """Return the times from the issue to the completion of queued I/Os as float64 [ns]."""
    def measured(self) -> tuple[Trace, str]:
        """Return the recorded measurement as the trace of a run, and its properties (JSON): trims
        and untimed I/Os, which are left out, and end."""
    def without_trims(self) -> Recording:
        """Return the recording without trims, for a device that cannot deallocate; `left_out`
        counts them."""
    def fit(
        self,
        capacity_bytes: int,
        sector_bytes: int,
        how: str,
        speed_ppm: int | None,
        addresses: tuple[int, int] = ...,
    ) -> Ios:
        """Return the I/Os fitted to a device; `how` is refuse, wrap or scale. `addresses` are the
        scale of all offsets in millionths, and the bytes added to them. The recorded times
        are replayed speed_ppm / 1,000,000 times as fast; with None, each I/O follows the completion
        of the one before."""

@final
class Ios:
    """A list of I/Os that fit a device, in order."""

    def __len__(self) -> int: ...
    def spec_json(self, queue_depth: int) -> str:
        """Return the replay pattern that refers to this list."""
    @property
    def widened(self) -> int:
        """Number of I/Os that were enlarged to whole sectors."""
    @property
    def split(self) -> int:
        """Number of trims that were split, because they exceed the maximum length of an I/O."""
    @property
    def moved(self) -> int:
        """Number of I/Os whose address was changed."""
    @property
    def sorted(self) -> int:
        """Number of I/Os that were sorted by their times."""

def read_recording(
    paths: list[str],
    kind: str | None = None,
    *,
    columns: str | None = None,
    unit: str | None = None,
    limit: int | None = None,
) -> Recording:
    """Read the files of a trace in one of `recording_formats`; without `kind`, recognise it.
    `columns` maps columns of another table; `unit` is that of response times in a log of fio."""

def recognised_format(path: str) -> str | None:
    """Return the format of a file, or None if it has none of `recording_formats`."""

def read_rates(path: str) -> tuple[list[bytes], str] | None:
    """Read a log of rates or histograms of fio: its columns (uint64: time [ms], direction, value,
    block size, then of each bin that is not empty row, bin, I/Os; the limits of all bins [ns]), and
    its properties (JSON). None if the file is another one."""

def read_series(
    path: str, column: str | None = None, unit: str | None = None
) -> tuple[Column, str]:
    """Return one column of a table as float64 [ns], and how it was understood (JSON): as
    `Recording.summary_json`, and head."""

def read_numbers(path: str, column: str) -> Column:
    """Return a column of whole numbers of a table."""

def unit_of_name(name: str) -> int | None:
    """Return the unit of time in the name of a column [ns], or None."""

def recording_formats() -> list[str]:
    """Return the formats that `read_recording` supports."""

def registry_json() -> str:
    """Return the registered names by kind: ftl, gc (victim policies), allocator, data."""

def locations_json() -> str:
    """Return the location functions of patterns (JSON): name, is_random, has_hot_area, and for each
    parameter name, default, least, most and help."""

def causes_json() -> str:
    """Return the causes of response times (JSON): for `host`, `block` and `open_channel` devices a
    list of column, label, color and meaning; and as `purposes` the name of each purpose of an
    operation, with the column of its work."""

def profile_keys_json(interface: str) -> str:
    """Return the tables of profiles of an interface (JSON): pairs of a name and a list of keys with
    name, unit, allowed and meaning."""

def inspect_file(path: str, buffered: bool) -> str:
    """Return the info (JSON) that `Device.file` would have, without opening the file for
    writing."""

def inspect_sim(name: str, profile_toml: str, source: str, overrides_json: str) -> str:
    """Return the info (JSON) that `Device.sim` would have, without creating the device."""

def inspect_snapshot(path: str, interface: str | None = None) -> str:
    """Return the info (JSON) of the device in a snapshot, with "snapshot" in its details; the state
    is not read. With `interface`, "block" or "open_channel", refuse a device with the other."""

def inspect_block(path: str) -> str:
    """Return the info (JSON) of a block device from sysfs, with its brand if it may be read."""

def inspect_nvme(path: str) -> str:
    """Return `inspect_block`, with what the drive itself returns about its namespace."""

def known_blocks(paths: list[str]) -> list[tuple[str, str]]:
    """Return `inspect_block` and `report_block` of each device that has a name and a size."""

def report_block(path: str) -> str:
    """Return the user of a block device ("in_use", "" if it is free), its contents ("holds", names
    of libblkid), and the "token" for `Device.block` (JSON)."""

def check_durability(text: str) -> None:
    """Raise unless `text` is cached, fua or flush:N."""

def check_block(path: str, destroy: str | None) -> None:
    """Raise the error of `Device.block` with writable=True, without opening it for writing."""

def check_file(path: str, destroy: str | None) -> None:
    """Raise the error of `Device.file` with writable=True, without opening it for writing."""

def check_data_file(path: str, size_bytes: int, read_only: bool, destroy: str | None) -> None:
    """Raise the error of `serve` for the data file of a device of this size, without opening it for
    writing."""

def check_polled(path: str, buffered: bool) -> None:
    """Raise kind "usage" if the disk of a file, or of the folder of a new file, does not support
    polling, or if the file is `buffered`."""

def query_drive(
    path: str, query: str, page: int = 0, specific: int = 0, size_bytes: int = 512
) -> tuple[bytes, str]:
    """Return the answer of the drive at `path`, or below a file or folder, or b"" and the reason.
    Queries: nvme_controller, nvme_namespace, nvme_log (with its page), ata_identify, ata_smart."""

def resolve_pattern(spec_json: str, capacity_bytes: int, sector_bytes: int, kind: str) -> str:
    """Validate a pattern, and fill in defaults; add "totals": total_ios, bytes_read, bytes_written,
    pause_ns (the sum of its pauses). `kind` is that of the device info."""

def resolve_state(state_json: str, capacity_bytes: int, sector_bytes: int) -> str:
    """Validate a state, and fill in defaults; add "totals": total_ios, bytes_written."""

def read_trace(path: str, expected: tuple[int, str] | None = None) -> Trace:
    """Read a trace that `write_parquet` wrote; with `expected` (bytes, digest), only if both match.
    Kind "results" for any other file, and for a physically impossible trace."""

def read_inside(
    path: str, expected: tuple[int, str] | None = None
) -> tuple[list[tuple[str, Column]], str]:
    """Read the columns that `write_inside` wrote, and its metadata; with `expected` (bytes,
    digest), only if both match."""

def read_metadata(path: str) -> str | None:
    """Return the metadata of a trace file, whose columns may be damaged; None without metadata."""

def read_specification(path: str) -> str | None:
    """Return the specification in a run file, of a pattern or a job, as JSON; None without one. The
    specification is not checked, and no column is read."""

def check_traces(paths: list[str]) -> list[str | None]:
    """Return the fault of each trace file, None for a plausible trace; uses all processors."""

def digest(content: bytes) -> str:
    """Return the digest of bytes (BLAKE3, hexadecimal)."""

def digest_files(paths: list[str]) -> list[tuple[int, str, str]]:
    """Return (bytes, digest, "") for each file, or (0, "", error); uses all processors."""

def clock_ns() -> float:
    """Return the cost of reading the clock once [ns]."""

def analyse(
    times_ns: NDArray[np.float64 | np.uint64],
    *,
    confidence: float | None,
    half_width: float | None,
) -> str:
    """Return phases, period, interval and doubts of response times [ns], as JSON; see
    `uflip.analysis.Analysis`. None selects the native default."""

def run_length(
    times_ns: NDArray[np.float64 | np.uint64],
    *,
    confidence: float | None,
    half_width: float | None,
    min_ios: int,
) -> str:
    """Apply the stop rule of the engine to these response times [ns]; return its last verdict as
    JSON, with "stop" false if the rule would not have ended the run."""

def autocorrelation(series: NDArray[np.float64], max_lag: int) -> list[float]:
    """Return the autocorrelation (Pearson) of the series at lags 0 to max_lag."""

def pelt(means: NDArray[np.float64], penalty: float) -> list[int]:
    """Return the change points of a series: the first index of each segment after the first.

    The segmentation is the exact optimum for a squared-error cost (PELT)."""

def half_width(means: list[float], confidence: float) -> float:
    """Return half the width of the interval for the mean of two or more nearly independent means:
    Student's, widened for their skewness and for the correlation of neighbours."""

def student_quantile(p: float, freedom: float) -> float:
    """Return the value that the magnitude of a Student variable exceeds with probability p."""

@final
class FlashDevice:
    """An open-channel device, which runs one job at a time."""

    @staticmethod
    def sim(name: str, profile_toml: str, source: str, overrides_json: str) -> Handle[FlashDevice]:
        """Create a simulated device; overrides are {key: value}."""
    @staticmethod
    def restore(path: str) -> Handle[FlashDevice]:
        """Restore a device, as `Device.restore`."""
    def save(self, path: str) -> Handle[None]:
        """Write a snapshot, as `Device.save`."""
    def counters_json(self) -> str: ...
    def clone(self) -> Handle[FlashDevice]:
        """Return a copy of the device."""
    def resolve(self, job_json: str) -> str:
        """Return the job with all defaults and its totals."""
    def block_state(self, channel: int, lun: int, block: int) -> tuple[int, int, bool]:
        """Return the erases of a block, its written pages, and whether it is retired."""
    def command(
        self, op: str, addresses: list[tuple[int, int, int, int, int, int]]
    ) -> tuple[int, list[str]]:
        """Execute one command, "read", "write" or "erase", on addresses of (channel, LUN, block,
        plane, page, sector); return its response time [ns], and the status of every address."""
    def start(
        self, job_json: str, prepare: bool, inside: bool = False, verify: bool = False
    ) -> Handle[FlashTrace]:
        """Start a job; with `prepare`, first erase its blocks, and write those that it only reads.
        With `inside`, record the device log (`FlashTrace.has_inside`), unless the job wears a
        block out. With `verify`, reads whose data differs have the status "mismatch"."""

@final
class FlashTrace:
    """Every command of a job, thread after thread, or every cycle of a wear job."""

    statuses: list[str]
    """Names of the numbers in the column `status`."""

    def __len__(self) -> int: ...
    @property
    def metadata_json(self) -> str:
        """The metadata passed to `write_parquet`; "" for a log that was not read from a file."""
    @property
    def job_json(self) -> str: ...
    @property
    def columns(self) -> list[str]: ...
    @property
    def causes(self) -> list[str]: ...
    @property
    def erase_failed(self) -> bool:
        """Whether a wear job ended with a failed erase."""
    def column(self, name: str) -> Column: ...
    def elapsed_ns(self) -> int:
        """Return the time from the first submission to the last completion [ns]."""
    def write_parquet(self, path: str, run_json: str) -> None:
        """Write every column; fsync. Fails if `path` exists."""
    @property
    def has_inside(self) -> bool:
        """Whether the trace has a device log: the internal operations of the device."""
    def write_inside(self, path: str, about_json: str) -> None:
        """Write the device log, as `Trace.write_inside`."""
    def write_csv(self, path: str, sector_bytes: int) -> None:
        """Write a line for each command with the columns of FOX. Fails if `path` exists."""

def read_flash_trace(path: str, expected: tuple[int, str] | None = None) -> FlashTrace:
    """Read a log that `FlashTrace.write_parquet` wrote; with `expected` (bytes, digest), only if
    both match."""

def inspect_flash(name: str, profile_toml: str, source: str, overrides_json: str) -> str:
    """Return the info of a `FlashDevice`, with interface and geometry, without creating it."""

def profile_sources(profile_toml: str, source: str) -> str:
    """Return the source of each constant of a profile, as JSON; an error for one without a
    source."""

def toml_to_json(text: str) -> str:
    """Convert TOML to JSON: strings, 64-bit numbers, booleans, lists, tables; no dates, no nan."""

def profile_interface(profile_toml: str, source: str) -> str:
    """Return the interface of a profile's device: "block" or "open_channel"."""

def profile_faults(profile_toml: str, source: str) -> str:
    """Return all faults of a profile, as JSON: a list of line, key, got, allowed."""

def read_quantity(thing: str, text: str) -> int:
    """Parse a "size" [bytes], a "duration" [ns] or a "count" with its unit, as in 4KiB or 10us."""
