"""The rows of devices: found or made with the first result, forgotten with the last."""

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from sqlalchemy import delete, func, select
from sqlalchemy.exc import IntegrityError

from uflip.site.result_summary import DeviceSaid
from uflip.site.tables import DeviceRecord, ResultRecord

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


def device_of(session: "Session", said: DeviceSaid) -> DeviceRecord:
    """Find a device, or make it."""
    fields = said.model_dump()
    where = [getattr(DeviceRecord, name) == value for name, value in fields.items()]
    found = session.scalar(select(DeviceRecord).where(*where))
    if found is not None:
        return found
    stem = re.sub(r"[^a-z0-9]+", "-", said.model.lower()).strip("-")[:90] or "device"
    number, slug = 1, stem
    while session.scalar(select(func.count()).where(DeviceRecord.slug == slug)):
        number += 1
        slug = f"{stem}-{number}"
    made = DeviceRecord(slug=slug, **fields)
    session.add(made)
    return made


def forget(session: "Session", device: int) -> None:
    """Remove a device that no result is of any more, its name included."""
    left = select(ResultRecord.id).where(ResultRecord.device_id == device).exists()
    # A result that another server is just making may hold it.
    with suppress(IntegrityError), session.begin_nested():
        session.execute(
            delete(DeviceRecord)
            .where(DeviceRecord.id == device, ~left)
            .execution_options(synchronize_session=False)
        )
