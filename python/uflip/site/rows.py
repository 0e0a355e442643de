"""Rows of results and devices for lists and tables.

HTML pages use the rows of the database; programs receive the models here, which OpenAPI describes.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict
from sqlalchemy import Row, Select, select

from uflip.site.result_summary import ResultSummary
from uflip.site.tables import Account, DeviceRecord, ResultRecord

FIRST_CELL = 4
"""Index in Table 3 of the first cell after the means, which rows have as numbers."""


class ResultIdentity(BaseModel):
    """The id of a result, its device, and its owner."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    device: str
    device_slug: str
    kind: str
    capacity_bytes: int
    submitted_utc: str
    published_utc: str | None
    submitted_by: str
    bytes: int


class ResultRow(ResultSummary, ResultIdentity):
    """A result as lists show it; times in milliseconds and UTC, the last six as in Table 3."""

    pause: str | None = None
    locality: str | None = None
    partitions: str | None = None
    reverse: str | None = None
    in_place: str | None = None
    large_incr: str | None = None


class DeviceRow(ResultRow):
    """A device, and its newest complete published result, preferably of the standard scale."""

    slug: str
    results: int


AnyRow = TypeVar("AnyRow", bound=ResultRow)
CELLS = ("pause", "locality", "partitions", "reverse", "in_place", "large_incr")


def results() -> Select[Any]:
    """Select the rows of all results, with their devices and owners, in no order."""
    columns: tuple[Any, ...] = (
        ResultRecord.id, DeviceRecord.model.label("device"), DeviceRecord.slug.label("device_slug"),
        DeviceRecord.kind, DeviceRecord.capacity_bytes, ResultRecord.submitted_utc,
        ResultRecord.published_utc, Account.name.label("submitted_by"), ResultRecord.bytes,
        ResultRecord.cells,
        *(getattr(ResultRecord, name) for name in ResultSummary.model_fields),
    )  # fmt: skip
    return (
        select(*columns)
        .select_from(ResultRecord)
        .join(DeviceRecord, DeviceRecord.id == ResultRecord.device_id)
        .join(Account)
    )


def devices() -> Select[Any]:
    """Select the rows of all devices with published results, in no order."""
    columns = (DeviceRecord.slug, DeviceRecord.published.label("results"))
    return results().add_columns(*columns).where(DeviceRecord.newest_id == ResultRecord.id)


def as_result(row: Row[Any]) -> ResultRow:
    """Return a row of `results` for programs."""
    return _with_cells(ResultRow.model_validate(row), row.cells)


def as_device(row: Row[Any]) -> DeviceRow:
    """Return a row of `devices` for programs."""
    return _with_cells(DeviceRow.model_validate(row), row.cells)


def _with_cells(row: AnyRow, cells: Sequence[str] | None) -> AnyRow:
    if cells is not None:
        for name, cell in zip(CELLS, cells[FIRST_CELL:], strict=True):
            setattr(row, name, cell)
    return row
