"""Cost of the measuring itself, per I/O: stored with every result.

The engine drives a device that does nothing, exactly as it drives the device under test. The time
per I/O is the error that every response time may contain.
"""

from statistics import median

from uflip import _native
from uflip.device.opener import open_device
from uflip.errors import native_errors
from uflip.spec import baseline

# Enough to hide the granularity of the clock; takes some ten milliseconds.
IO_COUNT = 20_000
# The median of a few runs: one of them may meet an interruption by the system.
REPETITIONS = 5


def measure_harness() -> dict[str, float]:
    """Measure the cost of the harness on this machine, now.

    Returns
    -------
    dict
        null_ns_per_io: from one submission to the next on the null device [ns];
        clock_ns: one reading of the clock [ns]; io_count: the number of I/Os measured.

    Examples
    --------
    >>> measure_harness()["io_count"]
    100000
    """
    spec = baseline("RR", io_size=4096, io_count=IO_COUNT)
    with open_device("null") as device:
        elapsed_ns = [device.run(spec).elapsed_ns() for _ in range(REPETITIONS)]
    with native_errors():
        clock_ns = _native.clock_ns()
    return {
        "null_ns_per_io": median(elapsed_ns) / IO_COUNT,
        "clock_ns": clock_ns,
        "io_count": IO_COUNT * REPETITIONS,
    }
