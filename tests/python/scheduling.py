"""Distributes test files to workers, as pytest-xdist does, and continues when a worker dies.

A worker dies where a test ends its process, or takes longer than `timeout`, which cannot be ended
otherwise. pytest-xdist 3.8 puts all files of the worker back into its queue: the test that killed
it, which then kills the next worker, and finished files. A worker with a finished file reports
nothing, so it gets no more work; if the others were shut down before, the tests hang. Here the test
has failed, finished files are not scheduled again, and the others are.
"""

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController


class RestartingScheduler(LoadFileScheduling):
    """Reschedules the unfinished files of a worker that died."""

    def remove_node(self, node: WorkerController) -> str | None:
        """Remove a worker; return the test that it was running, if it died."""
        assigned = self.assigned_work.pop(node)
        pending = [
            (unit, test) for unit in assigned.values() for test, done in unit.items() if not done
        ]
        if not pending:
            return None
        unit, died_in = pending[0]
        unit[died_in] = True
        self.workqueue.update(
            {scope: unit for scope, unit in assigned.items() if not all(unit.values())}
        )
        for other in self.assigned_work:
            if self.workqueue:
                self._reschedule(other)
        return str(died_in)
