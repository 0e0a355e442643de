"""Make the explorer's colours and the tables of causes from the list of causes.

python tools/gen_causes.py            write `web/src/palette.ts` and the pages
python tools/gen_causes.py --check    check that they are current; exit 1 if not

The list is in `crates/sim/src/timeline/breakdown.rs`.
"""

import json
import re
import sys
from pathlib import Path

from generated import write_or_check

from uflip.report.figures.palette import MANY, MUTED, activity, paler
from uflip.results.causes import BLOCK, CAUSES, HOST, OPEN_CHANNEL, Cause
from uflip.results.device_log import CAUSE_OF, HOST_READ, HOST_WRITE, NAMES_BY_PURPOSE, READ

ROOT = Path(__file__).resolve().parent.parent
COLORS = ROOT / "web" / "src" / "palette.ts"
COLORS_HEAD = "// Made by tools/gen_causes.py of crates/sim/src/timeline/breakdown.rs."
REFERENCE = ROOT / "docs" / "reference"
PAGES = {"results-format.md": (*HOST, *BLOCK), "open-channel.md": OPEN_CHANNEL}
TABLE_HEAD = "| cause | shown as | spent on |\n|---|---|---|\n"
TABLE = re.compile(re.escape(TABLE_HEAD) + r"(?:\|.*\n)*")
PALE = 0.32
"""Difference of brightness between the read of a relocated page and its program."""


def colors() -> str:
    """Return the colours: many distinct ones, those of causes, and of operations in order."""
    activities = {column: cause.color for column, cause in CAUSES.items()}
    tables = {"MANY": MANY, "ACTIVITIES": activities, "OPERATIONS": [*_operations(), MUTED]}
    lines = [
        f"export const {name} = {json.dumps(table)} as const;" for name, table in tables.items()
    ]
    return "\n".join([COLORS_HEAD, *lines, ""])


def _operations() -> list[str]:
    """Return colours in the order of `OPERATION_NAMES`; a resumed operation keeps its colour."""
    colors = []
    for purpose, kind in NAMES_BY_PURPOSE:
        color = activity(CAUSE_OF[purpose, kind])
        is_copied = kind == READ and purpose not in (HOST_READ, HOST_WRITE)
        colors.append(paler(color, PALE) if is_copied else color)
    return colors


def page(text: str, causes: tuple[Cause, ...]) -> str:
    """Return the page with the current table of causes."""
    rows = (f"| `{each.column}` | {each.label} | {each.meaning} |\n" for each in causes)
    return TABLE.sub(lambda _: TABLE_HEAD + "".join(rows), text)


if __name__ == "__main__":
    paths = {REFERENCE / name: causes for name, causes in PAGES.items()}
    pages = {path: page(path.read_text(encoding="utf-8"), paths[path]) for path in paths}
    sys.exit(write_or_check({COLORS: colors(), **pages}))
