"""µOC3: parallelism over channels: vectors against threads, and reads beside writes.

**Source**: uFLIP-OC (2017) §3.2, Table 1, Table 3, Figure 5 and the text of §5.2.2.
**Faithful**: one LUN a channel; vectors of 1, 2, 4, 8 pages by one thread, each page of a vector on
another channel, channels in turn; 1, 2, 4, 8 threads with channels of their own, in turn where a
thread has several; a thread for every LUN of the device; threads that only read beside threads that
only write.
**Simplified**: nothing.
**Ambiguous**: the shares of readers in Figure 5 are not in the text; here 0, 25, 50, 75 and 100 %,
as in µOC0. Threads that read and threads that write are on channels of their own: the paper says "a
separate LUN", and with one thread a channel that is the same.
"""

from dataclasses import dataclass

from uflip.oc.scaling import Scaling
from uflip.oc.series import Series, degrees, mb_per_s
from uflip.oc.session import Session

NAME = "oc3"
TITLE = "channels, by vectors and by threads"

SHARES = {"100 % writes": "W", "75 % writes": "WWWR", "50 % writes": "WR", "25 % writes": "WRRR",
          "100 % reads": "R"}  # fmt: skip
"""How many of the threads write -> the mix that says so."""


@dataclass(frozen=True)
class Oc3:
    """What µOC3 found.

    Attributes
    ----------
    scaling : dict of str to Scaling
        "writes, vectors", "writes, threads", "reads, vectors", "reads, threads".
    all_luns : dict of str to float
        "writes" and "reads" with a thread for every LUN [MB/s].
    mixes : dict of str to Series
        By share of writers.
    throughput : dict of str to float
        By share of writers [MB/s].
    """

    scaling: dict[str, Scaling]
    all_luns: dict[str, float]
    mixes: dict[str, Series]
    throughput: dict[str, float]


def measure_scaling(session: Session) -> dict[str, Scaling]:
    """Throughput by pages of a vector, and by threads."""
    geometry = session.device.geometry
    channels = geometry["channels"]
    base = {"channels": channels, "iteration": "round_robin"}
    found = {}
    for word, mix in (("writes", "W"), ("reads", "R")):
        for key, over, most in (
            ("vector", "pages", min(channels, session.device.vector_pages_max)),
            ("threads", "threads", channels),
        ):
            by_degree = {}
            for degree in degrees(most):
                if channels % degree:
                    continue
                trace = session.run(f"oc3-{mix}-{over}-{degree}", base | {"mix": mix, key: degree})
                by_degree[degree] = mb_per_s(trace, geometry["sector_bytes"])
            name = "vectors" if key == "vector" else "threads"
            found[f"{word}, {name}"] = Scaling(over, by_degree)
    return found


def measure_all_luns(session: Session) -> dict[str, float]:
    """Throughput with a thread for every LUN."""
    geometry = session.device.geometry
    channels, luns = geometry["channels"], geometry["luns_per_channel"]
    job = {"channels": channels, "luns": luns, "threads": channels * luns,
           "iteration": "round_robin"}  # fmt: skip
    return {
        word: mb_per_s(session.run(f"oc3-{mix}-all", job | {"mix": mix}), geometry["sector_bytes"])
        for word, mix in (("writes", "W"), ("reads", "R"))
    }


def measure_mixes(session: Session) -> tuple[dict[str, Series], dict[str, float]]:
    """Readers beside writers, a channel for each thread."""
    geometry = session.device.geometry
    channels = geometry["channels"]
    mixes, throughput = {}, {}
    for share, mix in SHARES.items():
        job = {"channels": channels, "threads": channels, "iteration": "isolated", "mix": mix}
        trace = session.run(f"oc3-isolated-{mix}", job)
        mixes[share] = Series.of(trace)
        throughput[share] = mb_per_s(trace, geometry["sector_bytes"])
    return mixes, throughput


def measure(session: Session) -> Oc3:
    """Run all of it."""
    scaling, all_luns = measure_scaling(session), measure_all_luns(session)
    return Oc3(scaling, all_luns, *measure_mixes(session))
