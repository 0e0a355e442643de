"""Make `web/src/palette.ts` from the palette of the report: an activity has one colour everywhere.

python tools/gen_palette.py            write it
python tools/gen_palette.py --check    check that it is current; exit 1 if not
"""

import json
import sys
from pathlib import Path

from generated import write_or_check

from uflip.report.figures.palette import ACTIVITIES, CAUSES, MUTED, activity, paler
from uflip.results.device_log import CAUSE_OF, HOST_READ, HOST_WRITE, NAMES_BY_PURPOSE, READ

FILE = Path(__file__).resolve().parent.parent / "web" / "src" / "palette.ts"
HEAD = "// Made by tools/gen_palette.py of python/uflip/report/figures/palette.py."
PALE = 0.32
"""Difference of brightness between the read of a relocated page and its program."""


def text() -> str:
    """Return the file: distinct colours, those of causes, and those of operations in order."""
    tables = {"MANY": CAUSES, "ACTIVITIES": ACTIVITIES, "OPERATIONS": [*_operations(), MUTED]}
    lines = [
        f"export const {name} = {json.dumps(table)} as const;" for name, table in tables.items()
    ]
    return "\n".join([HEAD, *lines, ""])


def _operations() -> list[str]:
    """Return colours in the order of `OPERATION_NAMES`; a resumed operation keeps its colour."""
    colors = []
    for purpose, kind in NAMES_BY_PURPOSE:
        color = activity(CAUSE_OF[purpose, kind])
        is_copied = kind == READ and purpose not in (HOST_READ, HOST_WRITE)
        colors.append(paler(color, PALE) if is_copied else color)
    return colors


if __name__ == "__main__":
    sys.exit(write_or_check({FILE: text()}))
