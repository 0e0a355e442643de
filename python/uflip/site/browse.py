"""Lists of results and devices, for HTML pages and for programs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Row, Select, func, select

from uflip.site import rows
from uflip.site.paging import Order, RowPage, page, parse_cursor, parse_order
from uflip.site.query import SORTS, ResultQuery, matching, visible_to
from uflip.site.tables import AbsentError, Account, DeviceRecord, FileRecord, ResultRecord

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

MAX_COUNTED = 1000
"""Limit of counting: counting very many results takes longer than showing a page."""
MAX_DEVICE_RESULTS = 100
QUERY_BATCH_ROWS = 2000
"""Rows that are read from the database together when all are read."""
DEVICES_PER_PAGE = 100
DEVICE_SORTS = {
    **{name: order for name, order in SORTS.items() if name != "submitted"},
    "results": Order(DeviceRecord.published, int),
}


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
    """Return a page of results.

    Raises
    ------
    UsageError
        For an unknown filter or order, or an invalid page.
    """
    query = _matching(session, caller, criteria)
    start = parse_cursor(criteria.after, criteria.before)
    order = parse_order(criteria.sort, SORTS)
    some, total = query.with_only_columns(ResultRecord.id).limit(MAX_COUNTED + 1), None
    if criteria.text:
        # The planner cannot estimate the matches of a word: look them up first, and once.
        ids = session.scalars(some).all()
        total = len(ids)
        if total <= MAX_COUNTED:
            query = rows.results().where(ResultRecord.id.in_(ids))
    result_page = page(session, query, order, ResultRecord.id, criteria.per_page, start)
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


def _matching(session: "Session", caller: Account | None, criteria: ResultQuery) -> "Select[Any]":
    return rows.results().where(*matching(caller, criteria, session.get_bind().dialect.name))


def result(session: "Session", caller: Account | None, name: str) -> ResultRecord:
    """Return a result that the account may see.

    Raises
    ------
    ResultsError
        If there is no such result, or the account may not see it.
    """
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
    """Return a page of the devices with published results, each with its representative result.

    Raises
    ------
    UsageError
        For an unknown order, or an invalid page.
    """
    order, start = parse_order(sort, DEVICE_SORTS), parse_cursor(after, before)
    return page(session, rows.devices(), order, DeviceRecord.id, DEVICES_PER_PAGE, start)


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
    """Return a device by its slug, and its newest results, at most `MAX_DEVICE_RESULTS`.

    Raises
    ------
    ResultsError
        If no such device has a result that the account may see.
    """
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
