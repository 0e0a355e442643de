"""Who sees a result changes: noted, and counted with its device in the same transaction."""

from typing import TYPE_CHECKING

from sqlalchemy import and_, case, func, or_, select, update

from uflip.results.initial_manifest import utc_now
from uflip.site.accounts import note
from uflip.site.tables import Account, DeviceRecord, ResultRecord
from uflip.site.upload_manifest import COMPLETE

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_KNOWN = [
    each.is_not(None)
    for each in (ResultRecord.sr_ms, ResultRecord.rr_ms, ResultRecord.sw_ms, ResultRecord.rw_ms)
]
STANDS_FOR_DEVICE = (
    # A replay, or a benchmark of other things, would empty the row of its device.
    case((and_(*_KNOWN, ResultRecord.scale == "standard"), 0), (and_(*_KNOWN), 1),
         (or_(*_KNOWN), 2), else_=3),
    ResultRecord.created_utc.desc(),
    ResultRecord.id.desc(),
)  # fmt: skip
"""The order in which results may stand for a device: all baselines, standard first; some; none."""


def publish(session: "Session", who: Account, result: ResultRecord) -> None:
    """Let everybody see a result."""
    if result.published_utc is None:
        result.published_utc = utc_now()
        note(session, who.name, "publish", result.id)
        count_again(session, result.device_id)


def withdraw(session: "Session", who: Account, result: ResultRecord) -> None:
    """Let nobody but its owner see a result any more."""
    if result.published_utc is not None:
        result.published_utc = None
        note(session, who.name, "withdraw", result.id)
        count_again(session, result.device_id)


def count_again(session: "Session", device: int) -> None:
    """Count what everybody sees of a device, and find which complete one stands for it."""
    session.flush()
    # Another server may be counting the same: who comes second sees what the first changed.
    session.execute(
        select(DeviceRecord.id).where(DeviceRecord.id == device).with_for_update(key_share=True)
    )
    published = ResultRecord.device_id == device, ResultRecord.published_utc.is_not(None)
    # What is older than the rule may have been submitted before it was finished.
    complete = (*published, ResultRecord.status == COMPLETE)
    newest = select(ResultRecord.id).where(*complete).order_by(*STANDS_FOR_DEVICE).limit(1)
    counted = select(func.count()).where(*published).scalar_subquery()
    session.execute(
        update(DeviceRecord)
        .where(DeviceRecord.id == device)
        .values(published=counted, newest_id=newest.scalar_subquery())
        .execution_options(synchronize_session=False)
    )
