"""TOML of people, as plain data: looked at before it is parsed, so that no text takes long.

Python's parser follows every dot of a key one by one from the beginning: a line of 20,000 dots
takes 12 s, and no honest file has one. Such keys are found in the text first. Deep lists, numbers
of thousands of digits, dates and what is no number are errors like any other.
"""

import math
import re
import tomllib
from datetime import date, time
from pathlib import Path
from typing import Any

from uflip.data.document import DEEPEST
from uflip.data.reading import Kind, read_text

# So many words joined by dots; each begins where no word is, so that the search is linear.
_DOTTED = re.compile(rf"(?<![^\s.=\[\]{{}},#])(?:[^\s.=\[\]{{}},#]++[ \t]*+\.[ \t]*+){{{DEEPEST}}}")


def read_toml(path: Path, kind: Kind) -> dict[str, Any]:
    """Read a file of TOML.

    Returns
    -------
    dict
        Texts, whole numbers of 64 bits, finite numbers, booleans, lists and tables.

    Raises
    ------
    UflipError
        Of the class that `kind` names: not a regular file, too large, not UTF-8, not TOML or
        too deep.
    """
    text = read_text(path, kind).removeprefix("\ufeff")  # as some editors begin a file
    if _DOTTED.search(text):
        raise kind.unreadable(path, f"a key of more than {DEEPEST} words", f"at most {DEEPEST}")
    try:
        content = tomllib.loads(text)
        problem = _not_plain(content, 0)
    except (tomllib.TOMLDecodeError, ValueError) as error:
        raise kind.unreadable(path, f"not TOML: {error}", "TOML") from error
    except RecursionError as error:
        raise kind.unreadable(
            path, "lists in lists without end", f"at most {DEEPEST} levels"
        ) from error
    if problem is not None:
        raise kind.unreadable(path, problem, "texts, numbers, true and false, lists, tables")
    return content


def _not_plain(value: Any, depth: int) -> str | None:
    """Say what JSON has no word for; None where there is nothing of that kind."""
    if depth > DEEPEST:
        return f"more than {DEEPEST} levels"
    if isinstance(value, dict | list):
        parts = value.values() if isinstance(value, dict) else value
        return next(filter(None, (_not_plain(part, depth + 1) for part in parts)), None)
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value}, which is no number"
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return "a whole number beyond 64 bits"
    if isinstance(value, date | time):
        return f"{value}, a date or a time"
    return None
