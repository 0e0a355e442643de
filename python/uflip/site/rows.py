"""The columns of a result: computed once, stored in its row, shown in lists and tables.

```text
examiner ── ExaminedFolder ──▶ intake ── ResultRecord ──▶ lists, tables, pages (ResultRow)
```

Only this module defines the fields. A value that is longer than its column, or that a database
cannot store as text, does not come from a benchmark, and is refused. HTML pages use the rows of the
database; programs receive the models here, which OpenAPI describes.
"""

from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, StringConstraints
from sqlalchemy import Row, Select, select

from uflip.data.document import Table
from uflip.site.tables import Account, DeviceRecord, ResultRecord

# PostgreSQL cannot store NUL in a text.
_NO_NUL = "^[^\0]*$"
Short = Annotated[str, StringConstraints(max_length=50, pattern=_NO_NUL)]
Firmware = Annotated[str, StringConstraints(max_length=200, pattern=_NO_NUL)]
Model = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=_NO_NUL)]


class ResultSummary(BaseModel):
    """Conditions and findings of a result; times in milliseconds and UTC."""

    model_config = ConfigDict(from_attributes=True)

    firmware: Firmware
    created_utc: str
    uflip_version: Short
    device_class: str | None
    scale: Short
    state: Short
    durability: Short
    status: str
    runs: int
    experiments: int
    known: int
    warnings: int
    sr_ms: float | None
    rr_ms: float | None
    sw_ms: float | None
    rw_ms: float | None


class ResultColumns(ResultSummary):
    """The columns of a result that come from its folder: the summary, and the row of Table 3."""

    folder_id: str
    cells: list[str] | None


class DeviceIdentity(BaseModel):
    """The values that identify a device."""

    kind: str
    model: Model
    capacity_bytes: int


class ExaminedFolder(BaseModel):
    """An examined folder: the columns of its device and of its result, and the whole summary."""

    device: DeviceIdentity
    row: ResultColumns
    summary: Table


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
