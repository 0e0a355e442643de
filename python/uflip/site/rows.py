"""The columns of a result: computed once, stored in its row, shown in lists and tables.

```text
examiner ── ExaminedFolder ──▶ intake ── ResultRecord ──▶ lists, tables, pages (ResultRow)
```

Only this module defines the fields. A value that is longer than its column, or that a database
cannot store as text, does not come from a benchmark, and is refused. HTML pages use the rows of the
database; programs receive the records here, which OpenAPI describes.
"""

from dataclasses import dataclass, fields
from typing import Annotated, Any

from msgspec import Meta
from sqlalchemy import Row, Select, select

from uflip.data.document import Table
from uflip.site.tables import Account, DeviceRecord, ResultRecord

# PostgreSQL cannot store NUL in a text.
_NO_NUL = "^[^\0]*$"
Short = Annotated[str, Meta(max_length=50, pattern=_NO_NUL)]
Firmware = Annotated[str, Meta(max_length=200, pattern=_NO_NUL)]
Model = Annotated[str, Meta(min_length=1, max_length=500, pattern=_NO_NUL)]


@dataclass(frozen=True, kw_only=True)
class ResultSummary:
    """Conditions and findings of a result; times in milliseconds and UTC."""

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


@dataclass(frozen=True, kw_only=True)
class ResultColumns(ResultSummary):
    """The columns of a result that come from its folder: the summary, and the row of Table 3."""

    folder_id: str
    cells: list[str] | None


@dataclass(frozen=True, kw_only=True)
class DeviceIdentity:
    """The values that identify a device."""

    kind: str
    model: Model
    capacity_bytes: int


@dataclass(frozen=True, kw_only=True)
class ExaminedFolder:
    """An examined folder: the columns of its device and of its result, and the whole summary."""

    device: DeviceIdentity
    row: ResultColumns
    summary: Table


FIRST_CELL = 4
"""Index in Table 3 of the first cell after the means, which rows have as numbers."""


@dataclass(frozen=True, kw_only=True)
class ResultIdentity:
    """The id of a result, its device, and its owner."""

    id: str
    device: str
    device_slug: str
    kind: str
    capacity_bytes: int
    submitted_utc: str
    published_utc: str | None
    submitted_by: str
    bytes: int


@dataclass(frozen=True, kw_only=True)
class ResultRow(ResultSummary, ResultIdentity):
    """A result as lists show it; times in milliseconds and UTC, the last six as in Table 3."""

    pause: str | None = None
    locality: str | None = None
    partitions: str | None = None
    reverse: str | None = None
    in_place: str | None = None
    large_incr: str | None = None


@dataclass(frozen=True, kw_only=True)
class DeviceRow(ResultRow):
    """A device, and its newest complete published result, preferably of the standard scale."""

    slug: str
    results: int


CELLS = ("pause", "locality", "partitions", "reverse", "in_place", "large_incr")


def results() -> Select[Any]:
    """Select the rows of all results, with their devices and owners, in no order."""
    columns: tuple[Any, ...] = (
        ResultRecord.id, DeviceRecord.model.label("device"), DeviceRecord.slug.label("device_slug"),
        DeviceRecord.kind, DeviceRecord.capacity_bytes, ResultRecord.submitted_utc,
        ResultRecord.published_utc, Account.name.label("submitted_by"), ResultRecord.bytes,
        ResultRecord.cells,
        *(getattr(ResultRecord, each.name) for each in fields(ResultSummary)),
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
    return ResultRow(**_columns(row, ResultRow))


def as_device(row: Row[Any]) -> DeviceRow:
    """Return a row of `devices` for programs."""
    return DeviceRow(**_columns(row, DeviceRow))


def _columns(row: Row[Any], kind: type[ResultRow]) -> Table:
    names = [each.name for each in fields(kind) if each.name not in CELLS]
    cells = () if row.cells is None else zip(CELLS, row.cells[FIRST_CELL:], strict=True)
    return {name: row._mapping[name] for name in names} | dict(cells)
