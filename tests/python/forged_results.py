"""Forged results with a valid ledger: a ledger is not a signature."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from uflip import _native
from uflip.data import ledger, manifest
from uflip.site.client import redacted_copy


def forge_results(folder: Path, out: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """Copy results, apply `change` to their manifest, and rewrite their ledger."""
    redacted_copy(folder, out)
    path = out / manifest.FILE_NAME
    content = json.loads(path.read_bytes())
    change(content)
    path.unlink()
    path.write_text(json.dumps(content))
    rewrite_ledger(out)
    return out


def rewrite_ledger(folder: Path) -> None:
    """Rewrite the ledger of a folder, so that it matches the present files."""
    manifest_bytes = (folder / manifest.FILE_NAME).read_bytes()
    document: dict[str, Any] = msgspec.json.decode(manifest_bytes)
    specs = {entry["id"]: ledger.digest_of(entry) for entry in document["plan"]}
    plan = ledger.digest_of(document["plan"])
    path = folder / ledger.FILE_NAME
    lines, link = [], ""
    for entry in ledger.parse(path, path.read_bytes()).entries:
        rewritten: ledger.Entry = entry
        if isinstance(entry, ledger.RunEntry):
            content = (folder / "runs" / f"{entry.run}.parquet").read_bytes()
            rewritten = ledger.RunEntry(
                entry.run, len(content), _native.digest(content), specs[entry.run]
            )
        elif isinstance(entry, ledger.ManifestEntry):
            rewritten = ledger.ManifestEntry(
                len(manifest_bytes), _native.digest(manifest_bytes), plan
            )
        else:
            rewritten = ledger.BeginEntry(document["folder_id"], plan)
        text, link = ledger.line(rewritten, link)
        lines.append(text)
    path.unlink()
    path.write_bytes(b"".join(lines))
