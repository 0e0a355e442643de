"""Who sees a result changes: noted, and counted with its device in the same transaction."""

from typing import TYPE_CHECKING

from sqlalchemy import func, select, update

from uflip.results.beginning import utc_now
from uflip.site.accounts import note
from uflip.site.offer import COMPLETE
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
    """Count what everybody sees of a device, and find the newest of it that is complete."""
    session.flush()
    # Another server may be counting the same: who comes second sees what the first changed.
    session.execute(select(Device.id).where(Device.id == device).with_for_update(key_share=True))
    published = Result.device_id == device, Result.published_utc.is_not(None)
    # What is older than the rule may have been submitted before it was finished.
    complete = (*published, Result.status == COMPLETE)
    newest = func.coalesce(_newest(*complete, Result.scale == BEST), _newest(*complete))
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
