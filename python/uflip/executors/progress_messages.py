"""Messages from running work to the waiting caller, on any executor.

Results come at the end, and a benchmark takes hours. The caller subscribes to a topic, and the work
publishes to it: in this process by a call, in a worker of Dask through its scheduler. Messages are
plain data, arrive on another thread, and may be lost; no result depends on them.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol, runtime_checkable
from uuid import uuid4

from uflip.executors.run import current

OnNews = Callable[[Any], None]
"""Called with a message as JSON data: a tuple arrives as a list."""

_listening: dict[str, OnNews] = {}


@runtime_checkable
class Remote(Protocol):
    """An executor with remote processes that can send messages and answer calls."""

    elsewhere: bool

    def labels(self) -> set[str]:
        """Return the labels of the workers."""

    def ask(self, worker: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function in a worker now."""

    def listen(self, name: str, on_news: OnNews) -> None:
        """Subscribe a callback to the messages of a topic."""

    def deafen(self, name: str) -> None:
        """Unsubscribe from a topic."""


@contextmanager
def subscribed(on_news: OnNews) -> Iterator[str]:
    """Subscribe to messages of the current executor's work in this block; return the topic.

    Examples
    --------
    >>> with subscribed(print) as name:
    ...     publish(name, [1, "so far"])
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


def publish(name: str, news: Any) -> None:
    """Publish a message to a topic, if anybody has subscribed."""
    if (on_news := _listening.get(name)) is not None:
        on_news(news)
    elif "distributed" in sys.modules:
        from distributed import get_worker

        with suppress(ValueError):  # not in a worker
            get_worker().log_event(name, news)
