"""I/Os that the stop rule uses, against the fewest of a fixed rule chosen with hindsight.

The fixed rule uses knowledge that is not available beforehand: the end of the start-up, and the
length of a period. It ignores exactly the start-up and takes the fewest whole periods, five at
least, whose batch means give the requested half width in nineteen of twenty series. The half widths
are so narrow that the minimum of 1,024 I/Os does not matter.
"""

from dataclasses import dataclass

import numpy as np

from uflip import _native
from uflip.analysis import run_length
from uflip.proof import families as make
from uflip.proof.families import Family, GeneratedSeries

MIN_PERIODS = 5
NARROW_SHARE = 0.95


@dataclass(frozen=True)
class EconomyRow:
    """I/Os for a half width [share of the mean]: fewest of any fixed rule, ours (median), ratio."""

    case: str
    half_width: float
    fewest: int
    ours: int
    ratio: float


ECONOMY_CASES: tuple[tuple[str, Family, int, float], ...] = (
    ("mtron: 125, then period 3", make.mtron, 20_000, 0.005),
    ("kdti: period 128", make.kdti, 60_000, 0.01),
    ("period 7", make.periodic(7, (30.0,)), 40_000, 0.005),
    ("period 512, 3 levels", make.periodic(512, (30.0, 80.0)), 60_000, 0.01),
    ("fast: 8,192, then period 64", make.fast, 60_000, 0.02),
    ("20,000, then period 3", make.after_startup(20_000, make.periodic(3, (60.0,))), 60_000, 0.05),
)  # fmt: skip


def economy(repeats: int) -> list[EconomyRow]:
    """Compare both on `repeats` series of each family."""
    return [_compare(*case, repeats) for case in ECONOMY_CASES]


def _compare(name: str, family: Family, ios: int, half_width: float, repeats: int) -> EconomyRow:
    all_series = [family(np.random.default_rng(seed), ios) for seed in range(repeats)]
    fewest = _shortest_fixed_rule(all_series, half_width)
    first = all_series[0].startup
    # A start-up is known from a long baseline: see `min_ios`.
    start = max(1024, 0 if first is None else 4 * first[1] // 3 + 8)
    lengths = [
        run_length(each.times, half_width=half_width, min_ios=start).ios for each in all_series
    ]
    ours = int(np.median(lengths))
    return EconomyRow(name, half_width, fewest, ours, ours / fewest)


def _shortest_fixed_rule(all_series: list[GeneratedSeries], half_width: float) -> int:
    """Return the I/Os of the shortest fixed rule, trying numbers of periods in steps of 5 %."""
    startup = 0 if all_series[0].startup is None else all_series[0].startup[1]
    period = all_series[0].period or 1
    periods = max(MIN_PERIODS, -(-32 // period))
    while True:
        n = startup + periods * period
        if n > len(all_series[0].times):
            raise ValueError(f"no fixed rule within {len(all_series[0].times)} I/Os")
        narrow = sum(_is_narrow(each, startup, n, half_width) for each in all_series)
        if narrow >= NARROW_SHARE * len(all_series):
            return n
        periods = max(periods + 1, int(periods * 1.05))


def _is_narrow(series: GeneratedSeries, startup: int, n: int, half_width: float) -> bool:
    """Return whether batch means in whole periods give a narrow enough interval."""
    running = series.times[startup:n]
    period = series.period or 1
    batches = min(32, len(running) // period)
    length = len(running) // period // batches * period
    means = running[len(running) - batches * length :].reshape(batches, length).mean(axis=1)
    t = _native.student_quantile(0.05, batches - 1)
    return bool(t * means.std(ddof=1) / np.sqrt(batches) <= half_width * means.mean())
