"""What a point of a sweep gave."""

from dataclasses import asdict, dataclass, field

from uflip.data.document import Table
from uflip.data.spec_base import MODES

Values = Table
"""What varies: name -> value at a point."""
Statistics = dict[str, int | float | None]
"""As `uflip.stats.RunStatistics` has them."""


@dataclass(frozen=True)
class SweepRow:
    """What a point gave.

    Attributes
    ----------
    values : dict
        What varied.
    device : str
        The device's URL: what is measured here can be repeated by hand.
    durability : str
        What writes waited for, see `uflip.durability`.
    spare_bytes, memory_bytes : int or None
        What the configuration costs, see `uflip.sweeping.costs`; None where it is not known.
    ios : int
        I/Os of the run, ignored ones included.
    elapsed_ns : int or None
        From the first submission to the last completion [ns]; None where no time passed.
    ios_per_s, bytes_per_s : float or None
        Rates of what is not ignored, in the time that it takes.
    reads, writes : dict or None
        Of the response times of either: mean_ns, std_ns, percentiles, ...; None without any.
    write_amplification : float or None
        Bytes programmed over bytes that the host wrote; None where it wrote none.
    relocated_pages_per_block : float or None
        Pages moved a collected block; None where none was collected.
    counters : dict
        What the device counted during the run.
    statistics : dict or None
        Of the response times of all I/Os together, as `uflip pattern` has them; None without any.
    others : dict
        Mode -> the same of what is neither read nor written: "trim", "append", "reset", ...
    """

    values: Values
    device: str
    durability: str
    spare_bytes: int | None
    memory_bytes: int | None
    ios: int
    elapsed_ns: int | None
    ios_per_s: float | None
    bytes_per_s: float | None
    reads: Statistics | None
    writes: Statistics | None
    write_amplification: float | None
    relocated_pages_per_block: float | None
    counters: dict[str, int]
    statistics: Statistics | None = None
    others: dict[str, Statistics] = field(default_factory=dict)

    @property
    def times(self) -> dict[str, Statistics]:
        """Mode -> its response times, of those there are, in the order of `MODES`."""
        every = {"read": self.reads, "write": self.writes, **self.others}
        return {mode: times for mode in MODES if (times := every.get(mode))}

    def as_dict(self) -> Table:
        """Plain data, in the order of the fields."""
        return asdict(self)
