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

from uflip.executors.executor import current

OnMessage = Callable[[Any], None]
"""Called with a message as JSON data: a tuple arrives as a list."""

_subscribers: dict[str, OnMessage] = {}


@runtime_checkable
class Remote(Protocol):
    """An executor with remote processes that can send messages and answer calls."""

    elsewhere: bool

    def labels(self) -> set[str]:
        """Return the labels of the workers."""

    def ask(self, worker: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function in a worker now."""

    def subscribe(self, name: str, on_message: OnMessage) -> None:
        """Subscribe a callback to the messages of a topic."""

    def unsubscribe(self, name: str) -> None:
        """Unsubscribe from a topic."""


@contextmanager
def subscribe(on_message: OnMessage) -> Iterator[str]:
    """Subscribe to messages of the current executor's work in this block; return the topic.

    >>> with subscribe(print) as name:
    ...     publish(name, [1, "so far"])
    [1, 'so far']
    """
    name, executor = f"uflip-{uuid4().hex}", current()
    _subscribers[name] = on_message
    if isinstance(executor, Remote):
        executor.subscribe(name, on_message)
    try:
        yield name
    finally:
        if isinstance(executor, Remote):
            executor.unsubscribe(name)
        del _subscribers[name]


def publish(name: str, message: Any) -> None:
    """Publish a message to a topic, if anybody has subscribed."""
    if (on_message := _subscribers.get(name)) is not None:
        on_message(message)
    elif "distributed" in sys.modules:
        from distributed import get_worker

        with suppress(ValueError):  # not in a worker
            get_worker().log_event(name, message)
