"""Make `docs/reference/schemas/` from the types of documents, so that the two cannot differ.

python tools/gen_schemas.py            write the schemas
python tools/gen_schemas.py --check    say whether they are current; exit 1 if not
"""

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from uflip.data import ledger, manifest, run, state_record

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference" / "schemas"
DOCUMENTS: dict[str, Any] = {
    "manifest": manifest.Manifest,
    "ledger-line": ledger.Entry,
    "run-metadata": run.RunMetadata,
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


def main() -> int:
    """Write the schemas, or check them."""
    wanted = schemas()
    if "--check" in sys.argv[1:]:
        there = {path: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}
        return int(there != wanted)
    FOLDER.mkdir(exist_ok=True)
    for path, text in wanted.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
