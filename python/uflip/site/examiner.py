"""Examines a submitted folder, in a process of its own with limited memory and time.

    python -m uflip.site.examiner FOLDER

It trusts no submitted data: files are checked against the ledger, every run against physical limits
and the plan, and summary and row are computed from the traces. It prints the fields of
`result_summary.ExaminedFolder` as JSON, or the error in its parts.
"""

import json
import resource
import sys
from dataclasses import replace
from pathlib import Path

import msgspec

from uflip import _native
from uflip.data import ledger
from uflip.data.device import DeviceInfo
from uflip.data.document import Table, decode, plain
from uflip.data.manifest import RUNS, Manifest, PlanEntry
from uflip.data.run import KIND
from uflip.data.spec import Job, Pattern, spec_hook, table_of, typed_spec
from uflip.data.summary import Summary
from uflip.device.opener import inspect_sim
from uflip.device.resolve import resolve
from uflip.device.url import DeviceUrl, parse_url, with_overrides
from uflip.errors import ResultsError, UflipError
from uflip.hints.classes import classify
from uflip.profiles import profile_names
from uflip.result_views import summary
from uflip.results import Results
from uflip.results.integrity import examine as verify_folder
from uflip.results.integrity import run_checks
from uflip.results.result_dir import run_file
from uflip.site.upload_files import COMPLETE, unfinished_error
from uflip.web.views import run_counts

MEMORY_BYTES = 2 << 30
SECONDS = 300
"""Time limit: many times that of the longest benchmark."""
ERROR_PARTS = ("what", "where", "got", "allowed", "action")
COUNT, IGNORED, RULE = "io_count", "io_ignore", "stop"
PATTERNS = "patterns"
IGNORED_KEY = "description"
"""The profile key that does not affect the device."""
MAX_LABEL = 200
"""Limit for the length of a label [characters]."""


def examine_folder(folder: Path) -> Table:
    """Examine a folder in this process; return the fields of `result_summary.ExaminedFolder`."""
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
    files = sorted((folder / RUNS).iterdir())
    for path, problem in zip(files, checks([str(path) for path in files]), strict=True):
        if problem is not None:
            raise ResultsError(
                "The results are physically impossible",
                where=path.name,
                got=problem,
                action="submit the folder as `uflip run` wrote it",
            )
    check_plan(folder, stored_manifest)
    results = Results.load(folder)
    if stored_manifest.status != COMPLETE:
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


def _fields(results: Results, document: Summary) -> Table:
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
            "folder_id": stored_manifest.folder_id,
            "created_utc": stored_manifest.created_utc,
            "uflip_version": stored_manifest.uflip_version,
            "firmware": device.firmware,
            "scale": stored_manifest.scale,
            "state": stored_manifest.state.state,
            "durability": stored_manifest.durability,
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


def check_plan(folder: Path, manifest: Manifest) -> None:
    """Refuse a folder with a run that differs from the plan.

    The ledger proves that files did not change; an attacker who writes a new ledger can store any
    run under any name. So the run id and the pattern in a run file must be those of the plan,
    completed for the device of the manifest. A run may be shorter: it ends by its stop rule, and
    ignores no more I/Os than the device's start-up.
    """
    for entry in manifest.plan:
        path = run_file(folder, entry.id)
        if path.exists():
            problem = _metadata_difference(path, entry, manifest) or _specification_difference(
                path, entry, manifest
            )
            if problem:
                raise ResultsError(
                    "This run is not the one that was planned",
                    where=path.name,
                    got=problem,
                    allowed="the run as planned in manifest.json",
                    action="submit the folder as `uflip run` wrote it",
                )


def _metadata_difference(path: Path, entry: PlanEntry, manifest: Manifest) -> str:
    """Return a difference between the metadata of a run and the plan; empty without one."""
    stored = decode(path, KIND, (_native.read_metadata(str(path)) or "{}").encode(), Table)
    ours = {"folder_id": manifest.folder_id, "device_kind": manifest.device.kind}
    for name, value in ours.items():
        if stored.get(name, value) != value:
            return f"{name} {stored[name]!r}"
    planned: Table = {name: stored[name] for name in PlanEntry.__struct_fields__ if name in stored}
    try:
        stored_entry = msgspec.convert(planned, PlanEntry, dec_hook=spec_hook)
    except ValueError as error:  # msgspec's are some
        return f"metadata of no run: {error}"
    return _first_difference(
        {name: getattr(entry, name) for name in PlanEntry.__struct_fields__},
        {name: getattr(stored_entry, name) for name in PlanEntry.__struct_fields__},
    )


def _specification_difference(path: Path, entry: PlanEntry, manifest: Manifest) -> str:
    """Return a difference between the pattern of a run and the plan; empty without one."""
    stored = decode(path, KIND, (_native.read_specification(str(path)) or "{}").encode(), Table)
    try:
        stored_spec = typed_spec(stored)
    except ValueError as error:
        return f"an invalid pattern: {error}"
    if isinstance(entry.spec, Job):  # the run file has defaults filled in
        planned = table_of(entry.spec)
        return _first_difference(planned, {name: stored.get(name) for name in planned})
    if isinstance(stored_spec, Job):
        return "a job over physical addresses"
    expected: Pattern = resolve(entry.spec, manifest.device).spec
    most = None if expected.stop is None else expected.stop.most
    return _compare_patterns(table_of(expected), table_of(stored_spec), most)


def _compare_patterns(expected: Table, stored: Table, most: int | None) -> str:
    """Compare two patterns; with a stop rule each process has at most `most` I/Os."""
    whole = {COUNT, IGNORED, RULE, PATTERNS}
    problem = _first_difference(
        {name: value for name, value in expected.items() if name not in whole},
        {name: value for name, value in stored.items() if name not in whole},
    )
    if problem:
        return problem
    ours, theirs = expected.get(PATTERNS, ()), stored.get(PATTERNS, ())
    if len(ours) != len(theirs):
        return f"{len(theirs)} concurrent patterns"
    if ours:
        pairs = zip(ours, theirs, strict=True)
        return next(
            (each for one, other in pairs if (each := _compare_patterns(one, other, most))), ""
        )
    return _compare_lengths(expected, stored, most)


def _compare_lengths(expected: Table, stored: Table, most: int | None) -> str:
    count, ignored = stored.get(COUNT, 0), stored.get(IGNORED, 0)
    if most is not None:
        holds = ignored <= count <= most
    else:
        same = count - ignored == expected.get(COUNT, 0) - expected.get(IGNORED, 0)
        holds = same and count <= expected.get(COUNT, 0)
    return "" if holds else f"{COUNT} {count}, {IGNORED} {ignored}"


def _first_difference(expected: Table, stored: Table) -> str:
    names = sorted(expected.keys() | stored.keys())
    other = (name for name in names if expected.get(name) != stored.get(name))
    return next((f"{name} {str(stored.get(name))[:100]}" for name in other), "")


def model_of(device: DeviceInfo) -> str:
    """Return the label of a device on a site: its model, and the values that differ from it.

    ::

        sim:demo                        demo
        sim:demo?program_ns=3ms         demo?program_ns=3000000
        sim:PATH.toml, or forged        demo, profile 1a2b3c4d

    Results of devices that are built differently are results of different devices. A name is
    accepted if the built-in profile with its overrides is the profile in the manifest. The label of
    any other profile contains its digest.
    """
    name = device.model or device.kind
    ours = _keys(device.profile_table)
    if not ours:
        return name
    label = _known_label(device, ours) if name in profile_names() else None
    return f"{name}, profile {ledger.digest_of(ours)[:8]}" if label is None else label


def _known_label(device: DeviceInfo, ours: Table) -> str | None:
    """Return the label of a built-in device with its overrides.

    None if the profile in the manifest is another one, or if the label would be too long.
    """
    plain = DeviceUrl(device.model, "sim", device.model)
    named = replace(plain, overrides=_overrides(device))
    try:
        built_in, expected = _built(plain), _built(named)
    except UflipError:  # overrides that this version does not accept
        return None
    if expected != ours:
        return None
    keys = sorted({key for key, _ in named.overrides} & expected.keys())
    changed = {key: expected[key] for key in keys if expected[key] != built_in.get(key)}
    label = with_overrides(device.model, changed)
    return label if len(label) <= MAX_LABEL else None


def _overrides(device: DeviceInfo) -> tuple[tuple[str, str], ...]:
    """Return the overrides in a device's name; the name of a snapshot contains none."""
    try:
        named = parse_url(device.url)
    except UflipError:
        return ()
    return named.overrides if named.name == device.model else ()


def _built(target: DeviceUrl) -> Table:
    return _keys(inspect_sim(target, any_interface=True).profile_table)


def _keys(profile: Table) -> Table:
    """Return all keys of a profile with their values, without their tables."""
    keys: Table = {}
    for name, value in profile.items():
        if isinstance(value, dict):
            keys |= value
        elif name != IGNORED_KEY:
            keys[name] = value
    return keys


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
