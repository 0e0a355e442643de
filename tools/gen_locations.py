"""Make `python/uflip/data/locations.py` from the locations of the native part.

python tools/gen_locations.py            write it
python tools/gen_locations.py --check    check that it is current; exit 1 if not

The list is in `crates/engine/src/location/mod.rs`. Names are types, so they are in a file.
"""

import json
import sys
from pathlib import Path

from generated import write_or_check

from uflip import _native

FILE = Path(__file__).resolve().parent.parent / "python" / "uflip" / "data" / "locations.py"
TEXT = '''\
"""Locations of patterns: made by tools/gen_locations.py of crates/engine/src/location/."""

from typing import Literal, NamedTuple

Location = Literal[
{names}
]
DRAWN: tuple[str, ...] = (
{drawn}
)
"""Random locations."""


class LocationParameter(NamedTuple):
    """A parameter of a location: a whole number."""

    name: str
    location: str
    is_signed: bool
    help: str


LOCATION_PARAMETERS = (
{parameters}
)
'''


def text() -> str:
    """Return the file: the names, the random ones, and the parameters in order."""
    entries = json.loads(_native.locations_json())
    parameters = [
        f'    LocationParameter("{given["name"]}", "{entry["name"]}", {given["least"] < 0}, '
        f"{json.dumps(given['help'], ensure_ascii=False)}),"
        for entry in entries
        for given in entry["parameters"]
    ]
    return TEXT.format(
        names="\n".join(f'    "{entry["name"]}",' for entry in entries),
        drawn="\n".join(f'    "{entry["name"]}",' for entry in entries if entry["is_random"]),
        parameters="\n".join(parameters),
    )


if __name__ == "__main__":
    sys.exit(write_or_check({FILE: text()}))
