"""Publish and withdraw results: logged, and counted for the device in the same transaction."""

from typing import TYPE_CHECKING

from sqlalchemy import and_, case, func, or_, select, update

from uflip.results.initial_manifest import utc_now
from uflip.site.accounts import log_action
from uflip.site.tables import Account, DeviceRecord, ResultRecord
from uflip.site.upload_files import COMPLETE

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_MEASURED = [
    each.is_not(None)
    for each in (ResultRecord.sr_ms, ResultRecord.rr_ms, ResultRecord.sw_ms, ResultRecord.rw_ms)
]
REPRESENTATIVE_ORDER = (
    # A replay, or a benchmark without baselines, would leave the row of its device empty.
    case((and_(*_MEASURED, ResultRecord.scale == "standard"), 0), (and_(*_MEASURED), 1),
         (or_(*_MEASURED), 2), else_=3),
    ResultRecord.created_utc.desc(),
    ResultRecord.id.desc(),
)  # fmt: skip
"""Preference of results that represent a device: all baselines, standard first; some; none."""


def publish(session: "Session", account: Account, result: ResultRecord) -> None:
    """Publish a result."""
    if result.published_utc is None:
        result.published_utc = utc_now()
        log_action(session, account.name, "publish", result.id)
        update_device(session, result.device_id)


def withdraw(session: "Session", account: Account, result: ResultRecord) -> None:
    """Withdraw a result: only its owner sees it."""
    if result.published_utc is not None:
        result.published_utc = None
        log_action(session, account.name, "withdraw", result.id)
        update_device(session, result.device_id)


def update_device(session: "Session", device: int) -> None:
    """Count the published results of a device, and select the complete one that represents it."""
    session.flush()
    # Another server may count concurrently: the second one sees the changes of the first.
    session.execute(
        select(DeviceRecord.id).where(DeviceRecord.id == device).with_for_update(key_share=True)
    )
    published = ResultRecord.device_id == device, ResultRecord.published_utc.is_not(None)
    # Results older than this rule may have been submitted before they were finished.
    complete = (*published, ResultRecord.status == COMPLETE)
    newest = select(ResultRecord.id).where(*complete).order_by(*REPRESENTATIVE_ORDER).limit(1)
    counted = select(func.count()).where(*published).scalar_subquery()
    session.execute(
        update(DeviceRecord)
        .where(DeviceRecord.id == device)
        .values(published=counted, newest_id=newest.scalar_subquery())
        .execution_options(synchronize_session=False)
    )
