"""JSON into typed values: the whole document is right, or it is refused by name.

What a field may be stands in its type (`msgspec`): kinds, ranges, lengths, patterns. What types
cannot say is said here, for all documents alike: how deep they may nest, and that they are UTF-8
without half characters. Not-a-number is no JSON, and numbers beyond 64 bits fit no field.
"""

import re
from array import array
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from uflip.data.bounded_read import DocumentKind

T = TypeVar("T")

# Deeper than any profile, plan or host; far from where a recursive reader gives up.
DEEPEST = 64
# Nanoseconds, bytes and counts fit a signed 64-bit number: what every other reader has.
LARGEST = (1 << 63) - 1
MOST_RUNS = 100_000
"""Of a plan: a hundred times the longest benchmark."""
MOST_WARNINGS = 1_000
"""Of a document: there is one for a code, and there are some sixty codes."""
# A file name holds 255 bytes on every file system; ours have endings, and temporary names.
LONGEST_NAME_BYTES = 200

Text = Annotated[str, Meta(max_length=10_000)]
Name = Annotated[str, Meta(min_length=1, max_length=500)]
Count = Annotated[int, Meta(ge=0, le=LARGEST)]
# Drawn with by the native part, which has 64 bits for it.
Seed = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1, le=LARGEST)]
Seconds = Annotated[float, Meta(ge=0, lt=1e10)]
Instant = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
DigestText = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
FolderId = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
DecHook = Callable[[type, Any], Any]
Table = dict[str, Any]
"""Plain data whose keys are for others to know."""

# Read at a time: the pieces that texts are cut into exist for so much of a document only [bytes].
_CHUNK = 1 << 16
_ESCAPE = re.compile(rb"\\*.", re.S)
_NO_STRUCTURE = bytes(set(range(256)) - set(b'"[]{}'))
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")


def decode(
    path: Path, kind: DocumentKind, content: bytes, shape: type[T], dec_hook: DecHook | None = None
) -> T:
    """Turn the bytes of a document into a value of its type.

    `dec_hook` makes the values of fields whose type msgspec does not know, see `uflip.data.spec`.

    Raises
    ------
    UflipError
        Of the class that `kind` names; it says what is wrong, and where in the document.
    """
    if deepest(content) > DEEPEST:
        raise kind.unreadable(path, f"more than {DEEPEST} levels", f"at most {DEEPEST} levels")
    try:
        return msgspec.json.decode(content, type=shape, dec_hook=dec_hook)
    except msgspec.ValidationError as error:
        raise kind.unreadable(path, _reason(error), f"the {kind.name} that uflip wrote") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise kind.unreadable(path, f"not JSON: {error}", "JSON in UTF-8") from error


def check(path: Path, kind: DocumentKind, name: str, content: object, shape: type[T]) -> T:
    """Check plain data inside of a document; keys that the type does not have are let be.

    Raises
    ------
    UflipError
        As `decode`.
    """
    try:
        return msgspec.convert(content, shape)
    except msgspec.ValidationError as error:
        got = f"'{name}': {_reason(error)}"
        raise kind.unreadable(path, got, f"the {kind.name} that uflip wrote") from error


def plain(document: Struct | Mapping[str, object]) -> Table:
    """Return a document, or a table of such, as plain data: as JSON holds it."""
    content: Table = msgspec.json.decode(msgspec.json.encode(document))
    return content


def deepest(content: bytes) -> int:
    """Count how many levels of lists and objects a JSON text has, at most.

    Everybody's bytes come here before any parser: the time is linear in their number, whatever they
    are, and the memory beyond them is that of a chunk.
    """
    depth = most = 0
    in_text = False
    for chunk in _chunks(content):
        # Pairs of backslashes first: the quote after an odd one is the only one that is escaped.
        unescaped = chunk.replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = unescaped.translate(None, _NO_STRUCTURE).split(b'"')
        steps = array("b", b"".join(parts[in_text::2]).translate(_STEPS))
        in_text ^= len(parts) % 2 == 0
        depths = [*accumulate(steps, initial=depth)]
        depth = depths[-1]
        most = max(most, *depths)
    return most


def _chunks(content: bytes) -> Iterator[bytes]:
    """Divide a text so that no escape is cut in two."""
    start = 0
    while start < len(content):
        end = start + _CHUNK
        if content[end - 1 : end] == b"\\" and (rest := _ESCAPE.match(content, end)):
            end = rest.end()
        yield content[start:end]
        start = end


def no_file_name(name: str) -> str | None:
    """Say why a text cannot be the name of a file of ours; None where it can.

    Examples
    --------
    >>> no_file_name("0001-baseline-SR")
    >>> no_file_name("../manifest")
    'a name that leads elsewhere'
    """
    if not name or len(name.encode("utf-8", "replace")) > LONGEST_NAME_BYTES:
        return f"a name of 1 to {LONGEST_NAME_BYTES} bytes"
    if "/" in name or name.startswith("."):
        return "a name that leads elsewhere"
    if not name.isprintable():
        return "a name that cannot be printed"
    return None


def _reason(error: msgspec.ValidationError) -> str:
    """Say what is wrong in our words."""
    return str(error).replace("Object ", "").replace(" - at ", ", at ").replace("`", "'")
