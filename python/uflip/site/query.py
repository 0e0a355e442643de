"""Which results are wanted: words, filters and orders, as an address says them.

Somebody sees what is published, and what is their own; an admin sees everything. Every condition
is one that an index of `tables` answers, or that few rows are left for.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, and_, func, literal, or_, select

from uflip.errors import UflipError, UsageError, unknown_name
from uflip.site.accounts import may
from uflip.site.paging import Order
from uflip.site.tables import WORDS, Account, DeviceRecord, ResultRecord
from uflip.units import parse_size

if TYPE_CHECKING:
    from sqlalchemy.orm import InstrumentedAttribute

Condition = ColumnElement[bool]
MOST_WORDS = 10
GRAM = 3
"""Characters; what is shorter is in no index of full text, and looked for row by row."""
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
    """Which results are wanted, in which order.

    Attributes
    ----------
    text : str
        Words, all of which are in the model, the firmware or the id.
    filters : tuple of pairs
        Name of `FILTERS` and its value.
    sort : str
        Of `SORTS`; descending with a leading "-".
    after, before : str
        Where the page begins or ends, as another page said it.
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
        action="leave the filter away, or correct it",
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


def matching(who: Account | None, wanted: ResultQuery, dialect: str) -> list[Condition]:
    """Make the conditions of what is wanted, on results and their devices.

    Raises
    ------
    UsageError
        For a filter that there is not, or a value that it cannot have.
    """
    where = [seen_by(who)]
    for name, value in wanted.filters:
        if name not in FILTERS:
            raise unknown_name("filter", name, FILTERS, where="filter")
        where.append(FILTERS[name](value))
    return where + _with(wanted.text.casefold().split()[:MOST_WORDS], dialect)


def seen_by(who: Account | None) -> Condition:
    """Make the condition of what somebody may see."""
    if may(who, "admin"):
        return ResultRecord.id.is_not(None)
    published = ResultRecord.published_utc.is_not(None)
    return published if who is None else or_(published, ResultRecord.account_id == who.id)


def _with(words: Sequence[str], dialect: str) -> list[Condition]:
    """Make the conditions that a result has all words in it, in the middle of others, too."""
    if dialect != "sqlite":
        return [ResultRecord.words.like(f"%{_escaped(word)}%") for word in words]
    where: list[Condition] = [
        func.instr(ResultRecord.words, word) > 0 for word in words if len(word) < GRAM
    ]
    # One question with all words: the rare ones decide how much is looked at.
    told = " ".join('"' + w.replace('"', '""') + '"' for w in words if len(w) >= GRAM)
    if told:
        found = select(WORDS.c.id).where(WORDS.c.words.op("MATCH")(literal(told)))
        where.append(ResultRecord.id.in_(found))
    return where


def _escaped(word: str) -> str:
    return word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
