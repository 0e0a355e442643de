"""What `plan` and `run` share: the options that a plan is made from, and making or reading it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from uflip.cli.common import read_duration, read_size, split_names, together, whole
from uflip.cli.state import record_of, used_bytes
from uflip.durability import chosen
from uflip.errors import UsageError
from uflip.experiment import BASELINE_IO_SIZE, SCALES
from uflip.methodology import (
    METHODS,
    Choices,
    Plan,
    default_state,
    make_plan,
    plan_state,
    read_plan,
    within,
)
from uflip.run import DeviceInfo

SCALE = "standard"
SEED = 1

# Intervals over repetitions need a handful; a plan lists every run.
MOST_REPETITIONS = 1000

plan_options = together(
    [
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
            help="Only these micro-benchmarks, separated by commas.",
        ),
        click.option(
            "--seed",
            metavar="N",
            callback=whole(0, 2**63 - 1),
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
            metavar="DURATION",
            callback=read_duration,
            help="Pause before each run.  [default: 1s; 100ms for quick on real devices]",
        ),
        click.option(
            "--repetitions",
            callback=whole(1, MOST_REPETITIONS),
            metavar="N",
            help="How often each run is made.  [default: 3; 1 for quick]",
        ),
        click.option(
            "--method",
            metavar="|".join(METHODS),
            help="auto: each run ends when its mean is known; startup: fixed lengths after the "
            "start-up that baselines show; paper: fixed lengths.  [default: auto; startup for "
            "quick]",
        ),
        click.option(
            "--max-bytes-written",
            metavar="SIZE",
            callback=read_size,
            help="Leave out runs beyond so many bytes written, resets of the state included; the "
            "state before the first run is not counted.",
        ),
        click.option(
            "--max-time",
            metavar="DURATION",
            callback=read_duration,
            help="Leave out runs beyond this time.",
        ),
    ]
)
"""Names: scale, only, seed, io_size, pause, repetitions, method, max_bytes_written, max_time."""


@dataclass(frozen=True)
class Durable:
    """What the command line says of what writes wait for: nothing, or one of the forms."""

    given: str | None
    buffered: bool = field(kw_only=True)

    def chosen(self) -> str:
        """Return what was asked for, or what goes without saying."""
        return chosen(self.given, buffered=self.buffered)


@dataclass(frozen=True)
class Request:
    """What the command line asks for: options for a plan, or a file that holds one."""

    url: str
    state: str | None
    target_size: int | None
    record: Path | None
    options: dict[str, Any]
    durable: Durable
    file: Path | None = None

    def __post_init__(self) -> None:
        """Refuse options that the file decides."""
        if self.file is None:
            return
        decided = {**self.options, "state": self.state, "target_size": self.target_size}
        decided["durability"] = self.durable.given
        limits = ("max_bytes_written", "max_time")
        given = [name for name, value in decided.items() if value and name not in limits]
        if given:
            option = f"--{given[0].replace('_', '-')}"
            raise UsageError(
                "The plan file decides this",
                where=option,
                got=f"{option} with --plan {self.file}",
                action="edit the file, or leave one of the two out",
            )

    def plan(self, info: DeviceInfo) -> Plan:
        """Make or read the plan for a device. Nothing is touched."""
        options = self.options
        if self.file is not None:
            plan = read_plan(self.file, info)
        else:
            scale = SCALE if options["scale"] is None else options["scale"]
            seed = SEED if options["seed"] is None else options["seed"]
            plan = make_plan(info, scale, seed, self._choices(info))
        return within(plan, options["max_bytes_written"], options["max_time"])

    def _choices(self, info: DeviceInfo) -> Choices:
        options = self.options
        state = default_state(info) if self.state is None else self.state
        only = split_names(options["only"])
        record = record_of(info, self.url, self.record)
        # Whatever is wrong with the state or its target is an error of the plan, not of the record.
        known = record is not None and record.state is not None
        wanted = plan_state(info, state, self.target_size) if known else None
        return Choices(
            only=None if only is None else tuple(only),
            io_size=BASELINE_IO_SIZE if options["io_size"] is None else options["io_size"],
            pause_ns=options["pause"],
            target_size=self.target_size,
            state=state,
            repetitions=options["repetitions"],
            method=options["method"],
            durability=self.durable.chosen(),
            used_bytes=used_bytes(wanted, record),
        )
