"""Causes of response times, as `crates/sim/src/timeline/breakdown.rs` defines them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from uflip import _native


@dataclass(frozen=True, slots=True)
class Cause:
    """A column of traces: its name for users, its colour "#rrggbb", and its meaning."""

    column: str
    label: str
    color: str
    meaning: str


_LISTS = json.loads(_native.causes_json())
HOST, BLOCK, OPEN_CHANNEL = (
    tuple(Cause(**cause) for cause in _LISTS[kind]) for kind in ("host", "block", "open_channel")
)
"""Causes by kind of device: of any in an open loop, block devices, open-channel devices."""

CAUSES: Mapping[str, Cause] = {cause.column: cause for cause in (*BLOCK, *HOST, *OPEN_CHANNEL)}
"""All causes by column. A column of both kinds of devices has one label and one colour."""

COLUMN_OF_PURPOSE: tuple[str, ...] = tuple(column for _, column in _LISTS["purposes"])
"""The column for the work of an operation, by its purpose."""


def cause_name(column: str) -> str:
    """Return the name of a cause for users.

    >>> cause_name("die_wait_ns"), cause_name("cell_read_ns")
    ('die wait', 'cell read (tR)')
    """
    cause = CAUSES.get(column)
    return cause.label if cause else column.removesuffix("_ns").replace("_", " ")
