"""The list of results: first from manifests, then from the runs of each folder.

A thousand folders are listed within a second; the columns about runs follow in batches.
"""

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from uflip.benchmarks import summary
from uflip.data import manifest
from uflip.data.bounded_read import read_document
from uflip.data.device import DeviceInfo
from uflip.data.document import MAX_RUNS, MAX_WARNINGS
from uflip.data.manifest import Manifest
from uflip.data.summary import Summary
from uflip.errors import ResultsError, UflipError
from uflip.report.key_row import cells, numbers
from uflip.results import Results
from uflip.results.summary_document import describe_device, experiments_of
from uflip.web.api_types import Failed, Glance, RunCountsWithWarnings, WarningRow
from uflip.web.open_results import FORMER, Latest, OpenResults, ResultFolder, refuse_names, stamp_of

ROWS = 20_000
"""Maximum number of cached rows."""


class _Warned(Struct, frozen=True):
    code: str


class _StoredState(Struct, frozen=True):
    state: str = "unknown"


class _Glance(Struct, frozen=True):
    """The fields of a manifest that a row shows; only its format is checked."""

    format: str
    format_version: int
    uflip_version: str
    created_utc: str
    status: str
    device: DeviceInfo
    scale: str
    plan: Annotated[list[msgspec.Raw], Meta(max_length=MAX_RUNS)]
    warnings: Annotated[list[_Warned], Meta(max_length=MAX_WARNINGS)]
    durability: str | None = None
    state: _StoredState = _StoredState()
    repetitions: int = 1


class Listing:
    """Rows of results, each cached until its folder changes.

    Parameters
    ----------
    opened : OpenResults
        The folders.
    """

    def __init__(self, opened: OpenResults) -> None:
        self._opened = opened
        self._glances: Latest[Glance | Failed] = Latest(ROWS)
        self._rows: Latest[WarningRow | Failed] = Latest(ROWS)

    def glances(self) -> list[Glance | Failed]:
        """Return the row of every folder, from its manifest."""
        return [
            self._glances.get(folder.key, stamp_of(folder), partial(_glance, folder))
            for folder in self._opened.folders.scan()
        ]

    def row(self, key: str) -> WarningRow | Failed:
        """Return the runs of a folder: its row of Table 3, and the number of converged means."""
        folder = self._opened.folder(key)
        return self._rows.get(key, stamp_of(folder), partial(_row, folder))


def _glance(folder: ResultFolder) -> Glance | Failed:
    try:
        refuse_names(folder)
        path = folder.path / manifest.FILE_NAME
        if not path.exists() and (folder.path / FORMER).exists():
            raise ResultsError(
                "The explorer does not support results of an older uFLIP-OC",
                action="`uflip oc show` prints them",
            )
        document = _read(path, read_document(path, manifest.KIND))
    except UflipError as error:
        return {"key": folder.key, "name": folder.name, "error": error.parts()}
    return {
        "key": folder.key,
        "name": folder.name,
        "device": describe_device(document.device),
        "simulated": document.device.simulated,
        "created_utc": document.created_utc,
        "scale": document.scale,
        "state": document.state.state,
        "durability": document.durability or "",
        "status": document.status,
        "repetitions": document.repetitions,
        "planned": len(document.plan),
        "warnings": [each.code for each in document.warnings],
        "uflip_version": document.uflip_version,
    }


def _read(path: Path, content: bytes) -> _Glance | Manifest:
    """Parse the fields of a row; if that fails, parse the whole manifest, or raise an error."""
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        document = msgspec.json.decode(content, type=_Glance)
        if (document.format, document.format_version) == (manifest.FORMAT, manifest.FORMAT_VERSION):
            return document
    return manifest.parse(path, content)


def _row(folder: ResultFolder) -> WarningRow | Failed:
    try:
        results = Results.load(folder.path)
        return {"key": folder.key, **run_counts(summary(results))}
    except UflipError as error:
        return {"key": folder.key, "error": error.parts()}


def run_counts(document: Summary) -> RunCountsWithWarnings:
    """Return the part of a row that comes from a summary."""
    converged = [
        run["together"]["converged"]
        for _, run in experiments_of(document)
        if run["together"]["converged"] is not None
    ]
    row = document["key_characteristics"]
    return {
        "status": document["status"],
        "finished": document["runs_finished"],
        "planned": document["runs_planned"],
        "warnings": [each["code"] for each in document["warnings"]],
        "experiments": len(converged),
        "known": sum(map(bool, converged)),
        "cells": None if row is None else cells(row),
        "numbers": None if row is None else numbers(row),
        "baselines_ms": document["baselines_ms"],
    }
