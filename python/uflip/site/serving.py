"""The server of a site: in the foreground, and on a thread for tests."""

import socket
from typing import TYPE_CHECKING

from uflip.site.database import missing_library

if TYPE_CHECKING:
    from uflip.site.site import Site


def serve(site: "Site", listener: socket.socket, *, any_host: bool, per_minute: int) -> None:
    """Serve requests until a signal arrives.

    Parameters
    ----------
    site : Site
        An open site.
    listener : socket
        A bound socket.
    any_host : bool
        Accept any host name: only a proxy reaches this server, checks host names, and passes
        client addresses on (`X-Forwarded-For`).
    per_minute : int
        Requests a minute of one caller.
    """
    try:
        import uvicorn
    except ImportError as error:
        raise missing_library() from error
    from urllib.parse import urlsplit

    from uflip.site.app import application
    from uflip.web.connections import accepted_at_once, limited_protocol

    host, port = listener.getsockname()[:2]
    names = {f"{name}:{port}" for name in (host, "localhost", "127.0.0.1")}
    if site.base_url:
        names.add(urlsplit(site.base_url).netloc)
    hosts = frozenset() if any_host else frozenset(names)
    config = uvicorn.Config(
        application(site, hosts, per_minute),
        proxy_headers=any_host,
        forwarded_allow_ips="*" if any_host else None,
        log_config=None,
        access_log=False,
        ws="none",
        http=limited_protocol(),
        backlog=accepted_at_once(),
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=5,
    )
    uvicorn.Server(config).run(sockets=[listener])
