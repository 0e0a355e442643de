"""Listening sockets for the explorer and the site."""

import errno
import socket

from uflip.errors import UsageError


def bind_listener(host: str, port: int, options: str) -> socket.socket:
    """Return a socket bound to an address; the caller closes it.

    Parameters
    ----------
    host : str
        An address of this machine.
    port : int
        The port; 0: a free one.
    options : str
        The options that selected it, for the error.

    Raises
    ------
    UsageError
        If the port is in use, or the address is not of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit it. Without it the second part of a response waits for the
        # acknowledgement of the first, which takes 40 ms.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        code = error.errno if isinstance(error, OSError) else None
        in_use = code == errno.EADDRINUSE
        raise UsageError(
            "The address cannot be used",
            where=options,
            got="another program listens there"
            if in_use
            else getattr(error, "strerror", None) or str(error),
            allowed="an address of this machine and a free port",
            action="give another --port; 0 is a free one",
        ) from error
    return listener
