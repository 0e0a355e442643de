"""Work as it is sent to a worker: a function, and what was switched for whoever asks for it.

Threads would inherit what was switched; processes and other machines must be told. So all are told
in the same way, and a point gives the same wherever it is carried out. A simulator of another
version would give something else: it refuses.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from uflip import _native
from uflip.device import cache
from uflip.errors import UnavailableError


@dataclass(frozen=True)
class WorkerTask:
    """A function of a point, for any worker; picklable where the function is.

    Attributes
    ----------
    function : callable
        Makes its own device, so that points know nothing of each other.
    cached : bool
        Whether simulated devices come from the worker's cache and go there.
    simulator : str
        The version that the results belong to.
    """

    function: Callable[[Any], Any]
    cached: bool = field(default_factory=lambda: not cache.is_switched_off())
    simulator: str = _native.SIMULATOR_VERSION

    def __call__(self, point: Any) -> Any:
        """Carry it out here."""
        if self.simulator != _native.SIMULATOR_VERSION:
            raise UnavailableError(
                "A worker has another version of the simulator",
                where="the worker's installation of uflip",
                got=_native.SIMULATOR_VERSION,
                allowed=self.simulator,
                action="install the same version of uflip on every machine",
            )
        if self.cached:
            return self.function(point)
        with cache.switched_off():
            return self.function(point)
