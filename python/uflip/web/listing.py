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
from uflip.data.document import MOST_RUNS, MOST_WARNINGS
from uflip.data.manifest import Manifest
from uflip.data.summary import Summary
from uflip.errors import ResultsError, UflipError
from uflip.report.key_row import cells, numbers
from uflip.results import Results
from uflip.results.summarise import describe_device, experiments_of
from uflip.web.api_types import Failed, Glance, Known, WarningRow
from uflip.web.folders import FORMER, ResultFolder, refuse_names, stamp_of
from uflip.web.open_results import Latest, Opened

ROWS = 20_000
"""Maximum number of cached rows."""


class _Warned(Struct, frozen=True):
    code: str


class _State(Struct, frozen=True):
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
    plan: Annotated[list[msgspec.Raw], Meta(max_length=MOST_RUNS)]
    warnings: Annotated[list[_Warned], Meta(max_length=MOST_WARNINGS)]
    durability: str | None = None
    state: _State = _State()
    repetitions: int = 1


class Listing:
    """Rows of results, each cached until its folder changes.

    Parameters
    ----------
    opened : Opened
        The folders.
    """

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._glances: Latest[Glance | Failed] = Latest(ROWS)
        self._rows: Latest[WarningRow | Failed] = Latest(ROWS)

    def glances(self) -> list[Glance | Failed]:
        """Return the row of every folder, from its manifest."""
        return [
            self._glances.get(place.key, stamp_of(place), partial(_glance, place))
            for place in self._opened.folders.scan()
        ]

    def row(self, key: str) -> WarningRow | Failed:
        """Return the runs of a folder: its row of Table 3, and the number of converged means."""
        place = self._opened.place(key)
        return self._rows.get(key, stamp_of(place), partial(_row, place))


def _glance(place: ResultFolder) -> Glance | Failed:
    try:
        refuse_names(place)
        path = place.path / manifest.FILE_NAME
        if not path.exists() and (place.path / FORMER).exists():
            raise ResultsError(
                "The explorer does not support results of an older uFLIP-OC",
                action="`uflip oc show` prints them",
            )
        found = _read(path, read_document(path, manifest.KIND))
    except UflipError as error:
        return {"key": place.key, "name": place.name, "error": error.parts()}
    return {
        "key": place.key,
        "name": place.name,
        "device": describe_device(found.device),
        "simulated": found.device.simulated,
        "created_utc": found.created_utc,
        "scale": found.scale,
        "state": found.state.state,
        "durability": found.durability or "",
        "status": found.status,
        "repetitions": found.repetitions,
        "planned": len(found.plan),
        "warnings": [each.code for each in found.warnings],
        "uflip_version": found.uflip_version,
    }


def _read(path: Path, content: bytes) -> _Glance | Manifest:
    """Parse the fields of a row; if that fails, parse the whole manifest, or raise an error."""
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        found = msgspec.json.decode(content, type=_Glance)
        if (found.format, found.format_version) == (manifest.FORMAT, manifest.FORMAT_VERSION):
            return found
    return manifest.parse(path, content)


def _row(place: ResultFolder) -> WarningRow | Failed:
    try:
        results = Results.load(place.path)
        return {"key": place.key, **of_summary(summary(results))}
    except UflipError as error:
        return {"key": place.key, "error": error.parts()}


def of_summary(document: Summary) -> Known:
    """Return the part of a row that comes from a summary."""
    known = [
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
        "experiments": len(known),
        "known": sum(map(bool, known)),
        "cells": None if row is None else cells(row),
        "numbers": None if row is None else numbers(row),
        "baselines_ms": document["baselines_ms"],
    }
