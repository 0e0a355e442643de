"""Queries for results: words, filters and orders, from the parameters of an address.

Users see published results and their own; an admin sees everything. An index of `tables` serves
every condition, or few rows are left to check.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, and_, func, literal, or_, select

from uflip.errors import UflipError, UsageError, unknown_name
from uflip.site.accounts import has_role
from uflip.site.paging import Order
from uflip.site.tables import WORDS, Account, DeviceRecord, ResultRecord
from uflip.units import parse_size

if TYPE_CHECKING:
    from sqlalchemy.orm import InstrumentedAttribute

Condition = ColumnElement[bool]
MAX_WORDS = 10
GRAM = 3
"""Characters; shorter words are in no full-text index, and are searched row by row."""
SORTS = {
    "created": Order(ResultRecord.created_utc),
    "submitted": Order(ResultRecord.submitted_utc),
    "device": Order(DeviceRecord.model),
    "capacity": Order(DeviceRecord.capacity_bytes, int),
    "scale": Order(ResultRecord.scale),
    "state": Order(ResultRecord.state),
    "durability": Order(ResultRecord.durability),
    "warnings": Order(ResultRecord.warnings, int),
    "runs": Order(ResultRecord.runs, int),
    "sr": Order(ResultRecord.sr_ms, float, gaps=True),
    "rr": Order(ResultRecord.rr_ms, float, gaps=True),
    "sw": Order(ResultRecord.sw_ms, float, gaps=True),
    "rw": Order(ResultRecord.rw_ms, float, gaps=True),
}


@dataclass(frozen=True)
class ResultQuery:
    """A query for results, with its order and page.

    Attributes
    ----------
    text : str
        Words that must all occur in the model, the firmware or the id.
    filters : tuple of pairs
        Name from `FILTERS` and its value.
    sort : str
        Name from `SORTS`; descending with a leading "-".
    after, before : str
        Cursor from another page at which this one begins or ends.
    per_page : int
        Rows of a page.
    """

    text: str = ""
    filters: tuple[tuple[str, str], ...] = ()
    sort: str = "-created"
    after: str = ""
    before: str = ""
    per_page: int = 50


def _is(column: "InstrumentedAttribute[str]") -> Callable[[str], Condition]:
    return lambda value: column == value


def _year(value: str) -> Condition:
    if not (value.isascii() and value.isdigit() and len(value) == 4):
        raise _no_value("year", value, "four digits")
    return and_(ResultRecord.created_utc >= value, ResultRecord.created_utc < str(int(value) + 1))


def _capacity(value: str) -> Condition:
    low, dots, high = value.partition("..")
    try:
        least = parse_size(low) if low else 0
        most = parse_size(high) if high else None
    except (UflipError, ValueError) as error:
        raise _no_value("capacity", value, "a size, or two as in 64GiB..1TiB") from error
    if not dots:
        return DeviceRecord.capacity_bytes == least
    above = DeviceRecord.capacity_bytes >= least
    return above if most is None else and_(above, DeviceRecord.capacity_bytes < most)


def _no_value(name: str, got: str, allowed: str) -> UsageError:
    return UsageError(
        "There is no such value of this filter",
        where=name,
        got=got[:80],
        allowed=allowed,
        action="omit the filter, or correct it",
    )


FILTERS: dict[str, Callable[[str], Condition]] = {
    "kind": _is(DeviceRecord.kind),
    "device": _is(DeviceRecord.slug),
    "capacity": _capacity,
    "year": _year,
    "class": lambda value: ResultRecord.device_class == value,
    "scale": _is(ResultRecord.scale),
    "state": _is(ResultRecord.state),
    "durability": _is(ResultRecord.durability),
    "status": _is(ResultRecord.status),
    "firmware": _is(ResultRecord.firmware),
}


def matching(caller: Account | None, criteria: ResultQuery, dialect: str) -> list[Condition]:
    """Return the conditions of a query on results and their devices.

    Raises
    ------
    UsageError
        For an unknown filter, or an invalid value.
    """
    where = [visible_to(caller)]
    for name, value in criteria.filters:
        if name not in FILTERS:
            raise unknown_name("filter", name, FILTERS, where="filter")
        where.append(FILTERS[name](value))
    return where + _with(criteria.text.casefold().split()[:MAX_WORDS], dialect)


def visible_to(caller: Account | None) -> Condition:
    """Return the condition for results that an account may see."""
    if has_role(caller, "admin"):
        return ResultRecord.id.is_not(None)
    published = ResultRecord.published_utc.is_not(None)
    return published if caller is None else or_(published, ResultRecord.account_id == caller.id)


def _with(words: Sequence[str], dialect: str) -> list[Condition]:
    """Return the conditions for results that contain all words, also as parts of words."""
    if dialect != "sqlite":
        return [ResultRecord.words.like(f"%{_escaped(word)}%") for word in words]
    where: list[Condition] = [
        func.instr(ResultRecord.words, word) > 0 for word in words if len(word) < GRAM
    ]
    # One query with all words: the rarest decides the number of rows that are read.
    phrase = " ".join('"' + w.replace('"', '""') + '"' for w in words if len(w) >= GRAM)
    if phrase:
        matches = select(WORDS.c.id).where(WORDS.c.words.op("MATCH")(literal(phrase)))
        where.append(ResultRecord.id.in_(matches))
    return where


def _escaped(word: str) -> str:
    return word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
