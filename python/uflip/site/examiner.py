"""Examines a submitted folder, in a process of its own with limited memory and time.

    python -m uflip.site.examiner FOLDER

It trusts no submitted data: files are checked against the ledger, every run against physical limits
and the plan, and summary and row are computed from the traces. It prints the fields of
`result_summary.ExaminedFolder` as JSON, or the error in its parts.
"""

import json
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from uflip.data.document import Table
from uflip.errors import ResultsError, UflipError
from uflip.site.upload_manifest import COMPLETE, unfinished_error

if TYPE_CHECKING:
    from uflip.data.summary import Summary
    from uflip.results import Results

MEMORY_BYTES = 2 << 30
SECONDS = 300
"""Time limit: many times that of the longest benchmark."""


ERROR_PARTS = ("what", "where", "got", "allowed", "action")


def examine_folder(folder: Path) -> Table:
    """Examine a folder in this process; return the fields of `result_summary.ExaminedFolder`.

    Raises
    ------
    UflipError
        If a check fails.
    """
    from uflip.benchmarks import summary
    from uflip.data import manifest
    from uflip.results import Results
    from uflip.results.integrity import examine as verify_folder
    from uflip.results.integrity import run_checks
    from uflip.site import plan_check

    verification = verify_folder(folder)
    unproven = [verdict for verdict in verification.verdicts if verdict.state != "proven"]
    if unproven:
        first = unproven[0]
        raise ResultsError(
            "The results were changed after the measurement",
            where=first.file,
            got=f"{first.state}: {first.reason}",
            allowed="files whose digests are in the folder's ledger",
            action="`uflip verify` finds the same faults; submit a folder that was not changed",
        )
    stored_manifest = verification.usable_manifest()
    checks = run_checks(stored_manifest)
    files = sorted((folder / manifest.RUNS).iterdir())
    for path, problem in zip(files, checks([str(path) for path in files]), strict=True):
        if problem is not None:
            raise ResultsError(
                "The results are physically impossible",
                where=path.name,
                got=problem,
                action="submit the folder as `uflip run` wrote it",
            )
    plan_check.check_plan(folder, stored_manifest)
    results = Results.load(folder)
    # Results older than the rule that only complete ones are accepted are kept, and rebuilt.
    if stored_manifest.status not in (COMPLETE, "interrupted"):
        raise unfinished_error(stored_manifest.status)
    try:
        document = summary(results)
    except msgspec.ValidationError as error:
        raise ResultsError(
            "There is no summary of these results",
            where="runs",
            got=str(error)[:200],
            action="submit the folder as `uflip run` wrote it",
        ) from error
    return _fields(results, document)


def _fields(results: "Results", document: "Summary") -> Table:
    from uflip.data.document import plain
    from uflip.hints.classes import classify
    from uflip.site.device_label import model_of
    from uflip.web.listing import run_counts

    stored_manifest = results.manifest
    columns, device = run_counts(document), stored_manifest.device
    means, row = columns["baselines_ms"] or {}, document["key_characteristics"]
    return {
        "device": {
            "kind": device.kind,
            "model": model_of(device),
            "capacity_bytes": device.capacity_bytes,
        },
        "row": {
            "folder_id": stored_manifest.folder_id or "",
            "created_utc": stored_manifest.created_utc,
            "uflip_version": stored_manifest.uflip_version,
            "firmware": device.firmware,
            "scale": stored_manifest.scale,
            "state": stored_manifest.state.state,
            "durability": stored_manifest.durability or "",
            "status": stored_manifest.status,
            "runs": len(results.runs),
            "experiments": columns["experiments"],
            "known": columns["known"],
            "warnings": len(results.warnings),
            "sr_ms": means.get("SR"),
            "rr_ms": means.get("RR"),
            "sw_ms": means.get("SW"),
            "rw_ms": means.get("RW"),
            "cells": columns["cells"],
            "device_class": None if row is None else classify(document).name,
        },
        "summary": plain(document),
    }


def _main(folder: Path) -> None:
    output: Table
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    try:
        output = examine_folder(folder)
    except UflipError as error:
        # Errors must not reveal the paths of the site.
        parts = {part: str(getattr(error, part) or "") for part in ERROR_PARTS}
        output = {"error": {part: text.replace(f"{folder}/", "") for part, text in parts.items()}}
    except MemoryError:
        output = {"error": {"what": "The results exceed the limit of memory"}}
    # In one write: several short ones take many times as long.
    sys.stdout.write(json.dumps(output, allow_nan=False))


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
