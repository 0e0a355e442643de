"""Make `web/src/api_types.ts` from the types of the explorer's answers.

python tools/gen_api_types.py            write it
python tools/gen_api_types.py --check    check that it is current; exit 1 if not
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from generated import write_or_check

from uflip.play.form import Form
from uflip.web import api_io_types, api_types, served_devices
from uflip.web.play import PlayedRuns, Remedies

FILE = Path(__file__).resolve().parent.parent / "web" / "src" / "api_types.ts"
HEAD = "// Made by tools/gen_api_types.py of the types of the answers in python/uflip/web."
ANSWERS: dict[str, Any] = {
    "causes": api_io_types.RangeCauses,
    "channel": api_io_types.Channel,
    "compare": api_types.ComparisonView,
    "inside": api_io_types.DeviceLogView,
    "io": api_io_types.Io,
    "operation": api_io_types.Operation,
    "play": Form,
    "played": PlayedRuns,
    "remedies": Remedies,
    "result": api_types.ResultView,
    "results": api_types.ResultList,
    "rows": api_types.Rows,
    "run": api_types.RunView,
    "served": served_devices.Servers,
    "slowest": api_io_types.Slowest,
    "spread": api_io_types.Spread,
    "sweep": api_types.Sweep,
}
"""Name of a request -> type of its answer; a test compares the names with the server's."""
PRIMITIVES = {str: "string", int: "number", float: "number", bool: "boolean", NoneType: "null",
              Any: "any", object: "any"}  # fmt: skip


def text() -> str:
    """Return the file: an interface for each document, and one with the answer of each request."""
    interfaces: dict[str, tuple[type, str]] = {}
    answers = "".join(f"  {name}: {_type(kind, interfaces)};\n" for name, kind in ANSWERS.items())
    parts = [HEAD, *(interface for _, (_, interface) in sorted(interfaces.items()))]
    parts.append(f"/** The answer of each request. */\nexport interface Answers {{\n{answers}}}")
    return "\n\n".join(parts) + "\n"


def _type(kind: Any, interfaces: dict[str, tuple[type, str]]) -> str:
    """Return a type in TypeScript; add the interfaces of its documents."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in PRIMITIVES:
        name = PRIMITIVES[kind]
    elif origin is None:
        name = _interface(kind, interfaces)
    elif origin is Literal:
        name = " | ".join(map(json.dumps, arguments))
    elif origin in (Annotated, NotRequired):
        name = _type(arguments[0], interfaces)
    elif origin in (dict, Mapping):
        name = f"Record<string, {_type(arguments[1], interfaces)}>"
    elif origin is tuple and arguments[-1] is not Ellipsis:
        name = f"[{', '.join(_type(each, interfaces) for each in arguments)}]"
    elif origin in (list, tuple, Sequence):
        item = _type(arguments[0], interfaces)
        name = f"({item})[]" if "|" in item else f"{item}[]"
    else:
        assert origin in (Union, UnionType), kind
        name = " | ".join(dict.fromkeys(_type(each, interfaces) for each in arguments))
    return name


def _interface(kind: type, interfaces: dict[str, tuple[type, str]]) -> str:
    """Return the name of a document; add its interface, and those of the documents in it."""
    name = kind.__name__
    if name in interfaces:
        assert interfaces[name][0] is kind, f"two documents are called {name}"
        return name
    interfaces[name] = (kind, "")  # it may refer to itself
    optional: frozenset[str] = getattr(kind, "__optional_keys__", frozenset())
    fields = "".join(
        f"  {field}{'?' * (field in optional)}: {_type(field_type, interfaces)};\n"
        for field, field_type in get_type_hints(kind, include_extras=True).items()
    )
    summary = (kind.__doc__ or "").partition("\n")[0]
    interfaces[name] = (kind, f"/** {summary} */\nexport interface {name} {{\n{fields}}}")
    return name


if __name__ == "__main__":
    sys.exit(write_or_check({FILE: text()}))
