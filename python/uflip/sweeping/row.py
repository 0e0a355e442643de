"""A row of a sweep: the measurements of one point."""

from dataclasses import asdict, dataclass, field

from uflip.data.document import Table
from uflip.data.spec import MODES

Values = Table
"""The varied values of a point, by name."""
Statistics = dict[str, int | float | None]
"""As in `uflip.stats.SeriesStatistics`."""


@dataclass(frozen=True)
class SweepRow:
    """The measurements of a point.

    Attributes
    ----------
    values : dict
        The varied values.
    device : str
        The device's URL, for repeating the run by hand.
    durability : str
        When writes were complete, see `uflip.durability`.
    spare_bytes, memory_bytes : int or None
        Costs of the configuration, see `uflip.sweeping.costs`; None if unknown.
    ios : int
        I/Os of the run, ignored ones included.
    elapsed_ns : int or None
        From the first submission to the last completion [ns]; None in functional mode.
    ios_per_s, bytes_per_s : float or None
        Rates of the I/Os that are not ignored.
    reads, writes : dict or None
        Statistics of their response times: mean_ns, std_ns, percentiles, ...; None without any.
    write_amplification : float or None
        Bytes programmed over bytes that the host wrote; None if it wrote none.
    relocated_pages_per_block : float or None
        Pages relocated per collected block; None if no block was collected.
    counters : dict
        Device counters of the run.
    statistics : dict or None
        Statistics of the response times of all I/Os, as in `uflip pattern`; None without any.
    others : dict
        Mode -> statistics of other I/Os: "trim", "append", "reset", ...
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
        """Response times by mode, for modes with I/Os, in the order of `MODES`."""
        every = {"read": self.reads, "write": self.writes, **self.others}
        return {mode: times for mode in MODES if (times := every.get(mode))}

    def as_dict(self) -> Table:
        """Return plain data, in the order of the fields."""
        return asdict(self)
