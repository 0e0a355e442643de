"""Parameters in the query of a URL: words and numbers, with errors that name the parameter."""

from collections.abc import Mapping

from uflip.errors import UsageError

Query = Mapping[str, str]
MAX_NUMBER = float(1 << 62)


def text(query: Query, name: str) -> str:
    """Return a word.

    Raises
    ------
    UsageError
        If it is missing.
    """
    value = query.get(name)
    if not value:
        raise UsageError(
            "A parameter is missing in the address",
            where=name,
            allowed="a text",
            action="open the page from the list",
        )
    return value


def number(query: Query, name: str) -> float:
    """Return a number.

    Raises
    ------
    UsageError
        If it is missing, not a number, or beyond the largest count.
    """
    given = query.get(name, "")
    try:
        value = float(given)
    except ValueError:
        value = float("nan")
    if not abs(value) <= MAX_NUMBER:
        raise UsageError(
            "A number in the address is not valid"
            if given
            else "A number is missing in the address",
            where=name,
            got=given or "nothing",
            allowed=f"a number of at most {MAX_NUMBER:g}",
            action="open the page from the list",
        )
    return value
