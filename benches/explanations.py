"""False claims of `uflip why` on series in which nothing is to be found.

Each family is a level with noise, or with memory: independent, bursty, autoregressive, long memory.
The I/Os have random addresses, sizes and modes, which have no influence. The table contains the
share of series with a statement that was *found*, by topic.
"""

import argparse
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from generated_series import (
    Family,
    autoregressive,
    bursty,
    flat,
    heavy_tail,
    long_memory,
    stalls,
    two_levels,
)
from uflip.analysis.files import SeriesSource
from uflip.explain.explanation import explain
from uflip.explain.finding import FOUND
from uflip.explain.io_log import IoLog

TOPICS = ("start-up", "period", "cache", "rhythm", "slow I/Os")
FAMILIES: dict[str, Family] = {
    "independent, 0.1": flat(0.1),
    "independent, 0.5": flat(0.5),
    "heavy tail": heavy_tail(0.02, 1.5),
    "one stall in 200": stalls(200, 50),
    "two levels at random": two_levels(0.3, 20),
    "autoregressive, 0.97": autoregressive(0.97, 0.3),
    "autoregressive, 0.99": autoregressive(0.99, 0.3),
    "bursts of 20, 80 apart": bursty(80, 20),
    "long memory, 0.2": long_memory(0.2),
    "long memory, 0.4": long_memory(0.4),
}


def main() -> None:
    """Run the trials and print the table."""
    parser = argparse.ArgumentParser(prog="python benches/explanations.py", description=__doc__)
    parser.add_argument("--repeats", type=int, default=100, help="series of each family")
    parser.add_argument("--ios", type=int, default=4096, help="I/Os of a series")
    args = parser.parse_args()
    print(f"| family, {args.ios:,} I/Os | {' | '.join(TOPICS)} |")
    print(f"|---|{'---|' * len(TOPICS)}")
    total: Counter[str] = Counter()
    for name, family in FAMILIES.items():
        claims = false_claims(family, args.ios, args.repeats)
        total.update(claims)
        print(f"| {name} | {' | '.join(f'{claims[t] / args.repeats:.1%}' for t in TOPICS)} |")
    count = args.repeats * len(FAMILIES)
    print(f"| all | {' | '.join(f'{total[t] / count:.1%}' for t in TOPICS)} |")


def false_claims(family: Family, ios: int, repeats: int) -> Counter[str]:
    """Return how many series have a statement that was found, by topic."""
    claims: Counter[str] = Counter()
    for seed in range(repeats):
        log = null_log(family, ios, seed)
        claims.update(
            {each.topic for each in explain(log).document.findings if each.verdict == FOUND}
        )
    return claims


def null_log(family: Family, ios: int, seed: int) -> IoLog:
    """Return I/Os whose response times depend on none of their properties."""
    random = np.random.default_rng(seed)
    took: NDArray[np.float64] = family(random, ios).times
    n = len(took)
    pauses = np.where(random.random(n) < 0.05, 5e6, 0.0)
    submitted = np.concatenate([[0], np.cumsum(took + pauses)[:-1]]).astype(np.int64)
    size = random.choice([4096, 8192, 65536], n)
    offset = 4096 * random.integers(0, 1 << 18, n)
    mode = np.ones(n, np.int64)
    return IoLog(took, SeriesSource(format="generated"), submitted, offset, size, mode)


if __name__ == "__main__":
    main()
