"""Make the tables of keys in the pages on profiles, from the keys of the simulator.

python tools/gen_profile_keys.py            write the pages
python tools/gen_profile_keys.py --check    check that they are current; exit 1 if not

`uflip profile new` takes its comments from the same list.
"""

import re
import sys
from pathlib import Path

from generated import write_or_check

from uflip.profiles.keys import Key, known_keys

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"
PAGES = {"block": "profiles.md", "open_channel": "open-channel-profiles.md"}
HEAD = "| key | unit | allowed | meaning |\n|---|---|---|---|\n"
SECTION = re.compile(r"^## \[(\w+)\]\n(?:(?!^## ).*\n)*", re.M)
TABLE = re.compile(re.escape(HEAD) + r"(?:\|.*\n)*")


def page(text: str, keys: dict[str, dict[str, Key]]) -> str:
    """Return the page with the current tables of its sections."""

    def renew(section: re.Match[str]) -> str:
        rows = keys.get(section[1])
        return section[0] if rows is None else TABLE.sub(lambda _: table(rows), section[0])

    return SECTION.sub(renew, text)


def table(keys: dict[str, Key]) -> str:
    """Return the table of a section."""
    rows = [
        f"| `{name}` | {key.unit} | {key.allowed} | {key.meaning} |" for name, key in keys.items()
    ]
    return HEAD + "\n".join(rows).replace("|  |", "| |") + "\n"


if __name__ == "__main__":
    pages = {}
    for interface, name in PAGES.items():
        path = REFERENCE / name
        pages[path] = page(path.read_text(encoding="utf-8"), known_keys(interface))
    sys.exit(write_or_check(pages))
