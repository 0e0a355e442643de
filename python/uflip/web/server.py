"""A server of this machine alone, for as long as somebody looks: a socket, a browser, the end."""

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
from uflip.play.stage import Stage
from uflip.web.app import application, missing_library
from uflip.web.listen_address import listening

LOOPBACK = "127.0.0.1"
START_S = 20.0
LOOK_S = 0.2


@dataclass(frozen=True)
class Serving:
    """A server that answers.

    Attributes
    ----------
    url : str
        Where it answers, token included.
    port : int
        Of this machine alone.
    thread : Thread
        What it runs on.
    """

    url: str
    port: int
    thread: Thread

    def wait(self) -> None:
        """Wait until it ends, which it does not, or until a signal raises here."""
        while self.thread.is_alive():
            self.thread.join(LOOK_S)


@contextmanager
def serving(
    roots: Sequence[Path], port: int = 0, sockets: Sequence[Path] = ()
) -> Iterator[Serving]:
    """Serve the explorer of some folders while this block lasts.

    Parameters
    ----------
    roots : sequence of Path
        What may be read.
    port : int
        On which port; 0: a free one.
    sockets : sequence of Path
        Where servers of devices tell what they serve.

    Raises
    ------
    UsageError
        If a folder is none, or the port is in use.
    UnavailableError
        If Starlette or uvicorn is not installed.
    """
    try:
        import uvicorn
    except ImportError as error:
        raise missing_library() from error
    from uflip.web.connections import accepted_at_once, limited_protocol

    with listening(LOOPBACK, port, f"--port {port}") as listener, closing(Stage()) as stage:
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
        # Signals are ours: on a thread of its own the server leaves them alone.
        thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            _started(server, thread)
            yield Serving(f"http://{LOOPBACK}:{chosen}/{token}/", chosen, thread)
        finally:
            server.should_exit = True
            thread.join(START_S)


def _started(server: "uvicorn.Server", thread: Thread) -> None:  # type: ignore[name-defined]  # noqa: F821
    begin = monotonic()
    while not server.started:
        if not thread.is_alive() or monotonic() - begin > START_S:
            raise UnavailableError(
                "The explorer did not start",
                where="uflip explore",
                action="try again; where it fails again, report it with the lines above",
            )
        sleep(0.01)


@contextmanager
def opened_in_browser(url: str) -> Iterator[bool]:
    """Open the page where there is a desktop; gives whether a browser was asked.

    The address has the token in it, and everybody on this machine sees the arguments of a process.
    So the browser is given the name of a file that leads there, for this user alone, which is there
    until the block is left.
    """
    if not (environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")):
        yield False
        return
    with TemporaryDirectory(prefix="uflip-explore-") as folder:  # for its owner alone
        page = Path(folder) / "explorer.html"
        page.touch(mode=0o600)
        # An address of ours: letters, digits and what needs no escaping.
        leads = (resources.files("uflip.web") / "redirect.html").read_text("utf-8")
        page.write_text(leads.replace("ADDRESS", url), "utf-8")
        yield webbrowser.open(page.as_uri())
