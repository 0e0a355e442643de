"""Parameters in the query of a URL: words and numbers, with errors that name the parameter."""

from collections.abc import Mapping

from uflip.errors import UsageError

Query = Mapping[str, str]
LARGEST = float(1 << 62)


def text(query: Query, name: str) -> str:
    """Return a word.

    Raises
    ------
    UsageError
        If it is missing.
    """
    found = query.get(name)
    if not found:
        raise UsageError(
            "A parameter is missing in the address",
            where=name,
            allowed="a text",
            action="open the page from the list",
        )
    return found


def number(query: Query, name: str) -> float:
    """Return a number.

    Raises
    ------
    UsageError
        If it is missing, not a number, or beyond the largest count.
    """
    said = query.get(name, "")
    try:
        found = float(said)
    except ValueError:
        found = float("nan")
    if not abs(found) <= LARGEST:
        raise UsageError(
            "A number in the address is not valid"
            if said
            else "A number is missing in the address",
            where=name,
            got=said or "nothing",
            allowed=f"a number of at most {LARGEST:g}",
            action="open the page from the list",
        )
    return found
