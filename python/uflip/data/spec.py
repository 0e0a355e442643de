"""Specifications: the request for one run, one frozen document from builder to trace.

    Spec ◁── Basic      one function for each of time, size, location and mode
         ◁── Mix        I/Os of two basic patterns in turn, or drawn
         ◁── Parallel   several of these in parallel
         ◁── Replay     I/Os of a list, identified by its digest
         ◁── Job        for an open-channel device: pages of physical addresses

The parameters are those of uFLIP §3.1 (Table 1) and of uFLIP-OC, sizes in bytes, times in
nanoseconds. A field that is None was not given, and is not written: the native part owns every
default (`crates/engine/src/spec.rs`), and its resolved specification has them filled in. The native
part also checks the values against each other, and against a device. This package defines the shape
of the document, and properties derived from it.

A specification has no version of its own: it is part of manifests, plan files, ledgers and traces.
A parameter that is added later is None in all older documents.
"""

from collections.abc import Mapping

import msgspec

from uflip import _native
from uflip.data.document import MAX_DEPTH, Table, nesting_depth
from uflip.data.job import Job, JobTotals
from uflip.data.pattern import (
    Basic,
    Functions,
    ListSummary,
    Mix,
    Parallel,
    Pattern,
    Replay,
    Totals,
)
from uflip.data.spec_base import LOCATIONS, MODES, OPEN_TIMES, TIMES, MixPart, Spec, Stop
from uflip.errors import UsageError, native_errors

__all__ = [
    "LOCATIONS",
    "MODES",
    "OPEN_TIMES",
    "TIMES",
    "Basic",
    "Functions",
    "Job",
    "JobTotals",
    "ListSummary",
    "Mix",
    "MixPart",
    "Parallel",
    "Pattern",
    "Replay",
    "Spec",
    "Stop",
    "Totals",
    "read_spec",
    "spec_hook",
    "table_of",
    "text_of",
    "typed_spec",
]


def text_of(spec: Spec) -> str:
    """Return a specification as JSON for the native part."""
    return msgspec.json.encode(spec).decode()


def table_of(spec: Spec) -> Table:
    """Return a specification as plain data: the given fields by name."""
    content: Table = msgspec.to_builtins(spec)
    return content


def typed_spec(content: object) -> Spec:
    """Convert plain data to a specification.

    Raises
    ------
    ValueError
        If it is not a specification.
    """
    if isinstance(content, Spec):
        return content
    kinds = ("basic", "mix", "parallel", "replay")
    named = isinstance(content, Mapping) and content.get("kind") in kinds
    return msgspec.convert(content, Pattern if named else Job)


def spec_hook(kind: type, content: object) -> Spec:
    """Read the fields of documents that are specifications: a `dec_hook` of msgspec."""
    if kind is Spec:
        return typed_spec(content)
    raise NotImplementedError(f"a field of type {kind}")


def read_spec(content: str | bytes | Mapping[str, object]) -> Pattern:
    """Read a specification over sectors from an external source.

    Parameters
    ----------
    content : str, bytes or mapping
        JSON, or decoded JSON.

    Returns
    -------
    Basic, Mix, Parallel or Replay

    Raises
    ------
    UsageError
        With the fault as reported by the native part.

    Examples
    --------
    >>> read_spec('{"kind": "basic", "mode": "read", "location": "random", "io_size": 4096}')
    Basic(mode='read', location='random', io_size=4096)
    """
    text = msgspec.json.encode(content) if isinstance(content, Mapping) else content
    data = text.encode() if isinstance(text, str) else text
    try:
        if nesting_depth(data) <= MAX_DEPTH:
            spec: Pattern = msgspec.json.decode(data, type=Pattern)
            return spec
        reason = f"more than {MAX_DEPTH} levels"
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        reason = str(error)
    _raise_native_error(data)
    raise UsageError(
        "The pattern specification is not valid",
        where="pattern specification",
        got=reason,
        action="see `uflip pattern --help` for the parameters of each pattern",
    )


# Larger than any device, with the smallest sectors: a specification refused here never fits.
_ANY_CAPACITY, _ANY_SECTOR = 1 << 62, 512


def _raise_native_error(data: bytes) -> None:
    """Raise the native error for a specification; it lists the valid names."""
    with native_errors():
        text = data.decode("utf-8", "replace")
        _native.resolve_pattern(text, _ANY_CAPACITY, _ANY_SECTOR, "sim")
