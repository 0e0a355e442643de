"""Whose submissions are looked at now: some at a time, of one account no more than half of them.

Whoever waits for an examiner waits here, without a thread that others need.
"""

from collections.abc import Callable
from typing import TypeVar
from weakref import WeakValueDictionary

from anyio import CapacityLimiter, to_thread

from uflip.site.folders import EXAMINERS

OF_ONE_ACCOUNT = EXAMINERS // 2
"""At a time: who sends much leaves room for others."""
T = TypeVar("T")


class Committing:
    """Looks at submissions, some at a time."""

    def __init__(self) -> None:
        self._all = CapacityLimiter(EXAMINERS)
        # There as long as somebody of the account waits or is served.
        self._of: WeakValueDictionary[int, CapacityLimiter] = WeakValueDictionary()

    async def run(self, account: int, work: Callable[[], T]) -> T:
        """Do the work of an account in a thread of its own, when its turn has come.

        Parameters
        ----------
        account : int
            Its id.
        work : callable
            Looks at a submission.
        """
        mine = self._of.setdefault(account, CapacityLimiter(OF_ONE_ACCOUNT))
        async with mine:
            return await to_thread.run_sync(work, limiter=self._all)
