"""Channels, and the division of a read into cells and transfer, by simulated reads.

Two reads show a transfer only if it takes longer than a command. Bursts of sixteen, large reads
and large writes show shorter ones, because their pages are ready at other times than commands are.
Every possible number of channels is simulated, with the transfer time that fits best.
"""

import math
from dataclasses import dataclass, field, replace
from importlib.util import find_spec

import numpy as np

from uflip.device.handle import Device
from uflip.errors import UnavailableError
from uflip.inference.estimate import Interval
from uflip.inference.observations import Floats, Observation, Observations
from uflip.inference.probes import repeat
from uflip.inference.structure import CONTRAST, DIE_FIRST, ROUND_ROBIN, Structure, reads_map
from uflip.inference.times import Times
from uflip.inference.twin import Twin

# Rates of flash interfaces, from asynchronous ONFI 1 to ONFI 4.1 [bytes/s]. Without an upper limit
# a device whose dies have a channel each would be the same as one with infinitely fast channels.
CHANNEL_RANGE = (25e6, 1.6e9)
# Share of a page that its spare area adds to a transfer, of data sheets: 3 to 11 %.
SPARE_SHARE = 0.055
# Transfer times of the first search, and evaluations of the second.
STEPS, EVALUATIONS = 24, 12
# A simulation is worse than the best one if its I/Os differ more, by this number of standard errors
# of the paired difference, by more than rounding [of the response time], and by more than a share
# of the best error: a transfer that is free makes up for errors of command and cells.
STANDARD_ERRORS, ROUNDING, WORSE_SHARE = 1.645, 2e-6, 0.05
# If the best one is exact, one that misses some I/Os and repeats none better is worse, too: rare
# meetings of transfers are no scatter [of the response time, I/Os].
EXACT, MISSED, LEAST_MISSED = 1e-4, 1e-3, 3
# Simulated reads of bursts, and large ones, which cover every die more than once.
IOS, LARGE_READ_PAGES = (2048, 16), 1
# Arrivals at random are compared where reads hardly queue: with the least median response time, and
# up to this factor of it. In a long queue a small error of a step adds up.
UNQUEUED = 3.0
# I/Os that differ more, beyond the scatter of the host, met pages in another order, such as
# relocated ones: they count as this much [of the response time]. No number of channels follows if
# fewer than a share of the I/Os differ less.
POOR_FIT, LEAST_FIT = 0.02, 0.4
# Simulated blocks of the small device: more than the window, whatever its size.
BLOCK_PAGES = 64
BURST = 16
# The most that a host adds to every I/O [ns].
HOST_NS = 20_000


def check_library() -> None:
    """Refuse an inference without the library that its searches need.

    Raises
    ------
    UnavailableError
        If it is not installed.
    """
    if find_spec("scipy") is None:
        raise UnavailableError(
            "An inference needs an optional library",
            where="uflip infer",
            got="no module scipy",
            allowed="scipy",
            action="install it: pip install 'uflip[infer]'",
        )


@dataclass(frozen=True)
class Division:
    """The best simulation with a number of channels: order of dies, transfer, error of each I/O.

    Errors count as at most `bound`.
    """

    channels: int
    allocator: str
    transfer_ns: float
    errors: Floats = field(default_factory=lambda: np.array([np.inf]), compare=False)
    bound: float = POOR_FIT

    @property
    def bounded(self) -> Floats:
        """Errors of the I/Os, relative to their response times, up to the bound."""
        return np.minimum(self.errors, self.bound)

    @property
    def error(self) -> float:
        """Mean of these errors."""
        return float(np.mean(self.bounded))

    @property
    def fits(self) -> float:
        """Share of the I/Os with an error below the bound."""
        return float(np.mean(self.errors < self.bound))

    @property
    def remaining_error(self) -> float:
        """Mean error of these I/Os alone."""
        return float(np.mean(self.errors[self.errors < self.bound])) if self.fits else self.bound

    def is_worse_than(self, best: "Division") -> bool:
        """Return whether the I/Os differ significantly more than those of the best simulation."""
        difference = self.bounded - best.bounded
        error = float(np.std(difference)) / math.sqrt(len(difference))
        margin = STANDARD_ERRORS * error + ROUNDING + WORSE_SHARE * best.remaining_error
        missed = int(np.sum(difference > MISSED))
        is_exact = best.error < EXACT and not np.any(difference < -MISSED)
        return float(np.mean(difference)) > margin or (is_exact and missed >= LEAST_MISSED)


class ReadSimulator:
    """Simulates the read probes on the window of a device with other channels and transfers.

    Parameters
    ----------
    observations : Observations
        What was measured.
    structure : Structure
        With a page and dies.
    times : Times
        With a command, link and flash.
    """

    def __init__(self, observations: Observations, structure: Structure, times: Times) -> None:
        assert structure.page
        assert structure.dies
        assert times.command_read
        assert times.link_byte
        assert times.flash
        self.page, self.dies, self.flash_ns = structure.page, structure.dies, times.flash.value
        self._bound = POOR_FIT + 2 * _host_scatter(observations, times)
        self._filled = observations.last("clear", "SW")
        bursts = observations.by_value("read_bursts", "RR")
        sizes = observations.by_value("read_size", "RR")
        large = [size for size in sizes if size > LARGE_READ_PAGES * self.dies * self.page]
        chosen = [bursts[BURST], sizes[min(large, default=max(sizes))]]
        arrivals = [*observations.by_value("read_arrivals", "RR").values()]
        least = min((run.median_ns for run in arrivals), default=0.0)
        unqueued = [run for run in arrivals if run.median_ns <= UNQUEUED * least]
        self._probes = ["read_bursts", "read_size", *["read_arrivals"] * len(unqueued)]
        self.measured = [_beginning(run, count) for run, count in zip(chosen, IOS, strict=False)]
        self.measured += unqueued
        self._twin = Twin().but(
            page_bytes=self.page,
            pages_per_block=BLOCK_PAGES,
            spare_bytes=0,
            sector_bytes=observations.sector_bytes,
            command_read_ns=round(times.command_read.value),
            link_bytes_per_s=round(1e9 / times.link_byte.value),
            partial_transfer=times.partial_transfer,
            state="empty",
        )
        if structure.mapping_unit not in (None, self.page):
            self._twin = self._twin.but(mapping_unit_bytes=structure.mapping_unit)
        self._write_page = times.write_page
        if times.command_write is not None:
            self._twin = self._twin.but(command_write_ns=round(times.command_write.value))

    def twin(self, division: Division) -> Twin:
        """Return the small twin with the window."""
        assert self._filled is not None
        window = len(self._filled.offset_bytes) * self._filled.io_size
        transfer = max(division.transfer_ns, 1.0)
        twin = self._twin.but(
            channels=division.channels,
            dies_per_channel=self.dies // division.channels,
            allocator=division.allocator,
            channel_bytes_per_s=max(round(self.page * 1e9 / transfer), 1),
            read_ns=max(round(self.flash_ns - transfer), 0),
        )
        if self._write_page is not None:
            program = max(round(self._write_page.value - transfer), 0)
            twin = twin.but(program_ns=program, program_high_ns=program)
        row = self.dies * BLOCK_PAGES * self.page
        blocks = -(-2 * window // row) + 8
        return twin.with_capacity(blocks * row // 2 // (1 << 20) * (1 << 20), blocks)

    def evaluate(self, division: Division) -> Division:
        """Return a division with its errors, relative to the response times."""
        device: Device = self.twin(division).open()
        assert self._filled is not None
        written = repeat(device, "clear", self._filled.spec)
        errors = []
        if self._write_page is not None:
            errors.append(_differences(written, self._filled))
        for probe, run in zip(self._probes, self.measured, strict=True):
            simulated = repeat(device, probe, run.spec)
            errors.append(_differences(simulated, run))
        return replace(division, errors=np.concatenate(errors), bound=self._bound)


def _beginning(run: Observation, ios: int) -> Observation:
    count = min(ios, len(run.response_ns))
    spec = run.spec.but(io_count=count)
    return replace(
        run,
        spec=spec,
        offset_bytes=run.offset_bytes[:count],
        response_ns=run.response_ns[:count],
        is_write=run.is_write[:count],
    )


def _differences(simulated: Observation, measured: Observation) -> Floats:
    """Return the differences of I/Os without those that meet an erase, and the host's own time."""
    difference = simulated.response_ns - measured.response_ns
    if measured.spec.parts[0].is_write:
        difference = difference[measured.response_ns <= measured.median_ns * (1 + CONTRAST)]
    host = float(np.median(difference))
    # A simulation with other constant times is as wrong as one with other conflicts.
    host = host if abs(host) < HOST_NS else 0.0
    return np.abs(difference - host) / float(np.mean(measured.response_ns))


def complete_channels(
    observations: Observations, structure: Structure, times: Times
) -> tuple[Structure, Times, Division | None]:
    """Return structure and times with channels and transfer, where simulations show them.

    The third value is the best simulation, which a twin uses where others are as good.
    """
    known = structure.page and structure.dies and times.flash and times.link_byte
    made = observations.by_value("read_size", "RR") and observations.last("clear", "SW")
    if not known or not made or times.command_read is None or structure.dies == 1:
        return structure, times, None
    if BURST not in observations.by_value("read_bursts", "RR") or reads_map(observations):
        # Pages of a map on flash lie between those of the host, so that bursts meet elsewhere.
        return _without_bursts(structure, times)
    simulator = ReadSimulator(observations, structure, times)
    best = sorted(_divisions(simulator, structure, times), key=lambda each: each.error)
    winner = best[0]
    rivals = [each for each in best[1:] if not each.is_worse_than(winner)]
    if winner.fits < LEAST_FIT or any(each.channels != winner.channels for each in rivals):
        unknown = replace(structure, channels=None, allocator=None)
        return unknown, _without_transfer(times), winner
    found = replace(structure, channels=winner.channels, allocator=winner.allocator)
    if winner.channels == structure.dies:
        # No die shares its channel: cells and transfer always follow each other.
        return found, _without_transfer(times), winner
    if times.transfer is not None:
        return found, times, winner
    return found, replace(times, transfer=_interval(simulator, winner)), winner


def _without_transfer(times: Times) -> Times:
    """Return times without a transfer that only reads at once show, and not reads of parts."""
    return times if times.partial_transfer else replace(times, transfer=None)


def _host_scatter(observations: Observations, times: Times) -> float:
    """Return the mean deviation of reads without data, relative to a read of flash."""
    run = observations.by_value("read_deallocated", "RR").get(observations.sector_bytes)
    if run is None or times.flash is None:
        return 0.0
    return float(np.mean(np.abs(run.response_ns - run.median_ns))) / times.flash.value


def _without_bursts(structure: Structure, times: Times) -> tuple[Structure, Times, Division | None]:
    """Return what pairs of reads alone show: channels whose transfers are visible, or nothing."""
    if times.transfer is None or structure.channels is None:
        unknown = replace(structure, channels=None, allocator=None)
        return unknown, _without_transfer(times), None
    order = structure.allocator or ROUND_ROBIN
    return structure, times, Division(structure.channels, order, times.transfer.value)


def _divisions(simulator: ReadSimulator, structure: Structure, times: Times) -> list[Division]:
    """Return the best transfer for every number of channels and order of dies."""
    assert structure.dies
    found = []
    for channels in range(1, structure.dies + 1):
        if structure.dies % channels:
            continue
        orders = [ROUND_ROBIN, DIE_FIRST] if 1 < channels < structure.dies else [ROUND_ROBIN]
        for order in orders:
            start = Division(channels, order, 0.0)
            shows = times.partial_transfer or channels < structure.dies
            if times.transfer is not None and shows:
                known = replace(start, transfer_ns=times.transfer.value)
                found.append(simulator.evaluate(known))
            elif channels == structure.dies:
                alone = replace(start, transfer_ns=min(_shortest(simulator), simulator.flash_ns))
                found.append(simulator.evaluate(alone))
            else:
                found.append(_best_transfer(simulator, start))
    return found


def _shortest(simulator: ReadSimulator) -> float:
    return simulator.page * 1e9 / CHANNEL_RANGE[1]


def _best_transfer(simulator: ReadSimulator, start: Division) -> Division:
    """Return the transfer time that fits best: a coarse search, then a bounded minimisation."""
    from scipy.optimize import minimize_scalar

    longest = min(simulator.page * 1e9 / CHANNEL_RANGE[0], 0.95 * simulator.flash_ns)
    grid = np.geomspace(min(_shortest(simulator), longest / 2), longest, STEPS)

    def error(transfer_ns: float) -> float:
        errors = simulator.evaluate(replace(start, transfer_ns=transfer_ns)).errors
        # Many exact I/Os count more than few large errors, but unlike a bound this has a slope.
        return float(np.mean(np.sqrt(errors)))

    errors = [error(float(each)) for each in grid]
    n = int(np.argmin(errors))
    bounds = grid[max(n - 1, 0)], grid[min(n + 1, STEPS - 1)]
    result = minimize_scalar(
        error, bounds=bounds, method="bounded", options={"maxiter": EVALUATIONS, "xatol": 1.0}
    )
    best = float(result.x) if result.fun < errors[n] else float(grid[n])
    return simulator.evaluate(replace(start, transfer_ns=best))


def _interval(simulator: ReadSimulator, winner: Division) -> Interval:
    """Return the transfer with the distance at which simulations become worse by a tolerance."""
    half = 1.0
    while half < winner.transfer_ns / 2:
        sides = (winner.transfer_ns - half, winner.transfer_ns + half)
        near = [simulator.evaluate(replace(winner, transfer_ns=each)) for each in sides]
        if all(each.is_worse_than(winner) for each in near):
            break
        half *= 2
    return Interval(winner.transfer_ns, half)
