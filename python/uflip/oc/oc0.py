"""µOC0: reads and writes of one LUN by one thread, mixed; and the throughput of every LUN.

**Source**: uFLIP-OC (2017) §3.1, Table 1, Figures 2 and 3.
**Faithful**: one thread, a page of all planes an I/O, five mixes over 64 blocks of one LUN; reads
alone and writes alone on every LUN of the device.
**Simplified**: nothing.
**Ambiguous**: 25 % reads "corresponds to a sequence of three writes followed by one read" (§5.1.1),
WWWR; Table 1 prints WWWWR, one read in five. Here it is what the text describes, which is also what
the percentages of §3.1 say; `uflip oc pattern DEVICE --mix WWWWR` makes the table's. In a mix the
number of I/Os is that of the pages, as in the paper, so that not all of them are written.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uflip.oc.series import Series, mb_per_s
from uflip.oc.session import Session

NAME = "oc0"
TITLE = "reads and writes of a single LUN"
MIXES = ("WWWWW", "WWWR", "WRWR", "WRRR", "RRRR")


@dataclass(frozen=True)
class Oc0:
    """What µOC0 found.

    Attributes
    ----------
    mixes : dict of str to Series
        By mix, on channel 0 and LUN 0.
    throughput : dict of str to float
        By mix [MB/s].
    write_mb_per_s, read_mb_per_s : ndarray, shape (channels, LUNs of a channel)
        Of every LUN, one at a time [MB/s].
    """

    mixes: dict[str, Series]
    throughput: dict[str, float]
    write_mb_per_s: NDArray[np.float64]
    read_mb_per_s: NDArray[np.float64]


def measure_mixes(session: Session) -> tuple[dict[str, Series], dict[str, float]]:
    """Run the five mixes on the first LUN."""
    sector = session.device.geometry["sector_bytes"]
    mixes, throughput = {}, {}
    for mix in MIXES:
        trace = session.run(f"oc0-{mix}", {"mix": mix})
        mixes[mix], throughput[mix] = Series.of(trace), mb_per_s(trace, sector)
    return mixes, throughput


def measure_luns(session: Session, mix: str) -> NDArray[np.float64]:
    """Return the throughput of every LUN alone, shape (channels, LUNs) [MB/s]."""
    geometry = session.device.geometry
    found = np.empty((geometry["channels"], geometry["luns_per_channel"]))
    for channel, lun in np.ndindex(found.shape):
        job = {"mix": mix, "first_channel": channel, "first_lun": lun}
        trace = session.run(f"oc0-channel{channel}-lun{lun}-{mix}", job)
        found[channel, lun] = mb_per_s(trace, geometry["sector_bytes"])
    return found


def measure(session: Session) -> Oc0:
    """Run all of it."""
    mixes, throughput = measure_mixes(session)
    return Oc0(mixes, throughput, measure_luns(session, "W"), measure_luns(session, "R"))
