"""The options `--find`, `--mean`, `--p50`, `--p99`, `--p999` of `uflip pattern`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from uflip.cli.options import combine_options, duration_option
from uflip.cli.terminal import echo, echo_json, echo_table
from uflip.data.document import Table, plain
from uflip.errors import UsageError
from uflip.spec import Basic, Functions
from uflip.units import format_count, format_duration_ns

if TYPE_CHECKING:
    from uflip.benchmark.find_load import FoundLoad, LoadPoint, LoadTarget

LIMITS = ("mean", "p50", "p99", "p999")
NAMES = {"mean": "mean", "p50": "p50", "p99": "p99", "p999": "p99.9"}


def _limit(name: str) -> Any:
    return duration_option(
        f"--{name}",
        help=f"With --find: the {NAMES[name]} of the response times must not exceed this.",
    )


find_options = combine_options(
    click.option(
        "--find",
        metavar="rate|depth",
        help="Find the largest rate of arrivals, or queue depth, that meets a limit such as "
        "--p99 1ms.",
    ),
    *map(_limit, LIMITS),
)


def load_target(
    find: str | None, parameters: Table, others: Mapping[str, object]
) -> "LoadTarget | None":
    """Return the target of a search, whose limits are taken out of `parameters`; None without it.

    `others` are options of `uflip pattern` that a search does not support.
    """
    limits = {name: parameters.pop(name) for name in LIMITS}
    given = {name: limit for name, limit in limits.items() if limit is not None}
    if find is None:
        if given:
            name = next(iter(given))
            raise UsageError(
                f"--{name} needs --find",
                where=f"--{name}",
                got=f"--{name} alone",
                allowed="--find rate, --find depth",
                action=f"add --find rate, or omit --{name}",
            )
        return None
    from uflip.benchmark.find_load import KINDS, LoadTarget
    from uflip.errors import unknown_name

    if find not in KINDS:
        raise unknown_name("load", find, KINDS, where="--find")
    if len(given) != 1 or not all(given.values()):
        raise UsageError(
            "--find needs one limit above 0",
            where="--find",
            got=", ".join(f"--{name} {limit}ns" for name, limit in given.items()) or "no limit",
            allowed=", ".join(f"--{name} DURATION" for name in LIMITS),
            action="give one of them, such as --p99 1ms",
        )
    for name, value in others.items():
        if value not in (None, False):
            raise UsageError(
                f"--find cannot be combined with --{name}",
                where="--find",
                got=f"--find with --{name}",
                allowed="a basic pattern",
                action=f"omit --{name}",
            )
    ((statistic, limit),) = given.items()
    return LoadTarget(find, statistic, int(limit))


def find_and_print(
    device: str,
    spec: Functions,
    target: "LoadTarget",
    opening: Table,
    *,
    quiet: bool,
    as_json: bool,
) -> None:
    """Search a load on a device, and print the answer."""
    from uflip import signals
    from uflip.benchmark.find_load import find_load
    from uflip.benchmark.prepare import open_watched
    from uflip.cli.benchmark_progress import BenchmarkProgress
    from uflip.device.catalogue import inspect_device

    if not isinstance(spec, Basic) or spec.stop is not None:
        raise UsageError(
            "A load can only be found for a basic pattern of fixed length",
            where="--find",
            got="--until-converged" if isinstance(spec, Basic) else "several patterns",
            allowed="one pattern",
            action="omit --mix, --parallel or --until-converged",
        )
    info = inspect_device(device, size=opening["size"], buffered=opening["buffered"])
    with signals.shielded(), BenchmarkProgress(quiet=quiet or as_json) as progress:
        opened = open_watched(device, info, progress, **opening)
        with opened:
            found = find_load(
                opened, spec, target, lambda point: _echo_point(point, target, quiet or as_json)
            )
    if as_json:
        echo_json({"device": device, "spec": spec, **plain(found)})
    else:
        _print(found)


def _echo_point(point: "LoadPoint", target: "LoadTarget", quiet: bool) -> None:
    if quiet:
        return
    verdict = "meets" if point.value_ns <= target.limit_ns else "exceeds"
    echo(
        f"{_load(target.find, point.load)}: {NAMES[target.statistic]} "
        f"{format_duration_ns(point.value_ns)} {verdict} {format_duration_ns(target.limit_ns)}",
        err=True,
    )


def _load(find: str, load: float | None) -> str:
    if load is None:
        return "none"
    return f"depth {load:.0f}" if find == "depth" else f"{load:,.0f} I/Os per second"


def _print(found: "FoundLoad") -> None:
    limit = f"{NAMES[found.statistic]} of {format_duration_ns(found.target_ns)}"
    smallest, largest = (_load(found.find, found.points[at].load) for at in (0, -1))
    if found.answer == "never":
        echo(f"The {limit} is never met: even {smallest} exceeds it.", bold=True)
    elif found.answer == "always":
        echo(f"The {limit} is always met: up to {largest}, the largest tested load.", bold=True)
    else:
        low, high = (_load(found.find, each) for each in (found.low, found.high))
        echo(f"{_load(found.find, found.load)} meet a {limit} [{low}, {high}]", bold=True)
    for warning in found.warnings:
        echo(f"warning: {warning}", err=True)
    rows = [
        (
            _load(found.find, each.load),
            format_duration_ns(each.value_ns),
            f"{format_duration_ns(each.low_ns)} to {format_duration_ns(each.high_ns)}",
            format_count(each.repetitions),
            f"{each.achieved_per_s:,.0f}",
        )
        for each in found.points
    ]
    echo_table(("load", NAMES[found.statistic], "interval", "runs", "IOPS"), rows)
