"""The class of a device, by what it copes with: uFLIP's coarse classification.

**Source** uFLIP (CIDR 2009) §5.2: Table 3 "could be used as the basis for a coarse classification";
its text tells high-end SSDs, low-end SSDs and USB flash drives apart.
**Faithful** What the text names for the high-end SSDs: random writes that behave like sequential
ones after a pause (reclamation goes on while nothing else does), focused random writes that cost
nearly what sequential ones do, reverse and in-place patterns that they cope with.
**Simplified** Four classes; a device that copes with nothing is a USB drive whatever it is plugged
into.
**Ambiguous** "Cope with": without significant degradation, by the factor of
`results.characteristics`. The paper has no device whose random writes cost what sequential ones do;
such a one is a class of its own.
"""

from dataclasses import dataclass

from uflip.data.summary import KeyCharacteristics, Verdict
from uflip.results.characteristics import LIKE, NEARLY

ANYWHERE, HIGH, LOW, USB, UNKNOWN = "anywhere", "high-end", "low-end", "usb", "unknown"
CLASSES = {
    ANYWHERE: "random writes cost what sequential ones do, which no device of 2009 could",
    HIGH: "reclaims while it is idle, and copes with unusual writes, as the high-end SSDs of 2009",
    LOW: "copes with some unusual writes only, as the low-end SSDs of 2009",
    USB: "copes with sequential writes alone, as the USB flash drives of 2009",
    UNKNOWN: "too little was measured to tell",
}


@dataclass(frozen=True)
class Classified:
    """The class of a device.

    Attributes
    ----------
    name : str
        One of `CLASSES`.
    meaning : str
        What it says.
    reclaims_while_idle, focused_writes, unusual_orders : bool or None
        What it follows from; None where that was not measured.
    """

    name: str
    meaning: str
    reclaims_while_idle: bool | None
    focused_writes: bool | None
    unusual_orders: bool | None


def classify(row: KeyCharacteristics) -> Classified:
    """Classify a device by its row of Table 3.

    Parameters
    ----------
    row
        `key_characteristics` of a summary.

    Examples
    --------
    >>> found = lambda **more: {"verdict": "found", "factor": 1.0} | more
    >>> row = {"SW_ms": 0.4, "RW_ms": 9.0, "pause": found(), "reverse": found(),
    ...     "in_place": found(), "locality": found(factor=2.0, reference="sequential")}
    >>> classify(row).name
    'high-end'
    >>> classify(row | {"pause": {"verdict": "none", "factor": 20.0}}).name
    'low-end'
    """
    sequential, random = row["SW_ms"], row["RW_ms"]
    idle = _found(row["pause"])
    focused = _found(row["locality"])
    if focused:
        focused = row["locality"]["reference"] == "sequential"
    orders = _copes(row["reverse"]), _copes(row["in_place"])
    unusual = False if False in orders else None if None in orders else True
    name = UNKNOWN
    if sequential and random and random <= LIKE * sequential:
        name = ANYWHERE
    elif None not in (idle, focused, unusual):
        name = HIGH if idle and focused and unusual else LOW if focused or unusual else USB
    return Classified(name, CLASSES[name], idle, focused, unusual)


def _found(finding: Verdict) -> bool | None:
    if finding["verdict"] in ("not_measured", "not_repeatable"):
        return None
    return finding["verdict"] in ("found", "everywhere")


def _copes(finding: Verdict) -> bool | None:
    if finding["verdict"] != "found" or finding["factor"] is None:
        return None
    return bool(finding["factor"] <= NEARLY)
