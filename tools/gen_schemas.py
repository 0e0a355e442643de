"""Make `docs/reference/schemas/` from the types of documents, so that the two cannot differ.

python tools/gen_schemas.py            write the schemas
python tools/gen_schemas.py --check    say whether they are current; exit 1 if not
"""

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
from generated import write_or_check

from uflip.data import ledger, manifest, run, run_summary, state_record

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference" / "schemas"
DOCUMENTS: dict[str, Any] = {
    "manifest": manifest.Manifest,
    "ledger-line": ledger.Entry,
    "run-metadata": run.RunMetadata,
    "run-summary": run_summary.Summaries,
    "state-record": state_record.State,
}


def schemas() -> dict[Path, str]:
    """The text of each schema by its file."""
    made = {}
    for name, shape in DOCUMENTS.items():
        schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
        schema |= msgspec.json.schema(shape)
        made[FOLDER / f"{name}.json"] = json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
    return made


if __name__ == "__main__":
    sys.exit(write_or_check(schemas(), FOLDER.glob("*.json")))
