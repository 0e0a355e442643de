"""Make the table of known counters of drives, from `python/uflip/device/counters.toml`.

python tools/gen_drive_counters.py            write docs/reference/drive-counters.md
python tools/gen_drive_counters.py --check    check that it is current; exit 1 if not
"""

import sys
from pathlib import Path

from generated import write_or_check

from uflip.device.counters import CounterDefinition, counter_table
from uflip.units import format_size

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "drive-counters.md"
HEAD = "| counter | source | models | where | unit | reference |\n|---|---|---|---|---|---|\n"


def table() -> str:
    """Return the table of known counters."""
    known = counter_table()
    rows = []
    for name, source in known.source.items():
        models = "any" if source.models == ".*" else f"`{_cell(source.models)}`"
        rows += [_row(name, models, each, source.reference) for each in source.counters]
    for family in known.model:
        rows += [_row("ata", family.family, each, family.reference) for each in family.counters]
    return HEAD + "\n".join(rows) + "\n"


def _row(source: str, models: str, counter: CounterDefinition, reference: str) -> str:
    where = f"bytes {counter.offset} to {counter.offset + counter.size - 1}"
    if counter.id is not None:
        where = f"id {counter.id}" + (", normalized" if counter.field == "value" else "")
    if counter.file:
        where = f"`{counter.file}`"
    unit = counter.unit or "count"
    if counter.step > 1:
        size = format_size(counter.step) if counter.unit == "bytes" else str(counter.step)
        unit = f"{counter.unit}, in {size}"
    cells = [f"`{counter.name}`", f"`{source}`", models, where, unit, _cell(reference)]
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    before, _, _ = PAGE.read_text(encoding="utf-8").partition(HEAD)
    sys.exit(write_or_check({PAGE: before + table()}))
