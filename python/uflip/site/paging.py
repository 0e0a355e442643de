"""Keyset pagination of lists: a page begins at a cursor, not at a row number.

A cursor is the sort value and the id of a row, so that every page costs the same, and pages do not
shift when results arrive while a user turns pages. Rows without a value in the column come last, in
ascending and in descending order.
"""

import base64
import binascii
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Row, Select, tuple_

from uflip.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy.orm import InstrumentedAttribute, Session

MAX_PER_PAGE = 500
CursorValue = str | int | float | None


@dataclass(frozen=True)
class Order:
    """The sort order of a list.

    Attributes
    ----------
    column : column
        The column of a table.
    kind : type
        Type of its values.
    gaps : bool
        Whether some rows have no value.
    """

    column: "InstrumentedAttribute[Any]"
    kind: type = str
    gaps: bool = False


@dataclass(frozen=True)
class PageCursor:
    """A position in a list: after a row, or before it when paging backwards."""

    value: CursorValue
    row: str | int
    back: bool = False


@dataclass(frozen=True)
class RowPage:
    """Rows, and the cursors before and after them; None at an end of the list."""

    rows: "list[Row[Any]]"
    before: str | None
    after: str | None


def parse_order(name: str, orders: "Mapping[str, Order]") -> tuple[Order, bool]:
    """Return an order by its name, and whether it is descending (a leading "-").

    Raises
    ------
    UsageError
        For an unknown name.
    """
    plain = name.removeprefix("-")
    if plain not in orders:
        raise unknown_name("order", plain, orders, where="sort")
    return orders[plain], name.startswith("-")


def parse_cursor(after: str, before: str) -> PageCursor | None:
    """Parse a cursor from an address; None at the beginning of a list.

    Raises
    ------
    UsageError
        For a malformed cursor.
    """
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


def fetch_page(  # noqa: PLR0917 -- parameters of a page
    session: "Session",
    query: "Select[Any]",
    order: tuple[Order, bool],
    unique: "InstrumentedAttribute[Any]",
    most: int,
    start: PageCursor | None,
) -> RowPage:
    """Return a page.

    Parameters
    ----------
    session : Session
        The database session.
    query : Select
        All rows, in no order.
    order : (Order, bool)
        The sort order, and whether it is descending.
    unique : column
        A unique column, which orders rows with equal values.
    most : int
        Limit of rows.
    start : PageCursor, optional
        Cursor at which the page begins.

    Raises
    ------
    UsageError
        For an invalid length, and a cursor of another order.
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
    query: "Select[Any]",
    order: tuple[Order, bool],
    unique: "InstrumentedAttribute[Any]",
    start: PageCursor | None,
) -> "Iterator[Select[Any]]":
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
