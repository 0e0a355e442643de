"""How much of the same work is done at a time: for all accounts together, and for one of them.

A request that waits for its turn waits here, without a thread that others need, and without having
read its body.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar
from weakref import WeakValueDictionary

from anyio import CapacityLimiter, to_thread

T = TypeVar("T")


class AccountLimiter:
    """Lets so much be done at a time; of one account no more than half of it.

    Parameters
    ----------
    total : int
        How much, for all accounts.
    """

    def __init__(self, total: int) -> None:
        self._all = CapacityLimiter(total)
        self._of_one = max(1, total // 2)
        # There as long as somebody of the account waits or is served.
        self._of: WeakValueDictionary[int, CapacityLimiter] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, account: int) -> AsyncIterator[None]:
        """Wait for the turn of an account, by its id, and keep it for this block."""
        mine = self._of.setdefault(account, CapacityLimiter(self._of_one))
        async with mine, self._all:
            yield

    async def run(self, account: int, work: Callable[[], T]) -> T:
        """Do the work of an account on a thread of its own, when its turn has come."""
        async with self.turn(account):
            return await to_thread.run_sync(work, limiter=CapacityLimiter(1))
