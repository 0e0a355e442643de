"""The user's choices about a plan, and defaults that suit the device and the scale.

**Source**: uFLIP (CIDR 2009) §4.3: a pause of 1 s between runs, the paper's conservative choice;
§5.1: each experiment is run three times.
**Faithful**: both.
**Simplified**: the quick scale makes one repetition, and on a real device pauses 0.1 s only.
**Ambiguous**: nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from uflip.benchmark.state import FEWEST_OVERWRITES, OVERWRITES
from uflip.benchmark_options import MAX_REPETITIONS, METHODS, SUITE
from uflip.data.device import DeviceInfo
from uflip.durability import CACHED
from uflip.errors import UsageError, unknown_name
from uflip.experiment import BASELINE_IO_SIZE, Context, IoCounts
from uflip.units import format_size

PAUSE_NS = 1_000_000_000
# In quick, a second between a hundred runs of half a second would be most of the time.
QUICK_PAUSE_NS = 100_000_000
# uFLIP §5.1: "each experiment was run three times".
REPETITIONS = 3
QUICK_REPETITIONS = 1
ZONES, AS_IS = "zones", "as-is"


@dataclass(frozen=True)
class Choices:
    """The user's choices about a plan; None selects the default of device and scale.

    Attributes
    ----------
    only : tuple of str or None
        Names of micro-benchmarks; all without it.
    io_size : int
        I/O size of the baseline patterns [bytes].
    pause_ns : int or None
        Pause before each run [ns].
    target_size : int or None
        The part of the device to use, from its beginning [bytes].
    state : str or None
        One of `STATES`.
    repetitions : int or None
        Number of repetitions of each run.
    io_counts : mapping of str to IoCounts or None
        Lengths of the ordinary runs of SR, RR, SW and RW; without it those of the scale.
    used_bytes : int
        End of the space that earlier plans have written sequentially since the state was
        enforced [bytes].
    method : str or None
        One of `METHODS`: the rule for the length of runs.
    durability : str
        Durability of writes, see `uflip.durability`.
    suite : str
        One of `SUITES`: the set of micro-benchmarks to choose from.
    """

    only: tuple[str, ...] | None = None
    io_size: int = BASELINE_IO_SIZE
    pause_ns: int | None = None
    target_size: int | None = None
    state: str | None = None
    repetitions: int | None = None
    io_counts: Mapping[str, IoCounts] | None = None
    used_bytes: int = 0
    method: str | None = None
    durability: str = CACHED
    suite: str = SUITE


def check_target(info: DeviceInfo, target_size: int | None) -> int:
    """Return the size of the used part of the device [bytes]."""
    capacity, sector = info.capacity_bytes, info.sector_bytes
    if target_size is None:
        return capacity
    if 0 < target_size <= capacity and target_size % sector == 0:
        return target_size
    raise UsageError(
        "The device has no target of this size",
        where="--target-size",
        got=f"{target_size} bytes ({format_size(target_size)})",
        allowed=f"multiples of {sector} bytes, from {sector} to {capacity} "
        f"({format_size(capacity)})",
        action="omit --target-size, or choose another size",
    )


NO_STATE = "A device state cannot be enforced on a device with zones"


def check_has_states(info: DeviceInfo) -> None:
    """Refuse to enforce a state on a zoned device."""
    if info.zoned:
        raise UsageError(
            NO_STATE,
            where=info.url,
            got="zones",
            allowed="a device without zones",
            action="measure it as it is: zones are prepared before every run",
        )


def check_zones(info: DeviceInfo, suite: str, state: str | None) -> None:
    """Refuse micro-benchmarks and states that a zoned device does not support."""
    if not info.zoned:
        return
    if suite != ZONES:
        raise UsageError(
            "The device is written in zones, each in order: these micro-benchmarks write otherwise",
            where="--suite",
            got=suite,
            allowed=ZONES,
            action="give --suite zones, or name another device",
        )
    if state not in (None, AS_IS):
        raise UsageError(
            NO_STATE,
            where="--state",
            got=str(state),
            allowed=AS_IS,
            action="omit --state: zones are prepared before every run",
        )


def check_io_size(context: Context) -> None:
    """Refuse an I/O size that the device does not support."""
    io_size, sector = context.io_size, context.sector
    if 0 < io_size <= context.capacity and io_size % sector == 0:
        return
    raise UsageError(
        "The device cannot do I/Os of this size",
        where="--io-size",
        got=f"{io_size} bytes ({format_size(io_size)})",
        allowed=(
            f"multiples of {sector} bytes, from {sector} "
            f"to the device's {format_size(context.capacity)}"
        ),
        action="choose another --io-size, or a larger device",
    )


def repetitions_for(context: Context, chosen: int | None) -> int:
    """Return the number of repetitions of each run."""
    if chosen is None:
        return QUICK_REPETITIONS if context.quick else REPETITIONS
    if 1 <= chosen <= MAX_REPETITIONS:
        return chosen
    raise UsageError(
        "Too many repetitions",
        where="--repetitions",
        got=str(chosen),
        allowed=f"1 to {MAX_REPETITIONS}",
        action="choose another number",
    )


def overwrites_for(method: str) -> int:
    """Return how many times the target is overwritten at random, for a rule of run lengths."""
    return OVERWRITES if method != "paper" else FEWEST_OVERWRITES


def method_for(scale: str, method: str | None, *, chosen_lengths: bool = False) -> str:
    """Return the rule of run lengths: chosen lengths are fixed, and quick runs do not converge."""
    if method is None:
        if chosen_lengths:
            return "paper"
        return "startup" if scale == "quick" else "auto"
    if method in METHODS:
        return method
    raise unknown_name("method", method, METHODS, where="--method")


def pause_for(context: Context) -> int:
    """Return the idle time before each run [ns]."""
    if context.info.null:
        return 0
    if context.info.simulated or not context.quick:
        return PAUSE_NS
    return QUICK_PAUSE_NS
