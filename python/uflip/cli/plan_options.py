"""Options of a plan, shared by `plan` and `run`."""

from collections.abc import Sequence

import click

from uflip.benchmark_options import MAX_REPETITIONS, METHODS, SCALE, SCALES, SEED, SUITE, SUITES
from uflip.cli.common import combine_options, int_parser, read_duration, read_size, split_names


def _read_names(
    _ctx: click.Context, _param: click.Parameter, value: Sequence[str]
) -> tuple[str, ...] | None:
    names = split_names(value)
    return None if names is None else tuple(names)


plan_options = combine_options(
    [
        click.option(
            "--suite",
            metavar="|".join(SUITES),
            help="Micro-benchmarks: uflip: those of the papers; today: queues, caches, reads "
            f"under writes and other extensions.  [default: {SUITE}]",
        ),
        click.option(
            "--scale",
            metavar="|".join(SCALES),
            help="standard: the ranges and counts of the paper; quick: about a minute.  "
            f"[default: {SCALE}]",
        ),
        click.option(
            "--only",
            metavar="NAMES",
            multiple=True,
            callback=_read_names,
            help="Only these micro-benchmarks, separated by commas.",
        ),
        click.option(
            "--seed",
            metavar="N",
            callback=int_parser(0, 2**63 - 1),
            help=f"Seed of all random patterns.  [default: {SEED}]",
        ),
        click.option(
            "--io-size",
            metavar="SIZE",
            callback=read_size,
            help="I/O size of the baseline patterns.  [default: 32KiB]",
        ),
        click.option(
            "--pause",
            "pause_ns",
            metavar="DURATION",
            callback=read_duration,
            help="Pause before each run.  [default: 1s; 100ms for quick on real devices]",
        ),
        click.option(
            "--repetitions",
            callback=int_parser(1, MAX_REPETITIONS),
            metavar="N",
            help="Minimum number of repetitions; auto adds more until the interval is narrow "
            "enough.  [default: 3; 1 for quick]",
        ),
        click.option(
            "--method",
            metavar="|".join(METHODS),
            help="auto: each run ends when its mean has converged; startup: fixed lengths after "
            "the start-up that the baselines show; paper: fixed lengths.  [default: auto; startup "
            "for quick]",
        ),
        click.option(
            "--max-bytes-written",
            metavar="SIZE",
            callback=read_size,
            help="Skip runs that would exceed this amount of written data. State resets count; "
            "the initial preconditioning does not.",
        ),
        click.option(
            "--max-time",
            "max_time_ns",
            metavar="DURATION",
            callback=read_duration,
            help="Skip runs that would exceed this total time.",
        ),
    ]
)
"""Names as in `uflip.benchmark.BenchmarkRequest`."""
