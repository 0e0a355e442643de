"""Limits of concurrent work: for all accounts together, and for each of them.

A request waits here for a slot, without a thread that others need, and before its body is read.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar
from weakref import WeakValueDictionary

from anyio import CapacityLimiter, to_thread

T = TypeVar("T")


class AccountLimiter:
    """Limits concurrent work; one account may use half of the limit.

    Parameters
    ----------
    total : int
        Limit for all accounts.
    """

    def __init__(self, total: int) -> None:
        self._all = CapacityLimiter(total)
        self._per_account = max(1, total // 2)
        # An entry exists while a request of the account waits or is served.
        self._by_account: WeakValueDictionary[int, CapacityLimiter] = WeakValueDictionary()

    @asynccontextmanager
    async def slot(self, account: int) -> AsyncIterator[None]:
        """Wait for a slot of an account, by its id, and hold it for this block."""
        own = self._by_account.setdefault(account, CapacityLimiter(self._per_account))
        async with own, self._all:
            yield

    async def run(self, account: int, work: Callable[[], T]) -> T:
        """Run the work of an account on a thread of its own, when it has a slot."""
        async with self.slot(account):
            return await to_thread.run_sync(work, limiter=CapacityLimiter(1))
