"""TOML files of users as plain data, read by the native parser.

Python's own parser follows every dot of a key from its beginning, and takes seconds for a megabyte;
the native one takes milliseconds. Dates, not-a-number and whole numbers beyond 64 bits are errors
like any other.
"""

import json
from pathlib import Path

from uflip import _native
from uflip.data.bounded_read import DocumentKind, read_text
from uflip.data.document import MAX_DEPTH, Table, nesting_depth
from uflip.errors import UflipError, native_errors


def read_toml(path: Path, kind: DocumentKind) -> Table:
    """Read a file of TOML.

    Returns
    -------
    dict
        Texts, whole numbers of 64 bits, finite numbers, booleans, lists and tables.

    Raises
    ------
    UflipError
        Of the class in `kind`: not a regular file, too large, not UTF-8, not TOML or too deep.
    """
    text = read_text(path, kind).removeprefix("\ufeff")  # as some editors begin a file
    try:
        with native_errors():
            plain = _native.toml_to_json(text)
    except UflipError as error:
        raise kind.unreadable(path, error.got, error.allowed) from error
    if nesting_depth(plain.encode()) > MAX_DEPTH:
        raise kind.unreadable(path, f"more than {MAX_DEPTH} levels", f"at most {MAX_DEPTH} levels")
    content: Table = json.loads(plain)
    return content
