"""What a session tells whoever watches it, beside the runs (`uflip.methodology.execute`)."""

from collections.abc import Callable
from dataclasses import dataclass

from uflip.data.device import DeviceWear
from uflip.methodology import Enforcement, Event, Plan, PlanEstimate


@dataclass(frozen=True)
class FileBegins:
    """A file is about to be made, or enlarged: so many bytes are to be written."""

    url: str
    missing_bytes: int
    new: bool


@dataclass(frozen=True)
class FileProgress:
    """So many of the writes that bring a file to its size are made."""

    url: str
    done: int
    total: int


@dataclass(frozen=True)
class DeviceBegins:
    """A simulated device takes long to be made: so much longer than it has taken, by its pace."""

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
    """A state is about to be enforced; `done_ios` of its writes were made before."""

    wanted: Enforcement
    done_ios: int


@dataclass(frozen=True)
class StateProgress:
    """So many of the writes of a state are made, those before included."""

    done: int
    total: int


@dataclass(frozen=True)
class WearTold:
    """What the runs of a plan will take of the device's endurance."""

    wear: DeviceWear
    bytes_written: int


@dataclass(frozen=True)
class RunsBegin:
    """The runs of a plan are about to be made; `done` of them are there already."""

    plan: Plan
    estimate: PlanEstimate
    done: int


@dataclass(frozen=True)
class JobsBegin:
    """The jobs of an open-channel device are about to be made; `done` of them are there already."""

    url: str
    jobs: int
    done: int


SessionEvent = (
    FileBegins
    | FileProgress
    | DeviceBegins
    | DeviceProgress
    | StateBegins
    | StateProgress
    | WearTold
    | RunsBegin
    | JobsBegin
    | Event
)

OnEvent = Callable[[SessionEvent], None]


def ignore(_event: SessionEvent) -> None:
    """Watch nothing."""
