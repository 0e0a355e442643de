"""The fitted constants of the OFC profile: each to one printed number.

The values are in `profiles/ofc.toml` and `ofc.py`. After a change of the simulator's timing,
`refit()` (half a minute) computes new ones::

    python -c "from uflip.reproduce.fits import main; main()"

**Source**: OFC (2011) §III, §V.B and §V.F, as named in each line of `FITS`.
**Faithful**: as many printed numbers as constants; no number is used twice.
**Simplified**: a constant is found by bisection with those before it in place. The number of
outstanding requests is tried from 5 to 12, with `command_write_ns` found anew for each; the best
one that can carry the 18 kIOPS of a clean device is taken.
**Ambiguous**: nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from uflip.reproduce import ofc
from uflip.reproduce.published import PUBLISHED
from uflip.reproduce.reproduction import RULES, ReproductionRow, WiderTolerance, compare_printed
from uflip.spec import basic

MEASURED_IOS = 300_000
RAW_OUTSTANDING = 64  # "saturation loading conditions"
FIXED_PAGES = 30
WHOLE_REQUESTS = WiderTolerance(
    0.05, "five are too few for 18 kIOPS of writes, and there is no 5 1/2"
)


def raw_reads(**overrides: Any) -> float:
    """Return sequential reads without any processing [kIOPS]."""
    free = {"command_read_ns": 0, "command_write_ns": 0}
    device = ofc.device(state="sequential", **(overrides | free))
    return ofc.sequential(device, "read", MEASURED_IOS, RAW_OUTSTANDING).kiops


def sequential_reads(outstanding: int = ofc.OUTSTANDING, **overrides: Any) -> float:
    """Return sequential reads of sequentially written data [kIOPS]."""
    device = ofc.device(state="sequential", **overrides)
    return ofc.sequential(device, "read", MEASURED_IOS, outstanding).kiops


def clean_writes(outstanding: int = ofc.OUTSTANDING, **overrides: Any) -> float:
    """Return sequential writes on a clean device, before garbage collection starts [kIOPS]."""
    device = ofc.device(state="empty", **overrides)
    return ofc.sequential(device, "write", MEASURED_IOS, outstanding).kiops


def sequential_writes(outstanding: int = ofc.OUTSTANDING, **overrides: Any) -> float:
    """Return sequential writes while blocks without valid pages are erased [kIOPS]."""
    device = ofc.device(state="empty", **overrides)
    ofc.sequential(device, "write", 3 * device.logical_pages, outstanding)
    return ofc.sequential(device, "write", MEASURED_IOS, outstanding).kiops


def random_reads(outstanding: int = ofc.OUTSTANDING, **overrides: Any) -> float:
    """Return random reads of sequentially written data [kIOPS]."""
    device = ofc.device(state="sequential", **overrides)
    return ofc.random(device, "read", MEASURED_IOS, 41, outstanding).kiops


def fixed_relocation(pages: int, outstanding: int = ofc.OUTSTANDING, **overrides: Any) -> float:
    """Return random writes while `pages` pages of every victim are relocated [kIOPS].

    `relocate_at_least` loses no data: valid pages are relocated as well. To have no more valid
    pages, the writes go to a tenth of the device and the rest is empty: then the 8192 blocks hold
    18 times the written data, and one victim in 10^5 has a valid page.
    """
    device = ofc.device(state="empty", relocate_at_least=pages, **overrides)
    target = {"target_size": device.logical_pages // 10 * device.page_bytes}
    ofc.write_untimed(device, "random", 3 * ofc.BLOCKS * ofc.PAGES_PER_BLOCK // 2, seed=7, **target)
    writes = basic(
        "write",
        "random",
        io_size=device.page_bytes,
        io_count=MEASURED_IOS,
        queue_depth=outstanding,
        seed=8,
        **target,
    )
    return device.run(writes).kiops


def drop_by_relocation(**overrides: Any) -> float:
    """Return the slow-down of random writes from 0 to 30 relocated pages [%]."""
    return 100 * (1 - fixed_relocation(FIXED_PAGES, **overrides) / fixed_relocation(0, **overrides))


@dataclass(frozen=True)
class Fit:
    """A constant, the printed number that it is fitted to, and the measurement of that number."""

    constant: str
    value_id: str
    measure: Callable[..., float]
    between: tuple[int, int]
    """Two values of the constant with the right one between them."""
    wider: WiderTolerance | None = None

    @property
    def published(self) -> float:
        """The printed number."""
        number = PUBLISHED[self.value_id].number
        assert number is not None, "constants are fitted to numbers"
        return number


FITS = (
    Fit(
        "bus_bytes_per_s",
        "ofc/raw_reads",
        raw_reads,
        (20_000_000, 160_000_000),
    ),
    Fit(
        "command_read_ns",
        "ofc/sequential_reads",
        sequential_reads,
        (100_000, 1_000),
    ),
    Fit(
        "command_write_ns",
        "ofc/clean_writes",
        clean_writes,
        (100_000, 1_000),
    ),
    Fit(
        "outstanding requests",
        "ofc/random_reads",
        random_reads,
        (5, 12),
        wider=WHOLE_REQUESTS,
    ),
    Fit(
        "collect_ns",
        "ofc/erasing_writes",
        sequential_writes,
        (2_000_000, 0),
    ),
    Fit(
        "relocate_ns",
        "ofc/drop_30_pages",
        drop_by_relocation,
        (20_000, 400_000),
    ),
)


BY_CONSTANT = {fit.constant: fit for fit in FITS}


def fit_row(fit: Fit, measured: float) -> ReproductionRow:
    """Compare a measurement with the number that a constant was fitted to."""
    return compare_printed(fit.value_id, measured, wider=fit.wider)


def solve(constant: str, **overrides: Any) -> int:
    """Find a constant by bisection, with the other keys of the profile, or overrides."""
    fit = BY_CONSTANT[constant]
    low, high = fit.between  # the measured value grows from low to high
    while abs(high - low) > max(abs(low), abs(high)) / 1000:
        middle = (low + high) // 2
        if fit.measure(**overrides, **{constant: middle}) < fit.published:
            low = middle
        else:
            high = middle
    return (low + high) // 2


def refit() -> dict[str, int]:
    """Return new values of all constants, each after those that it depends on."""
    constants = {"bus_bytes_per_s": solve("bus_bytes_per_s")}
    constants["command_read_ns"] = solve("command_read_ns", **constants)
    outstanding, constants["command_write_ns"] = _requests_and_write(constants)
    for constant in ("collect_ns", "relocate_ns"):
        constants[constant] = solve(constant, outstanding=outstanding, **constants)
    return constants | {"outstanding requests": outstanding}


def _requests_and_write(constants: dict[str, int]) -> tuple[int, int]:
    """Try all numbers of outstanding requests: each needs its own `command_write_ns`."""
    write, requests = BY_CONSTANT["command_write_ns"], BY_CONSTANT["outstanding requests"]
    tried: list[tuple[float, int, int]] = []
    first, last = requests.between
    for outstanding in range(first, last + 1):
        command = solve("command_write_ns", outstanding=outstanding, **constants)
        candidate = constants | {"command_write_ns": command}
        if abs(clean_writes(outstanding, **candidate) / write.published - 1) > RULES["fitted"]:
            continue  # too few for a clean device, whatever the cost of a command
        missed = abs(random_reads(outstanding, **candidate) - requests.published)
        tried.append((missed, outstanding, command))
    _, outstanding, command = min(tried)
    return outstanding, command


def main() -> None:
    """Print new values of all constants."""
    for constant, value in refit().items():
        print(f"{constant} = {value}")
