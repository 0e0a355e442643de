"""Steady state of random writes: rate, write amplification and p99 over bytes written.

::

    IOPS  |▇▇▇▇▅▃▃▂▂▂|▂▂▂▂▂▂▂▂▂▂      20 rounds of equal size; the last half decides
          +----------+-----------> bytes written

A device is fast as long as it can absorb writes in advance: in a write cache, an SLC cache, or
spare space that was collected while it was idle. A flat rate there is not steady. So the verdict
uses the last half of a run, and that half must be long.

**Source** SNIA, *Solid state storage performance test specification* (v2.0.2, 2020): rounds, a
measurement window of five of them, the largest excursion of a round from the mean of the window and
the excursion of a line fitted through it.
**Faithful** Rounds, both excursions.
**Simplified** Rounds are bytes, not minutes: a device absorbs bytes. The window is half of all
rounds. Limits are half of SNIA's 20 % and 10 % for the rate and for write amplification, and SNIA's
for p99, which is less certain. A slope counts only beyond chance. Only simulated devices report
write amplification.
**Ambiguous** How much must be written. SNIA's window is five minutes, whatever the device; here it
is a part of its capacity (`uflip.startup.steady_bytes`).
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from uflip import _native
from uflip.data.spec import MODES
from uflip.data.summary import RoundSummary, Steadiness
from uflip.results.columns import as_array

ROUNDS = 20
RATE_LIMITS = (0.10, 0.05)
TAIL_LIMITS = (0.20, 0.10)
"""Largest excursion of a round, and of the line through all, relative to the mean."""
WINDOW = 5
"""Parts of the window: SNIA's rounds. A part is the mean of two of ours."""
CHANCE = 0.01
AGREEMENT = 0.10
"""Largest relative difference between the rates of agreeing repetitions."""
MINUTE_NS = 60_000_000_000
TAIL = 0.99

Samples = Mapping[str, Sequence[int]]
"""`written_bytes` and `pages_programmed` (n,) since the run began; empty where unknown."""


def rounds_of(trace: _native.Trace, samples: Samples, page_bytes: int | None) -> list[RoundSummary]:
    """Divide a run into rounds of equal numbers of writes.

    `trace`: a run with writes of one size, possibly among trims. `samples`: counters sampled during
    the run. `page_bytes`: size of a flash page [bytes].
    """
    names = ("submit_ns", "response_time_ns", "io_size_bytes")
    submitted, times, sizes = (as_array(trace, name) for name in names)
    is_write = as_array(trace, "mode") == MODES.index("write")
    if not is_write.all():
        submitted, times, sizes = submitted[is_write], times[is_write], sizes[is_write]
    if len(times) < ROUNDS:
        return []
    order = np.argsort(submitted, kind="stable")
    completed = np.maximum.accumulate((submitted + times)[order].astype(np.float64))
    written = np.cumsum(sizes[order], dtype=np.float64)
    times, begin = times[order], float(submitted.min())
    edges = np.linspace(0, len(times), ROUNDS + 1).astype(int)
    programmed = _programmed(samples, written[edges[1:] - 1], page_bytes)
    rounds: list[RoundSummary] = []
    for number, (first, last) in enumerate(pairwise(edges)):
        before = (begin, 0.0) if not number else (completed[first - 1], written[first - 1])
        lasted, amount = completed[last - 1] - before[0], written[last - 1] - before[1]
        rounds.append(
            {
                "written_bytes": int(written[last - 1]),
                "ended_ns": int(completed[last - 1] - begin),
                "ios_per_s": float((last - first) / lasted * 1e9) if lasted else None,
                "p99_ns": _tail(times[first:last]),
                "write_amplification": None
                if programmed is None
                else float((programmed[number + 1] - programmed[number]) / amount),
            }
        )
    return rounds


def _programmed(
    samples: Samples, written: NDArray[np.float64], page_bytes: int | None
) -> NDArray[np.float64] | None:
    """Return the bytes programmed by the end of each round, with 0 in front [bytes]."""
    at, pages = samples.get("written_bytes", ()), samples.get("pages_programmed", ())
    if page_bytes is None or len(at) < ROUNDS or len(at) != len(pages):
        return None
    programmed = np.interp(written, np.asarray(at, float), np.asarray(pages, float) * page_bytes)
    return np.concatenate([[0.0], programmed])


def _tail(times: NDArray[np.uint64]) -> int:
    rank = int(np.ceil(TAIL * len(times))) - 1
    return int(np.partition(times, rank)[rank])


def steadiness(repetitions: Sequence[Sequence[RoundSummary]], needed: int) -> Steadiness | None:
    """Return the verdict on the repetitions of a run; None if nothing was written.

    `repetitions`: the rounds of each repetition. `needed`: least amount written before a steady
    verdict: `uflip.startup.steady_bytes` [bytes].
    """
    if not repetitions or not all(repetitions):
        return None
    written = min(rounds[-1]["written_bytes"] for rounds in repetitions)
    rates = [_window_rate(rounds) for rounds in repetitions]
    reasons = sorted({reason for rounds in repetitions for reason in _changes(rounds)})
    if written < needed:
        reasons.append("too_little_written")
    if max(rates) - min(rates) > AGREEMENT * max(rates):
        reasons.append("repetitions_differ")
    mean = sum(rates) / len(rates)
    first = repetitions[0]
    # If the rate still changes after enough was written, at least as much again is needed.
    required = needed if written < needed else 2 * written
    lasted = first[-1]["ended_ns"]
    return {
        "steady": not reasons,
        "reasons": reasons,
        "ios_per_s": mean,
        "p99_ns": _window_mean(repetitions, "p99_ns"),
        "write_amplification": _window_mean(repetitions, "write_amplification"),
        "written_bytes": written,
        "needed_bytes": needed if not reasons else required,
        "needed_ns": None
        if not reasons
        else round(_remaining_ns(first, required - first[-1]["written_bytes"]) + lasted),
        "first_minute_ios_per_s": _first_minute(first),
        "disagreement": (max(rates) - min(rates)) / max(rates) if len(rates) > 1 else None,
    }


def _window(rounds: Sequence[RoundSummary]) -> Sequence[RoundSummary]:
    return rounds[len(rounds) // 2 :]


def _window_rate(rounds: Sequence[RoundSummary]) -> float:
    """Return the rate of the last half [IOPS]: the harmonic mean, as rounds have equal I/Os."""
    slow = [1 / rate for each in _window(rounds) if (rate := each["ios_per_s"])]
    return len(slow) / sum(slow) if slow else 0.0


def _window_mean(repetitions: Sequence[Sequence[RoundSummary]], name: str) -> float | None:
    values = [float(each[name]) for rounds in repetitions for each in _window(rounds)  # type: ignore[literal-required]
              if each[name] is not None]  # type: ignore[literal-required]  # fmt: skip
    return sum(values) / len(values) if values else None


def _changes(rounds: Sequence[RoundSummary]) -> list[str]:
    """Return the reasons against a steady state in the last half of a run."""
    reasons = []
    for name, reason, limits in (
        ("ios_per_s", "rate_changes", RATE_LIMITS),
        ("write_amplification", "write_amplification_changes", RATE_LIMITS),
        ("p99_ns", "p99_changes", TAIL_LIMITS),
    ):
        values = [each[name] for each in _window(rounds)]  # type: ignore[literal-required]
        if None not in values and not is_flat(np.asarray(values, dtype=np.float64), limits):
            reasons.append(reason)
    return reasons


def is_flat(values: NDArray[np.float64], limits: tuple[float, float]) -> bool:
    """Return whether values (n,) are flat: the means of their fifths, and a line through them.

    >>> is_flat(np.array([100.0, 102.0, 99.0, 101.0, 100.0]), (0.10, 0.05))
    True
    >>> is_flat(np.array([100.0, 102.0, 104.0, 106.0, 108.0]), (0.10, 0.05))
    False
    """
    n, mean = len(values), float(values.mean())
    if mean <= 0 or n < WINDOW:
        return True
    parts = np.array([each.mean() for each in np.array_split(values, WINDOW)])
    if float(parts.max() - parts.min()) > limits[0] * mean:
        return False
    at = np.arange(n) - (n - 1) / 2
    slope = float(at @ values / (at @ at))
    residuals = values - mean - slope * at
    error = float(np.sqrt(residuals @ residuals / (n - 2) / (at @ at)))
    by_chance = float(_native.student_quantile(CHANCE, n - 2)) * error
    return abs(slope) * (n - 1) <= limits[1] * mean or abs(slope) <= by_chance


def _remaining_ns(rounds: Sequence[RoundSummary], remaining_bytes: int) -> float:
    """Return the time for writing `remaining_bytes` more at the rate of the last half [ns]."""
    window = _window(rounds)
    before = rounds[len(rounds) // 2 - 1]
    written = window[-1]["written_bytes"] - before["written_bytes"]
    lasted = window[-1]["ended_ns"] - before["ended_ns"]
    return max(remaining_bytes, 0) * lasted / written if written else 0.0


def _first_minute(rounds: Sequence[RoundSummary]) -> float | None:
    """Return the rate of the first minute [IOPS]; of a shorter run, of all of it."""
    ends = np.array([each["ended_ns"] for each in rounds], dtype=np.float64)
    share = np.arange(1, len(rounds) + 1) / len(rounds)
    ios_of_round = float((rounds[0]["ios_per_s"] or 0.0) * ends[0] / 1e9)
    lasted = min(float(ends[-1]), float(MINUTE_NS))
    if lasted <= 0:
        return None
    done = float(np.interp(lasted, np.concatenate([[0.0], ends]), np.concatenate([[0.0], share])))
    return done * len(rounds) * ios_of_round / lasted * 1e9
