"""What the probes observed: the response times of every run, from a device or from a result."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from uflip._native import Trace
from uflip.data.spec import Spec

Floats = NDArray[np.float64]
WRITE = 1  # in the column `mode` of a trace


class RunKey(NamedTuple):
    """Identity of a run among the probes: micro-benchmark, pattern and value."""

    probe: str
    pattern: str
    value: int


@dataclass(frozen=True)
class Observation:
    """The I/Os of a run, in the order of submission.

    Attributes
    ----------
    spec : Spec
        The specification.
    offset_bytes : (n,) ndarray of int
        Offsets of the I/Os [bytes].
    response_ns : (n,) ndarray of float
        Their response times [ns].
    is_write : (n,) ndarray of bool
        Whether they are writes.
    """

    spec: Spec
    offset_bytes: NDArray[np.int64]
    response_ns: Floats
    is_write: NDArray[np.bool_]

    @property
    def io_size(self) -> int:
        """Size of an I/O [bytes]."""
        return self.spec.parts[0].io_bytes

    @property
    def median_ns(self) -> float:
        """Median response time [ns]."""
        return float(np.median(self.response_ns))


@dataclass(frozen=True)
class Observations:
    """All runs of the probes on a device, and the properties that any host can see.

    Attributes
    ----------
    capacity_bytes, sector_bytes : int
        Of the device [bytes].
    runs : mapping of RunKey to Observation
        The runs, in the order in which they were made.
    """

    capacity_bytes: int
    sector_bytes: int
    runs: Mapping[RunKey, Observation]

    def by_value(self, probe: str, pattern: str) -> dict[int, Observation]:
        """Return the runs of an experiment by their value; empty if it was not made."""
        return {
            key.value: run
            for key, run in self.runs.items()
            if (key.probe, key.pattern) == (probe, pattern)
        }

    def last(self, probe: str, pattern: str) -> Observation | None:
        """Return the only run of an experiment; None if it was not made."""
        return next(iter(self.by_value(probe, pattern).values()), None)

    def at_fraction(self, divisor: int, probes: Collection[tuple[str, str]]) -> Self:
        """Return the trim of the device and some probes at a part of the capacity.

        Addresses and numbers of I/Os are divided, and the response times stay.
        """
        capacity = self.capacity_bytes // divisor >> 20 << 20
        runs = {}
        for key, run in self.runs.items():
            spec, (part, *_) = run.spec, run.spec.parts
            if (key.probe, key.pattern) in probes:
                unit = part.io_bytes
                scaled = spec.but(
                    target_size=part.target_bytes * capacity // self.capacity_bytes // unit * unit,
                    target_offset=0,
                    io_count=spec.ios * capacity // self.capacity_bytes,
                )
            elif part.mode == "trim":
                size = capacity // spec.ios // self.sector_bytes * self.sector_bytes
                scaled = spec.but(target_size=size * spec.ios, target_offset=0, io_size=size)
            else:
                continue
            runs[key] = replace(run, spec=scaled)
        return replace(self, capacity_bytes=capacity, runs=runs)

    @property
    def bytes_written(self) -> int:
        """Bytes that the probes wrote."""
        return sum(
            int(np.sum(run.is_write)) * part.io_bytes
            for run in self.runs.values()
            for part in run.spec.parts
            if part.is_write
        )


def observation_of(spec: Spec, trace: Trace) -> Observation:
    """Return the observed I/Os of a trace."""
    return Observation(
        spec,
        np.asarray(trace.column("offset_bytes")).astype(np.int64),
        np.asarray(trace.column("response_time_ns")).astype(np.float64),
        np.asarray(trace.column("mode")) == WRITE,
    )


def collect(
    capacity_bytes: int, sector_bytes: int, runs: Iterable[tuple[RunKey, Spec, Trace]]
) -> Observations:
    """Return the observations of traces, without runs of other micro-benchmarks."""
    return Observations(
        capacity_bytes,
        sector_bytes,
        {key: observation_of(spec, trace) for key, spec, trace in runs},
    )
