"""Suspension: whether programs stop for a read, from the waits of reads among durable writes.

::

    waits of reads   without   short … a program, all equally likely
                     suspend   short, or the time to stop; nearly none longer
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from uflip.inference.collection import WriteSimulator
from uflip.inference.estimate import Estimate, Interval, median_of
from uflip.inference.observations import Floats, Observations
from uflip.inference.times import Times
from uflip.inference.twin import CANNOT_SIMULATE, Twin

PROBE = "read_beside_writes"
# A wait is for a program if it is longer than this share of one, and long from the second on.
SHORT_SHARE, LONG_SHARE = 0.02, 0.6
# Fewer waits show nothing. With suspension at most the first share of them is long; without, the
# second at least.
LEAST_WAITS, FEW_LONG, MANY_LONG = 20, 0.1, 0.25
# Change of the time to stop in the last step of its search, at most [of the time].
CONVERGED, STEPS = 0.02, 3
# Error of a simulated wait, the sum of ten steps in whole nanoseconds [ns].
MODEL_NS = 5.0
# Without a limit that a probe shows [times].
SUSPENSIONS = 16
KEYS = ("suspends_programs", "program_suspend_ns")


def waits_of(observations: Observations, base_ns: float) -> Floats | None:
    """Return by how much reads among writes take longer than single ones [ns]."""
    run = observations.last(PROBE, "RR/RW")
    return None if run is None else run.response_ns[~run.is_write] - base_ns


def suspends(waits: Floats, program_ns: float) -> bool | None:
    """Return whether programs stop for a read; None if too few reads meet one."""
    longer = waits[waits > SHORT_SHARE * program_ns]
    if len(longer) < LEAST_WAITS:
        return None
    share = float(np.mean(longer > LONG_SHARE * program_ns))
    return True if share <= FEW_LONG else False if share >= MANY_LONG else None


def suspend_estimates(
    observations: Observations, times: Times, twins: Sequence[Twin], simulator: WriteSimulator
) -> Iterator[Estimate]:
    """Yield whether programs are suspended, and the time until one has stopped.

    The interval contains what each of the twins, which differ by their relocations, needs.
    """
    whole = times.flash
    base = None
    sizes = observations.by_value("read_size", "RR")
    if observations.sector_bytes in sizes:
        base = sizes[observations.sector_bytes].median_ns
    waits = None if base is None else waits_of(observations, base)
    if waits is None or times.write_page is None or whole is None:
        for key in KEYS:
            yield Estimate.absent(key, PROBE, "the reads among writes, or a program, are missing")
        return
    found = suspends(waits, times.write_page.value)
    if found is None:
        for key in KEYS:
            yield Estimate.absent(key, PROBE, "too few reads meet a program")
        return
    yield Estimate("suspends_programs", "yes" if found else "no", probe=PROBE)
    if not found:
        yield Estimate.absent(KEYS[1], PROBE, "programs are not suspended")
        return
    assert base is not None
    stop = _stop_ns(waits, base, times, twins, simulator)
    if stop is None:
        yield Estimate.absent(KEYS[1], PROBE, "no simulated suspension repeats the waits")
    else:
        yield stop.estimate(KEYS[1], PROBE)


def suspended(twin: Twin, stop_ns: float) -> Twin:
    """Return the twin with suspension of programs and erases."""
    stop = max(round(stop_ns), 0)
    return twin.but(
        die_queue="reads_first",
        program_suspend_ns=stop,
        erase_suspend_ns=stop,
        suspensions_max=SUSPENSIONS,
    )


def _stop_ns(
    waits: Floats, base_ns: float, times: Times, twins: Sequence[Twin], simulator: WriteSimulator
) -> Interval | None:
    """Return the time to stop with which simulated waits have the same middle as the measured."""
    stops = [_stop_with(waits, base_ns, times, twin, simulator) for twin in twins]
    found = [stop for stop in stops if stop is not None]
    if not found:
        return None
    low = min(each.value - each.half for each in found)
    high = max(each.value + each.half for each in found)
    value = found[0].value
    return Interval(value, max(value - low, high - value))


def _stop_with(
    waits: Floats, base_ns: float, times: Times, twin: Twin, simulator: WriteSimulator
) -> Interval | None:
    assert times.write_page is not None
    short = SHORT_SHARE * times.write_page.value
    measured = median_of(waits[waits > short])
    stop, half, difference = measured.value, measured.half, 0.0
    for _ in range(STEPS):
        try:
            (run,) = simulator.run(suspended(twin, stop), [PROBE])
        except CANNOT_SIMULATE:
            return None
        simulated = run.response_ns[~run.is_write] - base_ns
        if not np.any(simulated > short):
            return None
        middle = median_of(simulated[simulated > short])
        difference, half = measured.value - middle.value, math.hypot(measured.half, middle.half)
        stop = max(stop + difference, 1.0)
    # Waits that hardly depend on the time to stop do not identify it.
    # Nor do those of which the short ones are left out.
    if abs(difference) > CONVERGED * stop or stop < short:
        return None
    return Interval(stop, math.hypot(half, difference, MODEL_NS))
