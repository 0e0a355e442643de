"""The options of `run`, `plan` and `replay`: one list for the command line, Python, and results.

`uflip.cli.options` makes an option of the command line of each entry; the functions of `uflip.api`
have a keyword for each, of the same name and default (a test compares them); `command_line` writes
the command that a result stores. Options that describe a pattern are in `uflip.pattern_options`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any

from uflip.benchmark_options import (
    MAX_IOS_IN_FLIGHT,
    MAX_REPETITIONS,
    METHODS,
    SCALE,
    SCALES,
    SEED,
    STATES,
    SUITE,
    SUITES,
)
from uflip.device.guard import COMPLETIONS, DATA
from uflip.durability import FORMS, durability_or_default
from uflip.errors import UsageError
from uflip.units import (
    parse_count,
    parse_duration,
    parse_number,
    parse_path,
    parse_signed_size,
    parse_size,
)

if TYPE_CHECKING:
    from uflip.data.document import Table

Size = str | int
"""Bytes, or a text with a unit: "4k", "1GiB"."""
Duration = str | int
"""Nanoseconds, or a text with a unit: "100us", "2s"."""
PathName = str | PathLike[str]


@dataclass(frozen=True)
class Option:
    """An option of a verb."""

    name: str  #: The keyword in Python; `--name`, with - for _, on the command line.
    form: str  #: The value in help texts, as in "SIZE"; empty for a switch.
    help: str  #: The help text.
    #: (value, place for errors) -> parsed value: sizes in bytes, durations in nanoseconds.
    parse: Callable[[Any, str], Any]
    #: The value as it would be given; None leaves the choice to the device and the method.
    default: Any = None
    field: str = ""  #: Name of the parsed value; by default that of the option.

    def __post_init__(self) -> None:
        """Complete the defaults: a switch is off."""
        object.__setattr__(self, "field", self.field or self.name)
        if not self.form:
            object.__setattr__(self, "default", False)

    @property
    def flag(self) -> str:
        """The option as it is typed."""
        return "--" + self.name.replace("_", "-")


def parse_options(options: Sequence[Option], given: Mapping[str, object]) -> "Table":
    """Return the parsed values of the options that were given, by field.

    Raises UsageError for a value that cannot be parsed, is out of range, or has another type.

    Examples
    --------
    >>> parse_options(OPENING, {"size": "4k", "buffered": False, "destroy": None})
    {'size': 4096, 'buffered': False}
    """
    return {
        option.field: option.parse(value, option.name)
        for option in options
        if (value := given.get(option.name)) is not None
    }


def command_line(
    verb: str, arguments: Sequence[object], options: Sequence[Option], given: Mapping[str, object]
) -> list[str]:
    """Return the command that does the same as a call with keywords.

    Examples
    --------
    >>> command_line("run", ["sim:demo"], MICRO_BENCHMARKS, {"only": ["order", "mix"], "pause": 10})
    ['uflip', 'run', 'sim:demo', '--only', 'order,mix', '--pause', '10ns']
    """
    words = ["uflip", verb, *map(str, arguments)]
    for option in options:
        value = given.get(option.name)
        if value is None or value == option.default:
            continue
        words.append(option.flag)
        parsed = option.parse(value, option.name)
        if option.parse is parse_names:
            words.append(",".join(parsed))
        elif option.parse is parse_duration:
            words.append(f"{parsed}ns")
        elif option.form:
            words.append(str(value))
    return words


def parse_text(value: object, where: str) -> str:
    """Return a text; other types are errors."""
    if isinstance(value, str):
        return value
    raise _wrong_type(value, where, "a text")


def parse_switch(value: object, where: str) -> bool:
    """Return a truth value; other types are errors, also 0 and 1."""
    if isinstance(value, bool):
        return value
    raise _wrong_type(value, where, "True or False")


def _wrong_type(value: object, where: str, allowed: str) -> UsageError:
    return UsageError(
        "Wrong type of an option",
        where=where,
        got=repr(value),
        allowed=allowed,
        action="see help(uflip.run), help(uflip.pattern)",
    )


def parse_names(values: str | Sequence[str], where: str = "--only") -> tuple[str, ...]:
    """Return names that are separated by commas, or given one by one.

    Examples
    --------
    >>> parse_names(["mix,order", "pause"]), parse_names("mix")
    (('mix', 'order', 'pause'), ('mix',))
    """
    texts = [parse_text(each, where) for each in ([values] if isinstance(values, str) else values)]
    names = [name.strip() for text in texts for name in text.split(",") if name.strip()]
    if texts and not names:
        raise UsageError(
            "No name was given",
            where=where,
            got=repr(",".join(texts)),
            allowed="names separated by commas, as in granularity,order",
            action="name a micro-benchmark, or omit the option",
        )
    return tuple(names)


def parse_durability(value: str, where: str) -> str:
    """Parse a durability; errors name the option."""
    try:
        return durability_or_default(value)
    except UsageError as error:
        error.where = where
        raise


_seed = partial(parse_count, most=2**63 - 1)
_repetitions = partial(parse_count, least=1, most=MAX_REPETITIONS)

SIZE = Option(
    "size", "SIZE", "file: only: size of the file; a run creates or enlarges it.", parse_size
)
BUFFERED = Option(
    "buffered",
    "",
    "file: and /dev/ only: accept I/O through the page cache instead of direct I/O.",
    parse_switch,
)
DESTROY = Option(
    "destroy",
    "TOKEN|PATH",
    "Confirm the loss of all data on exactly this block device (see `uflip devices`), or "
    "in this file that uflip did not create; name its contents, as in +ext4.",
    parse_text,
)
IO_TIMEOUT = Option(
    "io_timeout",
    "DURATION",
    "Give up if an I/O on a file, block device or export takes longer; 0s: never.",
    parse_duration,
    default="60s",
    field="io_timeout_ns",
)
OPENING = (
    SIZE,
    BUFFERED,
    Option(
        "data",
        "|".join(DATA),
        "Data to write; random data cannot be compressed by the device.",
        parse_text,
        default=DATA[0],
    ),
    DESTROY,
    IO_TIMEOUT,
)
"""Options for opening a device."""
DURABILITY = Option(
    "durability",
    FORMS,
    "When a write is complete: when the device has the data; when they survive a power loss; "
    "after a flush every N writes.  [default: cached; fua with --buffered]",
    parse_durability,
)
COMPLETION = Option(
    "completion",
    "|".join(COMPLETIONS),
    "file: and /dev/ only: how completions in a queue are detected.  [default: auto, polled "
    "if the device supports it]",
    parse_text,
)

POWER = Option(
    "power",
    "METER",
    "Measure the power during each run: rapl, rapl:ZONE, hwmon:CHIP/CHANNEL, or csv:FILE, the "
    "log of another meter. `uflip info` lists the meters. Not for simulated devices.",
    parse_text,
)

PLAN_FILE = Option(
    "plan",
    "FILE",
    "Execute the plan in this file, see `uflip plan --out`.",
    parse_path,
    field="plan_file",
)
RECORD = Option(
    "record",
    "FILE",
    "File that records the device's state.  [default: results/states/DEVICE.json]",
    parse_path,
)
MAX_TIME = Option(
    "max_time",
    "DURATION",
    "Skip runs that would exceed this total time.",
    parse_duration,
    field="max_time_ns",
)
STATE = Option(
    "state",
    "|".join(STATES),
    "State to enforce, unless the device is known to be in it.  "
    "[default: random; for a simulated device that of its profile]",
    parse_text,
)
TARGET = (
    Option(
        "target_size",
        "SIZE",
        "Use only this much of the device, from its beginning.  [default: all of it]",
        parse_size,
    ),
    RECORD,
)
MICRO_BENCHMARKS = (
    Option(
        "suite",
        "|".join(SUITES),
        "Micro-benchmarks: uflip: those of the papers; today: queues, caches, reads "
        "under writes and other extensions; iq: write amplification under skew, and latency under "
        "load; zones: zoned devices; streams: write streams, placement handles.  "
        f"[default: {SUITE}]",
        parse_text,
    ),
    Option(
        "scale",
        "|".join(SCALES),
        f"standard: the ranges and counts of the paper; quick: a few minutes.  [default: {SCALE}]",
        parse_text,
    ),
    Option("only", "NAMES", "Only these micro-benchmarks, separated by commas.", parse_names),
    Option("seed", "N", f"Seed of all random patterns.  [default: {SEED}]", _seed),
    Option("io_size", "SIZE", "I/O size of the baseline patterns.  [default: 32KiB]", parse_size),
    Option(
        "pause",
        "DURATION",
        "Pause before each run.  [default: 1s; 100ms for quick on real devices]",
        parse_duration,
        field="pause_ns",
    ),
    Option(
        "repetitions",
        "N",
        "Minimum number of repetitions; auto adds more until the interval is narrow "
        "enough.  [default: 3; 1 for quick]",
        _repetitions,
    ),
    Option(
        "method",
        "|".join(METHODS),
        "auto: each run ends when its mean has converged; startup: fixed lengths after "
        "the start-up that the baselines show; paper: fixed lengths.  [default: auto; startup "
        "for quick]",
        parse_text,
    ),
    Option(
        "max_bytes_written",
        "SIZE",
        "Skip runs that would exceed this amount of written data. State resets count; "
        "the initial preconditioning does not.",
        parse_size,
    ),
    MAX_TIME,
    Option(
        "budget",
        "DURATION",
        "Time for the state and all runs, by the estimate and the clock: use a part of the "
        "device, one repetition, quick, fewer runs, as far as needed. The plan names them.",
        parse_duration,
        field="budget_ns",
    ),
)
"""The micro-benchmarks, their length and their limits."""
INSIDE = Option(
    "inside",
    "",
    "Record internal events of a simulated device, for the explorer.",
    parse_switch,
)

_PLAN_SHOWN = replace(
    PLAN_FILE, help="Show the plan in this file, as `uflip run --plan` would execute it."
)

RUN = (
    *MICRO_BENCHMARKS, PLAN_FILE, INSIDE, STATE, *TARGET, DURABILITY, COMPLETION, POWER, *OPENING
)  # fmt: skip
"""Options of `run`; their fields are those of `uflip.benchmark.BenchmarkRequest`."""
PLAN = (*MICRO_BENCHMARKS, STATE, *TARGET, SIZE, BUFFERED, DURABILITY, _PLAN_SHOWN)
"""Options of `plan`."""
RESUME = (DESTROY, RECORD, MAX_TIME, POWER, IO_TIMEOUT)
"""Options of `run --resume`: all others follow from the results."""
COLUMNS_HELP = (
    "Columns of a table, by number from 1 or name: time_us=5,offset=3,size=4,op=2; "
    "docs/reference/formats.md has all keys."
)
FIT = (
    Option(
        "format",
        "FORMAT",
        "Format of the trace, one of docs/reference/formats.md.  [default: recognised]",
        parse_text,
    ),
    Option("columns", "MAP", COLUMNS_HELP, parse_text),
    Option(
        "fit",
        "refuse|wrap|scale",
        "I/Os beyond the end of the device: refuse the trace; wrap to the beginning; scale all "
        "offsets in proportion.",
        parse_text,
        default="refuse",
    ),
    Option(
        "address_scale",
        "FACTOR",
        "Factor of all offsets of the trace, before --address-offset and --fit.",
        partial(parse_number, most=1e6),
        default=1.0,
    ),
    Option(
        "address_offset",
        "SIZE",
        "Bytes added to all offsets, such as 1GiB, or -1MiB for a partition that began there.",
        parse_signed_size,
        default="0",
    ),
    Option(
        "speed",
        "FACTOR",
        "Speed-up factor of an open loop: 1 submits I/Os at their recorded times; 10 replays the "
        "trace in a tenth of its time.",
        partial(parse_number, most=1e6),
    ),
    Option(
        "queue_depth",
        "N",
        "Maximum I/Os in flight.  [default: 1; in an open loop the limit of the device]",
        partial(parse_count, least=1, most=MAX_IOS_IN_FLIGHT),
    ),
)
"""Options of a replay; their fields are those of `uflip.benchmark.replay.ReplayRequest`."""
REPLAY = (*FIT, DURABILITY, COMPLETION, POWER, *OPENING)
"""Options of `replay`."""
