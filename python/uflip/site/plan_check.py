"""Holds the runs of a folder against its plan: is each what the plan says that it is?

The ledger proves that files are together what they were; whoever makes a ledger anew can put any
run under any name. So what a run file says of itself, which run it is and which pattern its I/Os
are of, must be what the plan says, filled in for the device of the manifest. Its length may be
less: a run ends by its rule, and leaves out no more of a start-up than the device has.
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
    """Refuse a folder with a run that the plan says otherwise.

    Parameters
    ----------
    folder : Path
        Whose ledger proves its files.
    kept : Manifest
        Of it.

    Raises
    ------
    ResultsError
        For the first such run.
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
    """Say what the metadata of a run have that the plan has not; empty: nothing."""
    said = decode(path, KIND, (_native.read_metadata(str(path)) or "{}").encode(), Table)
    ours = {"folder_id": kept.folder_id, "device_kind": kept.device.kind}
    for name, value in ours.items():
        if said.get(name, value) != value:
            return f"{name} {said[name]!r}"
    planned: Table = {name: said[name] for name in PlanEntry.__struct_fields__ if name in said}
    try:
        found = msgspec.convert(planned, PlanEntry, dec_hook=spec_hook)
    except ValueError as error:  # msgspec's are some
        return f"metadata of no run: {error}"
    return _first_other(
        {name: getattr(entry, name) for name in PlanEntry.__struct_fields__},
        {name: getattr(found, name) for name in PlanEntry.__struct_fields__},
    )


def _of_pattern(path: Path, entry: PlanEntry, kept: Manifest) -> str:
    """Say how the pattern of a run is not that of the plan; empty: in no way."""
    said = decode(path, KIND, (_native.read_specification(str(path)) or "{}").encode(), Table)
    try:
        found = typed_spec(said)
    except ValueError as error:
        return f"a pattern that is none: {error}"
    if isinstance(entry.spec, Job):  # what was not asked for is filled in
        asked = table_of(entry.spec)
        return _first_other(asked, {name: said.get(name) for name in asked})
    if isinstance(found, Job):
        return "a job over physical addresses"
    wanted: Pattern = resolve(entry.spec, kept.device).spec
    most = None if wanted.stop is None else wanted.stop.most
    return _other_pattern(table_of(wanted), table_of(found), most)


def _other_pattern(wanted: Table, found: Table, most: int | None) -> str:
    """Compare two patterns; of one that ends by a rule each process has at most so many I/Os."""
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
