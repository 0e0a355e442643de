"""Who sees a result changes: noted, and counted with its device in the same transaction."""

from contextlib import suppress
from typing import TYPE_CHECKING

from sqlalchemy import delete, func, select, update
from sqlalchemy.exc import IntegrityError

from uflip.results.beginning import utc_now
from uflip.site.accounts import note
from uflip.site.tables import Account, Device, Result

if TYPE_CHECKING:
    from sqlalchemy import ScalarSelect
    from sqlalchemy.orm import Session

BEST = "standard"
"""The scale of the result that stands for a device, where it has one."""


def publish(session: "Session", who: Account, result: Result) -> None:
    """Let everybody see a result."""
    if result.published_utc is None:
        result.published_utc = utc_now()
        note(session, who.name, "publish", result.id)
        count_again(session, result.device_id)


def withdraw(session: "Session", who: Account, result: Result) -> None:
    """Let nobody but its owner see a result any more."""
    if result.published_utc is not None:
        result.published_utc = None
        note(session, who.name, "withdraw", result.id)
        count_again(session, result.device_id)


def count_again(session: "Session", device: int) -> None:
    """Count what everybody sees of a device, and find the newest of it."""
    session.flush()
    # Another server may be counting the same: who comes second sees what the first changed.
    session.execute(select(Device.id).where(Device.id == device).with_for_update(key_share=True))
    published = Result.device_id == device, Result.published_utc.is_not(None)
    newest = func.coalesce(_newest(*published, Result.scale == BEST), _newest(*published))
    counted = select(func.count()).where(*published).scalar_subquery()
    session.execute(
        update(Device)
        .where(Device.id == device)
        .values(published=counted, newest_id=newest)
        .execution_options(synchronize_session=False)
    )


def _newest(*where: object) -> "ScalarSelect[str]":
    query = select(Result.id).where(*where)  # type: ignore[arg-type]
    return query.order_by(Result.created_utc.desc(), Result.id.desc()).limit(1).scalar_subquery()


def forget(session: "Session", device: int) -> None:
    """Remove a device that no result is of any more, its name included."""
    left = select(Result.id).where(Result.device_id == device).exists()
    # A result that another server is just making may hold it.
    with suppress(IntegrityError), session.begin_nested():
        session.execute(
            delete(Device)
            .where(Device.id == device, ~left)
            .execution_options(synchronize_session=False)
        )
