"""What a result says of itself in a few words: worked out once, kept in a row, told in every list.

```text
examiner ── Examined ──▶ intake ── columns of Result ──▶ lists, tables, pages (rows.ResultRow)
```

The fields stand here alone. What is longer than a column, or is no text for a database, is none of
a result that a benchmark made, and is refused.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

from uflip.data.document import Table

# What PostgreSQL cannot keep in a text.
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
    """What the row of a result has from its folder: also that, and the row of Table 3."""

    folder_id: str
    cells: list[str] | None


class DeviceSaid(BaseModel):
    """What devices are told apart by."""

    kind: str
    model: Model
    capacity_bytes: int


class ExaminedFolder(BaseModel):
    """What a folder says: the columns of its device and of its result, and the whole summary."""

    device: DeviceSaid
    row: ResultColumns
    summary: Table
