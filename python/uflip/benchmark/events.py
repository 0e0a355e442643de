"""Progress events of a benchmark: opening, state, runs and jobs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from uflip._native import Column
from uflip.benchmark.estimate import PlanEstimate
from uflip.benchmark.plan import Plan
from uflip.benchmark.state import Enforcement
from uflip.data.device import DeviceInfo, DeviceWear
from uflip.microbench.experiment import PlannedRun
from uflip.native_wait import LiveRows as Rows


@dataclass(frozen=True)
class ResetProgress:
    """The state is being enforced again before a run."""

    index: int
    run: PlannedRun
    done: int
    total: int


@dataclass(frozen=True)
class RunStarted:
    """A run is about to start; the device idles first. `index` counts from 0."""

    index: int
    run: PlannedRun


@dataclass(frozen=True)
class RunProgress:
    """A run is in progress."""

    index: int
    run: PlannedRun
    done: int
    total: int
    last_response_ns: int


@dataclass(frozen=True)
class LiveRows:
    """New rows of a run under way; see `uflip.results.time_rows.live_rows`."""

    index: int
    run: PlannedRun
    device: DeviceInfo
    rows: Rows


@dataclass(frozen=True)
class RunFinished:
    """A run is finished and stored. `taken_ns` is on the wall clock, with the pause before it."""

    index: int
    run: PlannedRun
    taken_ns: int


@dataclass(frozen=True)
class PlanGrew:
    """Experiments that have not converged are repeated: the plan has more runs at its end."""

    plan: Plan


RunEvent = PlanGrew | ResetProgress | RunStarted | RunProgress | LiveRows | RunFinished


@dataclass(frozen=True)
class FileBegins:
    """A file is about to be created or extended by writing `missing_bytes`."""

    url: str
    missing_bytes: int
    new: bool


@dataclass(frozen=True)
class FileProgress:
    """Number of finished writes that bring a file to its size."""

    url: str
    done: int
    total: int


@dataclass(frozen=True)
class DeviceBegins:
    """A simulated device takes long to create; `left_ns` is the time left at its current pace."""

    url: str
    left_ns: int


@dataclass(frozen=True)
class DeviceProgress:
    """Progress of bringing a simulated device into its state: bytes written."""

    url: str
    done: int
    total: int
    left_ns: int


@dataclass(frozen=True)
class StateBegins:
    """A state is about to be enforced; `done_ios` of its writes were made earlier."""

    enforcement: Enforcement
    done_ios: int


@dataclass(frozen=True)
class StateProgress:
    """Number of finished writes of a state, earlier ones included."""

    done: int
    total: int


@dataclass(frozen=True)
class WearReport:
    """Wear of the device, and the bytes that the runs of a plan will write."""

    wear: DeviceWear
    bytes_written: int


@dataclass(frozen=True)
class RunsBegin:
    """The runs of a plan are about to be made; `done` of them exist already."""

    plan: Plan
    estimate: PlanEstimate
    done: int


@dataclass(frozen=True)
class JobsBegin:
    """The jobs of an open-channel device are about to be made; `done` of them exist already."""

    url: str
    jobs: int
    done: int


@dataclass(frozen=True)
class TraceRead:
    """A trace was read."""

    description: str  #: The way it was understood.
    #: The response times in it by their name, such as Q2C and D2C: float64 [ns].
    recorded: Mapping[str, Column]


BenchmarkEvent = (
    TraceRead
    | FileBegins
    | FileProgress
    | DeviceBegins
    | DeviceProgress
    | StateBegins
    | StateProgress
    | WearReport
    | RunsBegin
    | JobsBegin
    | RunEvent
)

OnEvent = Callable[[BenchmarkEvent], None]


def ignore(_event: BenchmarkEvent) -> None:
    """Ignore an event."""
