"""Publish and withdraw results, and maintain the rows of their devices, in the same transaction.

The row of a device is added with its first result and removed with its last.
"""

import re
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING

from sqlalchemy import and_, case, delete, func, or_, select, update
from sqlalchemy.exc import IntegrityError

from uflip.results.initial_manifest import utc_now
from uflip.site.accounts import log_action
from uflip.site.rows import DeviceIdentity
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
    complete = (*published, ResultRecord.status == COMPLETE)
    newest = select(ResultRecord.id).where(*complete).order_by(*REPRESENTATIVE_ORDER).limit(1)
    counted = select(func.count()).where(*published).scalar_subquery()
    session.execute(
        update(DeviceRecord)
        .where(DeviceRecord.id == device)
        .values(published=counted, newest_id=newest.scalar_subquery())
        .execution_options(synchronize_session=False)
    )


def device_of(session: "Session", identity: DeviceIdentity) -> DeviceRecord:
    """Return the row of a device, or add it."""
    fields = asdict(identity)
    where = [getattr(DeviceRecord, name) == value for name, value in fields.items()]
    record = session.scalar(select(DeviceRecord).where(*where))
    if record is not None:
        return record
    stem = re.sub(r"[^a-z0-9]+", "-", identity.model.lower()).strip("-")[:90] or "device"
    number, slug = 1, stem
    while session.scalar(select(func.count()).where(DeviceRecord.slug == slug)):
        number += 1
        slug = f"{stem}-{number}"
    new_record = DeviceRecord(slug=slug, **fields)
    session.add(new_record)
    return new_record


def remove_unused(session: "Session", device: int) -> None:
    """Remove a device without results, its name included."""
    has_results = select(ResultRecord.id).where(ResultRecord.device_id == device).exists()
    # A result that another server is just adding may reference it.
    with suppress(IntegrityError), session.begin_nested():
        session.execute(
            delete(DeviceRecord)
            .where(DeviceRecord.id == device, ~has_results)
            .execution_options(synchronize_session=False)
        )
