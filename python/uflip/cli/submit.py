"""`uflip submit`: upload a result to a results site, after listing the omitted files."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from uflip.cli.options import ANY_PATH, json_option, quiet_option
from uflip.cli.progress import display
from uflip.cli.terminal import echo, echo_json
from uflip.errors import RefusedError
from uflip.escape import escape_line
from uflip.units import format_size

if TYPE_CHECKING:
    from uflip.site.client import Submitted

EPILOG = """\b
Examples:
  uflip submit results/demo http://127.0.0.1:8087 --dry-run
  UFLIP_SITE_TOKEN=uflip_... uflip submit results/demo https://results.example.org --publish

\b
Serial numbers, paths and the command line are not sent. Files that the site has are not sent again:
an interrupted upload is resumed. The output names a result that somebody else has submitted
already; --publish then ends with exit code 3 if it is private.
"""


@click.command("submit", epilog=EPILOG)
@click.argument("result", type=ANY_PATH)
@click.argument("url")
@click.option("--token", metavar="TOKEN", help="Your token.  [default: $UFLIP_SITE_TOKEN]")
@click.option("--publish", is_flag=True, help="Let everybody see it; otherwise only you can.")
@click.option("--dry-run", is_flag=True, help="Show what would be sent; send nothing.")
@quiet_option
@json_option
def command(
    *,
    result: Path,
    url: str,
    token: str | None,
    publish: bool,
    dry_run: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Upload the result folder RESULT to the site at URL, which recomputes everything from it."""
    from uflip.site.client import Client, prepare, scratch_folder

    with scratch_folder() as scratch:
        prepared = prepare(result, scratch)
        if not (quiet or as_json):
            echo(f"{len(prepared.files)} files, {format_size(prepared.bytes)}; not sent:")
            for each in prepared.redacted:
                echo(f"  {each.where}: {escape_line(each.value)}")
        document = {
            "files": len(prepared.files),
            "bytes": prepared.bytes,
            "left_out": [each.where for each in prepared.redacted],
        }
        if dry_run:
            if as_json:
                echo_json(document | {"sent": False})
            elif not quiet:
                echo("nothing was sent")
            return
        with Client(url, token) as client, display(quiet=quiet or as_json, total=1) as sink:

            def show_progress(done: int, total: int) -> None:
                sink.draw(done / total, f"sending  {format_size(done)} of {format_size(total)}")

            done = client.submit(prepared, publish=publish, on_bytes=show_progress)
    if as_json:
        echo_json(document | {"sent": True} | done)
    else:
        echo(f"{done['url']}  ({'new' if done['new'] else 'existed already'}, {_visibility(done)})")
    if publish and not done["published"]:
        raise click.exceptions.Exit(RefusedError.exit_code)


def _visibility(done: "Submitted") -> str:
    """Return who can see a result, and whether it is the caller's."""
    if done["own"]:
        return "published" if done["published"] else "private until `--publish`"
    visibility = (
        "published" if done["published"] else "private; only they or an admin can publish it"
    )
    return f"submitted by somebody else, {visibility}"
