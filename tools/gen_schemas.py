"""Make `docs/reference/schemas/` from the types of documents, so that the two cannot differ.

python tools/gen_schemas.py            write the schemas
python tools/gen_schemas.py --check    check that they are current; exit 1 if not
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

import msgspec
from generated import write_or_check

from uflip.data import (
    ledger,
    manifest,
    multi_device,
    plan,
    run,
    run_summary,
    spec,
    state_record,
    summary,
    sweep,
)
from uflip.results.comparison import Comparisons

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "reference" / "schemas"
PACKAGE = ROOT / "python" / "uflip"
# Comments above one or more fields without a comment of their own.
GROUP = re.compile(r"((?: {4}#: .*\n)+)((?: {4}\w+: [^#\n]*\n)+)")
DOCUMENTS: dict[str, Any] = {
    "manifest": manifest.Manifest,
    "ledger-line": ledger.Entry,
    "run-metadata": run.RunMetadata,
    "run-summary": run_summary.SummaryFile,
    "state-record": state_record.StateDocument,
    "plan-run": plan.PlanRunEntry,
    "specification": spec.Spec,
    "summary": summary.Summary,
    "comparison": Comparisons,
    "sweep": sweep.SweepManifest,
    "devices": multi_device.MultiDeviceManifest,
}
SPECIFICATIONS = (spec.Basic, spec.Mix, spec.Parallel, spec.Job)


def _field_descriptions() -> dict[str, dict[str, str]]:
    """Return the description of each field by its class: the `#:` comment above or beside it."""
    descriptions: dict[str, dict[str, str]] = {}
    for module in ("data/*.py", "results/comparison.py"):
        for path in PACKAGE.glob(module):
            _, *classes = re.split(r"^class (\w+)", path.read_text(encoding="utf-8"), flags=re.M)
            for name, body in zip(classes[::2], classes[1::2], strict=True):
                fields = dict(re.findall(r"^ {4}(\w+): .*  #: (.*)", body, re.M))
                for above, group in re.findall(GROUP, body):
                    text = " ".join(re.findall(r"#: (.*)", above))
                    fields |= dict.fromkeys(re.findall(r"(\w+): ", group), text)
                descriptions[name] = fields
    return descriptions


DESCRIPTIONS = _field_descriptions()


def schemas() -> dict[Path, str]:
    """Return the text of each schema by its file."""
    _, parts = msgspec.json.schema_components(SPECIFICATIONS)
    texts = {}
    for name, document_type in DOCUMENTS.items():
        (reference,), components = msgspec.json.schema_components(
            [document_type], schema_hook=_any_specification
        )
        schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"} | reference
        schema["$defs"] = _used(reference, components | parts)
        for title, definition in schema["$defs"].items():
            for field, text in DESCRIPTIONS.get(title, {}).items():
                if field in definition.get("properties", {}):
                    definition["properties"][field]["description"] = text
        texts[FOLDER / f"{name}.json"] = json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
    return texts


def _any_specification(field_type: type) -> dict[str, Any]:
    """Return the schema of a field that is a specification: one of its kinds."""
    if field_type is not spec.Spec:
        raise NotImplementedError(field_type)
    return {"anyOf": [{"$ref": f"#/$defs/{kind.__name__}"} for kind in SPECIFICATIONS]}


def _used(schema: Any, components: dict[str, Any]) -> dict[str, Any]:
    """Return the definitions that a schema refers to, and those that these refer to."""
    used: dict[str, Any] = {}
    names = re.findall(r"#/\$defs/(\w+)", json.dumps(schema))
    while names:
        name = names.pop(0)
        if name not in used:
            used[name] = components[name]
            names += re.findall(r"#/\$defs/(\w+)", json.dumps(components[name]))
    return used


if __name__ == "__main__":
    sys.exit(write_or_check(schemas(), FOLDER.glob("*.json")))
