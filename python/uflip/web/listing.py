"""The list of results: what a manifest says at a glance, and what a folder says when it is read.

A thousand folders are listed before a second is over; what their runs say follows, some at a time.
"""

from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from uflip.benchmarks import summary
from uflip.data import manifest
from uflip.data.reading import read_document
from uflip.errors import ResultsError, UflipError
from uflip.report.key_row import cells
from uflip.results import Results
from uflip.results.summarise import describe_device, experiments_of
from uflip.web.folders import FORMER, Place, stamp_of
from uflip.web.opened import Latest, Opened

ROWS = 20_000
"""Rows that are kept."""


class _Warned(Struct, frozen=True):
    code: str


class _Glance(Struct, frozen=True):
    """What a row shows of a manifest: nothing of it is checked but its kind."""

    format: str
    format_version: int
    uflip_version: str
    created_utc: str
    status: str
    device: dict[str, Any]
    scale: str
    plan: list[msgspec.Raw]
    warnings: list[_Warned]
    durability: str | None = None
    state: dict[str, Any] = {}
    repetitions: int = 1


class Listing:
    """Rows of results, each kept until its folder changes.

    Parameters
    ----------
    opened : Opened
        The folders.
    """

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._glances: Latest[dict[str, Any]] = Latest(ROWS)
        self._rows: Latest[dict[str, Any]] = Latest(ROWS)

    def glances(self) -> list[dict[str, Any]]:
        """Say of every folder what its manifest says."""
        return [
            self._glances.get(place.key, stamp_of(place), partial(_glance, place))
            for place in self._opened.folders.scan()
        ]

    def row(self, key: str) -> dict[str, Any]:
        """Say of a folder what its runs say: its row of Table 3, and how many means are known."""
        place = self._opened.place(key)
        return self._rows.get(key, stamp_of(place), partial(_row, place))


def _glance(place: Place) -> dict[str, Any]:
    row: dict[str, Any] = {"key": place.key, "name": place.name}
    try:
        path = place.path / manifest.FILE_NAME
        if not path.exists() and (place.path / FORMER).exists():
            raise ResultsError(
                "Results of an older uFLIP-OC are not explored",
                action="`uflip oc show` prints them",
            )
        content = read_document(path, manifest.KIND)
        try:
            found = msgspec.json.decode(content, type=_Glance)
            if found.format_version > manifest.FORMAT_VERSION or found.format != manifest.FORMAT:
                raise msgspec.ValidationError
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            manifest.parse(path, content)  # says what is wrong
            raise
    except UflipError as error:
        return row | {"error": error.parts()}
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return row | {"error": {"what": "The manifest cannot be read", "got": str(error)}}
    return row | {
        "device": _describe(found.device),
        "simulated": bool(found.device.get("simulated")),
        "created_utc": found.created_utc,
        "scale": found.scale,
        "state": str(found.state.get("state", "unknown")),
        "durability": found.durability or "",
        "status": found.status,
        "repetitions": found.repetitions,
        "planned": len(found.plan),
        "warnings": [each.code for each in found.warnings],
        "uflip_version": found.uflip_version,
    }


def _describe(device: dict[str, Any]) -> str:
    try:
        return describe_device(device)
    except (TypeError, ValueError, KeyError):
        return str(device.get("url"))


def _row(place: Place) -> dict[str, Any]:
    try:
        results = Results.load(place.path)
        return {"key": place.key} | of_summary(summary(results))
    except UflipError as error:
        return {"key": place.key, "error": error.parts()}


def of_summary(document: dict[str, Any]) -> dict[str, Any]:
    """Say what a row of the list says of a summary."""
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
        "known": sum(known),
        "cells": None if row is None else cells(row),
        "baselines_ms": document["baselines_ms"],
    }
