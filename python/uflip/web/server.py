"""The server of the explorer on the loopback address: socket, browser, shutdown."""

import secrets
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib import resources
from os import environ
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from time import monotonic, sleep

from uflip.errors import UnavailableError
from uflip.play.form import named_twins
from uflip.play.stage import Stage
from uflip.web.app import application, missing_library

LOOPBACK = "127.0.0.1"
START_S = 20.0
POLL_S = 0.2


@dataclass(frozen=True)
class Serving:
    """A running server."""

    url: str  #: Its URL, token included.
    port: int  #: Its port, on the loopback address.
    thread: Thread  #: Its thread.

    def wait(self) -> None:
        """Wait until the server ends, or a signal raises an exception here."""
        while self.thread.is_alive():
            self.thread.join(POLL_S)


@contextmanager
def serving(
    roots: Sequence[Path],
    port: int = 0,
    sockets: Sequence[Path] = (),
    twins: Sequence[Path] = (),
) -> Iterator[Serving]:
    """Serve the explorer of some folders during this block.

    `roots`: the folders that may be read. `port`: the port; 0: a free one. `sockets`: statistics
    sockets of `uflip serve`. `twins`: profiles of further devices for the page Play.
    """
    playing = Stage(twins=named_twins(twins))
    try:
        import uvicorn
    except ImportError as error:
        raise missing_library() from error
    from uflip.web.connections import accepted_at_once, bind_listener, limited_protocol

    with bind_listener(LOOPBACK, port, f"--port {port}") as listener, closing(playing) as stage:
        chosen = int(listener.getsockname()[1])
        token = secrets.token_urlsafe(16)
        config = uvicorn.Config(
            application(roots, token, chosen, stage, sockets),
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            http=limited_protocol(),
            backlog=accepted_at_once(),
            timeout_graceful_shutdown=1,
            server_header=False,
        )
        server = uvicorn.Server(config)
        # uvicorn installs no signal handlers outside of the main thread.
        thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            _wait_until_started(server, thread)
            yield Serving(f"http://{LOOPBACK}:{chosen}/{token}/", chosen, thread)
        finally:
            server.should_exit = True
            thread.join(START_S)


def _wait_until_started(server: "uvicorn.Server", thread: Thread) -> None:  # type: ignore[name-defined]  # noqa: F821
    begin = monotonic()
    while not server.started:
        if not thread.is_alive() or monotonic() - begin > START_S:
            raise UnavailableError(
                "The explorer did not start",
                where="uflip explore",
                action="try again; if it fails again, report it with the lines above",
            )
        sleep(0.01)


@contextmanager
def opened_in_browser(url: str) -> Iterator[bool]:
    """Open the page if there is a desktop; return whether a browser was called.

    The URL contains the token, and all users of this machine see the arguments of a process. So the
    browser gets the path of a file that redirects to it. The file is readable only for this user,
    and exists until the end of the block.
    """
    if not (environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")):
        yield False
        return
    with TemporaryDirectory(prefix="uflip-explore-") as folder:  # for its owner alone
        page = Path(folder) / "explorer.html"
        page.touch(mode=0o600)
        # Our own URL: letters, digits and characters that need no escaping.
        leads = (resources.files("uflip.web") / "redirect.html").read_text("utf-8")
        page.write_text(leads.replace("ADDRESS", url), "utf-8")
        yield webbrowser.open(page.as_uri())
