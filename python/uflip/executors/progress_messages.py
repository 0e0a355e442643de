"""What work tells while it lasts: from wherever it is carried out to whoever waits for it.

Results come at the end, and a benchmark takes hours. Whoever waits listens to a name, the work
tells to that name: in this process by a call, in a worker of Dask through its scheduler. News are
plain data, come on another thread, and may be lost; no result ever depends on them.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol, runtime_checkable
from uuid import uuid4

from uflip.executors.run import current

OnNews = Callable[[Any], None]
"""Called with what the work tells, as JSON knows it: a tuple arrives as a list."""

_listening: dict[str, OnNews] = {}


@runtime_checkable
class Remote(Protocol):
    """An executor whose work is carried out in other processes that tell and answer."""

    elsewhere: bool

    def labels(self) -> set[str]:
        """Return what workers say that they have."""

    def ask(self, worker: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function in a worker now."""

    def listen(self, name: str, on_news: OnNews) -> None:
        """Call what is given with all that is told to a name from now on."""

    def deafen(self, name: str) -> None:
        """No longer."""


@contextmanager
def heard(on_news: OnNews) -> Iterator[str]:
    """Listen in this block to what work of the current executor tells; gives the name to tell to.

    Examples
    --------
    >>> with heard(print) as name:
    ...     tell(name, [1, "so far"])
    [1, 'so far']
    """
    name, executor = f"uflip-{uuid4().hex}", current()
    _listening[name] = on_news
    if isinstance(executor, Remote):
        executor.listen(name, on_news)
    try:
        yield name
    finally:
        if isinstance(executor, Remote):
            executor.deafen(name)
        del _listening[name]


def tell(name: str, news: Any) -> None:
    """Tell something to whoever listens to a name, if anybody does."""
    if (on_news := _listening.get(name)) is not None:
        on_news(news)
    elif "distributed" in sys.modules:
        from distributed import get_worker

        with suppress(ValueError):  # this is no worker
            get_worker().log_event(name, news)
