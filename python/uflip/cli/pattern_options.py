"""Options that describe a pattern, or JSON: shared by `uflip pattern` and `uflip sweep`."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from uflip.benchmark_options import MAX_IOS
from uflip.cli.common import combine_options, float_parser, int_parser, read_duration, read_size
from uflip.data.bounded_read import DocumentKind, read_document
from uflip.data.document import Table, decode
from uflip.errors import UsageError
from uflip.pattern_options import only_given, parse_pattern
from uflip.spec import BASELINES, LOCATIONS, MODES, TIMES, Functions, Replay, read_spec
from uflip.units import UNSIGNED

SPEC = DocumentKind(
    "specification",
    1 << 20,
    'write a JSON object such as {"kind": "basic", "mode": "read", "location": "random"}; '
    '`uflip pattern ... --json` prints a complete one under "spec"',
    UsageError,
)

OptionValue = str | int | float | None
"""The parsed value of an option; None, or False of a flag, if it was not given."""


def _size(name: str, text: str) -> Any:
    return click.option(name, metavar="SIZE", callback=read_size, help=text)


def _count(name: str, text: str, least: int = 0, most: int = UNSIGNED) -> Any:
    return click.option(name, metavar="N", callback=int_parser(least, most), help=text)


# The parameters of the paper (Table 1), under its names.
pattern_options = combine_options(
    [
        click.option(
            "--pattern", metavar="|".join(BASELINES), help="A baseline: mode and location in one."
        ),
        click.option("--mode", metavar="|".join(MODES), help="Operation of the I/Os."),
        click.option("--location", metavar="|".join(LOCATIONS), help="Order of the addresses."),
        click.option("--time", metavar="|".join(TIMES), help="When I/Os are submitted."),
        _size("--io-size", "Size of an I/O."),
        _size("--io-shift", "Shift of every address against multiples of the I/O size."),
        _size("--target-offset", "Start of the target space."),
        _size("--target-size", "Size of the target space."),
        _count("--partitions", "Partitions of the target; partitioned only."),
        click.option(
            "--incr",
            metavar="N",
            callback=int_parser(-(2**63), 2**63 - 1),
            help="Increment in I/Os, also 0 and negative; ordered only.",
        ),
        _count("--skew-percent", "Zipf's θ in hundredths; zipf only."),
        _count("--hot-space-percent", "Share of the target that is hot; hotcold only."),
        _count("--hot-io-percent", "Share of the I/Os to the hot area; hotcold only."),
        _count("--write-stream", "Write stream of the I/Os; 0 by default."),
        _count("--hot-write-stream", "Write stream of the hot area; hotcold only."),
        click.option(
            "--pause",
            metavar="DURATION",
            callback=read_duration,
            help="Length of a pause; pause and burst only.",
        ),
        _count("--burst", "I/Os between two pauses; burst only."),
        click.option(
            "--interval",
            metavar="DURATION",
            callback=read_duration,
            help="Mean time between arrivals; fixed and poisson only.",
        ),
        _count("--parallel-degree", "Processes, each in its part of the target."),
        _count("--queue-depth", "I/Os of each process in flight."),
        _count("--io-count", "I/Os of each process; of the rarer pattern in a mix.", 1, MAX_IOS),
        _count("--io-ignore", "I/Os at the start that the statistics ignore."),
        _count("--seed", "Seed of random addresses."),
        click.option("--mix", metavar="|".join(BASELINES), help="Mix in a second baseline."),
        _count("--ratio", "I/Os of the first pattern for each one of the second."),
        _count("--first-percent", "Instead: probability of the first pattern, for each I/O."),
    ]
)

# The required precision of the mean, and the budget; see `uflip.spec.until_converged`.
stop_options = combine_options(
    [
        click.option(
            "--until-converged",
            is_flag=True,
            help="Run until the mean has converged; determines --io-count and --io-ignore.",
        ),
        click.option(
            "--confidence", callback=float_parser(), metavar="P", help="Confidence of the interval."
        ),
        click.option(
            "--half-width",
            callback=float_parser(),
            metavar="SHARE",
            help="Required half-width of the interval, relative to the mean.",
        ),
        _count("--min-ios", "Minimum number of I/Os."),
        _count("--max-ios", "Maximum number of I/Os, as --io-count counts them."),
        click.option(
            "--max-time",
            metavar="DURATION",
            callback=read_duration,
            help="Maximum time.",
        ),
        _size("--max-bytes-written", "Maximum of bytes written."),
    ]
)


spec_option = click.option(
    "--spec", "spec_file", metavar="FILE|-", help="Read the pattern as JSON instead."
)


def requested_pattern(spec_file: str | None, parameters: Mapping[str, OptionValue]) -> Functions:
    """Return the specification of the given options."""
    chosen = only_given(parameters)
    return parse_pattern(chosen) if spec_file is None else _read_spec(spec_file, chosen)


def _read_spec(name: str, chosen: Mapping[str, object]) -> Functions:
    if chosen:
        first = next(iter(chosen)).replace("_", "-")
        raise UsageError(
            "--spec cannot be combined with options of the pattern",
            where="--spec",
            got=f"--spec with --{first}",
            action=f"omit --{first}, or write it into the specification",
        )
    path = Path(name)
    content = _read_stdin() if name == "-" else read_document(path, SPEC)
    spec = read_spec(decode(path, SPEC, content, Table))
    if isinstance(spec, Replay):
        raise UsageError(
            "The list of I/Os of this replay is missing",
            where="--spec",
            got="a replay",
            allowed="basic, mix, parallel",
            action="replay the trace itself: `uflip replay TRACE DEVICE`",
        )
    return spec


def _read_stdin() -> bytes:
    if sys.stdin is None:
        raise SPEC.unreadable(Path("-"), "a standard input that is closed")
    try:
        content = sys.stdin.buffer.read(SPEC.limit_bytes + 1)
    except OSError as error:
        raise SPEC.unreadable(Path("-"), error.strerror or str(error)) from error
    if len(content) > SPEC.limit_bytes:
        raise SPEC.unreadable(Path("-"), f"more than {SPEC.limit_bytes} bytes")
    return content
