"""Lists of results and devices, for HTML pages and for programs: words, filters, orders and pages.

Users see published results and their own; an admin sees everything. An index of `tables` serves
every condition, or few rows are left to check.

A page of a list begins at a cursor, not at a row number. A cursor is the sort value and the id of a
row, so that every page costs the same, and pages do not shift when results arrive while a user
turns pages. Rows without a value in the column come last, in ascending and in descending order.
"""

import base64
import binascii
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Row, Select, and_, func, literal, or_, select, tuple_

from uflip.errors import UflipError, UsageError, unknown_name
from uflip.site import rows
from uflip.site.accounts import has_role
from uflip.site.tables import WORDS, AbsentError, Account, DeviceRecord, FileRecord, ResultRecord
from uflip.units import parse_size

if TYPE_CHECKING:
    from sqlalchemy.orm import InstrumentedAttribute, Session


MAX_PER_PAGE = 500
CursorValue = str | int | float | None
Condition = ColumnElement[bool]
MAX_WORDS = 10
GRAM = 3
"""Characters; shorter words are in no full-text index, and are searched row by row."""
MAX_COUNTED = 1000
"""Limit of counting: counting very many results takes longer than showing a page."""
MAX_DEVICE_RESULTS = 100
QUERY_BATCH_ROWS = 2000
"""Rows that are read from the database together when all are read."""
DEVICES_PER_PAGE = 100


@dataclass(frozen=True)
class Order:
    """The sort order of a list."""

    column: "InstrumentedAttribute[Any]"  #: The column of a table.
    kind: type = str  #: Type of its values.
    gaps: bool = False  #: Whether some rows have no value.


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
DEVICE_SORTS = {
    **{name: order for name, order in SORTS.items() if name != "submitted"},
    "results": Order(DeviceRecord.published, int),
}


@dataclass(frozen=True)
class ResultQuery:
    """A query for results, with its order and page."""

    text: str = ""  #: Words that must all occur in the model, the firmware or the id.
    filters: tuple[tuple[str, str], ...] = ()  #: Name from `FILTERS` and its value.
    sort: str = "-created"  #: Name from `SORTS`; descending with a leading "-".
    #: Cursor from another page at which this one begins or ends.
    after: str = ""
    before: str = ""
    per_page: int = 50  #: Rows of a page.


@dataclass(frozen=True)
class PageCursor:
    """A position in a list: after a row, or before it when paging backwards."""

    value: CursorValue
    row: str | int
    back: bool = False


@dataclass(frozen=True)
class RowPage:
    """Rows, and the cursors before and after them; None at an end of the list."""

    rows: list[Row[Any]]
    before: str | None
    after: str | None


@dataclass(frozen=True)
class SearchResults:
    """A page of results, and their number, counted to `MAX_COUNTED`."""

    page: RowPage
    total: int

    @property
    def counted(self) -> bool:
        """Whether the count is exact."""
        return self.total <= MAX_COUNTED

    @property
    def at_least(self) -> int:
        """The number of results, or a lower bound."""
        return min(self.total, MAX_COUNTED)


def results(session: "Session", caller: Account | None, criteria: ResultQuery) -> SearchResults:
    """Return a page of results."""
    query = _matching(session, caller, criteria)
    start = _parse_cursor(criteria.after, criteria.before)
    order = _parse_order(criteria.sort, SORTS)
    some, total = query.with_only_columns(ResultRecord.id).limit(MAX_COUNTED + 1), None
    if criteria.text:
        # The planner cannot estimate the matches of a word: look them up first, and once.
        ids = session.scalars(some).all()
        total = len(ids)
        if total <= MAX_COUNTED:
            query = rows.results().where(ResultRecord.id.in_(ids))
    result_page = _page(session, query, order, ResultRecord.id, criteria.per_page, start)
    if total is None and start is None and result_page.after is None:
        total = len(result_page.rows)
    if total is None:
        total = session.scalar(select(func.count()).select_from(some.subquery())) or 0
    return SearchResults(result_page, total)


def all_results(
    session: "Session", caller: Account | None, criteria: ResultQuery, most: int
) -> Iterator[Row[Any]]:
    """Yield at most `most` matching results, the newest first; see `results`."""
    query = _matching(session, caller, criteria).order_by(
        ResultRecord.created_utc.desc(), ResultRecord.id.desc()
    )
    yield from session.execute(query.limit(most).execution_options(yield_per=QUERY_BATCH_ROWS))


def result(session: "Session", caller: Account | None, name: str) -> ResultRecord:
    """Return a result that the account may see."""
    record = session.scalar(select(ResultRecord).where(ResultRecord.id == name, visible_to(caller)))
    if record is None:
        raise AbsentError(
            "There is no such result",
            where=name[:100],
            got="nothing of this id that you may see",
            action="look it up in the list; a result that is not published needs its owner's token",
        )
    return record


def row(session: "Session", result: ResultRecord) -> Row[Any]:
    """Return the row of a result."""
    return session.execute(rows.results().where(ResultRecord.id == result.id)).one()


def has_file(session: "Session", result: ResultRecord, digest: str) -> bool:
    """Return whether a result has a file of this content; one lookup in the index."""
    matches = select(FileRecord.path).where(
        FileRecord.result_id == result.id, FileRecord.digest == digest
    )
    return session.scalar(matches.limit(1)) is not None


def devices(session: "Session", sort: str, after: str, before: str) -> RowPage:
    """Return a page of the devices with published results, each with its representative result."""
    order, start = _parse_order(sort, DEVICE_SORTS), _parse_cursor(after, before)
    return _page(session, rows.devices(), order, DeviceRecord.id, DEVICES_PER_PAGE, start)


def every_device(session: "Session") -> Iterator[Row[Any]]:
    """Yield all devices with published results."""
    ordered = rows.devices().order_by(DeviceRecord.model, DeviceRecord.id)
    yield from session.execute(ordered.execution_options(yield_per=QUERY_BATCH_ROWS))


def count_devices(session: "Session") -> int:
    """Count the devices with published results."""
    return session.scalar(select(func.count(DeviceRecord.newest_id))) or 0


def device(
    session: "Session", caller: Account | None, slug: str
) -> tuple[DeviceRecord, list[Row[Any]]]:
    """Return a device by its slug, and its newest results, at most `MAX_DEVICE_RESULTS`."""
    record = session.scalar(select(DeviceRecord).where(DeviceRecord.slug == slug))
    newest: list[Row[Any]] = []
    if record is not None:
        query = rows.results().where(ResultRecord.device_id == record.id, visible_to(caller))
        query = query.order_by(ResultRecord.created_utc.desc(), ResultRecord.id.desc())
        newest = [*session.execute(query.limit(MAX_DEVICE_RESULTS))]
    if record is None or not newest:
        raise AbsentError(
            "There is no such device", where=slug[:100], action="look it up in the list of devices"
        )
    return record, newest


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


def _matching(session: "Session", caller: Account | None, criteria: ResultQuery) -> Select[Any]:
    """Select the results that match a query; refuse an unknown filter, or an invalid value."""
    where = [visible_to(caller)]
    for name, value in criteria.filters:
        if name not in FILTERS:
            raise unknown_name("filter", name, FILTERS, where="filter")
        where.append(FILTERS[name](value))
    words = criteria.text.casefold().split()[:MAX_WORDS]
    return rows.results().where(*where, *_with(words, session.get_bind().dialect.name))


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


def _parse_order(name: str, orders: Mapping[str, Order]) -> tuple[Order, bool]:
    """Return an order by its name, and whether it is descending (a leading "-")."""
    plain = name.removeprefix("-")
    if plain not in orders:
        raise unknown_name("order", plain, orders, where="sort")
    return orders[plain], name.startswith("-")


def _parse_cursor(after: str, before: str) -> PageCursor | None:
    """Parse a cursor from an address; None at the beginning of a list."""
    text = before or after
    if not text:
        return None
    try:
        value, row = json.loads(base64.urlsafe_b64decode(text.encode()))
        if _is_plain(row) and (value is None or type(value) is float or _is_plain(value)):
            return PageCursor(value, row, back=bool(before))
        got = "something else"
    except (ValueError, TypeError, binascii.Error, RecursionError):
        got = text[:80]
    raise UsageError(
        "Unknown cursor",
        where="before" if before else "after",
        got=got,
        allowed="the cursor of the page before or after this one",
        action="begin with the first page",
    )


def _is_plain(value: object) -> bool:
    """Return whether a database accepts this as a text or an integer."""
    if type(value) is int:
        return abs(value) < 1 << 63
    return type(value) is str and "\0" not in value and value == value.encode().decode()


def _cursor_text(value: CursorValue, row: str | int) -> str:
    return base64.urlsafe_b64encode(json.dumps([value, row]).encode()).decode()


def _page(  # noqa: PLR0917 -- parameters of a page
    session: "Session",
    query: Select[Any],
    order: tuple[Order, bool],
    unique: "InstrumentedAttribute[Any]",
    most: int,
    start: PageCursor | None,
) -> RowPage:
    """Return a page of at most `most` rows of a query, from a cursor on.

    Rows with equal values are in the order of a unique column.
    """
    if not 1 <= most <= MAX_PER_PAGE:
        raise UsageError(
            "There is no such page",
            where="per_page",
            got=str(most),
            allowed=f"1 to {MAX_PER_PAGE}",
            action="request fewer rows a page",
        )
    by = order[0]
    query = query.add_columns(by.column.label("sort_value"), unique.label("sort_row"))
    fetched: list[Row[Any]] = []
    for span in _spans(query, order, unique, start):
        fetched += session.execute(span.limit(most + 1 - len(fetched))).all()
        if len(fetched) > most:
            break
    back = start is not None and start.back
    more, shown = len(fetched) > most, fetched[:most]
    if back:
        shown.reverse()
    ends = [_cursor_text(each.sort_value, each.sort_row) for each in (shown[:1] + shown[-1:])]
    is_before = more if back else start is not None
    is_after = back or more
    return RowPage(
        shown, ends[0] if ends and is_before else None, ends[-1] if ends and is_after else None
    )


def _spans(
    query: Select[Any],
    order: tuple[Order, bool],
    unique: "InstrumentedAttribute[Any]",
    start: PageCursor | None,
) -> Iterator[Select[Any]]:
    """Yield queries whose concatenated rows are those from the cursor on, in order."""
    by, descending = order
    _check_kind(by, unique, start)
    back = start is not None and start.back
    down = descending != back
    for empty in sorted({False, by.gaps}, reverse=back):
        keys = [unique] if empty else [by.column, unique]
        span = query
        if by.gaps:
            span = span.where(by.column.is_(None) if empty else by.column.is_not(None))
        if start is not None and (start.value is None) == empty:
            span = span.where(*_beyond(keys, start, down))
        elif start is not None and (start.value is None) != back:
            continue  # the cursor is in the other span, which comes after this one
        yield span.order_by(*(key.desc() if down else key.asc() for key in keys))


def _beyond(
    keys: "list[InstrumentedAttribute[Any]]", start: PageCursor, down: bool
) -> list[ColumnElement[bool]]:
    values = (start.value, start.row)[-len(keys) :]
    beyond = tuple_(*keys) < values if down else tuple_(*keys) > values
    # The condition on the first key alone lets an index help if the keys are of two tables.
    first = keys[0] <= values[0] if down else keys[0] >= values[0]
    return [beyond, first]


def _check_kind(by: Order, unique: "InstrumentedAttribute[Any]", start: PageCursor | None) -> None:
    if start is None:
        return
    fits = by.gaps if start.value is None else isinstance(start.value, by.kind)
    if not fits or not isinstance(start.row, unique.type.python_type):
        raise UsageError(
            "The cursor belongs to another order",
            where="before" if start.back else "after",
            got=str(start.value)[:80],
            action="begin with the first page",
        )
