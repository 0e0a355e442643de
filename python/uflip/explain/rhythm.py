"""Rhythm of slow I/Os: do they come at even distances, in I/Os, in bytes written or in time?

    |···|···|···|    even distances: garbage collection, or merges, of a fixed amount of work
    |·|·····||··|    chance: distances of a memoryless process scatter as much as their mean

**Source** ours. The coefficient of variation of the distances, against that of the same number of
slow I/Os at random positions.
**Faithful** Consecutive slow I/Os are one episode, at random positions as well.
**Simplified** Distances are those of episodes of one mode.
**Ambiguous** With equal sizes, distances in I/Os and in bytes are the same: both are printed.
"""

import numpy as np

from uflip.explain.finding import ABSENT, FOUND, Finding, Number, undecided
from uflip.explain.io_log import Flags, Floats, Integers, IoLog
from uflip.explain.slow_set import slow_flags
from uflip.units import format_count, format_duration_ns, format_size

TOPIC = "rhythm"
MIN_EPISODES = 20
EVEN = 0.5
"""Distances are even if their coefficient of variation is below this."""
TRIALS = 999
SIGNIFICANCE = 0.001
BETTER = 0.5
"""A unit is named if distances in it vary by less than this part of those in another."""


def describe_rhythm(log: IoLog, subject: str, rows: Integers) -> Finding:
    """Return the rhythm of the slow I/Os of a mode, in their running phase."""
    slow = slow_flags(log, rows)
    starts = np.zeros(0, np.int64) if slow is None else episode_starts(slow[0])
    if len(starts) <= MIN_EPISODES:
        reason = f"{len(starts)} episodes of slow {subject}; more than {MIN_EPISODES} are needed"
        return undecided(TOPIC, subject, reason, episodes=len(starts))
    assert slow is not None
    gaps = np.diff(starts)
    scatter = variation(gaps)
    chance = _random_variations(len(rows), int(slow[0].sum()))
    p_value = float((1 + (chance <= scatter).sum()) / (1 + TRIALS))
    numbers: dict[str, Number] = {
        "episodes": len(starts),
        "gap_ios": float(np.median(gaps)),
        "variation": scatter,
        "variation_by_chance": float(np.median(chance)),
        "p_value": p_value,
    }
    if p_value > SIGNIFICANCE or scatter > EVEN:
        return Finding(
            topic=TOPIC,
            subject=subject,
            verdict=ABSENT,
            statement=f"slow {subject} come at uneven distances: their scatter is "
            f"{scatter:.2f} of the mean ({numbers['variation_by_chance']:.2f} by chance)",
            numbers=numbers,
        )
    units = _units(log, rows, starts)
    numbers |= {f"gap_{name}": float(np.median(each)) for name, each in units.items()}
    numbers |= {f"variation_{name}": variation(each) for name, each in units.items()}
    return Finding(
        topic=TOPIC,
        subject=subject,
        verdict=FOUND,
        statement=_sentence(subject, gaps, units, scatter),
        numbers=numbers,
    )


def episode_starts(slow: Flags) -> Integers:
    """Return the first I/O of each row of consecutive slow I/Os.

    >>> episode_starts(np.array([0, 1, 1, 0, 1], bool)).tolist()
    [1, 4]
    """
    before = np.concatenate([[False], slow[:-1]])
    starts: Integers = np.flatnonzero(slow & ~before)
    return starts


def variation(gaps: Integers | Floats) -> float:
    """Return the coefficient of variation of distances."""
    return float(np.std(gaps) / np.mean(gaps)) if len(gaps) and np.mean(gaps) else float("inf")


def _random_variations(ios: int, slow: int) -> Floats:
    random = np.random.default_rng(1)
    values = np.empty(TRIALS)
    for trial in range(TRIALS):
        chosen = random.choice(ios, slow, replace=False) if ios < 1 << 16 else None
        if chosen is None:  # distances of a large sample are geometric
            gaps = random.geometric(slow / ios, min(slow, 1 << 14))
            values[trial] = variation(gaps[gaps > 1] if (gaps > 1).sum() > 1 else gaps)
            continue
        flags = np.zeros(ios, bool)
        flags[chosen] = True
        values[trial] = variation(np.diff(episode_starts(flags)))
    return values


def _units(log: IoLog, rows: Integers, starts: Integers) -> dict[str, Floats]:
    """Return the distances of episodes in bytes and in time."""
    units: dict[str, Floats] = {}
    if log.size is not None:
        moved = np.concatenate([[0], np.cumsum(log.size[rows])])
        units["bytes"] = np.diff(moved[starts]).astype(np.float64)
    if log.submitted is not None:
        units["ns"] = np.diff(log.submitted[rows][starts]).astype(np.float64)
    return units


def _sentence(subject: str, gaps: Integers, units: dict[str, Floats], scatter: float) -> str:
    low, middle, high = (round(each) for each in np.quantile(gaps, [0.25, 0.5, 0.75]))
    text = (
        f"slow {subject} come every {format_count(middle)} {subject} "
        f"(quartiles {format_count(low)} to {format_count(high)}"
    )
    if "bytes" in units:
        text += f"; {format_size(round(float(np.median(units['bytes']))))}"
    if "ns" in units:
        text += f"; {format_duration_ns(float(np.median(units['ns'])))}"
    text += f"), with a scatter of {scatter:.2f} of the mean"
    scatters = {"I/Os": scatter} | {
        {"bytes": "bytes", "ns": "time"}[name]: variation(each) for name, each in units.items()
    }
    ranked = sorted(scatters, key=lambda name: scatters[name])
    if len(ranked) > 1 and scatters[ranked[0]] < BETTER * scatters[ranked[1]]:
        return f"{text}; distances are most even in {ranked[0]}"
    return f"{text}; I/Os, bytes and time are not distinguishable"
