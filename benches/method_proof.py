"""All trials of the method on generated series: the tables of docs/reference/method-proof.md.

With 400 repeats, as on the page, it takes some twenty minutes on two processors.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from repeated_runs import (
    CASES,
    FIRST,
    MANY_REPETITIONS,
    ODD_EXPERIMENTS,
    ODD_FAMILIES,
    PEER_EXPERIMENTS,
    CoverageShares,
    measure_mixed,
    measure_odd,
    measure_repeated,
)
from self_comparison import ALL as SELF_COMPARISONS
from self_comparison import SLOWER, measure_self
from stop_rules import (
    DETECTION,
    LENGTH,
    MEMORY,
    MOVING,
    MOVING_IOS,
    RULES,
    UNDETECTABLE,
    DetectionShares,
    RunLengthShares,
    TrialCase,
    analyse_moving,
    detect,
    economy,
    measure,
)
from uflip.executors import Processes, using

UFLIP_RULES, OTHERS = tuple(RULES)[:1], tuple(RULES)[1:]
MAX_SERIES_OF_OTHERS = 100


def main() -> None:
    """Run the trials and print the tables."""
    parser = argparse.ArgumentParser(prog="python benches/method_proof.py", description=__doc__)
    parser.add_argument("--repeats", type=int, default=400, help="series of each family")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processors")
    parser.add_argument("--only", choices=TABLES, help="one table")
    args = parser.parse_args()
    with Processes(args.workers) as processes, using(processes):
        chosen = [table for name, table in TABLES.items() if args.only in (None, name)]
        for number, table in enumerate(chosen):
            if number:
                print()
            table(args.repeats)


def _print_detection(repeats: int) -> None:
    print(f"## Start-up and period, {repeats} series a family\n")
    _head("family", "start-up found", "claimed wrongly", "period right")
    for case in DETECTION:
        row: DetectionShares = detect(case, repeats)
        _row(
            row.case,
            _percent(row.startup_found),
            _percent(row.claimed_wrongly),
            _percent(row.period),
        )


def _print_moving(repeats: int) -> None:
    print(f"## Moving levels, {repeats} series a family and length\n")
    _head("family", "I/Os", "with a period", "converged", "phase")
    for index, (name, _) in enumerate(MOVING):
        for ios in MOVING_IOS:
            levels = analyse_moving(index, ios, repeats)
            phases = ", ".join(f"{phase} {_percent(n)}" for phase, n in levels.phases.items())
            first = name if ios == MOVING_IOS[0] else ""
            _row(first, f"{ios:,}", _percent(levels.period), _percent(levels.converged), phases)


def _print_lengths(repeats: int) -> None:
    others = min(repeats, MAX_SERIES_OF_OTHERS)
    print(f"## Where rules stop, {repeats} series a family, {others} for the other rules\n")
    _head("family", "rule", "stopped", "interval holds the mean", "I/Os", "off by", "half width")
    for case in LENGTH:
        rows: list[RunLengthShares] = measure(case, repeats, UFLIP_RULES)
        rows += measure(case, others, OTHERS)
        for row in rows:
            _row(row.case if row is rows[0] else "", row.rule, *_cells(row))


def _print_unseen(repeats: int) -> None:
    print(f"## Events after the end of the run, {repeats} series a family\n")
    _print_ours(UNDETECTABLE, repeats)


def _print_memory(repeats: int) -> None:
    print(f"## Memory longer than the run, {repeats} series a family\n")
    _print_ours(MEMORY, repeats)


def _print_ours(cases: Sequence[TrialCase], repeats: int) -> None:
    _head("family", "stopped", "interval holds the mean", "I/Os", "off by", "half width")
    for case in cases:
        (row,) = measure(case, repeats, UFLIP_RULES)
        _row(row.case, *_cells(row))


def _print_repetitions(repeats: int) -> None:
    print(f"## Rounds of repetitions, {PEER_EXPERIMENTS} experiments a plan, {repeats} a family\n")
    rows = [measure_repeated(case, repeats) for case in CASES]
    _print_repeated([*rows, measure_mixed(repeats)])


def _print_odd(repeats: int) -> None:
    others = PEER_EXPERIMENTS - ODD_EXPERIMENTS
    print(f"## {ODD_EXPERIMENTS} that differ from {others} peers, {repeats} a family\n")
    _print_repeated([measure_odd(few, peers, repeats) for few, peers in ODD_FAMILIES])


def _print_alone(repeats: int) -> None:
    print(f"## The same, each experiment alone, {repeats} a family\n")
    _print_repeated([measure_repeated(case, repeats, FIRST, 1) for case in CASES if case.hides])


def _print_ten(repeats: int) -> None:
    print(f"## Alone, after {MANY_REPETITIONS} repetitions, {repeats} experiments a family\n")
    hiding = [case for case in CASES if case.hides]
    _print_repeated([measure_repeated(case, repeats, MANY_REPETITIONS, 1) for case in hiding])


def _print_comparisons(repeats: int) -> None:
    print(f"## A device compared with itself, {repeats} times each\n")
    counts = (130, 310)
    columns = [
        f"{title}, of {n}" for n in counts for title in ("fails by chance", f"finds {SLOWER:g}×")
    ]
    _head("scatter of repetitions, repetitions of both", *columns)
    for case in SELF_COMPARISONS:
        failures = [measure_self(case, n, repeats) for n in counts]
        _row(
            case.name,
            *(_percent(share) for each in failures for share in (each.failed, each.detected)),
        )


def _print_repeated(rows: Sequence[CoverageShares]) -> None:
    columns = ("converged", "interval holds the mean", "claims that are false", "between")
    _head("family", *columns, "runs", "I/Os")
    for row in rows:
        between = " and ".join(map(_percent, row.between))
        shares = (*map(_percent, (row.converged, row.covered, row.false)), between)
        _row(row.case, *shares, f"{row.repetitions:.0f}", f"{row.ios:,.0f}")


def _cells(row: RunLengthShares) -> tuple[str, ...]:
    ios = "" if row.ios is None else f"{row.ios:,.0f}"
    shares = (row.error, row.half_width)
    return (_percent(row.stopped), _percent(row.covered), ios, *map(_percent, shares))


def _print_economy(repeats: int) -> None:
    print("## I/Os against the best fixed rule, for periodic series\n")
    _head("family", "requested half width", "fewest of any fixed rule", "ours", "ratio")
    for row in economy(min(repeats, 100)):
        _row(
            row.case,
            f"{row.half_width:.1%}",
            f"{row.fewest:,}",
            f"{row.ours:,}",
            f"{row.ratio:.2f}",
        )


def _head(*names: str) -> None:
    _row(*names)
    _row(*("---" for _ in names))


def _row(*cells: str) -> None:
    print("| " + " | ".join(cells) + " |")
    sys.stdout.flush()


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}".replace("100.0", "100")


TABLES = {
    "detection": _print_detection,
    "moving": _print_moving,
    "lengths": _print_lengths,
    "unseen": _print_unseen,
    "memory": _print_memory,
    "economy": _print_economy,
    "repetitions": _print_repetitions,
    "odd": _print_odd,
    "alone": _print_alone,
    "ten": _print_ten,
    "comparisons": _print_comparisons,
}

if __name__ == "__main__":
    main()
