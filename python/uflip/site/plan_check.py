"""Checks the runs of a folder against its plan.

The ledger proves that files did not change; an attacker who writes a new ledger can store any run
under any name. So the run id and the pattern in a run file must be those of the plan, completed for
the device of the manifest. A run may be shorter: it ends by its stop rule, and ignores no more
I/Os than the device's start-up.
"""

from pathlib import Path

import msgspec

from uflip import _native
from uflip.data.document import Table, decode
from uflip.data.manifest import Manifest, PlanEntry
from uflip.data.run import KIND
from uflip.data.spec import Job, Pattern, spec_hook, table_of, typed_spec
from uflip.device.resolve import resolve
from uflip.errors import ResultsError
from uflip.results.result_dir import run_file

COUNT, IGNORED, RULE = "io_count", "io_ignore", "stop"
PATTERNS = "patterns"


def check_plan(folder: Path, manifest: Manifest) -> None:
    """Refuse a folder with a run that differs from the plan.

    Parameters
    ----------
    folder : Path
        A folder with a valid ledger.
    manifest : Manifest
        The manifest of the folder.

    Raises
    ------
    ResultsError
        For the first run that differs.
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
