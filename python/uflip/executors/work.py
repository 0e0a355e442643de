"""A task for a worker: a function, and the context settings of the caller.

Threads would inherit context settings; processes and other machines do not. So all workers get them
in the same way, and a point has the same result everywhere. A worker with another version of the
simulator refuses the task.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from uflip import _native
from uflip.device import cache
from uflip.errors import UnavailableError


@dataclass(frozen=True)
class WorkerTask:
    """A function of a point, for any worker; picklable if the function is.

    Attributes
    ----------
    function : callable
        Creates its own device, so that points are independent.
    cached : bool
        Whether simulated devices may come from the worker's cache, and be added to it.
    simulator : str
        Version of the simulator that the results belong to.
    """

    function: Callable[[Any], Any]
    cached: bool = field(default_factory=lambda: not cache.is_switched_off())
    simulator: str = _native.SIMULATOR_VERSION

    def __call__(self, point: Any) -> Any:
        """Run the function on this worker."""
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
