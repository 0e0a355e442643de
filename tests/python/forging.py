"""Forged results with a valid ledger: anybody can write a ledger of their own."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from uflip import _native
from uflip.data import ledger, manifest
from uflip.site.redaction import redacted_copy


def forged(folder: Path, out: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """Copy results, let `change` have its way with their manifest, and prove them again."""
    redacted_copy(folder, out)
    path = out / manifest.FILE_NAME
    content = json.loads(path.read_bytes())
    change(content)
    path.unlink()
    path.write_text(json.dumps(content))
    prove_again(out)
    return out


def prove_again(folder: Path) -> None:
    """Make the ledger of a folder anew, so that its files are what it says that was written."""
    said = (folder / manifest.FILE_NAME).read_bytes()
    kept: dict[str, Any] = msgspec.json.decode(said)
    specs = {entry["id"]: ledger.digest_of(entry) for entry in kept["plan"]}
    plan = ledger.digest_of(kept["plan"])
    path = folder / ledger.FILE_NAME
    lines, link = [], ""
    for entry in ledger.parse(path, path.read_bytes()).entries:
        made: ledger.Entry = entry
        if isinstance(entry, ledger.RunEntry):
            content = (folder / "runs" / f"{entry.run}.parquet").read_bytes()
            made = ledger.RunEntry(
                entry.run, len(content), _native.digest(content), specs[entry.run]
            )
        elif isinstance(entry, ledger.Document):
            made = ledger.Document(len(said), _native.digest(said), plan)
        else:
            made = ledger.Begin(kept["folder_id"], plan)
        text, link = ledger.line(made, link)
        lines.append(text)
    path.unlink()
    path.write_bytes(b"".join(lines))
