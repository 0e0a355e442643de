"""What a device can, as fields: asked everywhere in the place of what kind of device it is.

| kind | simulated | real | null | outlives the process | keeps a state |
|---|---|---|---|---|---|
| `sim` | yes | | | | yes |
| `file`, `block` | | yes | | yes | yes |
| `null` | | | yes | | |

A simulated device whose host places data itself has physical addresses; all others have sectors.
"""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

OPEN_CHANNEL = "open_channel"
"""Interface of a device whose host places data itself."""


class Capabilities(Struct, frozen=True):
    """What a device can.

    Attributes
    ----------
    simulated : bool
        A simulator answers: time is virtual, and every I/O has its causes.
    real : bool
        Hardware answers, or a file on it: time is the host's, and others may disturb.
    null : bool
        It answers at once: what is measured is the harness.
    outlives_process : bool
        It is there when the process is gone: its state can be noted, and its medium exchanged.
    has_state : bool
        What was written decides what it takes: a state can be enforced.
    addresses : str
        "sectors", or "physical" where the host places data.
    """

    simulated: bool
    real: bool
    null: bool
    outlives_process: bool
    has_state: bool
    addresses: Literal["sectors", "physical"]


def capabilities(info: Mapping[str, Any]) -> Capabilities:
    """Say what a device can, of what is known about it: of an open one, or in a manifest.

    Examples
    --------
    >>> capabilities({"kind": "file"}).outlives_process
    True
    """
    kind = info.get("kind")
    real = kind in ("file", "block")
    interface = (info.get("details") or {}).get("interface")
    return Capabilities(
        simulated=kind == "sim",
        real=real,
        null=kind == "null",
        outlives_process=real,
        has_state=real or kind == "sim",
        addresses="physical" if interface == OPEN_CHANNEL else "sectors",
    )
