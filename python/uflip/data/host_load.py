"""Disturbances by the host during a run on a real device, as counters of Linux show them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from uflip.data.document import Count, Name

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CPU_WAIT, INTERRUPTS = "cpu_wait_ns", "interrupts"
DISTURBANCES: Mapping[str, str] = {
    "steal_ticks": "steal time",
    CPU_WAIT: "the run waiting for a processor",
    "preemptions": "the run preempted",
    INTERRUPTS: "more than twice the usual interrupts",
    "memory_stall_us": "a task waiting for memory",
    "throttled": "a throttled processor",
    "slow_clock": "a processor below 80 % of its clock",
}
"""Counter -> what a window contains if it counts as disturbed."""
MANY = 2
CPU_WAIT_SHARE = 0.1
"""Share of a window that the run waits for a processor, from which the window is disturbed."""


class HostRecord(Struct, frozen=True, omit_defaults=True):
    """Changes of the host's counters in successive windows; the first begins before the run."""

    ends_ns: list[Count]  #: Ends of the windows since the begin of the run [ns].
    changes: dict[Name, list[Count]] = {}  #: By counter; those that did not change are missing.

    @property
    def window_ns(self) -> int:
        """Median length of a window [ns]."""
        import numpy as np  # a list of devices does not wait for it

        return int(np.median(np.diff(self.ends_ns, prepend=0)))

    def disturbed(self) -> dict[str, NDArray[np.bool_]]:
        """Return for each counter which windows (n,) are disturbed; those without are missing."""
        import numpy as np

        lengths = np.diff(np.asarray(self.ends_ns, np.float64), prepend=0.0)
        found = {}
        for name in DISTURBANCES.keys() & self.changes.keys():
            changes = np.asarray(self.changes[name], np.int64)
            per_ns = 0.0
            if name == CPU_WAIT:
                per_ns = CPU_WAIT_SHARE
            elif name == INTERRUPTS:
                per_ns = MANY * float(np.median(changes / np.maximum(lengths, 1)))
            if (windows := changes > per_ns * lengths).any():
                found[name] = windows
        return {name: found[name] for name in DISTURBANCES if name in found}

    def touched(
        self, windows: NDArray[np.bool_], begin_ns: NDArray[np.int64], end_ns: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Return which I/Os (m,), from `begin_ns` to `end_ns`, lie in one of the windows (n,).

        Examples
        --------
        >>> import numpy as np
        >>> record = HostRecord([10, 20, 30], {"steal_ticks": [0, 1, 0]})
        >>> stolen = record.disturbed()["steal_ticks"]
        >>> record.touched(stolen, np.array([0, 5, 12, 21]), np.array([4, 15, 19, 25])).tolist()
        [False, True, True, False]
        """
        import numpy as np

        until = np.concatenate([[0], np.cumsum(windows)])
        first = np.searchsorted(self.ends_ns, begin_ns)
        last = np.minimum(np.searchsorted(self.ends_ns, end_ns) + 1, len(windows))
        touched: NDArray[np.bool_] = until[last] > until[np.minimum(first, last)]
        return touched
