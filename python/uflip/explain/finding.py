"""A statement about a series of I/Os, with its evidence.

A statement is *found*, *absent* or *undecided*. An undecided one contains the reason, and what
would decide it.
"""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

Verdict = Literal["found", "absent", "undecided"]
FOUND: Verdict = "found"
ABSENT: Verdict = "absent"
UNDECIDED: Verdict = "undecided"
Number = float | int | str | None

TOPICS = (
    "levels",
    "start-up",
    "period",
    "cache",
    "rhythm",
    "slow I/Os",
    "causes",
    "device",
)
"""Topics, in the order of the output."""


class Finding(Struct, frozen=True, kw_only=True):
    """One statement."""

    topic: str  #: One of `TOPICS`.
    subject: str  #: The I/Os that it describes: "reads", "writes" or "I/Os".
    verdict: Verdict  #: "found", "absent" or "undecided".
    statement: str  #: A sentence.
    numbers: Mapping[str, Number] = {}  #: The evidence; units are the last words of the names.


def undecided(topic: str, subject: str, reason: str, **numbers: Number) -> Finding:
    """Return an undecided statement with its reason."""
    return Finding(
        topic=topic, subject=subject, verdict=UNDECIDED, statement=reason, numbers=numbers
    )
