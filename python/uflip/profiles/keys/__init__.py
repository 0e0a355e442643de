"""The keys of profiles: one TOML file for each interface, also used for the documents."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Key:
    """A key of a profile: its allowed values, meaning and unit."""

    allowed: str
    meaning: str
    unit: str = ""


@cache
def known_keys(interface: str) -> dict[str, dict[str, Key]]:
    """Return the keys of profiles by table.

    Examples
    --------
    >>> known_keys("block")["timing"]["erase_ns"]
    Key(allowed='0 or more', meaning='erasing a block', unit='ns')
    """
    file = Path(__file__).parent / f"{interface}.toml"
    tables = tomllib.loads(file.read_text(encoding="utf-8"))
    return {
        table: {name: Key(**key) for name, key in keys.items()} for table, keys in tables.items()
    }
