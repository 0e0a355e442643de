r"""Escape untrusted text for display: no character may control a terminal or reverse a page.

Names of devices, files, runs and warnings come from elsewhere. An escape sequence moves the cursor
of a terminal, changes its title, fills the clipboard; a bidirectional override shows a path
backwards, on a terminal and on an HTML page alike. So control characters and invisible characters
are replaced by their codes (`\x1b`), wherever they come from.
"""

import json
import re
from typing import Any, TypeVar

# C0 and C1 except line feed, DEL, soft hyphens and other invisible characters, everything that
# changes the direction of writing, line separators, unpaired surrogates, noncharacters.
_UNSAFE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u061c\u06dd\u070f\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\uffff\U000e0000-\U000e0fff]"
)

Value = TypeVar("Value")


def escape_text(text: str) -> str:
    r"""Escape text for display; line feeds stay.

    >>> print(escape_text("a\x1b[2Jb\r\u202ec"))
    a\x1b[2Jb\x0d\u202ec
    """
    return _UNSAFE.sub(_escape_character, text)


def without_password(url: str) -> str:
    """Hide the password in a URL that an error shows.

    >>> without_password("postgresql://uflip:secret@db/uflip")
    'postgresql://uflip:***@db/uflip'
    """
    # A typed password may contain the characters that end this part of a URL.
    scheme, separator, authority = url.partition("://")
    user, at, host = authority.rpartition("@")
    if not at:
        return url
    name, colon, _ = user.partition(":")
    return f"{scheme}{separator}{name}{colon}{'***' if colon else ''}@{host}"


def escape_line(text: str) -> str:
    r"""Escape text for display within one line.

    >>> print(escape_line("two\nlines"))
    two\x0alines
    """
    return escape_text(text).replace("\n", "\\x0a")


def plain(value: Value) -> Value:
    """Escape every text in a document with `escape_line`; other values stay."""
    escaped: Any = value
    if isinstance(value, str):
        escaped = escape_line(value)
    elif isinstance(value, dict):
        escaped = {plain(key): plain(each) for key, each in value.items()}
    elif isinstance(value, list | tuple):
        escaped = type(value)(map(plain, value))
    return escaped  # type: ignore[no-any-return]


def on_page(value: Value) -> Value:
    r"""Escape a value that a template shows: for `finalize` of a Jinja environment.

    Text that is already HTML-escaped stays so, since the codes contain no markup.

    >>> print(on_page("drive\u202egpj.exe"), on_page(7))
    drive\u202egpj.exe 7
    """
    escaped: Any = value
    if isinstance(value, str) and _UNSAFE.search(value):
        escaped = type(value)(escape_text(value))
    return escaped  # type: ignore[no-any-return]


def escape_json(text: str) -> str:
    """Escape JSON for display without changing its value: only strings hold such characters."""
    return _UNSAFE.sub(_escape_json_character, text)


def _escape_character(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was not UTF-8 (surrogateescape)
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _escape_json_character(match: re.Match[str]) -> str:
    # Beyond 16 bits JSON uses surrogate pairs, as json.dumps does.
    return json.dumps(match[0])[1:-1] if ord(match[0]) != 0x7F else "\\u007f"
