"""What has been written to a device since its state was enforced, run by run."""

import json
from typing import Protocol

import numpy as np

from uflip._native import Trace
from uflip.methodology.state import next_state_id
from uflip.spec import components, writes


class Noted(Protocol):
    """Where it is noted what a run left behind; `uflip.results.StateRecord` is one."""

    def after_run(self, state_id: str | None, written_bytes: int, used_bytes: int) -> None:
        """Note it durably."""


class History:
    """Follows the state of a device through its runs.

    Parameters
    ----------
    state_id : str or None
        The state before the first run; None where it is not known.
    noted : Noted, optional
        Told after each run that wrote.
    """

    def __init__(self, state_id: str | None, noted: Noted | None = None) -> None:
        self.state_id = state_id
        """The state that the device is in now."""
        self._noted = noted

    def after(self, trace: Trace) -> None:
        """Take note of a run that is over; reads leave a device in the state that it was in."""
        spec = json.loads(trace.spec_json)
        if not writes(spec):
            return
        self.state_id = next_state_id(self.state_id, spec, len(trace))
        if self._noted is None:
            return
        sizes, modes = np.asarray(trace.column("io_size_bytes")), np.asarray(trace.column("mode"))
        written = int(sizes[modes == 1].sum(dtype=np.uint64))
        ends = [
            part["target_offset"] + part["target_size"]
            for part in components(spec)
            if part["mode"] == "write" and part["location"] != "random"
        ]
        self._noted.after_run(self.state_id, written, max(ends, default=0))
