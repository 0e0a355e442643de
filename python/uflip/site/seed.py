"""What a new site has to show: the benchmark of every built-in simulated device, and of a file.

They are measured here and now, on this machine, and go the way of every submission: without what
names the machine, looked at, computed again from the traces. Simulated devices are labelled as such
on every page, a file as a file; the account that has them is called `seed`, and has no token.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from sqlalchemy import select

from uflip.profiles import profile_names, zoned_names
from uflip.session import OnEvent, Request, begin, ignore
from uflip.site.accounts import new_token
from uflip.site.client import missing, prepare
from uflip.site.offer import Offered
from uflip.site.parts import bodies
from uflip.site.tables import Account

if TYPE_CHECKING:
    from uflip.site.site import Site

ACCOUNT = "seed"
FILE = "file"
"""Stands for a new file beside the site's."""
FILE_BYTES = 256 << 20


@dataclass(frozen=True)
class Seeded:
    """A result of the collection: the device, and its id on the site."""

    device: str
    result: str
    new: bool


def collection() -> list[str]:
    """List the devices of the whole collection."""
    return [*(f"sim:{name}" for name in profile_names()), FILE]


def seed(
    site: "Site",
    devices: Iterable[str],
    *,
    scale: str = "quick",
    only: Sequence[str] | None = None,
    on_event: OnEvent = ignore,
) -> Iterator[Seeded]:
    """Measure devices one after the other, and publish each result on a site.

    Parameters
    ----------
    site : Site
        Takes them in.
    devices : iterable of str
        As `uflip run` names them, or `FILE`.
    scale : str
        As `uflip run --scale`.
    only : sequence of str, optional
        Of all micro-benchmarks, only these.
    on_event : callable
        Told about the benchmarks, see `uflip.session.events`.

    Yields
    ------
    Seeded
        Each result as soon as it is public. What was yielded stays when a later device fails.

    Raises
    ------
    UflipError
        As `uflip.run`, and as `Intake.commit`.
    """
    account = _account(site)
    for device in devices:
        # Beside the site's files, so that a file is on the storage that the site is on.
        with TemporaryDirectory(prefix=".seed-", dir=site.root) as scratch:
            request = replace(_request(device, Path(scratch)), scale=scale, only=only)
            folder = begin(request, Path(scratch) / "result", on_event)
            result, new = _published(site, account, folder, Path(scratch) / "copy")
            yield Seeded(device, result, new)


def _account(site: "Site") -> Account:
    with site.sessions.begin() as session:
        named = select(Account).where(Account.name == ACCOUNT)
        if session.scalar(named) is None:
            new_token(session, ACCOUNT, "submitter")  # which nobody is told
        return session.scalars(named).one()


def _request(device: str, scratch: Path) -> Request:
    if device == FILE:
        return Request(device=f"file:{scratch / 'file.bin'}", size=FILE_BYTES)
    zoned = device.removeprefix("sim:") in zoned_names()
    return Request(device=device, suite="zones" if zoned else None)


def _published(site: "Site", account: Account, folder: Path, copy: Path) -> tuple[str, bool]:
    copy.mkdir()
    prepared = prepare(folder, copy)
    submission = site.intake.begin(account, [Offered(*each) for each in prepared.files])
    received = site.intake.received(account, submission)
    for some in bodies(missing(prepared, received)):
        site.intake.receive(account, submission, some)
    return site.intake.commit(account, submission, publish=True)
