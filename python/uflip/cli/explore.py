"""`uflip explore`: browse results, down to every I/O."""

from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import quote

import click

from uflip.cli.options import count_option, path_option
from uflip.cli.terminal import echo
from uflip.errors import UsageError

EPILOG = """\b
Examples:
  uflip explore results
  uflip explore results/before results/after --no-browser
  uflip explore --served stats.sock
  uflip explore --twin twin.toml      change the twin of a device, and run something on it
"""
MAX_PORT = 65535


@click.command("explore", epilog=EPILOG)
@click.argument("paths", nargs=-1)
@count_option("--port", most=MAX_PORT, help="Port to listen on.  [default: a free one]")
@path_option(
    "--served",
    "sockets",
    metavar="PATH",
    multiple=True,
    help="Show a device being served, from the socket of `uflip serve --stats PATH`; repeatable.",
)
@path_option(
    "--twin",
    "twins",
    metavar="TWIN.toml",
    multiple=True,
    help="Offer this simulated device on the page Play, as `uflip infer -o` wrote it; repeatable.",
)
@click.option("--no-browser", is_flag=True, help="Print the URL only; open no browser.")
def command(
    paths: tuple[str, ...],
    port: int | None,
    sockets: tuple[Path, ...],
    twins: tuple[Path, ...],
    no_browser: bool,
) -> None:
    """Browse results: PATH is a result folder, or a folder that contains some.

    The server listens only on this machine, reads only PATH, changes nothing, and ends with Ctrl-C
    or SIGTERM.
    """
    if (
        not (paths or sockets or twins) or "" in paths
    ):  # an empty path would mean the current folder
        raise UsageError(
            "No results found",
            where="PATH",
            got="''" if paths else "no folder",
            allowed="result folders, or folders that contain some",
            action="name one: `uflip explore results`",
        )
    from uflip.web.server import opened_in_browser, serving

    with ExitStack() as stack:
        folders = [Path(path) for path in paths]
        server = stack.enter_context(serving(folders, port or 0, sockets, twins))
        page = "" if paths else "#/served" if sockets else f"#/play/{quote(twins[0].stem)}"
        url = f"{server.url}{page}"
        echo(url)
        opened = not no_browser and stack.enter_context(opened_in_browser(url))
        echo("opened in a browser; Ctrl-C ends it" if opened else "Ctrl-C ends it")
        with suppress(KeyboardInterrupt):
            server.wait()
