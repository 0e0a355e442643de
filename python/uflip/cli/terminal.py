"""Everything that is printed for people goes through here, so that no text can drive a terminal.

What text is made of before it is printed is said in `uflip.escape`; colours are added behind that.
"""

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from uflip.errors import UflipError
from uflip.escape import in_json, shown

if TYPE_CHECKING:
    from uflip.data.comparison import ComparisonFailure

# No word of an error needs more; an argument of a megabyte is no help to anybody.
LONGEST_PART = 2000


def shortened(text: str) -> str:
    """Leave out the middle of what is too long to be read."""
    if len(text) <= LONGEST_PART:
        return text
    half = LONGEST_PART // 2
    return f"{text[:half]} ... ({len(text)} characters) ... {text[-half:]}"


def echo(text: object = "", *, err: bool = False, newline: bool = True, **style: Any) -> None:
    """Print text for people; `style` is that of `click.style`."""
    safe = shown(str(text))
    click.echo(click.style(safe, **style) if style else safe, err=err, nl=newline)


def echo_json(document: Any) -> None:
    """Print a document for programs: every value as it is, and nothing that a terminal obeys."""
    import msgspec  # a refusal does not wait for it

    text = json.dumps(msgspec.to_builtins(document), indent=2, ensure_ascii=False, allow_nan=False)
    click.echo(in_json(text))


def echo_error(error: UflipError) -> None:
    """Print an error for people, on standard error."""
    echo("error:", err=True, newline=False, fg="red", bold=True)
    texts = (error.what, _place_of(error), error.got, error.allowed, error.action)
    echo(f" {UflipError(*map(shortened, texts))}", err=True)


def failure_of(error: UflipError) -> "ComparisonFailure":
    """Return an error as `--json` prints it, by itself or in the document of a command."""
    return {
        "kind": error.kind,
        "what": error.what,
        "where": _place_of(error),
        "got": error.got,
        "allowed": error.allowed,
        "action": error.action,
        "exit_code": error.exit_code,
    }


def _place_of(error: UflipError) -> str:
    """Say where it was: at least the command that is being carried out, if nobody knew more."""
    context = click.get_current_context(silent=True)
    return error.where or (context.command_path if context else "")


def never_fail() -> None:
    """Let no character that the terminal's encoding lacks end the program."""
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="backslashreplace")
