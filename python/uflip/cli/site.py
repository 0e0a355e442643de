"""`uflip site`: run a server for the results of many people."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from uflip.cli.options import ANY_PATH, FOLDER_PATH, count_option, json_option, quiet_option
from uflip.cli.terminal import echo, echo_json, echo_table
from uflip.errors import DeviceError, UsageError

if TYPE_CHECKING:
    from uflip.site.site import Site

EPILOG = """\b
Examples:
  uflip site serve /srv/results --port 8087
  uflip site token /srv/results alice --role submitter
  uflip site seed /srv/results
  uflip site serve /srv/results --database postgresql://uflip@db/uflip \\
      --base-url https://results.example.org
"""
PORT = 8087
MAX_PORT = 65535
PER_MINUTE = 1200
ACCOUNT_HEADS = ("account", "role", "token", "created", "expires", "revoked")
ALL_ADDRESSES = {"0.0.0.0", "::"}

folder_argument = click.argument("folder", type=FOLDER_PATH)
database_option = click.option(
    "--database",
    metavar="URL",
    envvar="UFLIP_SITE_DATABASE",
    help="sqlite:///FILE or postgresql://USER@HOST/NAME.  [default: SQLite in FOLDER]",
)

store_option = click.option(
    "--store",
    metavar="URL",
    envvar="UFLIP_SITE_STORE",
    help="s3://BUCKET/PREFIX: store the files there; AWS_ENDPOINT, AWS_REGION and the usual AWS "
    "keys apply.  [default: in FOLDER alone]",
)


class Verb(click.Command):
    """A verb of a site; checks the required libraries before it is imported."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the verb."""
        from uflip.site.database import check_library

        check_library()
        # Only the operator of the site may read tokens and unpublished results.
        before = os.umask(0o077)
        try:
            return super().invoke(ctx)
        finally:
            os.umask(before)


class SiteGroup(click.Group):
    """The group of the site's verbs."""

    command_class = Verb


@click.group("site", cls=SiteGroup, epilog=EPILOG)
def command() -> None:
    """Run a site for results of many people: submitted, checked, browsed and cited."""


@command.command("serve")
@folder_argument
@database_option
@store_option
@click.option(
    "--host",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; 0.0.0.0 and ::, which are all interfaces, need --base-url.",
)
@count_option("--port", most=MAX_PORT, default=str(PORT), help="Port to listen on; 0: a free one.")
@click.option(
    "--base-url",
    metavar="URL",
    default="",
    help="Base of all URLs, as clients see the site.",
)
@click.option(
    "--behind-proxy",
    is_flag=True,
    help="Trust a proxy in front: it checks the host name, and reports the client's address.",
)
@count_option(
    "--per-minute",
    least=1,
    most=10**9,
    default=str(PER_MINUTE),
    help="Requests that one client may make per minute.",
)
@click.option(
    "--access-log",
    is_flag=True,
    help="Print a line per request on standard error: time, client, path, status, duration.",
)
def serve(
    *,
    folder: Path,
    database: str | None,
    store: str | None,
    host: str,
    port: int,
    base_url: str,
    behind_proxy: bool,
    per_minute: int,
    access_log: bool,
) -> None:
    """Serve the site in FOLDER until Ctrl-C.

    A missing FOLDER is created.
    """
    from uflip.site import blob_refs
    from uflip.site.app import serve
    from uflip.web.connections import bind_listener

    _check_public_address(host, base_url)
    with bind_listener(host, port, f"--host {host} --port {port}") as listener:
        chosen = listener.getsockname()[1]
        public_url = base_url or f"http://{f'[{host}]' if ':' in host else host}:{chosen}"
        site = _open_site(folder, database, store, public_url)
        try:
            removed = blob_refs.sweep(site.sessions, site.blobs)
            if removed:
                echo(
                    f"removed {removed} unfinished uploads and folders of a killed server", err=True
                )
            echo(public_url)
            echo("Ctrl-C ends it")
            serve(
                site,
                listener,
                any_host=behind_proxy,
                per_minute=per_minute,
                access_log=access_log,
            )
        finally:
            site.close()


@command.command("token")
@folder_argument
@click.argument("name")
@database_option
@click.option(
    "--role",
    metavar="reader|submitter|admin",
    default="submitter",
    show_default=True,
    help="Rights of the token: read its own results; submit; everything.",
)
@count_option(
    "--expires",
    "valid_days",
    metavar="DAYS",
    least=1,
    most=36_500,
    help="The token is valid for this number of days.  [default: without end]",
)
@click.option("--rotate", is_flag=True, help="Replace the token of NAME; its role stays.")
@click.option("--revoke", is_flag=True, help="Revoke the token of NAME.")
@json_option
def token(
    *,
    folder: Path,
    name: str,
    database: str | None,
    role: str,
    valid_days: int | None,
    rotate: bool,
    revoke: bool,
    as_json: bool,
) -> None:
    """Create a token for the account NAME, and print it once.

    If FOLDER contains no site, one is created, with a note.
    """
    from uflip.site import accounts

    if rotate and revoke:
        raise UsageError(
            "--rotate and --revoke exclude each other",
            where="uflip site token",
            got="both",
            allowed="one of them",
            action="--revoke ends the token; --rotate replaces it",
        )
    existing = rotate or revoke
    if not existing:
        accounts.check_new(name, role)
    site = _open_site(folder, database, make=not existing)
    if site.new:
        echo(f"There was no site in {folder}: a NEW one was created", err=True)
    try:
        with site.sessions.begin() as session:
            if revoke:
                accounts.revoke(session, name)
                made = None
            elif rotate:
                made = accounts.rotate(session, name, valid_days=valid_days)
            else:
                made = accounts.new_token(session, name, role, valid_days=valid_days)
    finally:
        site.close()
    if as_json:
        echo_json({"name": name, "role": role, "token": made, "revoked": revoke})
    elif made is None:
        echo(f"the token of {name} was revoked")
    else:
        echo(made)
        echo("shown only once; set it as UFLIP_SITE_TOKEN", err=True)


@command.command("accounts")
@folder_argument
@database_option
@json_option
def list_accounts(*, folder: Path, database: str | None, as_json: bool) -> None:
    """List the accounts: role, state of the token, dates."""
    from sqlalchemy import select

    from uflip.site.accounts import status_of
    from uflip.site.tables import Account

    site = _open_site(folder, database, make=False)
    try:
        with site.sessions() as session:
            rows = [
                {
                    "name": each.name,
                    "role": each.role,
                    "token": status_of(each),
                    "created_utc": each.created_utc,
                    "expires_utc": each.expires_utc,
                    "revoked_utc": each.revoked_utc,
                }
                for each in session.scalars(select(Account).order_by(Account.name))
            ]
    finally:
        site.close()
    if as_json:
        echo_json({"accounts": rows})
    else:
        table = [[str(cell or "–") for cell in row.values()] for row in rows]
        echo_table(ACCOUNT_HEADS, table, left=len(ACCOUNT_HEADS))


@command.command("seed")
@folder_argument
@database_option
@store_option
@click.option(
    "--device",
    "devices",
    metavar="DEVICE",
    multiple=True,
    help="Only these, as for `uflip run`; `file` is a new file next to the site.",
)
@click.option(
    "--scale", metavar="NAME", default="quick", show_default=True, help="As for `uflip run`."
)
@click.option("--only", metavar="NAME", multiple=True, help="Only these micro-benchmarks.")
@quiet_option
@json_option
def seed(
    *,
    folder: Path,
    database: str | None,
    store: str | None,
    devices: tuple[str, ...],
    scale: str,
    only: tuple[str, ...],
    quiet: bool,
    as_json: bool,
) -> None:
    """Measure all simulated devices and a file; publish them.

    A device that fails is reported, and does not stop the others. After Ctrl-C, or a kill, the same
    command continues.
    """
    from uflip.cli.benchmark_progress import BenchmarkProgress
    from uflip.site.seed import check, default_devices
    from uflip.site.seed import seed as seeded

    check(devices, scale, only or None)
    site, done = _open_site(folder, database, store), []
    failed: list[tuple[str, DeviceError]] = []
    try:
        for device in devices or default_devices():
            try:
                with BenchmarkProgress(quiet=quiet or as_json) as progress:
                    (published,) = seeded(
                        site, [device], scale=scale, only=only or None, on_event=progress
                    )
            except DeviceError as error:  # it wore out; measure the others
                failed.append((device, error))
                echo(f"{device}: nothing published: {error.what}", err=True)
                continue
            done.append({"device": published.device, "id": published.result, "new": published.new})
            if not (quiet or as_json):
                status = "published" if published.new else "already published"
                echo(f"{published.device}: {status} as {published.result}")
    finally:
        site.close()
    if as_json:
        failures = [{"device": device, "error": error.parts()} for device, error in failed]
        echo_json({"results": done, "failed": failures})
    if failed:
        click.get_current_context().exit(failed[0][1].exit_code)


@command.command("backup")
@folder_argument
@click.argument("out", type=ANY_PATH)
@database_option
@store_option
def backup(folder: Path, out: Path, database: str | None, store: str | None) -> None:
    """Copy a consistent state of the site into the new OUT."""
    from uflip.site.backup import back_up

    site = _open_site(folder, database, store, make=False)
    try:
        counted = back_up(site, out)
    finally:
        site.close()
    echo(f"{counted.results} results, {counted.files} files, {counted.bytes} bytes in {out}")


@command.command("restore")
@click.argument("backup_folder", metavar="BACKUP", type=ANY_PATH)
@folder_argument
@database_option
@store_option
def restore(backup_folder: Path, folder: Path, database: str | None, store: str | None) -> None:
    """Restore a BACKUP into the new FOLDER, and check every file."""
    from uflip.site.backup import restore_from

    counted = restore_from(backup_folder, folder, database, store)
    echo(f"{counted.results} results, {counted.files} files, {counted.bytes} bytes in {folder}")


def _check_public_address(host: str, base_url: str) -> None:
    """Reject an address that clients cannot use, unless --base-url names another."""
    if host in ALL_ADDRESSES and not base_url:
        raise UsageError(
            "--base-url is required when listening on all interfaces",
            where="--host",
            got=f"--host {host} without --base-url",
            allowed="--base-url URL, or an address of this machine",
            action="give --base-url: the base of all URLs, as clients see the site",
        )


def _open_site(
    folder: Path,
    database: str | None,
    store: str | None = None,
    base_url: str = "",
    *,
    make: bool = True,
) -> "Site":
    from uflip.site.site import open_site

    return open_site(folder, database, base_url, store, make=make)
