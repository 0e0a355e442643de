"""A plan as a file that people can read and edit: TOML, checked in full before it is used.

`uflip plan DEVICE --out plan.toml` writes one, `uflip run DEVICE --plan plan.toml` executes it.
Runs may be taken out, added, changed and put into another order.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from uflip import durability as durabilities
from uflip.benchmark.plan import Plan
from uflip.benchmark.state import Enforcement, plan_request
from uflip.benchmark_options import METHODS, SCALES
from uflip.data.device import DeviceInfo
from uflip.data.document import read_toml
from uflip.data.plan import (
    KIND,
    PlanFile,
    PlanRunEntry,
)
from uflip.device.identity import medium_difference, model_identity
from uflip.device.resolve import resolve
from uflip.errors import RefusedError, UflipError, UsageError, unknown_name
from uflip.footprint import NO_EXTENTS, Extents, union, written_sequentially
from uflip.microbench.experiment import PlannedRun
from uflip.spec import Spec, read_spec

Shape = TypeVar("Shape", PlanFile, PlanRunEntry)

MAX_SHOWN = 200

# Type in an error of msgspec -> in our errors.
TYPE_NAMES = {
    "`int`": "a whole number",
    "`float`": "a number",
    "`str`": "text",
    "`bool`": "true or false",
    "`object`": "a table",
    "`array`": "a list",
    "`null`": "nothing",
}

PREAMBLE = """\
# What `uflip run DEVICE --plan FILE` executes, in this order. Runs may be taken out, added, changed
# and moved. Sizes are bytes and times nanoseconds; docs/reference/plan-file.md has every key.
"""


def write_plan(plan: Plan) -> str:
    """Return a plan as TOML, without its skipped runs and warnings."""
    head: dict[str, object] = {
        "format": KIND.format,
        "format_version": KIND.version,
        "scale": plan.scale,
        "seed": plan.seed,
        "repetitions": plan.repetitions,
        "method": plan.method,
        "durability": plan.durability,
        "pause_ns": plan.pause_ns,
        "target_size_bytes": plan.target_size,
    }
    device = model_identity(plan.device)
    details = plan.device.details
    if details.brand is not None and not details.brand_is_new:
        device["brand"] = details.brand
    parts = [PREAMBLE + _lines(head), "[device]\n" + _lines(device)]
    if plan.state is not None:
        parts.append("[state]\n" + _lines(plan.state.request))
    for run in plan.runs:
        content = msgspec.to_builtins(run)
        if run.repetition == 1:
            del content["repetition"]
        if not run.reset_before:
            del content["reset_before"]
        parts.append("[[runs]]\n" + _lines(content))
    return "\n".join(parts)


def read_plan(path: Path, info: DeviceInfo) -> Plan:
    """Read a plan and check it against the device."""
    head = _read_head(path)
    _check_names(head, path)
    _check_device(head.device, info, path)
    _check_target(head.target_size_bytes, info, path)
    runs = [_read_run(entry, number, path) for number, entry in enumerate(head.runs, 1)]
    _check_ids(runs, path)
    written = [_written(run, info, path) for run in runs]
    state = _read_state(head, info, path)
    if state is not None:
        _check_overlaps(runs, written, path)
    return Plan(
        device=info,
        scale=head.scale,
        seed=head.seed,
        runs=tuple(runs),
        skipped=(),
        pause_ns=head.pause_ns,
        target_size=head.target_size_bytes,
        state=state,
        repetitions=head.repetitions,
        method=head.method,
        durability=_durability(head, path),
        warnings=(),
    )


def check_plan_device(path: Path, info: DeviceInfo) -> None:
    """Check that a plan is for a device."""
    _check_device(_read_head(path).device, info, path)


def _read_head(path: Path) -> PlanFile:
    """Read a plan whose runs are not yet checked."""
    content = read_toml(path, KIND)
    KIND.check_format(path, content.get("format"), content.get("format_version"))
    return _check_shape(content, PlanFile, str(path))


def _check_shape(content: Any, shape: type[Shape], where: str) -> Shape:
    """Check the keys of a table and the types of their values."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(shape)}
    for key in content:
        if key not in fields:
            raise _plan_error(where, f"unknown key {_shortened(key)!r}", ", ".join(fields))
    for key, field in fields.items():
        if field.required and key not in content:
            raise _plan_error(where, f"no key {key!r}", ", ".join(fields))
    try:
        return msgspec.convert(content, shape, dec_hook=_spec_of)
    except msgspec.ValidationError as error:
        allowed, _, position = str(error).partition(" - at `$.")
        key = position.rstrip("`").split(".")[0].split("[")[0]
        for theirs, ours in TYPE_NAMES.items():
            allowed = allowed.replace(theirs, ours)
        got = f"{key} = {_shortened(repr(content.get(key)))}"
        raise _plan_error(where, got, allowed.removeprefix("Expected ")) from None


def _shortened(text: str) -> str:
    """Return the beginning of a text that may be long."""
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]} ..."


def _check_device(device: Mapping[str, object], info: DeviceInfo, path: Path) -> None:
    expected = model_identity(info)
    recorded = {key: value for key, value in device.items() if key != "brand"}
    for key in {**expected, **recorded}:
        if device.get(key) != expected.get(key):
            raise UsageError(
                "This plan is for another device",
                where=f"{path}, [device]",
                got=f"{_shortened(key)} {_shortened(str(device.get(key, 'not given')))}",
                allowed=f"{key} {expected.get(key, 'none')}, as {info.url} has",
                action="make a plan for this device with `uflip plan`",
            )
    _check_medium(device, info, path)


def _check_medium(device: Mapping[str, object], info: DeviceInfo, path: Path) -> None:
    """Check that the data that uflip left on the medium, if any, is still there."""
    nothing = info.details.brand is None or info.details.brand_is_new
    if "brand" not in device or (info.kind == "file" and nothing):
        return  # a file may be rebuilt for a plan
    if other := medium_difference({"brand": device["brand"]}, info):
        raise RefusedError(
            "This plan is for another medium",
            where=f"{path}, [device]",
            got=f"{other[0]} on {info.url}",
            allowed=other[1],
            action="connect that medium again, or make a plan for this one with `uflip plan`",
        )


def _check_names(head: PlanFile, path: Path) -> None:
    for key, value, names in (("scale", head.scale, SCALES), ("method", head.method, METHODS)):
        if value not in names:
            raise unknown_name(key, _shortened(value), names, where=f"{path}, {key}")


def _durability(head: PlanFile, path: Path) -> str:
    with _error_position(f"{path}, durability"):
        return durabilities.durability_or_default(head.durability)


def _check_target(size: int, info: DeviceInfo, path: Path) -> None:
    """Check that the used part of the device exists."""
    capacity, sector = info.capacity_bytes, info.sector_bytes
    if size > capacity or size % sector:
        raise _plan_error(
            str(path),
            f"target_size_bytes = {size}",
            f"multiples of {sector}, from {sector} to the {capacity} of {info.url}",
        )


def _read_state(head: PlanFile, info: DeviceInfo, path: Path) -> Enforcement | None:
    if head.state is None:
        return None
    with _error_position(f"{path}, [state]"):
        return plan_request(info, head.state)


@contextmanager
def _error_position(where: str) -> Iterator[None]:
    """Add the position in the file to an error."""
    try:
        yield
    except UflipError as error:
        error.where = where + (f": {error.where}" if error.where else "")
        raise


def _read_run(entry: Any, number: int, path: Path) -> PlannedRun:
    where = f"{path}, run number {number}"
    name = entry.get("id") if isinstance(entry, Mapping) else None
    with _error_position(f"{path}, run {_shortened(name)}" if isinstance(name, str) else where):
        return PlannedRun(**msgspec.structs.asdict(_check_shape(entry, PlanRunEntry, where)))


def _spec_of(kind: type, content: object) -> Spec:
    """Read a specification with the native part, which explains invalid ones."""
    if kind is not Spec or not isinstance(content, Mapping):
        raise ValueError("Expected `object`")
    return read_spec(content)


def _check_ids(runs: Iterable[PlannedRun], path: Path) -> None:
    ids: set[str] = set()
    for run in runs:
        if run.id in ids:
            raise _plan_error(
                str(path), f"two runs with the id {run.id!r}", "a name of its own a run"
            )
        ids.add(run.id)
    if not ids:
        raise _plan_error(str(path), "no run", "one [[runs]] or more")


def _written(run: PlannedRun, info: DeviceInfo, path: Path) -> Extents:
    """Check that a run fits on the device; return the extents of its sequential writes."""
    with _error_position(f"{path}, run {run.id}"):
        return written_sequentially(resolve(run.spec, info).spec)


def _check_overlaps(runs: Sequence[PlannedRun], written: Sequence[Extents], path: Path) -> None:
    """Check that sequential writes to the same bytes have a reset between them."""
    first, used = 0, NO_EXTENTS
    for number, (run, extents) in enumerate(zip(runs, written, strict=True)):
        if run.reset_before:
            first, used = number, NO_EXTENTS
        if extents.overlaps(used):
            other = next(n for n in range(first, number) if extents.overlaps(written[n]))
            begin_end = extents.first_overlap(written[other])
            raise UsageError(
                "Two runs write sequentially to the same target space",
                where=f"{path}, runs {runs[other].id} and {run.id}",
                got=f"both write bytes {' to '.join(map(str, begin_end))}",
                allowed="runs that write sequentially to different bytes (uFLIP §4.2)",
                action="move one of them, or give the second reset_before = true",
            )
        used = union([used, extents])


def _plan_error(where: str, got: str, allowed: str) -> UflipError:
    return KIND.unreadable(Path(where), got, allowed)


def _lines(content: Mapping[str, object]) -> str:
    return "".join(f"{key} = {_toml(value)}\n" for key, value in content.items())


def _toml(value: Any) -> str:
    """Return a value of JSON's types as TOML."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(each) for each in value) + "]"
    if isinstance(value, float):
        return repr(value)
    # Text, whole numbers and booleans have the same form in both, but for one character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
