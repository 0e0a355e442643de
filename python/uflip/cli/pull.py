"""`uflip pull`: download a result from a results site."""

from pathlib import Path

import click

from uflip.cli.options import path_option
from uflip.cli.terminal import echo

EPILOG = """\b
Examples:
  uflip pull https://results.example.org 0123456789abcdef0123456789abcdef
  uflip pull http://127.0.0.1:8087 0123456789abcdef0123456789abcdef --out results/theirs
"""


@click.command("pull", epilog=EPILOG)
@click.argument("url")
@click.argument("result", metavar="ID")
@path_option("--out", help="A new folder.  [default: results/ID]")
@click.option("--token", metavar="TOKEN", help="Your token.  [default: $UFLIP_SITE_TOKEN]")
def command(url: str, result: str, out: Path | None, token: str | None) -> None:
    """Download the result ID from the site at URL; every file is checked."""
    from uflip.errors import UsageError
    from uflip.site.client import Client

    if not (result.isascii() and result.isalnum()):
        raise UsageError(
            "Not the id of a result",
            where="ID",
            got=result,
            allowed="letters and digits, as in 0123456789abcdef0123456789abcdef",
            action="copy it from the page of the result",
        )
    with Client(url, token) as client:
        echo(str(client.pull(result, out or Path("results") / result)))
