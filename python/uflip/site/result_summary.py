"""The summary columns of a result: computed once, stored in its row, shown in every list.

```text
examiner ── ExaminedFolder ──▶ intake ── ResultRecord ──▶ lists, tables, pages (rows.ResultRow)
```

Only this module defines the fields. A value that is longer than its column, or that a database
cannot store as text, does not come from a benchmark, and is refused.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

from uflip.data.document import Table

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
