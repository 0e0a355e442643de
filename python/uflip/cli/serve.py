"""`uflip serve`: serve a simulated device over NBD in real time."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import click

from uflip import _native, signals
from uflip.benchmark_options import STATES
from uflip.cli.completion import propose_devices
from uflip.cli.options import (
    check_saving,
    checked_output,
    force_option,
    json_option,
    no_cache_option,
    number_option,
    path_option,
    quiet_option,
    save_device,
    save_option,
)
from uflip.cli.terminal import echo, echo_error, echo_json, echo_twin, error_document
from uflip.data.device import ServedDocument, ServedExport
from uflip.data.manifest import refuse_results
from uflip.device.catalogue import inspect_device
from uflip.device.handle import Device
from uflip.device.opener import CreationProgress, Report, open_device
from uflip.device.serving import (
    Export,
    ServerResult,
    check_data,
    listen_tcp,
    listen_unix,
    serve,
    server_result,
)
from uflip.device.url import parse_url
from uflip.errors import (
    DeviceError,
    InterruptedRun,
    UflipError,
    UsageError,
    interrupted_by,
    unknown_name,
)
from uflip.escape import plain
from uflip.native_wait import CANCEL_TIMEOUT_S, SLICE_S
from uflip.table import Table
from uflip.units import format_count, format_duration_ns, format_size

if TYPE_CHECKING:
    from uflip.results.outputs import OutputPath


EPILOG = """\b
Examples:
  uflip serve sim:mtron --socket mtron.sock
  uflip serve sim:mtron --socket s --run 'qemu-img info "$UFLIP_URI"'
  fio --name=x --ioengine=nbd --uri='nbd+unix:///?socket=mtron.sock' --rw=randwrite --size=9m
  uflip serve sim:demo --socket s --data disk.img --speed 10
"""

MAX_SLOWDOWN = 1000.0

STOP_TIMEOUT_S = 5.0
"""Maximum time for a command to end after a signal, before the next signal."""

# Signals that stop a process that needs the terminal.
STOPPED_BY = (signal.SIGTTIN, signal.SIGTTOU, signal.SIGTSTP)


@click.command("serve", epilog=EPILOG)
@click.argument(
    "devices", metavar="DEVICE...", nargs=-1, required=True, shell_complete=propose_devices
)
@path_option(
    "--socket",
    metavar="PATH",
    help="Create this UNIX socket, accessible only to you; it is removed at the end.",
)
@click.option(
    "--tcp",
    metavar="ADDRESS:PORT",
    help="Listen on this loopback address, too; all users of this machine may connect.  "
    "[port 0: any free]",
)
@path_option(
    "--data",
    metavar="FILE",
    help="Store written data in this sparse file, which is created if missing.  [in memory]",
)
@click.option(
    "--destroy",
    metavar="PATH",
    help="Let clients overwrite this --data file, which `uflip serve` did not create; name its "
    "contents, as in disk.img+ext4.",
)
@click.option("--read-only", is_flag=True, help="Clients may not write.")
@number_option(
    "--speed",
    metavar="FACTOR",
    most=MAX_SLOWDOWN,
    default="1",
    help="Slow-down factor: 10 makes every response time ten times as long; 0: no delays, as fast "
    "as the simulator computes.",
)
@click.option(
    "--state",
    metavar="|".join(STATES),
    default=STATES[-1],
    show_default=True,
    help="Initial state of the devices; as-is: that of the profile, or of the snapshot.",
)
@path_option(
    "--stats",
    metavar="PATH",
    help="Create a second socket, which sends statistics as JSON to every client.",
)
@path_option(
    "--record",
    metavar="FILE.csv",
    help="Record every read and write, including write zeroes, as a trace in the format of MSR "
    "Cambridge, for `uflip replay` and `uflip analyse`. The format has no flushes and trims; they "
    "are counted at the end.",
)
@save_option
@force_option
@click.option(
    "--run",
    "program",
    metavar="COMMAND",
    help="Serve while this shell command runs; $UFLIP_URI is the URI of the first device."
    " With --json, its output goes to standard error.",
)
@no_cache_option
@quiet_option
@json_option
def command(
    *,
    devices: tuple[str, ...],
    socket: Path | None,
    tcp: str | None,
    data: Path | None,
    destroy: str | None,
    read_only: bool,
    speed: float,
    state: str,
    stats: Path | None,
    record: Path | None,
    save: Path | None,
    force: bool,
    program: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Serve DEVICE over NBD: a simulated SSD for fio, qemu, nbdcopy, a database or a file system.

    Response times are those of the simulated device in wall-clock time, and data is stored.
    Ctrl-C ends serving, and prints statistics and the lag of the host. The same holds after a
    failed COMMAND; the recording and the snapshot are then written, too.
    """
    _check(devices, socket, tcp, data, state)
    _check_data(devices[0], data, destroy, read_only=read_only)
    for path in filter(None, (socket, stats)):
        refuse_results(path, "file", str(path))
    if save is not None:
        _check_single_device(devices, "--save")
        check_saving(inspect_device(devices[0]), save, force=force)
    output = None if record is None else checked_output(record, "TRACE", "--record", force=force)
    document: ServedDocument | None = None
    errors: list[UflipError] = []
    with ExitStack() as stack:
        listeners = []
        if socket is not None:
            listeners.append(listen_unix(socket))
        if tcp is not None:
            listeners.append(listen_tcp(tcp))
        statistics = None if stats is None else listen_unix(stats)
        opened = _open_devices(devices, state, stack, quiet=quiet or as_json)
        exports = [
            Export(device, _export_name(url), data, read_only, destroy)
            for device, url in zip(opened, devices, strict=True)
        ]
        listening = partial(serve, listeners, exports, speed, statistics=statistics)
        try:
            # After any failure or signal, the recording and the snapshot are still completed.
            with suppress(KeyboardInterrupt), signals.shielded(), _recording(output) as recording:
                document, recording_error = _serve(
                    partial(listening, record=recording), listeners, exports, program, errors,
                    quiet=quiet or as_json, as_json=as_json,
                )  # fmt: skip
                if recording_error is not None:
                    recording_error.where = (
                        f"--record {record}"  # it was written under a temporary name
                    )
                    errors.append(recording_error)
                if save is not None:
                    with _collected(errors):
                        save_device(opened[0], save, force=force)
        except UflipError as error:
            if document is None:
                raise
            errors.append(error)
    assert document is not None, "or an error was raised"
    _add_twins(document, opened)
    if not errors and program is not None and signals.received_signal() is not None:
        interruption = InterruptedRun(
            "Interrupted", action="everything served until then is stored"
        )
        errors.append(interrupted_by(signals.received_signal(), interruption))
    print_served(document, errors, record, quiet=quiet, as_json=as_json, err=program is not None)


def _check(
    devices: tuple[str, ...], socket: Path | None, tcp: str | None, data: Path | None, state: str
) -> None:
    """Reject invalid combinations before any device is created."""
    if state not in STATES:
        raise unknown_name("state", state, STATES, where="--state")
    if socket is None and tcp is None:
        raise UsageError(
            "No listen address given",
            where="uflip serve",
            allowed="--socket PATH, --tcp 127.0.0.1:PORT",
            action="give a socket: `uflip serve sim:demo --socket demo.sock`",
        )
    for url in devices:
        if parse_url(url).kind not in ("sim", "null"):
            raise UsageError(
                "Only simulated and null devices can be served",
                where="uflip serve",
                got=url,
                allowed="sim:NAME, null",
                action="serve a simulated device; `uflip devices` lists them",
            )
        inspect_device(url)
    if state != STATES[-1] and "null" in devices:
        raise UsageError(
            "A null device has no state",
            where="--state",
            got=f"null with --state {state}",
            allowed=STATES[-1],
            action="omit --state, or serve a simulated device",
        )
    if data is not None:
        _check_single_device(devices, "--data")


def _check_data(device: str, data: Path | None, destroy: str | None, *, read_only: bool) -> None:
    """Check the data file before the device is created; reject `--destroy` without such a file."""
    if destroy is not None and (data is None or read_only):
        raise UsageError(
            "--destroy belongs to a --data file that clients may write to",
            where="--destroy",
            got="no --data" if data is None else "--read-only",
            action="omit --destroy, or name the file with --data",
        )
    if data is not None:
        check_data(data, inspect_device(device).capacity_bytes, destroy, read_only=read_only)


def _check_single_device(devices: tuple[str, ...], option: str) -> None:
    if len(devices) > 1:
        raise UsageError(
            "One file can serve one device only",
            where=option,
            got=f"{len(devices)} devices",
            action="serve each device by a command of its own, with its own file",
        )


def _export_name(url: str) -> str:
    """Return the name of a device's export."""
    target = parse_url(url)
    return target.text.removeprefix("sim:") if target.kind == "sim" else target.kind


def _open_devices(
    devices: tuple[str, ...], state: str, stack: ExitStack, *, quiet: bool
) -> list[Device]:
    """Open devices, and bring them into a state."""
    opened = []
    for url in devices:
        creation = None if quiet else CreationProgress(_announce_creation(url))
        opened.append(stack.enter_context(open_device(url, on_progress=creation)))
    for device in opened:
        _enforce_state(device, state)
        if not quiet:
            echo_twin(device.info.url, device.info.details.twin, err=True)
    return opened


def _add_twins(document: ServedDocument, opened: Iterable[Device]) -> None:
    """Add the errors of twins to the statistics."""
    twins = {each.info.url: twin for each in opened if (twin := each.info.details.twin) is not None}
    if twins:
        document["twins"] = twins


def _announce_creation(url: str) -> Report:
    """Return a callback that prints once how long creating a device takes."""
    announced = False

    def report(_done: int, _total: int, left_ns: int) -> None:
        nonlocal announced
        if not announced:
            time_left = format_duration_ns(left_ns)
            echo(f"creating {url}: about {time_left} to write its state; Ctrl-C ends it", err=True)
        announced = True

    return report


def _enforce_state(device: Device, state: str) -> None:
    if state == STATES[-1] or not device.info.simulated:
        return
    # Loading plans and numpy takes a while.
    from uflip.benchmark import plan_state
    from uflip.benchmark.events import ignore
    from uflip.benchmark.prepare import bring_into_state

    enforcement = plan_state(device.info, state)
    assert enforcement is not None, "every other state has writes"
    bring_into_state(device, enforcement, None, ignore)


@contextmanager
def _recording(output: "OutputPath | None") -> Iterator[Path | None]:
    """Return a temporary path for a recording; rename it at the end."""
    if output is None:
        yield None
        return
    from uflip.results import outputs

    with outputs.output_file(output) as temporary:
        temporary.unlink()  # the native part creates new files only
        yield temporary


def _serve(
    begin: Callable[[], _native.Handle[ServerResult]],
    listeners: list[_native.Listener],
    exports: list[Export],
    program: str | None,
    errors: list[UflipError],
    *,
    quiet: bool,
    as_json: bool,
) -> tuple[ServedDocument, UflipError | None]:
    """Serve until a signal arrives or the program ends; return the result of `server_result`."""
    handle = begin()
    with suppress(KeyboardInterrupt), _collected(errors):
        try:
            if not quiet:
                for listener in listeners:
                    for export in exports:
                        size = format_size(export.device.info.capacity_bytes)
                        uri = _uri(listener, export, exports)
                        echo(f"{export.device.info.url} ({size}) at {uri}", err=program is not None)
            if program is None:
                _wait_for_signal(handle, quiet=quiet)
            else:
                uri = _uri(listeners[0], exports[0], exports)
                run_command(program, uri, to_stderr=as_json)
        finally:
            handle.cancel()
            handle.wait(CANCEL_TIMEOUT_S)
    return server_result(handle)


def _wait_for_signal(handle: _native.Handle[ServerResult], *, quiet: bool) -> None:
    if not quiet:
        echo("Ctrl-C ends it")
    while not handle.wait(SLICE_S):
        signals.check()


def _uri(listener: _native.Listener, export: Export, exports: list[Export]) -> str:
    """Return the NBD URI of an export."""
    name = "" if export is exports[0] else quote(export.name, safe="")
    if listener.is_unix:
        return f"nbd+unix:///{name}?socket={quote(listener.address)}"
    return f"nbd://{listener.address}/{name}"


@contextmanager
def _collected(errors: list[UflipError]) -> Iterator[None]:
    """Collect an error, so that the remaining steps are still made."""
    try:
        yield
    except UflipError as error:
        errors.append(error)


# The statistics, the gaps of the recording, and failures.


def print_served(
    document: ServedDocument,
    errors: list[UflipError],
    record: Path | None,
    *,
    quiet: bool,
    as_json: bool,
    err: bool,
) -> None:
    """Print the statistics and the failures; exit with the code of the first failure."""
    if as_json:
        error = {"error": error_document(errors[0])} if errors else {}
        echo_json({**document, **error})
    elif not quiet:
        _print(document, err=err)
        if record is not None:
            _print_unrecorded(document, record, err=err)
    for each in errors[1:]:
        echo_error(each)
    if errors and as_json:  # the first error is in the document already
        click.get_current_context().exit(errors[0].exit_code)
    if errors:
        raise errors[0]


def _print(document: ServedDocument, *, err: bool) -> None:
    head = ["export", "reads", "writes", "flushes", "failed", "p50", "p99", "lag p50", "lag p99"]
    rows = [_row(export) for export in document["exports"]]
    for line in Table([*head, "lag max"], plain(rows), "l" + "r").lines():
        echo(line, err=err)


def _row(export: ServedExport) -> list[str]:
    response, lag = export["response_time"], export["lag"]
    counts = (export["reads"], export["writes"], export["flushes"], export["failed"])
    times = [response["p50_ns"], response["p99_ns"], lag["p50_ns"], lag["p99_ns"], lag["max_ns"]]
    count_cells = [f"{count:,}" for count in counts]
    time_cells = ("–" if each is None else format_duration_ns(each) for each in times)
    return [export["name"], *count_cells, *time_cells]


def _print_unrecorded(document: ServedDocument, record: Path, *, err: bool) -> None:
    """Print how many flushes and trims the recording does not contain."""
    flushes, trims = (
        sum(export[name] for export in document["exports"]) for name in ("flushes", "trims")
    )
    if flushes or trims:
        unrecorded = f"{format_count(flushes)} flushes, {format_count(trims)} trims"
        echo(f"not in {plain(str(record))}, whose format lacks them: {unrecorded}", err=err)


# The command of --run, next to the server, in a process group of its own.
#
# A signal that ends `uflip` is forwarded to the whole group, so that no process of the command is
# left over. The server continues meanwhile, so that the command can end in order::
#
#     Ctrl-C ─▶ uflip ─▶ group ─▶ over, or after a while SIGTERM ─▶ over, or left to itself
#
# Such a group is in the background of a terminal. If it waits for the terminal, it gets it until it
# ends, as from a shell; Ctrl-C then goes to the command, and ends `uflip` if it ends the command.


def run_command(program: str, uri: str, *, to_stderr: bool) -> None:
    """Run a command with $UFLIP_URI set to `uri`, until it ends or a signal arrives."""
    process = subprocess.Popen(
        program,
        shell=True,
        env=os.environ | {"UFLIP_URI": uri},
        stdout=sys.__stderr__ if to_stderr else None,
        process_group=0,
    )
    terminal = _Terminal(process.pid)
    try:
        while (code := _code(process, SLICE_S)) is None:
            if (number := signals.received_signal()) is not None:
                _end(process, number)
                return
            terminal.lend_if_needed()
    finally:
        terminal.reclaim()
    if code == -signal.SIGINT and terminal.lent:
        signal.raise_signal(signal.SIGINT)  # it was meant for this process, too
    elif code != 0:
        raise DeviceError(
            "The command that used the device failed",
            where=program,
            got=f"exit code {code}" if code > 0 else f"signal {-code}",
            allowed="exit code 0",
            action="read its output, and try it on a device that is served without --run",
        )


def _code(process: subprocess.Popen[bytes], timeout_s: float) -> int | None:
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return None


def _end(process: subprocess.Popen[bytes], number: int) -> None:
    """Forward a signal; then SIGTERM, as commands in the background of a shell ignore SIGINT."""
    for each in dict.fromkeys((number, signal.SIGTERM)):
        _send(process.pid, each)
        _send(process.pid, signal.SIGCONT)
        _code(process, STOP_TIMEOUT_S)


def _send(group: int, number: int) -> None:
    with suppress(ProcessLookupError):  # no process of the group is left
        os.killpg(group, number)


class _Terminal:
    """The terminal of this process, lent to a process group that waits for it."""

    def __init__(self, group: int) -> None:
        self._group = group
        self._needed = False
        self.lent = False

    def lend_if_needed(self) -> None:
        """Lend the terminal if the group waits for it and this process has it."""
        status = os.waitid(os.P_PID, self._group, os.WSTOPPED | os.WNOHANG)
        self._needed |= status is not None and status.si_status in STOPPED_BY
        if self._needed and (self.lent or _hand_over(os.getpgrp(), self._group)):
            self._needed, self.lent = False, True
            _send(self._group, signal.SIGCONT)

    def reclaim(self) -> None:
        """Take the terminal back."""
        if self.lent:
            _hand_over(self._group, os.getpgrp())


def _hand_over(giver: int, taker: int) -> bool:
    """Transfer the terminal between groups; return whether the giver had it."""
    # A background process would be stopped by SIGTTOU.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTTOU])
    try:
        terminal = os.open("/dev/tty", os.O_RDWR)
        try:
            if os.tcgetpgrp(terminal) != giver:
                return False
            os.tcsetpgrp(terminal, taker)
        finally:
            os.close(terminal)
    except OSError:  # no terminal
        return False
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return True
