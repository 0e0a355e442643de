"""The keys of profiles, as the types in `crates/sim/src` define them."""

import json
from dataclasses import dataclass
from functools import cache

from uflip import _native


@dataclass(frozen=True)
class Key:
    """A key of a profile: its allowed values, meaning and unit."""

    allowed: str
    meaning: str
    unit: str = ""


@cache
def known_keys(interface: str) -> dict[str, dict[str, Key]]:
    """Return the keys of profiles by table.

    >>> known_keys("block")["timing"]["erase_ns"]
    Key(allowed='0 or more', meaning='erasing a block', unit='ns')
    """
    return {
        table: {key.pop("name"): Key(**key) for key in keys}
        for table, keys in json.loads(_native.profile_keys_json(interface))
    }
