"""Rows of devices: added with the first result, removed with the last."""

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from sqlalchemy import delete, func, select
from sqlalchemy.exc import IntegrityError

from uflip.site.result_summary import DeviceIdentity
from uflip.site.tables import DeviceRecord, ResultRecord

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


def device_of(session: "Session", identity: DeviceIdentity) -> DeviceRecord:
    """Return the row of a device, or add it."""
    fields = identity.model_dump()
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
