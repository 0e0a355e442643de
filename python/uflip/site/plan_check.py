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
from uflip.results.run_files import run_file

COUNT, IGNORED, RULE = "io_count", "io_ignore", "stop"
PARTS = "patterns"


def check(folder: Path, kept: Manifest) -> None:
    """Refuse a folder with a run that differs from the plan.

    Parameters
    ----------
    folder : Path
        A folder with a valid ledger.
    kept : Manifest
        The manifest of the folder.

    Raises
    ------
    ResultsError
        For the first run that differs.
    """
    for entry in kept.plan:
        path = run_file(folder, entry.id)
        if path.exists():
            problem = _of_metadata(path, entry, kept) or _of_pattern(path, entry, kept)
            if problem:
                raise ResultsError(
                    "This run is not the one that was planned",
                    where=path.name,
                    got=problem,
                    allowed="what the plan in manifest.json says of it",
                    action="submit the folder as `uflip run` wrote it",
                )


def _of_metadata(path: Path, entry: PlanEntry, kept: Manifest) -> str:
    """Return the metadata of a run that differ from the plan; empty if none do."""
    stored = decode(path, KIND, (_native.read_metadata(str(path)) or "{}").encode(), Table)
    ours = {"folder_id": kept.folder_id, "device_kind": kept.device.kind}
    for name, value in ours.items():
        if stored.get(name, value) != value:
            return f"{name} {stored[name]!r}"
    planned: Table = {name: stored[name] for name in PlanEntry.__struct_fields__ if name in stored}
    try:
        found = msgspec.convert(planned, PlanEntry, dec_hook=spec_hook)
    except ValueError as error:  # msgspec's are some
        return f"metadata of no run: {error}"
    return _first_other(
        {name: getattr(entry, name) for name in PlanEntry.__struct_fields__},
        {name: getattr(found, name) for name in PlanEntry.__struct_fields__},
    )


def _of_pattern(path: Path, entry: PlanEntry, kept: Manifest) -> str:
    """Return how the pattern of a run differs from the plan; empty if it does not."""
    stored = decode(path, KIND, (_native.read_specification(str(path)) or "{}").encode(), Table)
    try:
        found = typed_spec(stored)
    except ValueError as error:
        return f"an invalid pattern: {error}"
    if isinstance(entry.spec, Job):  # the run file has defaults filled in
        asked = table_of(entry.spec)
        return _first_other(asked, {name: stored.get(name) for name in asked})
    if isinstance(found, Job):
        return "a job over physical addresses"
    wanted: Pattern = resolve(entry.spec, kept.device).spec
    most = None if wanted.stop is None else wanted.stop.most
    return _other_pattern(table_of(wanted), table_of(found), most)


def _other_pattern(wanted: Table, found: Table, most: int | None) -> str:
    """Compare two patterns; with a stop rule each process has at most `most` I/Os."""
    whole = {COUNT, IGNORED, RULE, PARTS}
    problem = _first_other(
        {name: value for name, value in wanted.items() if name not in whole},
        {name: value for name, value in found.items() if name not in whole},
    )
    if problem:
        return problem
    ours, theirs = wanted.get(PARTS, ()), found.get(PARTS, ())
    if len(ours) != len(theirs):
        return f"{len(theirs)} patterns side by side"
    if ours:
        pairs = zip(ours, theirs, strict=True)
        return next(
            (each for one, other in pairs if (each := _other_pattern(one, other, most))), ""
        )
    return _other_length(wanted, found, most)


def _other_length(wanted: Table, found: Table, most: int | None) -> str:
    count, ignored = found.get(COUNT, 0), found.get(IGNORED, 0)
    if most is not None:
        holds = ignored <= count <= most
    else:
        same = count - ignored == wanted.get(COUNT, 0) - wanted.get(IGNORED, 0)
        holds = same and count <= wanted.get(COUNT, 0)
    return "" if holds else f"{COUNT} {count}, {IGNORED} {ignored}"


def _first_other(wanted: Table, found: Table) -> str:
    names = sorted(wanted.keys() | found.keys())
    other = (name for name in names if wanted.get(name) != found.get(name))
    return next((f"{name} {str(found.get(name))[:100]}" for name in other), "")
