"""Printing for people: all text passes through here, so that no text can control a terminal.

`uflip.escape` makes the text safe; colours are added afterwards.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from uflip import table
from uflip.errors import ErrorDocument, UflipError
from uflip.escape import escape_json, escape_line, escape_text, plain
from uflip.table import Table

if TYPE_CHECKING:
    from uflip.data.device import TwinErrors

# Longer parts of an error do not help anybody.
MAX_PART_LENGTH = 2000


def shorten(text: str) -> str:
    """Cut out the middle of a text that is too long to read."""
    if len(text) <= MAX_PART_LENGTH:
        return text
    half = MAX_PART_LENGTH // 2
    return f"{text[:half]} ... ({len(text)} characters) ... {text[-half:]}"


def echo(text: object = "", *, err: bool = False, newline: bool = True, **style: Any) -> None:
    """Print text for people; `style` is that of `click.style`."""
    safe = escape_text(str(text))
    click.echo(click.style(safe, **style) if style else safe, err=err, nl=newline)


def echo_pairs(pairs: Iterable[tuple[str, str]], indent: str = "") -> None:
    """Print names and values in two columns; pairs without a value are omitted."""
    for line in table.pairs([(escape_line(n), escape_line(v)) for n, v in pairs if v], indent):
        echo(line)


def echo_table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> None:
    """Print a table; the first `left` columns are left-aligned, the others right-aligned."""
    text_table = Table(plain(list(head)), [plain(list(row)) for row in rows], "l" * left + "r")
    first, *others = text_table.lines()
    echo(first, bold=True)
    for line in others:
        echo(line)


def echo_twin(url: str, twin: "TwinErrors | None", *, err: bool = False) -> None:
    """Print the error of a twin beside its predictions; nothing for other devices."""
    from uflip.data.device import twin_advice, twin_text

    if twin is not None:
        echo(f"{url} is {twin_text(twin)}; {twin_advice(twin)}", err=err)


def echo_json(document: Any, *, in_one_line: bool = False) -> None:
    """Print a document for programs: values unchanged, but no terminal control characters."""
    import msgspec  # imported late, so that a refusal does not wait for it

    text = json.dumps(
        msgspec.to_builtins(document),
        indent=None if in_one_line else 2,
        ensure_ascii=False,
        allow_nan=False,
    )
    click.echo(escape_json(text))


def echo_error(error: UflipError) -> None:
    """Print an error for people, on standard error."""
    echo("error:", err=True, newline=False, fg="red", bold=True)
    texts = (error.what, _error_location(error), error.got, error.allowed, error.action)
    echo(f" {UflipError(*map(shorten, texts))}", err=True)


def error_document(error: UflipError) -> ErrorDocument:
    """Return an error as `--json` prints it, by itself or in the document of a command."""
    return {
        "kind": error.kind,
        "what": error.what,
        "where": _error_location(error),
        "got": error.got,
        "allowed": error.allowed,
        "action": error.action,
        "exit_code": error.exit_code,
    }


def _error_location(error: UflipError) -> str:
    """Return the place of an error: by default the current command."""
    context = click.get_current_context(silent=True)
    return error.where or (context.command_path if context else "")


def escape_unencodable() -> None:
    """Let the streams escape characters that the terminal's encoding lacks."""
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="backslashreplace")
