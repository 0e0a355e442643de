"""Lists of results, devices and the table of everything: what pages and programs are both shown."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Row, Select, func, select

from uflip.site import rows
from uflip.site.paging import Order, RowPage, order_named, page, place_at
from uflip.site.query import SORTS, ResultQuery, matching, seen_by
from uflip.site.tables import AbsentError, Account, DeviceRecord, FileRecord, ResultRecord

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

MOST_COUNTED = 1000
"""A list is counted so far: to count all of many results takes longer than to show some."""
MOST_OF_A_DEVICE = 100
AT_A_TIME = 2000
"""Rows that are read from the database together, where all are."""
DEVICES_A_PAGE = 100
DEVICE_SORTS = {
    **{name: order for name, order in SORTS.items() if name != "submitted"},
    "results": Order(DeviceRecord.published, int),
}


@dataclass(frozen=True)
class SearchResults:
    """A page of results, and how many there are, counted to `MOST_COUNTED`."""

    page: RowPage
    total: int

    @property
    def counted(self) -> bool:
        """Whether there are no more than were counted."""
        return self.total <= MOST_COUNTED

    @property
    def at_least(self) -> int:
        """How many there are, or may be more than."""
        return min(self.total, MOST_COUNTED)


def results(session: "Session", who: Account | None, wanted: ResultQuery) -> SearchResults:
    """List a page of results.

    Raises
    ------
    UsageError
        For a filter or an order that there is not, or a page that cannot be.
    """
    query = _matching(session, who, wanted)
    start = place_at(wanted.after, wanted.before)
    order = order_named(wanted.sort, SORTS)
    some, total = query.with_only_columns(ResultRecord.id).limit(MOST_COUNTED + 1), None
    if wanted.text:
        # What a word leaves cannot be foreseen as what a filter leaves: looked up first, and once.
        ids = session.scalars(some).all()
        total = len(ids)
        if total <= MOST_COUNTED:
            query = rows.results().where(ResultRecord.id.in_(ids))
    found = page(session, query, order, ResultRecord.id, wanted.per_page, start)
    if total is None and start is None and found.after is None:
        total = len(found.rows)
    if total is None:
        total = session.scalar(select(func.count()).select_from(some.subquery())) or 0
    return SearchResults(found, total)


def every(
    session: "Session", who: Account | None, wanted: ResultQuery, most: int
) -> Iterator[Row[Any]]:
    """List all results that match, the newest first, at most so many; see `results`."""
    query = _matching(session, who, wanted).order_by(
        ResultRecord.created_utc.desc(), ResultRecord.id.desc()
    )
    yield from session.execute(query.limit(most).execution_options(yield_per=AT_A_TIME))


def _matching(session: "Session", who: Account | None, wanted: ResultQuery) -> "Select[Any]":
    return rows.results().where(*matching(who, wanted, session.get_bind().dialect.name))


def result(session: "Session", who: Account | None, name: str) -> ResultRecord:
    """Find a result that somebody may see.

    Raises
    ------
    ResultsError
        If there is none; what is not to be seen is not there.
    """
    found = session.scalar(select(ResultRecord).where(ResultRecord.id == name, seen_by(who)))
    if found is None:
        raise AbsentError(
            "There is no such result",
            where=name[:100],
            got="nothing of this id that you may see",
            action="look it up in the list; a result that is not published needs its owner's token",
        )
    return found


def row(session: "Session", result: ResultRecord) -> Row[Any]:
    """Return the row of a result."""
    return session.execute(rows.results().where(ResultRecord.id == result.id)).one()


def has_file(session: "Session", result: ResultRecord, digest: str) -> bool:
    """Whether a file of this content is one of a result; of a thousand, no other is looked at."""
    mine = select(FileRecord.path).where(
        FileRecord.result_id == result.id, FileRecord.digest == digest
    )
    return session.scalar(mine.limit(1)) is not None


def devices(session: "Session", sort: str, after: str, before: str) -> RowPage:
    """List a page of the devices of which something is published, with what stands for each.

    Raises
    ------
    UsageError
        For an order that there is not, or a page that cannot be.
    """
    order, start = order_named(sort, DEVICE_SORTS), place_at(after, before)
    return page(session, rows.devices(), order, DeviceRecord.id, DEVICES_A_PAGE, start)


def every_device(session: "Session") -> Iterator[Row[Any]]:
    """List all devices of which something is published."""
    ordered = rows.devices().order_by(DeviceRecord.model, DeviceRecord.id)
    yield from session.execute(ordered.execution_options(yield_per=AT_A_TIME))


def count_devices(session: "Session") -> int:
    """Count the devices of which something is published."""
    return session.scalar(select(func.count(DeviceRecord.newest_id))) or 0


def device(
    session: "Session", who: Account | None, slug: str
) -> tuple[DeviceRecord, list[Row[Any]]]:
    """Find a device by its name in addresses, and its newest results, at most `MOST_OF_A_DEVICE`.

    Raises
    ------
    ResultsError
        If there is none of which somebody may see a result.
    """
    found = session.scalar(select(DeviceRecord).where(DeviceRecord.slug == slug))
    seen: list[Row[Any]] = []
    if found is not None:
        query = rows.results().where(ResultRecord.device_id == found.id, seen_by(who))
        query = query.order_by(ResultRecord.created_utc.desc(), ResultRecord.id.desc())
        seen = [*session.execute(query.limit(MOST_OF_A_DEVICE))]
    if found is None or not seen:
        raise AbsentError(
            "There is no such device", where=slug[:100], action="look it up in the list of devices"
        )
    return found, seen
