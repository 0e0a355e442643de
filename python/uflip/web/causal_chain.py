"""The causal chain of a slow I/O as one sentence, from its waits to the work that it waited for.

::

    no free page on die 5 for 9.47 ms → collection of block 9,083: 41 valid pages copied, one erase

**Source** The recorded operations of the dies (`uflip.web.gantt`), or only the causes of the I/O.
**Faithful** Times are those of the device log; the numbers of copies and erases are those of jobs.
**Simplified** The longest wait only, and its two longest occupants.
**Ambiguous** An erase may follow copies that ended before the I/O was submitted: the chain names
all copies of the job, and the time that the I/O waited for the job.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from uflip.results.device_log import ERASE, NAMES_BY_PURPOSE
from uflip.results.die_lanes import Lanes
from uflip.units import format_count, format_duration_ns
from uflip.web.api_io_types import Cause, Io, Share, Wait

MAX_SHARES = 2
MIN_SHARE = 0.05
"""Causes and occupants below this share of the time are left out."""
ARROW = " → "
ERASES = [purpose == ERASE for purpose, _ in NAMES_BY_PURPOSE] + [False]


def causal_chain(io: Io, lanes: Lanes | None) -> str:
    """Return the chain of an I/O; of its causes alone if its operations are not known."""
    flash = io.get("flash")
    if not io["causes"]:
        return ""
    if flash is None or lanes is None:
        return _of_causes(io["causes"])
    waits = sorted(flash["waits"], key=lambda wait: -wait["ns"])
    if waits:
        return ARROW.join([_wait(waits[0]), *_work(lanes, waits[0]["waited_for"])])
    if flash["waited_for"]:
        shares = flash["waited_for"]
        waited = format_duration_ns(sum(share["ns"] for share in shares))
        dies = sorted({share["die"] for share in shares})
        where = f"die {dies[0]}" if len(dies) == 1 else f"{len(dies)} dies"
        return ARROW.join([f"waited {waited} for {where}", *_work(lanes, shares)])
    return f"no wait for other work{ARROW}{_of_causes(io['causes'])}"


def _of_causes(causes: Sequence[Cause]) -> str:
    total = sum(cause["ns"] for cause in causes)
    large = [cause for cause in causes if cause["ns"] >= MIN_SHARE * total][:3]
    return ", ".join(
        f"{cause['words']} {format_duration_ns(cause['ns'])} ({cause['ns'] / total:.0%})"
        for cause in large
    )


def _wait(wait: Wait) -> str:
    waited = format_duration_ns(wait["ns"])
    if wait["kind"] == "write cache":
        page = f"flush of page {format_count(wait['page'])} to die {wait['die']}"
        return f"write cache full for {waited}{ARROW}{page}"
    return f"no free page on die {wait['die']} for {waited}"


def _work(lanes: Lanes, shares: Sequence[Share]) -> Iterator[str]:
    """Yield what a die did meanwhile, each job of the FTL once, the longest first."""
    by_job: dict[tuple[int, str], int] = {}
    first: dict[tuple[int, str], Share] = {}
    for share in shares:
        job = share.get("job", -1)
        key = (job, "" if job >= 0 else share["what"])
        by_job[key] = by_job.get(key, 0) + share["ns"]
        first.setdefault(key, share)
    total = sum(by_job.values())
    longest = sorted(by_job, key=lambda key: -by_job[key])[:MAX_SHARES]
    parts = [_part(lanes, first[key]) for key in longest if by_job[key] >= MIN_SHARE * total]
    if parts:
        yield ", then ".join(parts)


def _part(lanes: Lanes, share: Share) -> str:
    if "job" not in share:
        number = f" of I/O {format_count(share['io'])}" if "io" in share else ""
        return f"{share['what']}{number} ({format_duration_ns(share['ns'])})"
    ops = lanes.operations
    rows = np.flatnonzero(ops.job == share["job"])
    erases = int(np.count_nonzero(np.array(ERASES)[ops.code[rows]]))
    copied = share.get("valid")
    facts = [
        "" if copied is None else f"{format_count(copied)} valid {_pages(copied)} copied",
        "" if not erases else "one erase" if erases == 1 else f"{format_count(erases)} erases",
    ]
    block = f" of block {format_count(share['block'])}" if "block" in share else ""
    listed = ", ".join(fact for fact in facts if fact)
    return f"{share.get('made', share['what'])}{block}{': ' if listed else ''}{listed}"


def _pages(number: int) -> str:
    return "page" if number == 1 else "pages"
