"""The command `uflip`: dispatches to a verb; turns every failure into a message and an exit code.

Only the module of the requested verb is imported: `uflip devices` must not wait for matplotlib.
"""

import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from typing import NoReturn

import click

from uflip import __version__, signals
from uflip.cli.terminal import echo, echo_error, echo_json, error_document, escape_unencodable
from uflip.errors import (
    EXIT_CODES,
    InterruptedRun,
    ResultsError,
    UflipError,
    UnavailableError,
    UsageError,
    interrupted_by,
    unknown_name,
)

SECRET = "--token"
"""The option whose value is never shown in an error."""
GROUPS = {
    "Measure": {
        "run": "Run the micro-benchmarks on a device and store the results.",
        "plan": "Show what `run` would do; touches nothing.",
        "pattern": "Run one I/O pattern on a device, as with fio.",
        "replay": "Replay the I/Os of a trace on a device.",
        "oc": "Measure an open-channel device with uFLIP-OC.",
        "prepare": "Bring a device into a well-defined state.",
        "deallocate": "Deallocate (TRIM) a device or a range of it.",
        "zones": "List the zones of a device; reset, finish, open or close some.",
        "devices": "List the devices that can be measured.",
        "info": "Print the properties of a device; touches nothing.",
    },
    "Explain": {
        "show": "Print the results of a run.",
        "hints": "Check design hints against results, and give advice.",
        "infer": "Infer what is inside a device, and write a profile of its twin.",
        "cost": "Predict the cost of data structures on a device.",
        "compare": "Compare results: list the experiments that differ.",
        "analyse": "Find start-up, period and mean of any response times.",
        "why": "Explain the response times of any log or trace.",
        "explore": "Browse results, down to every I/O.",
        "report": "Write results as one self-contained HTML page.",
        "figure": "Draw one figure of a result for a paper.",
    },
    "Simulate": {
        "sweep": "Run one pattern on many simulated devices, on all cores.",
        "serve": "Serve a simulated device over NBD, for any program.",
        "powercut": "Cut the power of a simulated device, and report the losses.",
        "profile": "Create, print and check profiles of simulated devices.",
        "reproduce": "Repeat a paper's experiments, and compare the numbers.",
        "selftest": "Compare the simulator with theory.",
    },
    "Share": {
        "export": "Export results as tables, fio jobs, or traces for Perfetto.",
        "import": "Convert latency logs of fio to results.",
        "submit": "Upload a result to a results site.",
        "pull": "Download a result from a results site.",
        "site": "Run a site for the results of many people.",
    },
    "Maintain": {
        "verify": "Check the integrity of results.",
        "cache": "List or clear the cache of simulated devices.",
        "completion": "Print the completion script of bash, zsh or fish.",
    },
}
"""Title of a group -> its verbs, each with its help line. A verb is also the name of its file."""

VERBS = {verb: text for group in GROUPS.values() for verb, text in group.items()}

COMPLETION = "_UFLIP_COMPLETE"
"""Set by the script of `uflip completion` when it requests proposals."""

HELP = """Measure flash devices with the uFLIP micro-benchmarks, and simulate them.

\b
DEVICE is one of
  sim:NAME     a simulated SSD, in virtual time       sim:demo
  file:PATH    a file, through direct I/O             file:scratch.bin
  /dev/NAME    a block device; everything on it is lost
  nvme:/dev/NAME   an NVMe drive without the block layer: its own commands
  nbd:unix:PATH, nbd:HOST:PORT   an NBD export, for example of `uflip serve`
  null         does nothing: measures the harness

\b
First steps:
  uflip run sim:demo --out results/demo
  uflip report results/demo -o report.html
  uflip explore results
  uflip plan file:scratch.bin --size 1GiB --scale quick
  uflip pattern sim:demo --pattern RW --io-count 1000
"""


def _epilog() -> str:
    rows = "\n".join(f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODES.values())
    return f"\b\nExit codes:\n{rows}"


# Names of our verbs in fio, SNIA and other tools.
SUGGESTIONS = {
    "precondition": "prepare",
    "fill": "prepare",
    "trim": "deallocate",
    "discard": "deallocate",
    "blkdiscard": "deallocate",
    "blkzone": "zones",
    "fio": "pattern",
    "benchmark": "run",
    "bench": "run",
    "list": "devices",
    "plot": "report",
}

# fio's names of our options.
FIO_OPTIONS = {
    "--rw": "--pattern SR, RR, SW or RW, or --mode and --location",
    "--bs": "--io-size",
    "--iodepth": "--queue-depth",
    "--numjobs": "--parallel-degree",
    "--offset": "--target-offset",
    "--number_ios": "--io-count",
    "--thinktime": "--pause",
    "--randseed": "--seed",
    "--runtime": "--run-time",
    "--ramp_time": "--ramp-time",
    "--rwmixread": "--mix and --ratio",
    "--filename": "DEVICE, as in file:PATH",
}


class LazyGroup(click.Group):
    """A group of commands that are imported on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the verbs, in the order in which users need them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a verb."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = importlib.import_module(f"uflip.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; reject an unknown one with a list of all verbs."""
        if args[0] not in VERBS and not args[0].startswith("-"):
            suggestion = SUGGESTIONS.get(args[0], "")
            error = unknown_name("command", args[0], VERBS, where="uflip", suggestion=suggestion)
            raise error
        return super().resolve_command(ctx, args)

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002
        formatter: click.HelpFormatter,
    ) -> None:
        """List the verbs without importing any."""
        widest = max(map(len, VERBS))
        for title, verbs in GROUPS.items():
            with formatter.section(title):
                # The second column begins at the same place in every group.
                formatter.write_dl(
                    list(verbs.items()), col_spacing=2 + widest - max(map(len, verbs))
                )


@click.command(cls=LazyGroup, name="uflip", help=HELP, epilog=_epilog())
@click.version_option(__version__, message="uflip %(version)s")
def cli() -> None:
    """Group all verbs."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its exit code.

    `arguments`: without the program name; by default those of the process.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    # The streams may be closed; discard the output then.
    sys.stdout = sys.stdout or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    sys.stderr = sys.stderr or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    code = _run(words)
    if signals.must_exit_now():
        # Do not wait: threads may be at work, or hang in the kernel.
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(code)
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    if instruction := os.environ.get(COMPLETION):
        from click.shell_completion import shell_complete

        return shell_complete(cli, {}, "uflip", COMPLETION, instruction)
    escape_unencodable()
    try:
        signals.start_work()
        _check_text(arguments)
        # Not `cli()` itself: click would print its errors in its own format, and exit.
        # It removes words from the list that it gets, hence the copy.
        with cli.make_context("uflip", list(arguments)) as context:
            cli.invoke(context)
            sys.stdout.flush()
    except click.exceptions.Exit as end:  # --help, --version
        return end.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        echo(error.ctx.get_help() if error.ctx else "")
    except BrokenPipeError:
        # The reader (`| head`) closed the pipe.
        _discard_output()
    except BaseException as error:
        as_json = "--json" in arguments
        if isinstance(error, OSError) and error.filename is None:
            _discard_output()  # no file name: the error may come from writing the output
            as_json = False  # which then cannot hold the error either
        return _fail(_with_location(_explain(error), arguments), as_json=as_json)
    return 0


def _discard_output() -> None:
    """Redirect standard output to /dev/null, so that Python's final flush cannot fail."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _check_text(arguments: Sequence[str]) -> None:
    """Reject arguments that are not text: they could not be stored, printed or found again."""
    for before, argument in pairwise(("", *arguments)):
        if not _is_text(argument):
            secret = before == SECRET or argument.startswith(f"{SECRET}=")
            raise UsageError(
                "An argument is not valid text",
                where=SECRET if secret else "uflip",
                got="(not shown)" if secret else argument,
                allowed="names and values in UTF-8, without NUL",
                action="rename the file, or use another path to it",
            )


def _is_text(argument: str) -> bool:
    try:
        return b"\0" not in argument.encode()
    except UnicodeEncodeError:
        return False


def _explain(error: BaseException) -> UflipError:
    """Turn any exception into an error with four parts."""
    if isinstance(error, InterruptedRun):
        return interrupted_by(signals.received_signal(), error)
    if isinstance(error, UflipError):
        return error
    if isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        path = context.command_path if context else "uflip"
        what, action = error.format_message(), f"see `{path} --help`"
        if isinstance(error, click.NoSuchOption) and (ours := FIO_OPTIONS.get(error.option_name)):
            what = error.message  # without names that only look alike
            action = f"use {ours}; `uflip pattern --fio-job FILE` runs a job of fio"
        return UsageError(what.rstrip("."), where=path, action=action)
    if isinstance(error, (KeyboardInterrupt, click.Abort)) or signals.is_caused_by_signal(error):
        interrupted = InterruptedRun("Interrupted", action="start the command again")
        return interrupted_by(signals.received_signal(), interrupted)
    return _explain_system_error(error) or _explain_bug(error)


def _explain_system_error(error: BaseException) -> UflipError | None:
    """Explain a refusal of the operating system, or return None."""
    if isinstance(error, MemoryError):
        return UnavailableError(
            "There is not enough memory",
            where="this process",
            got=str(error),
            action="use a smaller size, or allow more memory (ulimit -v, the cgroup)",
        )
    if isinstance(error, OSError) and error.errno is not None:
        return ResultsError(
            "The operating system refused an operation",
            where=str(error.filename or ""),
            got=error.strerror or str(error),
            action="check the path, its permissions, and the free space",
        )
    return None


def _explain_bug(error: BaseException) -> UflipError:
    """Print the traceback of a bug, and return an error that asks for a report."""
    import traceback

    echo("".join(traceback.format_exception(error)), err=True, newline=False)
    return UflipError(
        "Internal error of uflip",
        got=f"{type(error).__name__}: {error}",
        action="please report this with the lines above and the command",
    )


def _with_location(error: UflipError, arguments: Sequence[str]) -> UflipError:
    """Add the command as the place of an error that has none."""
    if not error.where:
        error.where = " ".join(["uflip", *(word for word in arguments[:1] if word in VERBS)])
    return error


def _fail(error: UflipError, *, as_json: bool) -> int:
    if as_json:
        try:
            echo_json({"error": error_document(error)})
        except (OSError, ValueError):
            _discard_output()
        else:
            return error.exit_code
    # If nobody can read the message (closed terminal, full disk), only the exit code remains.
    with suppress(OSError, ValueError):
        echo_error(error)
    return error.exit_code
