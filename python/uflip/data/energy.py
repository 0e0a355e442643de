"""Energy of runs: computed by a simulated device, or measured by a power meter of the host.

A simulated device with energies in its profile counts `energy_CAUSE_nj` [nJ]. A meter samples the
power during a run; its joules have an error that follows from the samples.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TypedDict

from msgspec import Struct

from uflip.data.document import Count, Name, Text

PREFIX, SUFFIX = "energy_", "_nj"
SIMULATED = "simulated"
MARKS = {
    "too_few_samples": "fewer than two samples during the run",
    "not_covered": "the samples do not cover the run",
    "went_back": "the energy counter went back: it was reset",
    "wrapped": "the energy counter wrapped; the difference takes that into account",
    "mostly_outside": "most of the measured time is the preparation of the run",
    "not_read": "the meter could not be read",
}
"""Doubts about a measurement of power."""
MOST = 0.5
"""Share of the measured time from which a run is most of it."""


class PowerRecord(Struct, frozen=True, omit_defaults=True):
    """The power during a run, as a meter of the host measured it."""

    meter: Text  #: The source, as `--power` names it.
    window_ns: Count  #: Length of the measured time: the run and its preparation [ns].
    joules: float | None = None  #: Energy in that time; None if unknown.
    error_joules: float = 0.0  #: Largest error that follows from the times of the samples.
    times_ns: list[Count] = []  #: Times of the samples since the begin of the window [ns].
    watts: list[float] = []  #: Power at that time; of an energy counter: since the sample before.
    marks: tuple[Name, ...] = ()  #: Doubts, the keys of `MARKS`.


class EnergySummary(TypedDict):
    """The energy of a run, or of all its repetitions.

    `source` is `simulated` or the meter; `error_joules` and `marks` are those of a meter;
    `by_cause_joules` is empty for a meter.
    """

    source: Text
    joules: float | None
    error_joules: float
    by_cause_joules: dict[str, float]
    mean_watts: float | None
    uj_per_io: float | None
    nj_per_byte: float | None
    marks: list[Name]


def joules_by_cause(counters: Mapping[str, int]) -> dict[str, float]:
    """Return the energy of a simulated device by cause [J]; empty if it has no energies.

    Examples
    --------
    >>> joules_by_cause({"energy_erase_nj": 1_500_000_000, "blocks_erased": 3})
    {'erase': 1.5}
    """
    return {
        name.removeprefix(PREFIX).removesuffix(SUFFIX): nanojoules / 1e9
        for name, nanojoules in counters.items()
        if is_energy(name)
    }


def is_energy(counter: str) -> bool:
    """Return whether a counter of a simulated device is an energy."""
    return counter.startswith(PREFIX) and counter.endswith(SUFFIX)


def summarise_energy(
    counters: Mapping[str, int] | None,
    records: Sequence[PowerRecord],
    ios: int,
    size_bytes: int,
    elapsed_ns: int,
) -> EnergySummary | None:
    """Return the energy of a run or of several; None if it is unknown.

    A meter also measures the preparation of a run. The energy of the run is its share of the time.

    `counters`: counters of the device, summed over the runs. `records`: one for each run; empty
    without a meter. `ios`, `size_bytes`: I/Os of the runs, and their total size. `elapsed_ns`:
    total time of the runs [ns].

    Examples
    --------
    >>> counters = {"energy_cell_read_nj": 3_000, "energy_idle_nj": 1_000}
    >>> energy = summarise_energy(counters, [], 4, 16384, 2_000_000)
    >>> energy["joules"], energy["uj_per_io"], energy["mean_watts"]
    (4e-06, 1.0, 0.002)
    """
    causes = joules_by_cause(counters or {})
    if causes:
        # Summed as integers: exact.
        total = sum(n for name, n in (counters or {}).items() if is_energy(name))
        return _summary(SIMULATED, total / 1e9, causes, over=(ios, size_bytes, elapsed_ns))
    if not records:
        return None
    window_ns = sum(each.window_ns for each in records)
    share = min(elapsed_ns / window_ns, 1.0) if window_ns else 0.0
    known = [each.joules for each in records]
    joules = None if None in known else share * sum(each or 0.0 for each in known)
    error = share * sum(each.error_joules for each in records)
    marks = list(dict.fromkeys(mark for each in records for mark in each.marks))
    if share < MOST:
        marks.append("mostly_outside")
    over = ios, size_bytes, elapsed_ns
    return _summary(records[0].meter, joules, {}, over=over, error=error, marks=marks)


def _summary(
    source: str,
    joules: float | None,
    causes: dict[str, float],
    *,
    over: tuple[int, int, int],
    error: float = 0.0,
    marks: Sequence[str] = (),
) -> EnergySummary:
    def per(number: float, scale: float) -> float | None:
        return joules * scale / number if joules is not None and number else None

    ios, size_bytes, elapsed_ns = over
    return {
        "source": source,
        "joules": joules,
        "error_joules": error,
        "by_cause_joules": causes,
        "mean_watts": per(elapsed_ns, 1e9),
        "uj_per_io": per(ios, 1e6),
        "nj_per_byte": per(size_bytes, 1e9),
        "marks": list(marks),
    }


def integrate_power(
    times_ns: Sequence[int], watts: Sequence[float], begin_ns: int, end_ns: int
) -> tuple[float, float]:
    """Return the energy of sampled power between two times, and its largest error [J].

    Between two samples the power is taken as linear (trapezoids). The error is half of the
    difference between the sums of the larger and of the smaller neighbour: the truth lies within it
    if the power is monotone between samples. Before the first sample and after the last one the
    power is that of the nearest sample, with an error as large as the energy itself.

    Examples
    --------
    >>> integrate_power([0, 10**9, 2 * 10**9], [1.0, 3.0, 3.0], 0, 2 * 10**9)
    (5.0, 1.0)
    """
    joules = error = 0.0
    points = list(zip(times_ns, watts, strict=True))
    for (t0, w0), (t1, w1) in pairwise(points):
        from_ns, until_ns = max(t0, begin_ns), min(t1, end_ns)
        if from_ns >= until_ns:
            continue
        seconds = (until_ns - from_ns) / 1e9
        middle = ((from_ns + until_ns) / 2 - t0) / (t1 - t0)
        joules += seconds * (w0 + (w1 - w0) * middle)
        error += seconds * abs(w1 - w0) / 2
    if points:
        (first_ns, first_watts), (last_ns, last_watts) = points[0], points[-1]
        before_s = max(min(first_ns, end_ns) - begin_ns, 0) / 1e9
        after_s = max(end_ns - max(last_ns, begin_ns), 0) / 1e9
        edges = before_s * first_watts + after_s * last_watts
        joules, error = joules + edges, error + edges
    return joules, error
