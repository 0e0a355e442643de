"""Statistics of a run: as a whole, by mode, and of a mix by pattern.

Reads, writes, trims and appends are different populations: a mean over two of them is the response
time of neither. So a run with several modes has separate statistics for each: a mix, parallel
patterns, a replay, or an imported log. Everything is computed in one pass over the run, a part at a
time, so that memory use does not grow with the length of the run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from uflip import _native
from uflip.data.single_run import ModeDocument
from uflip.data.spec import MODES, Mix, Pattern, Replay, read_spec
from uflip.results.columns import pieces
from uflip.results.throughput import Amount, measured_amount, rates
from uflip.stats import Distribution

Numbers = dict[str, int | float | None]
COMPONENTS = ("first", "second")
"""The two patterns of a mix."""


@dataclass(frozen=True, kw_only=True)
class RunStatistics:
    """Statistics of some runs together, without the ignored start-up.

    Attributes
    ----------
    count : int
        Number of measured I/Os.
    statistics : dict or None
        As `uflip.stats.SeriesStatistics`; None if the runs contain only start-up.
    components : dict
        The same for each pattern of a mix, by `COMPONENTS`; empty for anything else.
    by_mode : dict
        For each mode that occurs: `bytes`, `ios_per_s`, `bytes_per_s` and `statistics`.
    causes_ns : dict
        Mean time of an I/O by cause [ns].
    ios_per_s, bytes_per_s : float or None
        See `uflip.results.throughput`.
    """

    count: int
    statistics: Numbers | None
    components: Mapping[str, Numbers | None]
    by_mode: Mapping[str, ModeDocument]
    causes_ns: Mapping[str, float]
    ios_per_s: float | None
    bytes_per_s: float | None

    @property
    def separate_modes(self) -> Mapping[str, ModeDocument]:
        """Return `by_mode` if there are several modes; a single one repeats the whole."""
        return self.by_mode if len(self.by_mode) > 1 else {}


def statistics_of(traces: Sequence[_native.Trace]) -> RunStatistics:
    """Compute the statistics of the repetitions of a run, at least one.

    Examples
    --------
    >>> from uflip.device.opener import open_device
    >>> from uflip.spec import basic, mix
    >>> both = mix(basic("read", "random"), basic("write", "random"), 3, io_count=100)
    >>> with open_device("sim:demo") as device:
    ...     measured = statistics_of([device.run(both)])
    >>> {mode: one["statistics"]["count"] for mode, one in measured.by_mode.items()}
    {'read': 300, 'write': 100}
    """
    spec = read_spec(traces[0].spec_json)
    mode = _common_mode(spec)
    gathered = _Accumulator(isinstance(spec, Mix), mode, traces[0].causes)
    for trace in traces:
        gathered.add(trace)
    amounts = [measured_amount(trace, mode) for trace in traces]
    ios_per_s, bytes_per_s = rates(amounts)
    count = len(gathered.all_ios)
    return RunStatistics(
        count=count,
        statistics=_numbers(gathered.all_ios),
        components={
            name: _numbers(times)
            for name, times in zip(COMPONENTS, gathered.components, strict=False)
        },
        by_mode=gathered.mode_statistics(amounts),
        causes_ns={name: ns / count if count else 0.0 for name, ns in gathered.causes.items()},
        ios_per_s=ios_per_s,
        bytes_per_s=bytes_per_s,
    )


class _Accumulator:
    """Response times, sizes and causes of measured I/Os.

    `mode` is the number of their common mode, if they have one.
    """

    def __init__(self, is_mix: bool, mode: int | None, causes: Sequence[str]) -> None:
        self._mode = mode
        self.all_ios = Distribution()
        self.components = [Distribution() for _ in COMPONENTS] if is_mix else []
        self.modes = {number: Distribution() for number in range(len(MODES)) if mode is None}
        self.bytes = dict.fromkeys(range(len(MODES)), 0)
        self.causes = dict.fromkeys(causes, 0)

    def add(self, trace: _native.Trace) -> None:
        names = ["ignored", "response_time_ns", "io_size_bytes"]
        names += ["component"] if self.components else []
        names += ["mode"] if self._mode is None else []
        for ignored, *columns in pieces(trace, names):
            measured = ignored == 0
            times, sizes, *other_columns = (column[measured] for column in columns)
            self.all_ios.add(times)
            if self.components:
                for number, component in enumerate(self.components):
                    component.add(times[other_columns[0] == number])
            if self._mode is not None:
                self.bytes[self._mode] += int(sizes.sum(dtype=np.uint64))
                continue
            for number in np.unique(other_columns[-1]).tolist():
                in_mode = other_columns[-1] == number
                self.modes[number].add(times[in_mode])
                self.bytes[number] += int(sizes[in_mode].sum(dtype=np.uint64))
        for name in self.causes:
            for ignored, values in pieces(trace, ["ignored", name]):
                self.causes[name] += int(values[ignored == 0].sum(dtype=np.uint64))

    def mode_statistics(self, amounts: Sequence[Amount]) -> dict[str, ModeDocument]:
        """Return the statistics of each mode that occurs."""
        modes = self.modes if self._mode is None else {self._mode: self.all_ios}
        by_mode: dict[str, ModeDocument] = {}
        for number, times in modes.items():
            if (statistics := _numbers(times)) is None:
                continue
            ios_per_s, bytes_per_s = rates([amount.of_mode(number) for amount in amounts])
            by_mode[MODES[number]] = {
                "bytes": self.bytes[number],
                "ios_per_s": ios_per_s,
                "bytes_per_s": bytes_per_s,
                "statistics": statistics,
            }
        return by_mode


def _numbers(times: Distribution) -> Numbers | None:
    statistics = times.summary()
    return None if statistics is None else statistics.as_dict()


def _common_mode(spec: Pattern) -> int | None:
    """Return the number of the mode of all I/Os of a pattern; None if there may be several."""
    if isinstance(spec, Replay):
        return None
    modes = {part.mode for part in spec.parts}
    return MODES.index(modes.pop()) if len(modes) == 1 else None
