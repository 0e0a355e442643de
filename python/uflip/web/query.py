"""What an address asks for behind its question mark: words, numbers, or an error that names one."""

from collections.abc import Mapping

from uflip.errors import UsageError

Query = Mapping[str, str]
LARGEST = float(1 << 62)


def text(query: Query, name: str) -> str:
    """Read a word.

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
    """Read a number.

    Raises
    ------
    UsageError
        If it is missing, none, or beyond all that is counted here.
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
