"""Lists of results, devices and the table of everything: what pages and programs are both shown.

Somebody sees what is published, and what is their own; an admin sees everything.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Select, func, or_, select

from uflip.errors import UsageError, unknown_name
from uflip.report.key_row import COLUMNS
from uflip.site.accounts import may
from uflip.site.tables import AbsentError, Account, Device, Result

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

Condition = ColumnElement[bool]
PAGE = 50
MOST_A_PAGE = 500
MOST_OF_A_DEVICE = 100
SORTS = {
    "created": Result.created_utc,
    "submitted": Result.submitted_utc,
    "device": Device.model,
    "capacity": Device.capacity_bytes,
    "scale": Result.scale,
    "state": Result.state,
    "durability": Result.durability,
    "warnings": Result.warnings,
    "runs": Result.runs,
    "sr": Result.sr_ms,
    "rr": Result.rr_ms,
    "sw": Result.sw_ms,
    "rw": Result.rw_ms,
}
MEANS = ("sr", "rr", "sw", "rw")
FILTERS = {
    "kind": Device.kind,
    "device": Device.slug,
    "scale": Result.scale,
    "state": Result.state,
    "durability": Result.durability,
    "status": Result.status,
    "firmware": Result.firmware,
}


@dataclass(frozen=True)
class Wanted:
    """Which results are wanted, in which order.

    Attributes
    ----------
    text : str
        Words, all of which are in the model, the firmware or the id.
    filters : tuple of pairs
        Name of `FILTERS` and its value.
    sort : str
        Of `SORTS`; descending with a leading "-".
    page, per_page : int
        From 1 on.
    """

    text: str = ""
    filters: tuple[tuple[str, str], ...] = ()
    sort: str = "-created"
    page: int = 1
    per_page: int = PAGE


def results(session: "Session", who: Account | None, wanted: Wanted) -> tuple[list[Result], int]:
    """List a page of results, and count all of them.

    Raises
    ------
    UsageError
        For a filter or an order that there is not, or a page that cannot be.
    """
    if not (1 <= wanted.page <= 1_000_000 and 1 <= wanted.per_page <= MOST_A_PAGE):
        raise UsageError(
            "There is no such page",
            where="page",
            got=f"{wanted.page} of {wanted.per_page} results each",
            allowed=f"from 1 on, of at most {MOST_A_PAGE}",
            action="begin with page 1",
        )
    where = _matching(who, wanted)
    query = _of_devices(select(func.count(Result.id)), where, wanted)
    total = session.scalar(query) or 0
    ids = _of_devices(select(Result.id), where, wanted).order_by(*_order(wanted.sort))
    before = (wanted.page - 1) * wanted.per_page
    page = list(session.scalars(ids.limit(wanted.per_page).offset(before)))
    found = {each.id: each for each in session.scalars(select(Result).where(Result.id.in_(page)))}
    return [found[each] for each in page], total


def every(session: "Session", who: Account | None, wanted: Wanted, most: int) -> Iterator[Result]:
    """List all results that match, not a page of them, at most so many; see `results`."""
    query = _of_devices(select(Result), _matching(who, wanted), wanted)
    yield from session.scalars(query.order_by(*_order(wanted.sort)).limit(most))


def _of_devices(query: Select[Any], where: Sequence[Condition], wanted: Wanted) -> Select[Any]:
    """Look at devices only where something is asked of them: else indexes of results answer."""
    of_device = {"kind", "device"} & {name for name, _ in wanted.filters}
    if of_device or wanted.text or wanted.sort.removeprefix("-") in ("device", "capacity"):
        query = query.join(Device, Device.id == Result.device_id)
    return query.where(*where)


def _matching(who: Account | None, wanted: Wanted) -> list[Condition]:
    where = [_seen_by(who)]
    for name, value in wanted.filters:
        if name not in FILTERS:
            raise unknown_name("filter", name, FILTERS, where="filter")
        where.append(FILTERS[name] == value)
    for word in wanted.text.split()[:10]:
        like = f"%{_escaped(word)}%"
        names = (Device.model, Result.firmware, Result.id)
        where.append(or_(*(each.ilike(like, escape="\\") for each in names)))
    return where


def _order(sort: str) -> tuple[Any, ...]:
    name = sort.removeprefix("-")
    if name not in SORTS:
        raise unknown_name("order", name, SORTS, where="sort")
    column = SORTS[name]
    ordered = column.desc() if sort.startswith("-") else column.asc()
    if name in MEANS:  # what was not measured is at the end, whichever end is asked for
        return column.is_(None), ordered, Result.id
    return ordered, Result.id.desc() if sort.startswith("-") else Result.id.asc()


def _escaped(word: str) -> str:
    return word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _seen_by(who: Account | None) -> ColumnElement[bool]:
    if may(who, "admin"):
        return Result.id.is_not(None)
    published = Result.published_utc.is_not(None)
    return published if who is None else or_(published, Result.account_id == who.id)


def result(session: "Session", who: Account | None, name: str) -> Result:
    """Find a result that somebody may see.

    Raises
    ------
    ResultsError
        If there is none; what is not to be seen is not there.
    """
    found = session.scalar(select(Result).where(Result.id == name, _seen_by(who)))
    if found is None:
        raise AbsentError(
            "There is no such result",
            where=name[:100],
            got="nothing of this id that you may see",
            action="look it up in the list; a result that is not published needs its owner's token",
        )
    return found


def devices(session: "Session", who: Account | None) -> list[dict[str, Any]]:
    """List every device with its newest result, a standard one if there is any."""

    def newest(*where: ColumnElement[bool]) -> Any:
        query = select(Result.id).where(Result.device_id == Device.id, _seen_by(who), *where)
        latest = query.order_by(Result.created_utc.desc()).limit(1)
        return latest.correlate(Device).scalar_subquery()

    chosen = select(
        Device.id, func.coalesce(newest(Result.scale == "standard"), newest()).label("newest")
    ).subquery()
    counted = dict(
        session.execute(
            select(Result.device_id, func.count(Result.id))
            .where(_seen_by(who))
            .group_by(Result.device_id)
        )
        .tuples()
        .all()
    )
    found = session.scalars(
        select(Result)
        .join(chosen, chosen.c.newest == Result.id)
        .join(Device, Device.id == Result.device_id)
        .order_by(Device.model, Device.capacity_bytes)
    )
    return [
        {"device": each.device, "newest": each, "results": counted[each.device_id]}
        for each in found
    ]


def device(session: "Session", who: Account | None, slug: str) -> tuple[Device, list[Result]]:
    """Find a device by its name in addresses, and its newest results, at most `MOST_OF_A_DEVICE`.

    Raises
    ------
    ResultsError
        If there is none of which somebody may see a result.
    """
    found = session.scalar(select(Device).where(Device.slug == slug))
    seen: list[Result] = []
    if found is not None:
        query = select(Result).where(Result.device_id == found.id, _seen_by(who))
        query = query.order_by(Result.created_utc.desc(), Result.id).limit(MOST_OF_A_DEVICE)
        seen = list(session.scalars(query))
    if found is None or not seen:
        raise AbsentError(
            "There is no such device", where=slug[:100], action="look it up in the list of devices"
        )
    return found, seen


def as_row(result: Result) -> dict[str, Any]:
    """Say of a result what a list and a table show; times in milliseconds, UTC."""
    return {
        "id": result.id,
        "device": result.device.model,
        "device_slug": result.device.slug,
        "kind": result.device.kind,
        "capacity_bytes": result.device.capacity_bytes,
        "firmware": result.firmware,
        "created_utc": result.created_utc,
        "submitted_utc": result.submitted_utc,
        "published_utc": result.published_utc,
        "submitted_by": result.account.name,
        "uflip_version": result.uflip_version,
        "scale": result.scale,
        "state": result.state,
        "durability": result.durability,
        "status": result.status,
        "runs": result.runs,
        "experiments": result.experiments,
        "known": result.known,
        "warnings": result.warnings,
        "sr_ms": result.sr_ms,
        "rr_ms": result.rr_ms,
        "sw_ms": result.sw_ms,
        "rw_ms": result.rw_ms,
        **{name: _cell(result, index) for index, name in enumerate(COLUMNS) if index >= 4},
        "bytes": result.bytes,
    }


def _cell(result: Result, index: int) -> str | None:
    return None if result.cells is None else result.cells[index]
