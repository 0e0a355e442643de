"""A plan as a file that people can read and edit: TOML, checked in full before it is used.

`uflip plan DEVICE --out plan.toml` writes one, `uflip run DEVICE --plan plan.toml` executes it.
Runs may be taken out, added, changed and put into another order.
"""

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from uflip.errors import UflipError, UsageError, unknown_name
from uflip.experiment import SCALES, Info, PlannedRun
from uflip.footprint import NOTHING, Extents, together, written_sequentially
from uflip.identity import model_identity
from uflip.methodology.lengths import METHODS
from uflip.methodology.plan import Plan
from uflip.methodology.state import Enforcement, plan_request
from uflip.run import resolve

FORMAT = "uflip-plan"
FORMAT_VERSION = 1

HEAD = {
    "format": str,
    "format_version": int,
    "scale": str,
    "seed": int,
    "repetitions": int,
    "pause_ns": int,
    "target_size_bytes": int,
    "device": dict,
    "runs": list,
}
OPTIONAL = {"state": dict, "method": str}
RUN = {
    "id": str,
    "micro_benchmark": str,
    "pattern": str,
    "parameter": str,
    "value": int,
    "unit": str,
    "spec": dict,
}
RUN_OPTIONAL = {"repetition": int, "reset_before": bool}

PREAMBLE = """\
# What `uflip run DEVICE --plan FILE` executes, in this order. Runs may be taken out, added, changed
# and moved. Sizes are bytes and times nanoseconds; docs/reference/plan-file.md has every key.
"""


def write_plan(plan: Plan) -> str:
    """Write a plan as TOML; what it skips and its doubts are not part of it."""
    head: dict[str, Any] = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "scale": plan.scale,
        "seed": plan.seed,
        "repetitions": plan.repetitions,
        "method": plan.method,
        "pause_ns": plan.pause_ns,
        "target_size_bytes": plan.target_size,
    }
    parts = [PREAMBLE + _lines(head), "[device]\n" + _lines(model_identity(plan.device))]
    if plan.state is not None:
        parts.append("[state]\n" + _lines(plan.state.request))
    for run in plan.runs:
        content = run.as_dict()
        if run.repetition == 1:
            del content["repetition"]
        if not run.reset_before:
            del content["reset_before"]
        parts.append("[[runs]]\n" + _lines(content))
    return "\n".join(parts)


def read_plan(path: Path, info: Info) -> Plan:
    """Read a plan and check it against the device.

    Parameters
    ----------
    path : Path
        A file that `write_plan` made, edited or not.
    info : dict
        The device.

    Returns
    -------
    Plan

    Raises
    ------
    UsageError
        If it is not a plan, has an unknown key or a value of a wrong type, is for another device,
        has a run that the device cannot do, or sequential writes on each other without a reset.
    """
    content = _parse(path)
    _check_keys(content, HEAD, OPTIONAL, str(path))
    if content["format"] != FORMAT or content["format_version"] != FORMAT_VERSION:
        raise _wrong(
            str(path),
            f"format {content['format']!r}, version {content['format_version']}",
            f"{FORMAT!r}, version {FORMAT_VERSION}",
        )
    _check_names(content, path)
    _check_device(content["device"], info, path)
    _check_target(content["target_size_bytes"], info, path)
    runs = [_read_run(entry, number, path) for number, entry in enumerate(content["runs"], 1)]
    _check_ids(runs, path)
    written = [_written(run, info, path) for run in runs]
    state = _read_state(content, info, path)
    if state is not None:
        _check_places(runs, written, path)
    return Plan(
        device=info,
        scale=content["scale"],
        seed=content["seed"],
        runs=tuple(runs),
        skipped=(),
        pause_ns=content["pause_ns"],
        target_size=content["target_size_bytes"],
        state=state,
        repetitions=content["repetitions"],
        method=content.get("method", METHODS[0]),
        warnings=(),
    )


def _parse(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _wrong(str(path), reason, "a file that `uflip plan --out` wrote") from error
    except tomllib.TOMLDecodeError as error:
        raise _wrong(str(path), f"not TOML: {error}", "TOML, as `uflip plan --out` wrote it") from (
            error
        )


def _check_keys(
    content: Mapping[str, Any],
    required: Mapping[str, type],
    optional: Mapping[str, type],
    where: str,
) -> None:
    known = {**required, **optional}
    for key, value in content.items():
        if key not in known:
            raise _wrong(where, f"unknown key {key!r}", ", ".join(known))
        if not isinstance(value, known[key]) or (known[key] is int and isinstance(value, bool)):
            raise _wrong(where, f"{key} = {value!r}", f"a {_type_name(known[key])}")
        if isinstance(value, int) and key != "value" and value < 0:
            raise _wrong(where, f"{key} = {value}", "0 or more")
    missing = [key for key in required if key not in content]
    if missing:
        raise _wrong(where, f"no key {missing[0]!r}", ", ".join(required))


def _type_name(kind: type) -> str:
    names = {str: "text", int: "whole number", bool: "true or false", dict: "table", list: "list"}
    return names[kind]


def _check_device(device: Mapping[str, Any], info: Info, path: Path) -> None:
    here = model_identity(info)
    for key in {**here, **device}:
        if device.get(key) != here.get(key):
            raise UsageError(
                "This plan is for another device",
                where=f"{path}, [device]",
                got=f"{key} {device.get(key, 'not given')}",
                allowed=f"{key} {here.get(key, 'none')}, as {info['url']} has",
                action="make a plan for this device with `uflip plan`",
            )


def _check_names(content: Mapping[str, Any], path: Path) -> None:
    for key, known in (("scale", SCALES), ("method", METHODS)):
        if content.get(key, known[0]) not in known:
            raise unknown_name(key, content[key], known, where=f"{path}, {key}")


def _check_target(size: int, info: Info, path: Path) -> None:
    """The part of the device that is used must be there."""
    capacity, sector = info["capacity_bytes"], info["sector_bytes"]
    if size == 0 or size > capacity or size % sector:
        raise _wrong(
            str(path),
            f"target_size_bytes = {size}",
            f"multiples of {sector}, from {sector} to the {capacity} of {info['url']}",
        )


def _read_state(content: Mapping[str, Any], info: Info, path: Path) -> Enforcement | None:
    if "state" not in content:
        return None
    with _found_in(f"{path}, [state]"):
        return plan_request(info, content["state"])


@contextmanager
def _found_in(where: str) -> Iterator[None]:
    """Say of an error where in the file it is."""
    try:
        yield
    except UflipError as error:
        error.where = where + (f": {error.where}" if error.where else "")
        raise


def _read_run(entry: Any, number: int, path: Path) -> PlannedRun:
    where = f"{path}, run number {number}"
    if not isinstance(entry, dict):
        raise _wrong(where, repr(entry), "a table [[runs]]")
    _check_keys(entry, RUN, RUN_OPTIONAL, where)
    return PlannedRun(**entry)


def _check_ids(runs: Iterable[PlannedRun], path: Path) -> None:
    seen: set[str] = set()
    for run in runs:
        if not run.id or Path(run.id).name != run.id or run.id.startswith("."):
            raise _wrong(str(path), f"id {run.id!r}", "a name that a file can have")
        if run.id in seen:
            raise _wrong(str(path), f"two runs with the id {run.id!r}", "a name of its own a run")
        seen.add(run.id)
    if not seen:
        raise _wrong(str(path), "no run", "one [[runs]] or more")


def _written(run: PlannedRun, info: Info, path: Path) -> Extents:
    """Check that a run fits on the device; returns what its sequential writes touch there."""
    with _found_in(f"{path}, run {run.id}"):
        return written_sequentially(resolve(run.spec, info))


def _check_places(runs: Sequence[PlannedRun], written: Sequence[Extents], path: Path) -> None:
    """Two runs may write sequentially to the same bytes only with a reset between them."""
    first, taken = 0, NOTHING
    for number, (run, here) in enumerate(zip(runs, written, strict=True)):
        if run.reset_before:
            first, taken = number, NOTHING
        if here.meets(taken):
            other = next(n for n in range(first, number) if here.meets(written[n]))
            raise UsageError(
                "Two runs write sequentially to one place",
                where=f"{path}, runs {runs[other].id} and {run.id}",
                got=f"both write bytes {' to '.join(map(str, here.common(written[other])))}",
                allowed="runs that write sequentially to different bytes (uFLIP §4.2)",
                action="move one of them, or give the second reset_before = true",
            )
        taken = together([taken, here])


def _wrong(where: str, got: str, allowed: str) -> UsageError:
    return UsageError(
        "This plan cannot be used",
        where=where,
        got=got,
        allowed=allowed,
        action="correct it, or write a new one with `uflip plan DEVICE --out FILE`",
    )


def _lines(content: Mapping[str, Any]) -> str:
    return "".join(f"{key} = {_toml(value)}\n" for key, value in content.items())


def _toml(value: Any) -> str:
    """Write a value of JSON's types as TOML."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(each) for each in value) + "]"
    if isinstance(value, float):
        return repr(value)
    # Text, whole numbers and booleans look the same in both.
    return json.dumps(value, ensure_ascii=False)
