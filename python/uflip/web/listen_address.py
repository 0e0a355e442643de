"""An address to answer at, for whoever serves pages: the explorer and the site."""

import errno
import socket

from uflip.errors import UsageError


def listening(host: str, port: int, asked: str) -> socket.socket:
    """Return a socket that is bound to an address, and is to be closed.

    Parameters
    ----------
    host : str
        An address of this machine.
    port : int
        0: a free one.
    asked : str
        By which options it was asked for.

    Raises
    ------
    UsageError
        If the port is in use, or the address none of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit it: without, the second part of an answer waits until the first is
        # acknowledged, which takes 40 ms.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        code = error.errno if isinstance(error, OSError) else None
        taken = code == errno.EADDRINUSE
        raise UsageError(
            "The address cannot be used",
            where=asked,
            got="another program listens there"
            if taken
            else getattr(error, "strerror", None) or str(error),
            allowed="an address of this machine and a port that nobody uses",
            action="give another --port; 0 is a free one",
        ) from error
    return listener
