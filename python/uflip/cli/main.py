"""The command `uflip`: finds the verb, and turns every failure into a message and an exit code.

Only the file of the verb that is used gets imported: `uflip devices` must not wait for matplotlib.
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
from uflip.cli.terminal import echo, echo_error, echo_json, failure_of, never_fail
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
"""The option whose value no error shows."""
VERBS = {
    "run": "Run the micro-benchmarks on a device and keep the results.",
    "plan": "Show what `run` would do; touches nothing.",
    "prepare": "Bring a device into a well-defined state.",
    "deallocate": "Tell a device that what is stored is not needed (TRIM).",
    "zones": "List the zones of a device; reset, finish, open or close some.",
    "pattern": "Execute one I/O pattern, as one would use fio.",
    "replay": "Replay the I/Os of a trace on a device.",
    "sweep": "Run one pattern on many simulated devices, on all cores.",
    "show": "Print the results of a run.",
    "hints": "Say which design hints hold for a device, and what to do.",
    "cost": "Predict what data structures will take on a device.",
    "compare": "Compare two results or more: which experiments differ.",
    "verify": "Check that results are what was measured.",
    "analyse": "Find start-up, period and mean of any response times.",
    "explore": "Look at results in a browser, down to every I/O.",
    "site": "Serve results of many people and machines.",
    "submit": "Send a result to a results site.",
    "pull": "Fetch a result from a results site.",
    "report": "Turn results into one self-contained HTML page.",
    "figure": "Draw one figure of a result for a paper.",
    "export": "Turn results into CSV or Parquet tables, or jobs of fio.",
    "import": "Make results of logs that fio wrote.",
    "oc": "Measure an open-channel device with uFLIP-OC.",
    "powercut": "Cut the power of a simulated device, and see what it finds again.",
    "serve": "Serve a simulated device as a real one, for any program.",
    "reproduce": "Repeat a paper's experiments, its numbers beside ours.",
    "selftest": "Compare the simulator with theory.",
    "devices": "List the devices that can be measured.",
    "profile": "Begin, print and check profiles of simulated devices.",
    "cache": "List or remove simulated devices that are kept in their state.",
    "info": "Say what is known about a device; touches nothing.",
}
"""Name of the verb, and of its file -> what it does."""

COMPLETION = "_UFLIP_COMPLETE"
"""Set by the completion script of a shell: `_UFLIP_COMPLETE=bash_source uflip` prints it."""

HELP = """Measure flash devices with the uFLIP micro-benchmarks, and simulate them.

\b
DEVICE is one of
  sim:NAME     a simulated SSD, in virtual time       sim:demo
  file:PATH    a file, through direct I/O             file:scratch.bin
  /dev/NAME    a block device; everything on it is lost
  nbd:unix:PATH, nbd:HOST:PORT   an export of an NBD server, as `uflip serve` is one
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


# What fio, SNIA and other tools call a verb of ours.
ELSEWHERE = {
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


class LazyGroup(click.Group):
    """A group of commands that are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names, in the order in which one needs them."""
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
        """Find the verb, or say which there are."""
        if args[0] not in VERBS and not args[0].startswith("-"):
            meant = ELSEWHERE.get(args[0], "")
            error = unknown_name("command", args[0], VERBS, where="uflip", meant=meant)
            raise error
        return super().resolve_command(ctx, args)

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002
        formatter: click.HelpFormatter,
    ) -> None:
        """List the verbs without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


@click.command(cls=LazyGroup, name="uflip", help=HELP, epilog=_epilog())
@click.version_option(__version__, message="uflip %(version)s")
def cli() -> None:
    """Group all verbs."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with the code of what happened.

    Parameters
    ----------
    arguments : sequence of str, optional
        Without the name of the program; those of the process by default.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    # Whoever closed them wants to read nothing.
    sys.stdout = sys.stdout or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    sys.stderr = sys.stderr or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    code = _run(given)
    if signals.in_a_hurry():
        # Nothing is waited for any more: neither threads at work nor those that hang in the kernel.
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(code)
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    if instruction := os.environ.get(COMPLETION):
        from click.shell_completion import shell_complete

        return shell_complete(cli, {}, "uflip", COMPLETION, instruction)
    never_fail()
    try:
        signals.at_work()
        _check_text(arguments)
        # Not `cli()` itself: click would print its errors in its own way, and exit.
        # It takes the words from the list that it is given.
        with cli.make_context("uflip", list(arguments)) as context:
            cli.invoke(context)
            sys.stdout.flush()
    except click.exceptions.Exit as end:  # --help, --version
        return end.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        echo(error.ctx.get_help() if error.ctx else "")
    except BrokenPipeError:
        # The reader (`| head`) has what it wants.
        _let_go_of_output()
    except BaseException as error:
        as_json = "--json" in arguments
        if isinstance(error, OSError) and error.filename is None:
            _let_go_of_output()  # no file that has a name: it may be what could not be written
            as_json = False  # nor can the error be, there
        return _fail(_placed(_explain(error), arguments), as_json=as_json)
    return 0


def _let_go_of_output() -> None:
    """Python must not complain again, about what was not written, while it exits."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _check_text(arguments: Sequence[str]) -> None:
    """Refuse what is no text: it could not be stored, printed or found again."""
    for before, argument in pairwise(("", *arguments)):
        if not _is_text(argument):
            secret = before == SECRET or argument.startswith(f"{SECRET}=")
            raise UsageError(
                "An argument is not valid text",
                where=SECRET if secret else "uflip",
                got="what is not shown here" if secret else argument,
                allowed="names and values in UTF-8, without NUL",
                action="rename the file, or give another name that leads to it",
            )


def _is_text(argument: str) -> bool:
    try:
        return b"\0" not in argument.encode()
    except UnicodeEncodeError:
        return False


def _explain(error: BaseException) -> UflipError:
    """Turn whatever was raised into an error with four parts."""
    if isinstance(error, InterruptedRun):
        return interrupted_by(signals.caught(), error)
    if isinstance(error, UflipError):
        return error
    if isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        path = context.command_path if context else "uflip"
        return UsageError(
            error.format_message().rstrip("."),
            where=path,
            action=f"see `{path} --help`",
        )
    if isinstance(error, (KeyboardInterrupt, click.Abort)) or signals.is_behind(error):
        interrupted = InterruptedRun("Interrupted", action="start again when it suits you")
        return interrupted_by(signals.caught(), interrupted)
    return _of_the_system(error) or _of_ours(error)


def _of_the_system(error: BaseException) -> UflipError | None:
    """Explain what the system refused, wherever it was asked."""
    if isinstance(error, MemoryError):
        return UnavailableError(
            "There is not enough memory",
            where="this process",
            got=str(error),
            action="ask for less at a time, or give it more memory (ulimit -v, the cgroup)",
        )
    if isinstance(error, OSError) and error.errno is not None:
        return ResultsError(
            "The operating system refused an operation",
            where=str(error.filename or ""),
            got=error.strerror or str(error),
            action="check the place, its permissions, and that there is room",
        )
    return None


def _of_ours(error: BaseException) -> UflipError:
    """Show a mistake of ours, with all that helps to find it."""
    import traceback

    echo("".join(traceback.format_exception(error)), err=True, newline=False)
    return UflipError(
        "Internal error of uflip",
        got=f"{type(error).__name__}: {error}",
        action="please report this with the lines above and the command",
    )


def _placed(error: UflipError, arguments: Sequence[str]) -> UflipError:
    """Say at least in which command it was, where nobody knew more."""
    if not error.where:
        error.where = " ".join(["uflip", *(word for word in arguments[:1] if word in VERBS)])
    return error


def _fail(error: UflipError, *, as_json: bool) -> int:
    if as_json:
        try:
            echo_json({"error": failure_of(error)})
        except (OSError, ValueError):
            _let_go_of_output()
        else:
            return error.exit_code
    # Where nobody can read it any more (the terminal is gone, the disk of the log is full) the exit
    # code says it alone.
    with suppress(OSError, ValueError):
        echo_error(error)
    return error.exit_code
