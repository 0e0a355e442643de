"""The class of a device, by the patterns that it copes with: uFLIP's coarse classification.

**Source** uFLIP (CIDR 2009) §5.2: Table 3 "could be used as the basis for a coarse classification";
its text distinguishes high-end SSDs, low-end SSDs and USB flash drives.
**Faithful** The properties that the text names for the high-end SSDs: random writes that behave
like sequential ones after a pause (the device reclaims space while it is idle), focused random
writes that cost nearly as little as sequential ones, tolerance of reverse and in-place patterns.
**Simplified** Four classes; a device that copes with no pattern is a USB drive, whatever its
interface.
**Ambiguous** "Cope with": without significant degradation, by the factor of
`results.key_characteristics`. In the paper no device has random writes as cheap as sequential ones;
such a device is a class of its own. The class is `UNDECIDED` if an interval includes the limit of a
ratio, if there is no interval, if a run measured the start-up or the write cache, and if the same
pattern differs by more when it is measured again; pauses and areas are those of the row of Table 3,
by means.
"""

from typing import Literal

from msgspec import Struct

from uflip.data.summary import CharacteristicVerdict, Summary
from uflip.hints.means import Lines, baseline, lines_of
from uflip.results.consistency import is_within_repeatability, worst_repeatability
from uflip.results.key_characteristics import LIKE_FACTOR, NEARLY_FACTOR
from uflip.results.statistics import Factor, Mean, mean_ratio
from uflip.results.summary_document import key_row_of

ANYWHERE, HIGH, LOW, USB, UNDECIDED = "anywhere", "high-end", "low-end", "usb", "undecided"
CLASSES = {
    ANYWHERE: "random writes cost as much as sequential ones, unlike on any device of 2009",
    HIGH: "reclaims space while idle, and copes with unusual writes, like high-end SSDs of 2009",
    LOW: "copes with only some unusual writes, like low-end SSDs of 2009",
    USB: "copes only with sequential writes, like USB flash drives of 2009",
    UNDECIDED: (
        "runs are missing, inside the start-up or the write cache, or an interval includes a limit"
    ),
}

UNUSUAL_ORDERS: tuple[tuple[Literal["reverse", "in_place"], int], ...] = (
    ("reverse", -1),
    ("in_place", 0),
)
"""Write orders that some devices do not cope with -> their Incr."""


class Classified(Struct, frozen=True):
    """The class of a device."""

    name: str  #: One of `CLASSES`.
    meaning: str  #: Its description.
    #: The reasons; None if a property was not measured, or is undecided.
    random_as_sequential: bool | None
    reclaims_while_idle: bool | None
    focused_writes: bool | None
    unusual_orders: bool | None


def classify(document: Summary) -> Classified:
    """Return the class of a device."""
    lines, row = lines_of(document), key_row_of(document)
    cost = _over_sequential(lines, baseline(lines, "RW"))
    anywhere = _within(cost, LIKE_FACTOR) if _repeats(document, cost) else None
    idle = _is_present(row["pause"])
    focused = _is_present(row["locality"])
    if focused:
        focused = row["locality"]["reference"] == "sequential"
    order = lines.get("order SW", {})
    orders = [
        _is_present(row[name]) and _within(_over_sequential(lines, order.get(incr)), NEARLY_FACTOR)
        for name, incr in UNUSUAL_ORDERS
    ]
    unusual = False if False in orders else None if None in orders else True
    name = UNDECIDED
    if anywhere:
        name = ANYWHERE
    elif None not in (anywhere, idle, focused, unusual):
        name = HIGH if idle and focused and unusual else LOW if focused or unusual else USB
    return Classified(name, CLASSES[name], anywhere, idle, focused, unusual)


def _is_present(finding: CharacteristicVerdict) -> bool | None:
    if finding["verdict"] in ("not_measured", "not_repeatable", "undecided"):
        return None
    return finding["verdict"] in ("found", "everywhere")


def _over_sequential(lines: Lines, write: Mean | None) -> Factor | None:
    sequential = baseline(lines, "SW")
    return None if write is None or sequential is None else mean_ratio(write, sequential)


def _repeats(document: Summary, cost: Factor | None) -> bool:
    """Return whether the two patterns differ by more than repeated measurements of either do."""
    worst = worst_repeatability(document["repeatability"], ("SW", "RW"))
    repeats_to = LIKE_FACTOR if worst is None else float(worst[1]["factor"])
    # Below this factor, costs count as equal in any case.
    return (
        cost is None
        or repeats_to <= LIKE_FACTOR
        or not is_within_repeatability(cost.value, repeats_to)
    )


def _within(factor: Factor | None, limit: float) -> bool | None:
    """Return whether a factor is not beyond a limit; None if undecided."""
    beyond = None if factor is None else factor.exceeds(limit)
    return None if beyond is None else not beyond
