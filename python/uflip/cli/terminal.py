r"""Everything that is printed for people goes through here, so that no text can drive a terminal.

Names of devices, files, runs and warnings come from elsewhere, and a terminal obeys what is in
them: an escape sequence can move the cursor, change the title, fill the clipboard; a bidirectional
override shows a path backwards. So control characters and invisible ones are printed as what they
are (`\x1b`), wherever they come from; colours are added behind that.
"""

import json
import re
import sys
from typing import TYPE_CHECKING, Any, TypeVar

import click

from uflip.errors import UflipError

if TYPE_CHECKING:
    from uflip.data.compared import Failure

# C0 and C1 but for the end of a line, DEL, soft hyphens and other invisible signs, everything that
# changes the direction of writing, separators of lines, halves of surrogate pairs, noncharacters.
_UNSAFE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u061c\u06dd\u070f\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\uffff\U000e0000-\U000e0fff]"
)
# No word of an error needs more; an argument of a megabyte is no help to anybody.
LONGEST_PART = 2000

Value = TypeVar("Value")


def shown(text: str) -> str:
    r"""Make text that a terminal only shows; several lines stay several lines.

    Examples
    --------
    >>> print(shown("a\x1b[2Jb\r\u202ec"))
    a\x1b[2Jb\x0d\u202ec
    """
    return _UNSAFE.sub(_written_out, text)


def in_line(text: str) -> str:
    r"""Make text that a terminal only shows, within a line.

    Examples
    --------
    >>> print(in_line("two\nlines"))
    two\x0alines
    """
    return shown(text).replace("\n", "\\x0a")


def plain(value: Value) -> Value:
    """Make every text in a document one of a line; what is no text stays as it is."""
    made: Any = value
    if isinstance(value, str):
        made = in_line(value)
    elif isinstance(value, dict):
        made = {plain(key): plain(each) for key, each in value.items()}
    elif isinstance(value, list | tuple):
        made = type(value)(map(plain, value))
    return made  # type: ignore[no-any-return]


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
    # Only strings hold such characters, and in a string an escape means the same.
    click.echo(_UNSAFE.sub(_in_json, text))


def failure_of(error: UflipError) -> "Failure":
    """Return an error as `--json` prints it, by itself or in the document of a command."""
    return {
        "kind": error.kind,
        "what": error.what,
        "where": error.where,
        "got": error.got,
        "allowed": error.allowed,
        "action": error.action,
        "exit_code": error.exit_code,
    }


def never_fail() -> None:
    """Let no character that the terminal's encoding lacks end the program."""
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="backslashreplace")


def _written_out(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was no UTF-8, as Python keeps it
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _in_json(match: re.Match[str]) -> str:
    # Beyond 16 bits JSON writes two halves, as json.dumps does.
    return json.dumps(match[0])[1:-1] if ord(match[0]) != 0x7F else "\\u007f"
