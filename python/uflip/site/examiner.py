"""Looks at a folder that somebody sent, in a process of its own with little memory and time.

    python -m uflip.site.examiner FOLDER

Nothing that came along is believed: files are held against the ledger, every run against what is
possible and what was planned, and summary and row are computed from the traces. Printed is what
`examined.Examined` says, as JSON, or the error in its parts.
"""

import json
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from uflip.data.document import Table
from uflip.errors import ResultsError, UflipError
from uflip.site.upload_manifest import COMPLETE, unfinished

if TYPE_CHECKING:
    from uflip.data.summary import Summary
    from uflip.results import Results

MEMORY_BYTES = 2 << 30
SECONDS = 300
"""What the longest benchmark takes many times over; what takes longer is no result."""


PARTS = ("what", "where", "got", "allowed", "action")


def look(folder: Path) -> Table:
    """Compute what a folder says, in this process: the fields of `examined.Examined`.

    Raises
    ------
    UflipError
        If it does not hold.
    """
    from uflip import _native
    from uflip.benchmarks import summary
    from uflip.data import manifest
    from uflip.results import Results
    from uflip.results.flash_file import check_logs
    from uflip.results.integrity import examine as prove
    from uflip.site import plan_check

    proof = prove(folder)
    unproven = [verdict for verdict in proof.verdicts if verdict.state != "proven"]
    if unproven:
        first = unproven[0]
        raise ResultsError(
            "The results were changed after the measurement",
            where=first.file,
            got=f"{first.state}: {first.reason}",
            allowed="files that the folder's ledger proves, every one",
            action="`uflip verify` says the same of the folder; submit one that was not changed",
        )
    kept = proof.usable_manifest()
    checks = check_logs if kept.is_of_jobs else _native.check_traces
    files = sorted((folder / manifest.RUNS).iterdir())
    for path, problem in zip(files, checks([str(path) for path in files]), strict=True):
        if problem is not None:
            raise ResultsError(
                "The results are physically impossible",
                where=path.name,
                got=problem,
                action="submit the folder as `uflip run` wrote it",
            )
    plan_check.check(folder, kept)
    results = Results.load(folder)
    # What is older than the rule that only complete ones are taken is kept, and rebuilt, as it is.
    if kept.status not in (COMPLETE, "interrupted"):
        raise unfinished(kept.status)
    try:
        document = summary(results)
    except msgspec.ValidationError as error:
        raise ResultsError(
            "There is no summary of these results",
            where="runs",
            got=str(error)[:200],
            action="submit the folder as `uflip run` wrote it",
        ) from error
    return _said(results, document)


def _said(results: "Results", document: "Summary") -> Table:
    from uflip.data.document import plain
    from uflip.hints.classes import classify
    from uflip.site.device_label import model_of
    from uflip.web.listing import of_summary

    kept = results.manifest
    said, device = of_summary(document), kept.device
    means, row = said["baselines_ms"] or {}, document["key_characteristics"]
    return {
        "device": {
            "kind": device.kind,
            "model": model_of(device),
            "capacity_bytes": device.capacity_bytes,
        },
        "row": {
            "folder_id": kept.folder_id or "",
            "created_utc": kept.created_utc,
            "uflip_version": kept.uflip_version,
            "firmware": device.firmware,
            "scale": kept.scale,
            "state": kept.state.state,
            "durability": kept.durability or "",
            "status": kept.status,
            "runs": len(results.runs),
            "experiments": said["experiments"],
            "known": said["known"],
            "warnings": len(results.warnings),
            "sr_ms": means.get("SR"),
            "rr_ms": means.get("RR"),
            "sw_ms": means.get("SW"),
            "rw_ms": means.get("RW"),
            "cells": said["cells"],
            "device_class": None if row is None else classify(document).name,
        },
        "summary": plain(document),
    }


def _main(folder: Path) -> None:
    said: Table
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    try:
        said = look(folder)
    except UflipError as error:
        # Where the site keeps it is nobody's business.
        parts = {part: str(getattr(error, part) or "") for part in PARTS}
        said = {"error": {part: text.replace(f"{folder}/", "") for part, text in parts.items()}}
    except MemoryError:
        said = {"error": {"what": "The results take more memory than there is for them"}}
    # At once: some at a time takes many times as long.
    sys.stdout.write(json.dumps(said, allow_nan=False))


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
